"""The shell package meets the contract of tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_host_shell.sandbox import Bubblewrap
from agent_host_testing import ToolConformance

SAMPLES = {"run_command": {"command": "cat notes.txt; echo more > made.txt"}}


@pytest.mark.usefixtures("bubblewrap")
class TestShell(ToolConformance):
    package = "agent_host_shell"
    plugin = "shell"
    samples = SAMPLES

    def prepare_world(self, folder: Path) -> dict[str, str]:
        (folder / "notes.txt").write_text("a word\n", encoding="utf-8")
        return {"root": str(folder)}


def test_the_sandbox_is_the_systems(bubblewrap: Bubblewrap) -> None:
    assert Path(bubblewrap.program).is_absolute()
