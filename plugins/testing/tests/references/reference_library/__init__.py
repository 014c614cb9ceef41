"""Two providers that do their own I/O: of a known format, and of frames that no host knows."""
