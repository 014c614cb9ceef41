"""The table of what was spent, by day and account. Each function runs in a transaction.

A day has one row for each account, so that asking costs the same however much was done.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal

from agent_hookspecs.store.rules import clean_text
from agent_hookspecs.store.tables.database import Connection

__all__ = ["add_costs", "day_costs", "session_cost"]

#: How many of the units that are stored make a dollar.
_UNITS = Decimal(10) ** 12
_ADD = """
    INSERT INTO spending (day, account, cost) VALUES (?, ?, ?)
    ON CONFLICT (day, account) DO UPDATE SET cost = spending.cost + excluded.cost
"""
_OF_DAY = "SELECT account, cost FROM spending WHERE day = ?"
_OF_SESSION = "SELECT cost FROM runs WHERE session = ? AND cost IS NOT NULL"


def add_costs(connection: Connection, spent: Mapping[str, Decimal]) -> None:
    """Count what was spent to the present day."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    # Always in the same order, so that two writers never wait for each other.
    for account, cost in sorted(spent.items()):
        connection.execute(_ADD, (day, clean_text(account), int(cost * _UNITS)))


def day_costs(connection: Connection, day: str) -> dict[str, Decimal]:
    rows = connection.execute(_OF_DAY, (clean_text(day),))
    return {account: Decimal(cost) / _UNITS for account, cost in rows}


def session_cost(connection: Connection, session: str) -> Decimal:
    rows = connection.execute(_OF_SESSION, (clean_text(session),))
    return sum((Decimal(cost) for (cost,) in rows), Decimal(0))
