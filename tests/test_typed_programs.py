"""Programs as type checkers see them: the good one is taken, every mistake of the bad one found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_host.agent.limits import LimitSettings
from agent_host.config.given import AppConfig, ToolsConfig
from agent_host.config.model import config_schema

FOLDER = Path(__file__).with_name("typed_programs")
GOOD, BAD = FOLDER / "good.py", FOLDER / "bad.py"


def found_by_mypy(file: Path, cache: Path) -> set[int]:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(file)]
    # Away from the repository, whose settings are its own.
    done = subprocess.run(command, capture_output=True, text=True, cwd=cache, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {int(line) for line in re.findall(rf"{file.name}:(\d+): error", done.stdout)}


def found_by_pyright(file: Path, cache: Path) -> set[int]:
    settings = {"typeCheckingMode": "strict", "reportUnusedExpression": False}
    (cache / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error"]
    command += ["--pythonpath", sys.executable, "-p", str(cache), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cache, check=False)
    report = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in report if each["severity"] == "error"}


CHECKERS = {"mypy": found_by_mypy, "basedpyright": found_by_pyright}


@pytest.fixture(params=CHECKERS)
def checker(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if find_spec(name) is None:
        pytest.skip(f"needs a type checker: pip install {name}")
    return name


def test_a_good_program_is_taken(checker: str, tmp_path: Path) -> None:
    assert CHECKERS[checker](GOOD, tmp_path) == set()


def test_every_mistake_is_found(checker: str, tmp_path: Path) -> None:
    lines = BAD.read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert CHECKERS[checker](BAD, tmp_path) == wrong


def test_the_typed_config_has_the_keys_of_the_file() -> None:
    schema = config_schema()["properties"]
    assert {*AppConfig.__annotations__} == {*schema} - {"$schema"}
    assert {*ToolsConfig.__annotations__, *LimitSettings.__annotations__} == {
        *schema["tools"]["properties"]
    }
