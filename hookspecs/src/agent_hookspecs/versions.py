"""Version ranges of the contract, such as ``>=1,<2``, without a dependency for it.

Only what a descriptor's ``api`` needs: dotted numbers and the comparisons between them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache

__all__ = ["contains"]

_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([0-9]+(?:\.[0-9]+)*)\s*")
_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


@lru_cache(maxsize=256)
def contains(wanted: str, version: str) -> bool:
    """Whether ``version`` satisfies every clause of ``wanted``; `ValueError` if it is no range."""
    return all(
        _COMPARE[comparison](_numbers(version), _numbers(bound))
        for comparison, bound in _clauses(wanted)
    )


def _clauses(wanted: str) -> list[tuple[str, str]]:
    clauses = []
    for text in wanted.split(","):
        match = _CLAUSE.fullmatch(text)
        if match is None:
            raise ValueError(f"{wanted!r} is not a version range such as '>=1,<2'")
        clauses.append((match[1], match[2]))
    return clauses


def _numbers(version: str) -> tuple[int, ...]:
    # 1 and 1.0 are the same version, so trailing zeros do not count.
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
