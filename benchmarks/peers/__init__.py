"""Other libraries, one module each, with the methods that `benchmarks.drivers` describes.

They are used only if they are installed, which `installed` knows, and imported by name so that
types can be checked without them; nothing of this repository needs them.
"""
