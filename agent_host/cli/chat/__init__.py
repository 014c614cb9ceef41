"""``agent-host chat``: a conversation at a terminal, with two faces on one set of commands.

`conversation` knows what is talked about and with whom, `commands` what a line with a slash does.
`window` is the face with prompt_toolkit and rich, `plain` the one of lines alone.
"""
