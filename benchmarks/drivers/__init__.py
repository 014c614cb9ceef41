"""What is measured, one module each, run in a process of its own by `benchmarks.worker`.

A module has a class ``Driver`` that takes the server's URL. ``speaks`` are the wire formats it
knows. What it can do shows in its methods: ``stream`` and ``astream`` take a case and give the
number of fragments they saw, ``request`` and ``arequest`` take a case and give the length of the
answer's text, ``hold`` opens a stream, reads its beginning and gives what closes it.
"""
