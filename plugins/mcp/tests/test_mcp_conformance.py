"""The mcp package meets the contract of tools, with a server that was approved before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp_bench import approve, home, plain

from agent_host_testing import ToolConformance

__all__ = ["home"]

SAMPLES = {"mcp_one__echo": {"text": "a word that nobody else has said"}}


class TestMcp(ToolConformance):
    package = "agent_host_mcp"
    plugin = "mcp"
    samples = SAMPLES

    @pytest.fixture(autouse=True)
    def _world(self, home: Path, tmp_path: Path) -> None:
        # Approvals are stored in the home, so that has to be there first.
        self._made = self.prepare_world(tmp_path)

    def prepare_world(self, folder: Path) -> dict[str, Any]:
        approve(one=plain())
        return {"mcp": {"servers": {"one": plain()}}}
