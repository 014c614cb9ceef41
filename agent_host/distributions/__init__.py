"""The distributions around the host: which are wanted, which are locked, and how they get there.

It changes environments through the installer that made them, and imports nothing of what it
installs. It must not know what the command line looks like.
"""
