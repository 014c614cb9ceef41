"""Where there is no sandbox: refused, or asked about each time; and nothing is left either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent_host_shell.output import Output
from agent_host_shell.running import Run
from agent_host_shell.sandbox import Bubblewrap, Unsandboxed, make_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is left")

#: In here there is a bubblewrap that cannot make namespaces, or none that can be run.
WITHOUT = {
    "namespaces": ["--proc", "/proc", "--disable-userns"],
    "bubblewrap": ["--ro-bind", os.devnull, "{program}"],
}
ASK = """
import json, sys
from agent_hookspecs import ToolError
from agent_host_shell.plugin import ShellTools

root, setting, answer = sys.argv[1:]
asked = []

def ask(question, choices):
    asked.append([question, list(choices)])
    return answer

def attempt(function):
    try:
        return function()
    except ToolError as error:
        return f"{error} {error.hint}"

def run():
    payload, context = {"command": "echo ran"}, {"ask_person": ask}
    running = plugin.execute_tool("run_command", payload, state, context)
    while True:
        try:
            next(running)
        except StopIteration as end:
            return end.value["text"]

plugin = ShellTools()
state = plugin.init({"root": root, "without_sandbox": setting})
preview = attempt(lambda: plugin.preview_tool("run_command", {"command": "ls"}, state))
print(json.dumps({"preview": preview, "said": [attempt(run), attempt(run)], "asked": asked}))
"""


def asked(
    bubblewrap: Bubblewrap, workspace: Path, missing: str, setting: str, answer: str
) -> dict[str, Any]:
    if missing == "namespaces" and "--disable-userns" not in bubblewrap.options:
        pytest.skip("this bubblewrap is too old to forbid namespaces")
    options = [each.format(program=bubblewrap.program) for each in WITHOUT[missing]]
    done = subprocess.run(
        [
            *(bubblewrap.program, "--unshare-user", "--dev-bind", "/", "/", *options),
            *(sys.executable, "-c", ASK, str(workspace), setting, answer),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("missing", WITHOUT)
def test_by_default_nothing_is_run(bubblewrap: Bubblewrap, workspace: Path, missing: str) -> None:
    """Whether it works is tried: a bubblewrap that is installed may not be able to do anything."""
    found = asked(bubblewrap, workspace, missing, "refuse", "yes")
    assert found["asked"] == []
    for said in (*found["said"], found["preview"]):
        assert "commands are not run without a sandbox, and there is none: bubblewrap" in said
        assert "set 'without_sandbox' to 'ask'" in said


def test_a_person_is_asked_each_time_and_everybody_is_told(
    bubblewrap: Bubblewrap, workspace: Path
) -> None:
    found = asked(bubblewrap, workspace, "namespaces", "ask", "yes")
    assert len(found["asked"]) == 2
    assert all("There is no sandbox" in question for question, _ in found["asked"])
    assert found["said"] == ["ran\n[exit code 0; it ran without a sandbox]"] * 2
    assert found["preview"][0]["note"].startswith("WITHOUT A SANDBOX")


def test_a_no_is_a_no(bubblewrap: Bubblewrap, workspace: Path) -> None:
    found = asked(bubblewrap, workspace, "namespaces", "ask", "no")
    assert all("does not want the command to run" in said for said in found["said"])


def run_without(workspace: Path, command: str, seconds: float = 60) -> Run:
    environment = make_environment(os.environ, str(workspace), ())
    run = Run(Unsandboxed(str(workspace), environment, command), Output(10_000), seconds, bool)
    run.start()
    assert run.is_over.wait(60)
    return run


def is_there(mark: str) -> bool:
    for folder in Path("/proc").iterdir():
        try:
            arguments = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if mark.encode() in arguments:
            return True
    return False


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 7", 7), ("kill -9 $$", 137), ("cat; echo x; exit 0", 0), ("nosuchprogram", 127)],
)
def test_the_end_is_told_as_in_a_sandbox(workspace: Path, command: str, code: int) -> None:
    run = run_without(workspace, command)
    assert (run.code, run.ending, run.problem) == (code, None, "")


@pytest.mark.parametrize(
    "command",
    [
        "sleep {0} & echo begun",
        "setsid sleep {0} & echo begun",
        "(setsid sh -c '(trap \"\" HUP TERM; sleep {0}; true) &' &) & echo begun",
        "for i in 1 2 3 4 5 6 7 8; do setsid sleep {0} & done; echo begun",
    ],
)
@pytest.mark.parametrize("ending", ["by itself", "by time"])
def test_who_forks_away_is_ended_without_a_sandbox(
    workspace: Path, command: str, ending: str
) -> None:
    mark = f"1{uuid.uuid4().int % 10**9:09d}"
    words = command.format(mark)
    if ending == "by time":
        words += f"; trap '' TERM; sleep {mark}; sleep {mark}"
    run = run_without(workspace, words, 60 if ending == "by itself" else 0.5)
    assert run.output.text().startswith("begun")
    assert run.ending == (None if ending == "by itself" else "time")
    for _ in range(500):
        if not is_there(mark):
            return
        threading.Event().wait(0.02)
    pytest.fail("something goes on for nobody")


def test_no_secret_is_passed_on_without_a_sandbox(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    run = run_without(workspace, "env; cat /proc/$PPID/environ | tr '\\0' '\\n'")
    assert "sk-secret" not in run.output.text()
