"""Carries requests over sockets of our own: HTTP/1.1, TLS, connections that are used again.

`blocking` and `asynchronous` are transports for the clients of an HTTP library; `base`, `parser`
and `pool` are what they share, and wait for nothing. Nothing here knows what a body means. Names
are imported from the modules themselves, so that importing this package costs nothing.
"""
