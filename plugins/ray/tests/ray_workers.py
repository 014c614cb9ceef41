"""Workers that tests send to nodes, which import them by the name of this module."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_hookspecs.batch import BatchLimits
from agent_hookspecs.errors import AgentError

__all__ = ["KilledWorker", "OpenKilledWorker"]


@dataclass(frozen=True)
class KilledWorker:
    """A worker whose process is killed by the fifth line, as one is that takes all memory."""

    async def answer(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        if line["n"] == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return line

    async def aclose(self) -> None:
        pass


class OpenKilledWorker:
    def find_environment(self) -> Mapping[str, str]:
        return {}

    def __call__(self, limits: BatchLimits) -> KilledWorker:
        return KilledWorker()

    def open_limits(self) -> Any:
        return None

    def fail_line(self, line: Mapping[str, Any], error: AgentError) -> Mapping[str, Any]:
        return {**line, "error": type(error).__name__}
