"""The doors: each reads the requests of one API and writes its answers, and does nothing else.

A door has no I/O. It is a module with `read_request`, `Writer`, `whole_answer` and `error_body`.
"""
