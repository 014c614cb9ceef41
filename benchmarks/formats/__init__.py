"""The bytes that the fake server sends: one module for each wire format.

Each has ``events(content, count)``, the pieces of a streamed answer in order, ``whole(count)``, an
answer in one piece, and ``listing()``, what the API says when it is asked about models.
"""
