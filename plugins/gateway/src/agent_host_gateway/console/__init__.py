"""The console: a page for people on the gateway's server, and what it asks the server for.

The page is files that a browser takes as they are. Everything in it that comes from models, tools
or plugins is text: nothing here makes HTML of it.
"""
