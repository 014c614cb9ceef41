"""Stores that keep their tables in a database of SQL: everything but the database itself.

`TableStore` is the whole protocol, on a few tables that `agent_hookspecs.store.tables.schema`
explains. What a database is opened with, what it calls an error and how it finds words differ; who
writes such a store gives a `Database` and a `WordIndex`, and has the rest.
"""
