"""The host's side of the socket: HTTP, byte framing, failures and retries.

`client` sends requests and is the only module that imports an HTTP library; `transport` carries
them over sockets. `framing` turns bytes into decoded events, `failures` turns refusals into typed
errors, `retry` says how long to wait. None of them knows a provider, a session or a plugin. Names
are imported from the modules themselves, so that importing this package costs nothing.
"""
