"""Makes a catalog of plugins: static pages and an index, from wheels that are read as data.

Nothing of a wheel is imported, unpacked or run. It may use the host, which must not know of it.
"""
