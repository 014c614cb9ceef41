"""`agent-host sessions` and `agent-host runs`: what people and scripts see of what is stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.store import new_id
from agent_host.cli import main
from making import full, write_package

TOOLS = """
from agent_hookspecs import Context
from agent_hookspecs.authoring import tool, tools


@tool(effect="write")
def save(text: str) -> str:
    \"\"\"Save a text.\"\"\"
    return "saved " + text


@tool(effect="read")
def wonder(context: Context) -> str:
    \"\"\"Ask for a colour.\"\"\"
    return context["ask_person"]("Which colour?", ["red", "blue"])


Plugin = tools(save, wonder, name="workbench")
"""

ACTIONS = """
from agent_hookspecs import FeaturePlugin


class Plugin(FeaturePlugin):
    name = "noting"

    def get_actions(self, state):
        return [{"id": "note", "description": "Note a word."}, {"id": "refuse"}]

    def execute_action(self, action_id, session, params, context, state):
        if action_id == "refuse":
            return {"error": {"type": "disabled", "message": "not today"}}
        return {"session_metadata": {"noted": params.get("word")}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config in it, which is the working folder."""
    # Each test in this process imports its own.
    bench, noting = f"bench_{new_id()}", f"noting_{new_id()}"
    described = full(bench, "tool", "workbench", tools={"save": "write", "wonder": "read"})
    write_package(tmp_path / "tools", bench, descriptor=described, source=TOOLS)
    write_package(
        tmp_path / "noting", noting, descriptor=full(noting, "feature", "noting"), source=ACTIONS
    )
    config = {
        "plugins": ["path:tools", "path:noting"],
        "agents": {"default": {"tools": ["save", "wonder"]}},
        "tools": {"effects": {"read": "allow"}, "rules": [{"tool": "wonder", "decision": "allow"}]},
    }
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    # Whoever runs the tests pipes nothing in.
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Shell:
    """Runs commands as a shell would, and gives what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        result = main(arguments)
        out, self.err = self._capsys.readouterr()
        assert result == code, f"{arguments} ended with {result}:\n{out}{self.err}"
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))


@pytest.fixture
def shell(place: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


CONFIG = ("--config", "c.json")


def test_a_run_is_stored_and_gone_on_with(shell: Shell) -> None:
    shell("run", "--name", "notes", "one")
    shell("run", "other")
    shell("run", "--session", "notes", "two")
    shell("run", "--continue", "three")
    shell("run", "--no-store", "four")
    listed = shell.json("sessions", "list")["sessions"]
    assert [(each["name"], each["message_count"]) for each in listed] == [("notes", 6), (None, 2)]
    shown = shell.json("sessions", "show", "notes", "--last", "3")
    assert [each["content"] for each in shown["messages"]] == ["two", "three", "three"]
    assert shell.json("sessions", "show", listed[1]["id"][:20])["session"]["title"] == "other"
    assert [each["state"] for each in shell.json("runs", "list")["runs"]] == ["succeeded"] * 4
    runs = shell.json("runs", "list", "--session", "notes", "--limit", "2")["runs"]
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "error", "hint"),
    [
        (["run", "--continue", "x"], 1, "no session to go on with", "begin a new one"),
        (["run", "--session", "nobody", "x"], 1, "no session 'nobody'", "sessions list"),
        (["run", "--continue", "--session", "a", "x"], 2, "exclude each other", ""),
        (["run", "--no-store", "--park", "x"], 2, "--no-store and --park exclude", ""),
        (["sessions", "show", "nobody"], 1, "no session 'nobody'", "sessions list"),
        (["sessions", "delete", "nobody", "--yes"], 1, "no session 'nobody'", ""),
        (["sessions", "import", "c.json"], 1, "line 1 is", "sessions export"),
        (["runs", "show", "nobody"], 1, "no run 'nobody'", "runs list"),
        (["runs", "resume", "nobody"], 1, "no run 'nobody'", "runs list"),
    ],
)
def test_what_goes_wrong_is_said_with_a_hint(
    shell: Shell, arguments: list[str], code: int, error: str, hint: str
) -> None:
    shell(*arguments, code=code)
    assert error in shell.err
    assert hint in shell.err
    assert "Traceback" not in shell.err


def test_nothing_is_stored_yet(shell: Shell) -> None:
    assert shell("sessions", "list") == "No sessions are stored.\n"
    assert shell("runs", "list") == "No such runs are stored.\n"
    assert shell("sessions", "search", "x") == "Nothing was found.\n"


def test_a_run_waits_is_approved_and_resumed(shell: Shell) -> None:
    prompt = 'May I?\n/call save {"text": "x"}'
    shell("run", *CONFIG, "--park", prompt, code=3)
    assert "agent-host runs list --state waiting" in shell.err
    (run,) = shell.json("runs", "list", "--state", "waiting")["runs"]
    shown = shell("runs", "show", run["id"][:20])
    for wanted in ("waiting", "call_1 save (", "something:", "text: x"):
        # Lines are broken wherever the path of the tool ends, also inside a word.
        assert "".join(wanted.split()) in "".join(shown.split())
    assert f"runs approve {run['id']}" in shown
    assert run["questions"][0]["digest"] in shown
    decided = shell("runs", "approve", run["id"])
    assert "text: x" in decided
    assert "All is decided" in decided
    shell("runs", "approve", run["id"], code=1)
    assert "waits for no approval" in shell.err
    assert shell("runs", "resume", *CONFIG, run["id"]) == "save returned: saved x\n"
    assert shell.json("runs", "show", run["id"])["run"]["state"] == "succeeded"


