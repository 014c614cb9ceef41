"""The list of attacks on the page on security: each names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = (ROOT / "docs" / "security.md").read_text("utf-8").partition("## Attacks on tools")[2]
ROWS = re.findall(r"^\| (\d+) \| ([^|]+) \| `([\w/.]+)`: `(test_\w+)` \|$", LIST, re.M)


def test_at_least_fifty_attacks_are_tried_each_by_a_test_of_its_own() -> None:
    assert [int(number) for number, *_ in ROWS] == [*range(1, len(ROWS) + 1)]
    assert len(ROWS) >= 50
    assert len({(file, test) for _, _, file, test in ROWS}) == len(ROWS)


def test_every_attack_names_a_test_that_is_there() -> None:
    missing = [
        f"{file}: {test}"
        for _, _, file, test in ROWS
        if f"def {test}(" not in (ROOT / file).read_text("utf-8")
    ]
    assert missing == []
