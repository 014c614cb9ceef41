"""The table of deliberate mistakes in providers fits the code it breaks and the tests it names.

Making the mistakes takes minutes and is a command of its own; that they still can be made is here.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from breakages.breakage import Breakage
from stops import PROVIDERS

ROOT = Path(__file__).resolve().parents[2]
BREAKAGES: tuple[Breakage, ...] = runpy.run_path(str(ROOT / ".ci" / "provider_mistakes.py"))[
    "BREAKAGES"
]
#: Where the provider ``custom`` is.
FOLDERS = {"custom": "openai-compatible"}


def test_there_are_enough_of_them_in_every_provider() -> None:
    broken = [each.package for each in BREAKAGES]
    assert len(broken) >= 25
    assert {*broken} == {FOLDERS.get(name, name) for name in PROVIDERS}
    assert min(broken.count(package) for package in {*broken}) >= 4


def test_each_has_a_name_of_its_own() -> None:
    assert len({each.name for each in BREAKAGES}) == len(BREAKAGES)


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda each: each.name)
def test_a_mistake_can_be_made_in_one_place_and_leaves_code(breakage: Breakage) -> None:
    package = f"agent_host_{breakage.package.replace('-', '_')}"
    folder = ROOT / "plugins" / breakage.package
    for change in breakage.changes:
        file = folder / "src" / package / change.file
        compile(change.applied(file.read_text("utf-8")), str(file), "exec")
    assert breakage.red
    for name in breakage.red:
        file_name, _, test = name.partition("::")
        assert f"def {test.rpartition('::')[-1]}(" in (folder / "tests" / file_name).read_text(
            "utf-8"
        )
