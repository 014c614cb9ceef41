"""The outcome of a check that a plugin does not ask to be held to.

It is neither a pass nor a failure: pytest sees a skip, and the report counts it apart by the
beginning of its reason.
"""

from __future__ import annotations

from typing import NoReturn

import pytest

__all__ = ["NOT_CLAIMED", "not_claimed"]

NOT_CLAIMED = "not claimed: "


def not_claimed(why: str) -> NoReturn:
    """End the check: the plugin does not say that it can do this, and ``why`` is how we know."""
    pytest.skip(f"{NOT_CLAIMED}{why}")
