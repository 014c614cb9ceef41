"""These tests need every distribution of the repository; where one is missing they are left out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MISSING = [
    package.parent.name
    for package in sorted(ROOT.glob("plugins/*/src/*/__init__.py"))
    if find_spec(package.parent.name) is None
]

collect_ignore_glob = ["test_together_*.py"] if MISSING else []


def pytest_report_header() -> list[str]:
    return [f"tests/together is left out, for want of {', '.join(MISSING)}"] if MISSING else []
