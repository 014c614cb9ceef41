"""Providers that pass every check, one for each wire format; the loader finds them in this folder."""
