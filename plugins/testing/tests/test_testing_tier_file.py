"""The tier of a package is written down, sealed, and gathered over several Pythons."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.inspect.conformance import (
    Conformance,
    digest_folder,
    is_sealed,
    read_conformance,
    write_conformance,
)
from agent_host_testing.tier_file import check_types

PLUGIN = '''
"""A feature that says nothing."""

from agent_hookspecs import Config, FeaturePlugin, State


class Quiet(FeaturePlugin):
    """Says nothing."""

    name = "quiet"

    def init(self, config: Config, state: State) -> State:
        return state
'''
ENTRY = {"entry": "quiet_package.plugin:Quiet", "role": "feature", "name": "quiet"}
SUITE = """
from agent_host_testing import FeatureConformance


class TestQuiet(FeatureConformance):
    package = "quiet_package"
    plugin = "quiet"
    folder = {folder!r}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "quiet_package"
    made.mkdir()
    (made / "__init__.py").touch()
    (made / "py.typed").touch()
    (made / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    descriptor = {"api": ">=1,<2", "entries": [ENTRY]}
    (made / "agent_plugin.json").write_text(json.dumps(descriptor), encoding="utf-8")
    (tmp_path / "test_quiet.py").write_text(SUITE.format(folder=str(tmp_path)), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return made


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n", "0"]
    done = subprocess.run(
        [*command, "--conformance-tier", str(folder / "conformance.json"), *options],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def written(folder: Path) -> Conformance:
    found = read_conformance(folder / "conformance.json")
    assert found is not None
    assert is_sealed(found)
    assert found.files == digest_folder(folder)
    return found


HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_a_run_writes_the_tier_and_adds_to_what_other_pythons_have_found(folder: Path) -> None:
    file = folder / "conformance.json"
    elsewhere = Conformance(
        contract="1.0", host="0", kit="0", pythons=("3.9",), plugins={}, files="of other files"
    )
    write_conformance(file, elsewhere)
    said = run(folder)
    found = written(folder)
    assert found.tier == ("silver" if found.types else "bronze"), said
    assert f"{found.tier}, on Python {HERE}: written to " in said
    # What was found of other files counts no more.
    assert found.pythons == (HERE,)
    assert found.plugins["feature:quiet"].failed == 0
    assert found.plugins["feature:quiet"].passed > 5
    # As if another Python had been there before.
    write_conformance(file, found.model_copy(update={"pythons": ("3.9",)}))
    run(folder)
    assert written(folder).pythons == ("3.9", HERE)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-k", "descriptor"], "bronze lacks: feature:quiet: "),
        (["-k", "nothing_is_called_so"], "no conformance.json was written: no conformance suite"),
    ],
)
def test_without_a_tier_nothing_is_written_and_it_is_said_why(
    folder: Path, options: list[str], said: str
) -> None:
    assert said in run(folder, *options)
    assert not (folder / "conformance.json").exists()


def test_types_are_checked_strictly_whatever_settings_lie_around(folder: Path) -> None:
    pytest.importorskip("mypy")
    (folder.parent / "mypy.ini").write_text("[mypy]\nignore_errors = true\n", encoding="utf-8")
    assert check_types(folder) == ""
    with open(folder / "plugin.py", "a", encoding="utf-8") as file:
        file.write("\n\ndef loose(x):\n    return x\n")
    assert "Function is missing a type annotation" in check_types(folder)


def test_a_checker_that_is_not_there_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> Any:
        return None

    monkeypatch.setattr("agent_host_testing.tier_file.find_spec", find_nothing)
    assert "mypy is not installed here" in check_types(folder)


def test_validate_runs_the_suites_and_says_that_they_reach_nothing(folder: Path) -> None:
    (folder.parent / "tests").mkdir()
    tests = "def test_it():\n    assert False\n"
    (folder.parent / "tests" / "test_nothing.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "agent_host", "plugins", "validate", "--tier", "--json"]
    done = subprocess.run(
        [*command, str(folder.parent)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["tier"] is None
    assert [each["message"] for each in found["checks"]["tier"]] == [
        "its suites reach no tier; what they lack stands above",
        "some of its tests did not pass; they stand above",
    ]
    assert "no conformance suite was run" in done.stderr
