"""Programs as type checkers see them: the good one is taken, every mistake of the bad one found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_host.agent.limits import LimitSettings
from agent_host.config.given import AppConfig, ToolsConfig
from agent_host.config.model import config_schema

FOLDER = Path(__file__).with_name("typed_programs")
PROGRAMS = [str(FOLDER / name) for name in ("good.py", "bad.py")]


def found_by_mypy(folder: Path) -> list[tuple[str, int]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder), *PROGRAMS]
    # Away from the repository, whose settings are its own.
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [(name, int(line)) for name, line in re.findall(r"(\w+\.py):(\d+): error", done.stdout)]


def found_by_pyright(folder: Path) -> list[tuple[str, int]]:
    settings = {"typeCheckingMode": "strict", "reportUnusedExpression": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error"]
    command += ["--pythonpath", sys.executable, "-p", str(folder), *PROGRAMS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    return [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in json.loads(done.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    ]


@pytest.mark.parametrize(
    ("checker", "find_mistakes"), [("mypy", found_by_mypy), ("basedpyright", found_by_pyright)]
)
def test_a_good_program_is_taken_and_every_mistake_of_a_bad_one_found(
    checker: str, find_mistakes: Callable[[Path], list[tuple[str, int]]], tmp_path: Path
) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"needs a type checker: pip install {checker}")
    lines = (FOLDER / "bad.py").read_text("utf-8").splitlines()
    wrong = {("bad.py", n) for n, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert set(find_mistakes(tmp_path)) == wrong


def test_the_typed_config_has_the_keys_of_the_file() -> None:
    schema = config_schema()["properties"]
    assert {*AppConfig.__annotations__} == {*schema} - {"$schema"}
    assert {*ToolsConfig.__annotations__, *LimitSettings.__annotations__} == {
        *schema["tools"]["properties"]
    }
