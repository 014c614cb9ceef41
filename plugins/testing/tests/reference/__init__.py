"""Packages that pass every check, one for each wire format and role, found by the loader here."""
