"""`agent-host chat` in lines alone, as pipes and screen readers have it, and its commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from making import Run, full, write_package
from model_server import model_server
from terminals import open_terminal

PLUGIN = '''
from agent_hookspecs import FeaturePlugin
from agent_hookspecs.authoring import tool, tools


@tool(effect="read")
def look(name: str) -> str:
    """Look at something."""
    return name


@tool(effect="write")
def paint(name: str) -> str:
    """Paint something."""
    return name


Bench = tools(look, paint, name="bench")


class Notes(FeaturePlugin):
    name = "notes"

    def init(self, config, state):
        return state

    def get_actions(self, state):
        return [{"id": "note", "description": "Note a word."}]

    def execute_action(self, action_id, session, params, context, state):
        return {"session_metadata": {"noted": params.get("word")}}
'''

CHAT = ("chat", "--config", "c.json")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tool = {
        "entry": "bench_pkg.plugin:Bench",
        "role": "tool",
        "name": "bench",
        "tools": {"look": "read", "paint": "write"},
    }
    described = full("bench_pkg", "feature", "notes")
    (feature,) = described["entries"]
    feature["entry"] = "bench_pkg.plugin:Notes"
    described["entries"] = [tool, feature]
    write_package(tmp_path / "plugins", "bench_pkg", descriptor=described, source=PLUGIN)
    config = {
        "plugins": ["path:plugins"],
        "allowed_plugins": ["echo", "bench_pkg"],
        "enabled_plugins": ["notes"],
        "providers": {"main": {"provider": "echo", "model": "echo-1"}},
        "agents": {"brief": {"system": "Be brief."}, "free": {}},
    }
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def environment(place: Path, **more: str) -> dict[str, str]:
    dropped = ("AGENT_HOST_", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return {**kept, "PYTHONUTF8": "1", "AGENT_HOST_HOME": str(place / "home"), **more}


def say(place: Path, *lines: str, options: tuple[str, ...] = ()) -> Run:
    """A conversation of these lines, piped in."""
    done = subprocess.run(
        [sys.executable, "-m", "agent_host", *CHAT, *options],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,
        cwd=place,
        env=environment(place),
        timeout=60,
        check=False,
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


def sessions(place: Path, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "agent_host", "sessions", *words, "--config", "c.json", "--json"],
        capture_output=True,
        cwd=place,
        env=environment(place),
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def exported(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


# --- the whole conversation ----------------------------------------------------------------------


def test_a_conversation_is_piped_in_and_its_answers_are_all_of_the_output(place: Path) -> None:
    done = say(place, "Hello", "", "two\\", "lines", "//slash", "/etc/hosts is a file")
    assert done.code == 0
    assert done.out == "Hello\ntwo\nlines\n/slash\n/etc/hosts is a file\n"
    assert done.err.count("echo/echo-1 · ") == 4
    (stored,) = sessions(place, "list")["sessions"]
    assert stored["message_count"] == 8
    assert f"Go on with: agent-host chat --session {stored['id'][:12]}" in done.err


def test_nothing_is_coloured_or_moved_in_lines_alone(place: Path) -> None:
    with open_terminal(*CHAT, "--plain", cwd=place, columns=80, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("> ")
        terminal.type("Hello\n")
        terminal.expect("echo/echo-1 · ")
        terminal.type("/nothing\n")
        terminal.expect("error: there is no command /nothing")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "\x1b" not in terminal.raw


def test_no_color_is_heeded_by_the_window(place: Path) -> None:
    pytest.importorskip("prompt_toolkit")
    pytest.importorskip("rich")
    from person import at_terminal

    with at_terminal(*CHAT, cwd=place, env={"NO_COLOR": "1"}) as person:
        person.see_line()
        person.enter("# Title\n\n`code` and **bold**")
        person.see("echo/echo-1 · ")
        person.see_line()
        person.enter("/nothing")
        person.see("error: there is no command /nothing")
        person.type("\x04")
        assert person.end() == 0
    colours = [f"\x1b[{more}{number}m" for more in ("", "0;", "1;") for number in range(30, 48)]
    assert not [each for each in colours if each.encode() in person.raw]


def test_what_fails_is_told_and_the_conversation_goes_on(place: Path) -> None:
    done = say(place, "/save no/such/folder.md", "Hello", "/save no/such/folder.md", "Still here")
    assert done.code == 0
    assert "error: nothing was said yet" in done.err
    assert "error: no/such/folder.md cannot be written: No such file or directory" in done.err
    assert done.out == "Hello\nStill here\n"
    assert say(place, "Hello", "/undo", "/undo").code == 1


@contextmanager
def running(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_host", *CHAT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        env=environment(place),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def messages_of(place: Path) -> list[tuple[str, str]]:
    (stored,) = sessions(place, "list")["sessions"]
    shown: Mapping[str, Any] = sessions(place, "show", stored["id"])
    return [(each["role"], each["content"]) for each in shown["messages"]]


def test_a_termination_leaves_the_lines_with_the_session_stored(place: Path) -> None:
    with running(place) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"Hello\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert b"Go on with: agent-host chat --session" in err
    assert messages_of(place) == [("user", "Hello"), ("assistant", "Hello")]


def test_a_termination_in_an_answer_stores_what_came_of_it(tmp_path: Path) -> None:
    with model_server() as model:
        model.describe_in(tmp_path, allowed_plugins=["like_pkg"])
        with running(tmp_path) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"Tell me all\n")
            process.stdin.flush()
            model.say("It begins\n")
            assert process.stdout.readline() == b"It begins\n"
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert b"Go on with: agent-host chat --session" in err
    assert messages_of(tmp_path) == [("user", "Tell me all"), ("assistant", "It begins\n")]


def test_a_termination_leaves_the_window_with_the_session_stored(place: Path) -> None:
    pytest.importorskip("prompt_toolkit")
    pytest.importorskip("rich")
    from person import at_terminal

    with at_terminal(*CHAT, cwd=place) as person:
        person.see_line()
        person.enter("Hello")
        person.see("echo/echo-1 · ")
        person.see_line()
        person.process.send_signal(signal.SIGTERM)
        assert person.end() == 143
    assert "Go on with: agent-host chat --session ID" in person.everything
    assert messages_of(place) == [("user", "Hello"), ("assistant", "Hello")]


# --- the commands --------------------------------------------------------------------------------


def test_who_answers_is_shown_and_chosen(place: Path) -> None:
    done = say(
        place,
        *("/model", "/model echo/echo-reasoner", "Hello", "/model"),
        *("/agent", "/agent nobody", "/agent brief", "/model"),
    )
    assert "provider  echo\nmodel     echo-1\nwhy       the config says so\n" in done.out
    assert "The next message goes to echo/echo-reasoner." in done.out
    assert "echo/echo-reasoner · " in done.err
    assert "model     echo-reasoner\nwhy       you chose it\n" in done.out
    assert "brief  Be brief.\nfree   no system prompt\n" in done.out
    assert "error: c.json: there is no agent 'nobody'" in done.err
    assert done.out.rstrip().count("agent     brief") == 1


def test_the_system_prompt_is_shown_and_set(place: Path) -> None:
    done = say(
        place,
        *("/system", "/system Be kind.", "/system", "Hello", "/system Be short.", "/system"),
        *("Again", "/save x.jsonl"),
    )
    assert done.out == (
        "There is no system prompt.\nThe system prompt counts from the next message on.\n"
        "Be kind.\nHello\nThe system prompt counts from the next message on.\nBe short.\n"
        "Again\nSaved as x.jsonl.\n"
    )
    assert "Be short." in (place / "x.jsonl").read_text("utf-8")


def test_an_agent_takes_its_system_prompt_with_it_and_leaves_what_a_person_said(
    place: Path,
) -> None:
    done = say(place, "Hello", "/agent brief", "/system", "/agent free", "/system")
    assert "brief.\nBe brief.\n" in done.out
    assert done.out.endswith("free.\nThere is no system prompt.\n")
    done = say(place, "Hello", "/system Be kind.", "/agent free", "/system")
    assert done.out.endswith("Be kind.\n")


def test_tools_are_listed_and_chosen(place: Path) -> None:
    done = say(place, "/tools", "/tools look", "/tools none", "/tools all", "/tools pai")
    rows = [line.split() for line in done.out.splitlines()]
    named = [row[0] for row in rows if row[-1] == "bench"]
    assert named == ["look", "paint", "look", "look", "paint"]
    assert ["paint", "write", "bench"] in rows
    assert done.out.count("No tools are on offer.") == 2
    assert "warning: no tool is called 'pai'" in done.out


def test_plugins_are_listed_and_explained_as_the_conversation_has_them(place: Path) -> None:
    done = say(place, "/plugins", "/plugins more", options=("--set", "seed=1"))
    assert "bench" in done.out
    assert "error: Got unexpected extra argument (more)" in done.err
    assert "offers" not in say(place, "/tools none", "/why").out
    done = say(place, "/agent brief", "/tools look", "/why", options=("--set", "seed=1"))
    assert done.code == 0
    assert "Agent     brief" in done.out
    assert "offers look\n" in done.out


def test_what_is_attached_is_shown_sent_once_and_taken_off(place: Path) -> None:
    (place / "notes.txt").write_text("by hand", encoding="utf-8")
    done = say(
        place,
        *("/attach", "/attach none.txt", "/attach notes.txt", "/attach ./notes.txt"),
        *("See @notes.txt", "/attach notes.txt", "/attach none", "Bye"),
    )
    assert "error: none.txt cannot be read: No such file or directory" in done.err
    assert done.out.startswith("Nothing is attached.\nWith the next message: notes.txt\n")
    assert done.out.count("by hand") == 1
    assert done.out.endswith("With the next message: notes.txt\nNothing is attached.\nBye\n")


def test_messages_are_taken_back_and_sent_once_more(place: Path) -> None:
    (place / "notes.txt").write_text("by hand", encoding="utf-8")
    done = say(
        place,
        *("/undo", "/retry", "One", "Two @notes.txt", "/retry", "/undo", "/undo", "/undo"),
    )
    assert done.err.count("error: nothing was said yet") == 2
    assert "error: there is nothing to take back" in done.err
    assert done.out.count("by hand") == 2
    assert done.out.endswith("Taken back: Two @notes.txt\nTaken back: One\n")
    (stored,) = sessions(place, "list")["sessions"]
    assert stored["message_count"] == 0


def test_a_session_is_branched_listed_opened_and_begun_anew(place: Path) -> None:
    done = say(
        place,
        *("/branch", "First", "/branch other", "In the branch", "/sessions new", "/branch"),
        *("Second", "/sessions", "/sessions nobody", "/sessions other", "Third", "/save b.jsonl"),
    )
    assert done.err.count("error: nothing was said yet") == 2
    assert "stays as it is." in done.out
    assert "other: First" in done.out
    assert "error: there is no session 'nobody'" in done.err
    assert "user: In the branch\nassistant: In the branch\nThird\n" in done.out
    counts = sorted(each["message_count"] for each in sessions(place, "list")["sessions"])
    assert counts == [2, 2, 6]


def test_a_session_is_saved_for_people_or_exactly_and_never_over_another_file(
    place: Path,
) -> None:
    done = say(place, "Hello", "/save", "/save x.md", "/save x.md", "/save x.jsonl")
    (stored,) = sessions(place, "list")["sessions"]
    assert f"Saved as {stored['id']}.md." in done.out
    assert "error: x.md is there already" in done.err
    assert (place / "x.md").read_text("utf-8").count("Hello") >= 2
    assert (place / "x.md").stat().st_mode & 0o777 == 0o600
    assert exported(place / "x.jsonl")
    done = say(place, "Hello", "/save y.md", "/save y.jsonl", options=("--no-store",))
    assert "Saved as y.md." in done.out
    assert "error: only a stored session is saved exactly" in done.err
    assert len(sessions(place, "list")["sessions"]) == 1


def test_actions_are_listed_and_run(place: Path) -> None:
    done = say(
        place,
        *("/action", "/action note word=tea", "Hello", "/action nothing", "/action note word"),
        *("/action note word=tea", "/save x.jsonl"),
    )
    assert "note (notes): Note a word." in done.out
    assert "error: only a stored session has actions" in done.err
    assert "error: no active plugin offers the action 'nothing'" in done.err
    assert "error: Invalid value for '--param'" in done.err
    assert exported(place / "x.jsonl")[0]["metadata"] == {"noted": "tea"}


def test_help_keys_folds_and_what_is_no_command(place: Path) -> None:
    done = say(
        place,
        *("/help", "/help /save", "/help no/such", "/modle", "/keys", "/expand", "/exit", "never"),
    )
    assert done.code == 0
    for name in ("model", "agent", "tools", "plugins", "why", "system", "attach", "branch"):
        assert f"\n/{name}" in done.out
    for name in ("undo", "retry", "save", "sessions", "action", "keys", "expand", "exit"):
        assert f"\n/{name}" in done.out
    assert "/save [FILE]\n  Save the session as Markdown" in done.out
    assert "error: there is no command /no/such" in done.err
    assert "error: there is no command /modle" in done.err
    assert "did you mean 'model'?" in done.err
    assert "agent-host keys set" in done.out
    assert "error: nothing was folded" in done.err
    assert "never" not in done.out


@pytest.mark.parametrize(
    "options",
    [
        ("--continue", "--session", "a"),
        ("--no-store", "--name", "a"),
        ("--tools", "a", "--no-tools"),
    ],
)
def test_options_that_contradict_are_refused(place: Path, options: tuple[str, ...]) -> None:
    done = say(place, "Hello", options=options)
    assert done.code == 2
    assert "exclude each other" in done.err
