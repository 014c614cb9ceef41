"""The skills package meets the contracts of features and of tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from skills_made import write_skill

from agent_host_testing import FeatureConformance, ToolConformance

ADDED = {"add_tags": ["supports_tools"]}
SAMPLES = {"read_skill": {"skill": "pdf-forms"}}


def make_world(folder: Path) -> dict[str, Any]:
    (write_skill(folder / "skills") / "fields.md").write_text("Names.\n", encoding="utf-8")
    return {"skills_folders": [str(folder / "skills")]}


class TestSkillReader(ToolConformance):
    package = "agent_host_skills"
    plugin = "skill_reader"
    samples = SAMPLES

    def prepare_world(self, folder: Path) -> dict[str, Any]:
        return make_world(folder)


class TestSkills(FeatureConformance):
    package = "agent_host_skills"
    plugin = "skills"
    expects = ("get_instructions",)
    # What the suite's own provider does not say: that its models can call tools.
    settings = ADDED

    @pytest.fixture(autouse=True)
    def _world(self, tmp_path: Path) -> None:
        self._made = make_world(tmp_path)

    def config(self, **more: Any) -> dict[str, Any]:
        return super().config(**self._made, **more)