def test_a_run_waits_and_is_denied_or_cancelled(shell: Shell) -> None:
    for _ in range(2):
        shell("run", *CONFIG, "--park", '/call save {"text": "x"}', code=3)
    denied, cancelled = [each["id"] for each in shell.json("runs", "list")["runs"]]
    shell("runs", "deny", denied, "call_1")
    assert "denied: the answer was deny" in shell("runs", "resume", *CONFIG, denied)
    assert shell("runs", "cancel", cancelled) == f"{cancelled} is cancelled.\n"
    shell("runs", "cancel", cancelled, code=1)


def test_the_question_of_a_tool_is_answered(shell: Shell) -> None:
    shell("run", *CONFIG, "--park", "/call wonder {}", code=3)
    (run,) = shell.json("runs", "list", "--state", "waiting")["runs"]
    shown = shell("runs", "show", run["id"])
    for wanted in ("wonder asks", "Which colour?", "one of: red, blue", "runs answer"):
        assert wanted in shown
    shell("runs", "answer", run["id"], "green", code=1)
    shell("runs", "answer", run["id"], "blue")
    assert shell("runs", "resume", *CONFIG, run["id"]) == "wonder returned: blue\n"


def test_a_run_that_is_over_can_be_watched(shell: Shell) -> None:
    prompt = 'Hm.\n/call save {"text": "x"}'
    shell("run", *CONFIG, "--yes", prompt)
    (run,) = shell.json("runs", "list")["runs"]
    assert shell("runs", "watch", run["id"]) == "Hm.\nsave returned: saved x\n"
    assert '→ save(text="x")' in shell.err
    lines = [json.loads(line) for line in shell("runs", "watch", run["id"], "--json").splitlines()]
    assert [line["type"] for line in lines][-2:] == ["turn_end", "done"]


def test_a_run_that_failed_is_watched_to_its_error(shell: Shell) -> None:
    shell("run", "Half\n/fail server It broke", code=1)
    (run,) = shell.json("runs", "list")["runs"]
    shell("runs", "watch", run["id"])
    assert "error: It broke" in shell.err
    assert "It broke" in shell("runs", "list", "--state", "failed")


def test_sessions_are_searched_branched_renamed_exported_and_deleted(shell: Shell) -> None:
    shell("run", "--name", "notes", "marzipan and more")
    found = shell.json("sessions", "search", "marzipan")["messages"]
    assert [each["place"] for each in found] == [1, 0]
    assert "marzipan" in shell("sessions", "search", "marzipan")
    made = shell.json("sessions", "branch", "notes", "--at", "1", "--name", "other")["session"]
    assert (made["message_count"], made["shared_count"]) == (1, 1)
    shell("sessions", "rename", "other", "another")
    export = shell("sessions", "export", "notes")
    Path("notes.jsonl").write_text(export, encoding="utf-8")
    shell("sessions", "import", "notes.jsonl", code=1)
    assert "--as-new" in shell.err
    shell("sessions", "delete", "notes", code=2)
    shell("sessions", "delete", "notes", "--yes")
    shell("sessions", "import", "notes.jsonl")
    assert shell("sessions", "export", "notes") == export
    shell("sessions", "export", "notes", "--format", "markdown", "--output", "notes.md")
    assert "## Assistant\n\nmarzipan and more" in Path("notes.md").read_text("utf-8")
    assert Path("notes.md").stat().st_mode & 0o077 == 0


def test_actions_of_plugins_run_on_stored_sessions(shell: Shell) -> None:
    shell("run", *CONFIG, "--name", "notes", "hi")
    assert "Note a word." in shell("sessions", "action", *CONFIG, "notes")
    shell("sessions", "action", *CONFIG, "notes", "note", "--param", "word=7")
    (line, *_) = shell("sessions", "export", "notes").splitlines()
    assert json.loads(line)["metadata"] == {"noted": 7}
    shell("sessions", "action", *CONFIG, "notes", "refuse", code=1)
    assert "disabled: not today" in shell.err
    shell("sessions", "action", *CONFIG, "notes", "fly", code=1)
    assert "note, refuse" in shell.err


def test_lists_fit_eighty_columns(shell: Shell) -> None:
    shell("run", *CONFIG, "--park", f'{"word " * 40}\n/call save {{"text": "x"}}', code=3)
    for arguments in (
        ["sessions", "list"],
        ["sessions", "search", "word"],
        ["runs", "list"],
        ["sessions", "--help"],
        ["runs", "--help"],
    ):
        wide = [line for line in shell(*arguments).splitlines() if len(line) > 80]
        assert wide == []


@pytest.mark.parametrize("group", ["sessions", "runs"])
def test_every_command_has_examples_and_json(shell: Shell, group: str) -> None:
    from click import Group

    from agent_host.cli.app import root

    found = root.get_command(None, group)  # type: ignore[arg-type]
    assert isinstance(found, Group)
    for name in found.commands:
        text = shell(group, name, "--help")
        assert "Examples:" in text
        assert "--json" in text


def test_listing_imports_no_plugin(shell: Shell, place: Path) -> None:
    shell("run", *CONFIG, "hi")
    code = (
        "import sys; from agent_host.cli import main; "
        "main(['sessions', 'list', '--config', 'c.json']); "
        "print([m for m in sys.modules if m.startswith(('bench_', 'noting_', 'agent_host_'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
        cwd=place,
        check=True,
    )
    assert done.stdout.endswith("[]\n")


def test_a_store_that_cannot_be_opened_is_said_and_the_run_answers(
    shell: Shell, place: Path
) -> None:
    (place / "home").mkdir(exist_ok=True)
    (place / "home" / "sessions.db").write_bytes(b"no database at all, whatever it says" * 200)
    assert shell("run", "hi") == "hi\n"
    assert "warning: the rest of this run is not stored" in shell.err
    shell("sessions", "list", code=1)
    assert "sessions.db" in shell.err
