"""Under what circumstances a run was made: machine, Python, versions, command and date."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import distributions
from typing import Any

from benchmarks.peers import installed

__all__ = ["circumstances"]

_OTHERS = ("httpx", "httpcore", "h11", "httptools", "pydantic-core", "pluggy", "click")


def circumstances(arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks", *arguments]),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.platform()}",
        "versions": _versions(),
        "peers": installed.versions(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {str(each.metadata["Name"]).replace("_", "-"): each.version for each in distributions()}
    return {
        name: version
        for name, version in sorted(found.items())
        if name.startswith("agent-h") or name in _OTHERS
    }
