"""The files package meets the contract of tools."""

from __future__ import annotations

from pathlib import Path

from agent_host_testing import ToolConformance

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch"
SAMPLES = {
    "read_file": {"path": "notes.txt"},
    "list_files": {},
    "search_files": {"pattern": "word"},
    "write_file": {"path": "made.txt", "content": "made"},
    "apply_patch": {"input": PATCH},
}


class TestFiles(ToolConformance):
    package = "agent_host_files"
    plugin = "files"
    samples = SAMPLES

    def prepare_world(self, folder: Path) -> dict[str, str]:
        (folder / "notes.txt").write_text("a word\n", encoding="utf-8")
        return {"root": str(folder)}
