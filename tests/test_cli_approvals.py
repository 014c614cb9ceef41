"""Approvals at a real terminal: they cannot be typed before, imitated or hidden from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_host.cli import asking
from making import full, write_package
from terminals import Terminal, open_terminal

pty = pytest.importorskip("pty")

TOOLS = '''
from pathlib import Path

from agent_hookspecs import ToolPlugin


class Plugin(ToolPlugin):
    """Keeps notes in a file."""

    name = "notes"
    effects = {"save": "write"}

    def get_tool_schemas(self):
        parameters = {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
            "additionalProperties": False,
        }
        return [{"name": "save", "description": "Save a text.", "parameters": parameters}]

    def preview_tool(self, payload):
        if payload["path"] == "broken":
            raise OSError("the disk is\\x1b[2J away")
        file = Path(payload["path"])
        before = file.read_text() if file.exists() else None
        return [{"path": payload["path"], "before": before, "after": payload["text"]}]

    def execute_tool(self, tool_name, payload):
        Path(payload["path"]).write_text(payload["text"])
        return "saved " + payload["path"]
'''

#: The last line of a question, behind which an answer counts.
QUESTION = "◘ or always: in this [s]ession, in this [f]older, [a]nywhere [n]: "
IGNORED = "◘ What was typed before the question stood here does not count."


@pytest.fixture
def place(tmp_path: Path) -> Path:
    described = full("notes_pkg", "tool", "notes", tools={"save": "write"})
    write_package(tmp_path / "tools", "notes_pkg", descriptor=described, source=TOOLS)
    config = {
        "plugins": ["path:tools"],
        "allowed_plugins": ["echo", "notes_pkg"],
        "providers": {"main": {"provider": "echo"}},
    }
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def call(path: str = "a.txt", text: str = "new\n") -> str:
    return f"/call save {json.dumps({'text': text, 'path': path})}"


def run(place: Path, prompt: str, **options: Any) -> Any:
    return open_terminal("run", "--config", "c.json", prompt, cwd=place, **options)


def answer(seen: Terminal, text: str) -> None:
    seen.expect(QUESTION)
    seen.type(f"{text}\n")


def test_what_was_typed_before_the_question_approves_nothing(place: Path) -> None:
    with run(place, call()) as seen:
        seen.type("y\n")
        seen.expect(IGNORED)
        answer(seen, "n")
        assert seen.end() == 0
    assert not (place / "a.txt").exists()


def test_a_yes_to_a_question_that_the_model_has_printed_does_not_count(place: Path) -> None:
    imitated = f"◘ save wants to read something:\n{QUESTION}"
    with run(place, f"{imitated}\n{call()}") as seen:
        seen.type("y\n")
        seen.expect("  □ save wants to read something:")
        seen.expect("□ or always: in this [s]ession")
        seen.expect("◘ save (")
        seen.expect(IGNORED)
        answer(seen, "n")
        assert seen.end() == 0
    assert not (place / "a.txt").exists()
    real = [line for line in seen.shown.splitlines() if line.startswith("◘")]
    assert not [line for line in real if "read something" in line]


def test_keys_in_the_moment_in_which_a_question_appears_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(master, b"before\n")
        later = threading.Timer(0.1, os.write, (master, b"y"))
        later.start()
        assert asking._drop_input()
        later.join()
        assert not asking._drop_input()
        os.write(master, b"yes\n")
        assert asking._read_typed() == "yes\n"
    os.close(master)


def test_a_file_that_is_replaced_is_shown_as_a_difference(place: Path) -> None:
    (place / "a.txt").write_text("one\ntwo\nthree\n")
    with run(place, call(text="one\nTWO\nthree\n")) as seen:
        answer(seen, "y")
        assert seen.end() == 0
    lines = seen.shown.splitlines()
    start = lines.index("◘   path: a.txt")
    assert lines[start : start + 7] == [
        "◘   path: a.txt",
        "◘   M a.txt (+1 -1)",
        "◘   @@ -1,3 +1,3 @@",
        "◘    one",
        "◘   -two",
        "◘   +TWO",
        "◘    three",
    ]


def test_a_preview_that_fails_is_told_and_the_question_is_asked(place: Path) -> None:
    with run(place, call("broken")) as seen:
        seen.expect("◘   no preview: OSError: the disk is␛[2J away")
        answer(seen, "n")
        assert seen.end() == 0


@pytest.mark.parametrize("columns", [40, 80])
def test_content_cannot_hide_the_path_and_every_row_of_the_question_has_the_sign(
    place: Path, columns: int
) -> None:
    text = "x" * 4000 + "\u3164" * 3 + "\n" * 300
    with run(place, call("/etc/passwd", text), columns=columns) as seen:
        seen.expect("◘   path: /etc/passwd")
        seen.expect(" more rows, ")
        seen.expect("[a]nywhere [n]: ")
        seen.type("n\n")
        assert seen.end() == 0
    lines = seen.shown.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("◘"))
    last = max(at for at, line in enumerate(lines) if line.startswith("◘"))
    assert all(line.startswith("◘ ") for line in lines[first : last + 1])
    assert all(len(line) <= columns for line in lines[first : last + 1])
    assert last - first < 40


def test_arguments_can_be_edited_and_the_model_is_told(place: Path) -> None:
    editor = place / "editor.py"
    editor.write_text(
        "import json, sys\n"
        "file = sys.argv[1]\n"
        "given = json.load(open(file))\n"
        "given['path'] = 'b.txt'\n"
        "json.dump(given, open(file, 'w'))\n"
        # Editors save with a time that differs, which is how click sees that they did.
        "import os; os.utime(file, (1, 1))\n"
    )
    env = {"EDITOR": f"{sys.executable} {editor}", "VISUAL": ""}
    with run(place, call(), env=env) as seen:
        answer(seen, "e")
        seen.expect("◘   these are the arguments as they were edited")
        seen.expect("◘   path: b.txt")
        seen.expect("◘   A b.txt (+1 -0)")
        answer(seen, "y")
        assert seen.end() == 0
    assert (place / "b.txt").read_text() == "new\n"
    assert not (place / "a.txt").exists()
    told = " ".join(seen.shown.split())
    assert "The person changed the arguments before the call ran." in told


def test_without_an_editor_arguments_are_typed_and_wrong_ones_asked_about_again(
    place: Path,
) -> None:
    env = {"EDITOR": "", "VISUAL": ""}
    with run(place, call(), env=env) as seen:
        answer(seen, "e")
        seen.expect("◘ Arguments: ")
        seen.type("{\n")
        seen.expect("◘ That is no JSON")
        seen.expect("◘ Arguments: ")
        seen.type('{"path": 5}\n')
        seen.expect("the edited arguments were not taken: Invalid arguments")
        seen.expect("◘   path: a.txt")
        answer(seen, "e")
        seen.expect("◘ Arguments: ")
        seen.type('{"path": "c.txt", "text": "mine"}\n')
        seen.expect("◘   path: c.txt")
        answer(seen, "y")
        assert seen.end() == 0
    assert (place / "c.txt").read_text() == "mine"


def agent_host(place: Path, *arguments: str, cwd: Path | None = None) -> Any:
    env = {**os.environ, "PYTHONUTF8": "1"}
    env |= {"AGENT_HOST_HOME": str(place / "home")}
    return subprocess.run(
        [sys.executable, "-m", "agent_host", *arguments],
        cwd=cwd or place,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_what_was_allowed_in_a_folder_is_asked_about_elsewhere_and_can_be_revoked(
    place: Path,
) -> None:
    with run(place, call()) as seen:
        answer(seen, "folder")
        assert seen.end() == 0
    again = agent_host(place, "run", "--config", "c.json", call("b.txt"))
    assert "saved b.txt" in again.stdout
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    other = agent_host(place, "run", "--config", "../c.json", call("c.txt"), cwd=elsewhere)
    assert "denied" in other.stdout
    (entry,) = json.loads(agent_host(place, "tools", "allowed", "--json").stdout)["allowed"]
    assert (entry["name"], entry["folder"]) == ("save", str(place.resolve()))
    assert f"in {place.resolve()}" in agent_host(place, "tools", "allowed").stdout
    (listed,) = json.loads(
        agent_host(place, "tools", "list", "--config", "c.json", "--json").stdout
    )["tools"]
    assert (listed["verdict"], listed["reason"]) == ("allow", "allowed in this folder")
    assert agent_host(place, "tools", "revoke", "save", "--everywhere").returncode == 1
    revoked = agent_host(place, "tools", "revoke", "save")
    assert revoked.stdout == f"save is asked about again in {place.resolve()}.\n"
    assert "denied" in agent_host(place, "run", "--config", "c.json", call("d.txt")).stdout


def test_a_memory_of_before_folders_still_counts_and_is_listed(place: Path) -> None:
    home = place / "home"
    home.mkdir(mode=0o700)
    owner = f"path:{(place / 'tools' / 'notes_pkg' / 'agent_plugin.json').resolve()}"
    file = home / "allowed-tools.json"
    file.write_text(json.dumps([[owner, "save"], ["other-dist", "f"]]))
    file.chmod(0o600)
    assert "saved a.txt" in agent_host(place, "run", "--config", "c.json", call()).stdout
    shown = agent_host(place, "tools", "allowed").stdout
    assert "everywhere" in shown
    revoked = json.loads(agent_host(place, "tools", "revoke", "--all", "--json").stdout)["revoked"]
    assert {entry["name"] for entry in revoked} == {"save", "f"}
    assert agent_host(place, "tools", "allowed").stdout == (
        "You have allowed no tool beyond single calls.\n"
    )
