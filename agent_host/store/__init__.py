"""The built-in store of sessions and runs: one SQLite file."""
