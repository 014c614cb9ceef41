"""What a person sees: `agent-host run` and `demo` on a pseudo-terminal of 80 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from making import full, write_package
from terminals import open_terminal as terminal

TOOLS = """
from agent_hookspecs.authoring import tool, tools


@tool(effect="write")
def save(text: str, name: str = "a.txt") -> str:
    \"\"\"Save a text.\"\"\"
    return "saved " + text[:20]


Plugin = tools(save, name="workbench")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    described = full("bench_pkg", "tool", "workbench", tools={"save": "write"})
    write_package(tmp_path / "tools", "bench_pkg", descriptor=described, source=TOOLS)
    config = {
        "plugins": ["path:tools"],
        "allowed_plugins": ["echo", "bench_pkg"],
        "providers": {"main": {"provider": "echo"}},
    }
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


CALL = '/call save {"text": "a line", "name": "b.txt"}'
QUESTION = "◘ or always: in this [s]ession, in this [f]older, [a]nywhere [n]: "


@pytest.mark.parametrize(
    ("key", "result", "remembered"),
    [
        ("y", "saved a line", False),
        (" YES ", "saved a line", False),
        ("s", "saved a line", False),
        ("f", "saved a line", True),
        ("Always", "saved a line", True),
        ("n", "Tool call denied: the answer was deny.", False),
        ("", "Tool call denied: the answer was deny.", False),
    ],
)
def test_a_person_is_asked_and_sees_what_becomes_of_it(
    place: Path, key: str, result: str, remembered: bool
) -> None:
    with terminal("run", "--config", "c.json", f"/think Hm.\n{CALL}", cwd=place) as seen:
        seen.expect(QUESTION)
        seen.type(f"{key}\n")
        assert seen.end() == 0
    owner = f"path:{(place / 'tools' / 'bench_pkg' / 'agent_plugin.json').resolve()}"
    started = [] if "denied" in result else ['→ save(text="a line", name="b.txt")']
    assert seen.shown.splitlines() == [
        "  Hm.",
        *(f"◘ {row}" for row in wrapped(f"save ({owner}) wants to write something:", 78)),
        "◘   name: b.txt",
        "◘   text: a line",
        "◘ Allow it? [y]es, [n]o, [e]dit,",
        f"{QUESTION}{key}",
        *started,
        f"← save: {result}",
        f"  save returned: {result}",
    ]
    assert "\x1b[2m  Hm.\x1b[0m" in seen.raw
    memory = place / "home" / "allowed-tools.json"
    assert memory.exists() is remembered


def test_what_was_allowed_for_good_is_not_asked_about_again(place: Path) -> None:
    with terminal("run", "--config", "c.json", CALL, cwd=place) as seen:
        seen.expect(QUESTION)
        seen.type("a\n")
        assert seen.end() == 0
    with terminal("run", "--config", "c.json", CALL, cwd=place) as seen:
        assert seen.end() == 0
    assert "Allow it?" not in seen.shown
    assert "save returned: saved a line" in seen.shown


def wrapped(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def test_a_wrong_key_is_asked_again(place: Path) -> None:
    with terminal("run", "--config", "c.json", CALL, cwd=place) as seen:
        seen.expect(QUESTION)
        seen.type("maybe\n")
        seen.expect("◘ Please answer with one of the words")
        seen.expect(QUESTION)
        seen.type("y\n")
        assert seen.end() == 0


def test_long_arguments_are_shown_in_part_and_on_request_as_a_whole(place: Path) -> None:
    text = "\\n".join(f"line {number}" for number in range(40))
    call = f'/call save {{"text": "{text}"}}'
    with terminal("run", "--config", "c.json", call, cwd=place) as seen:
        seen.expect(" more rows, 309 characters; v shows all\n")
        assert "line 39" not in seen.shown
        seen.expect(", [e]dit, [v]iew all,")
        seen.expect(QUESTION)
        seen.type("v\n")
        seen.expect("◘     line 39\n")
        seen.expect(QUESTION)
        seen.type("y\n")
        assert seen.end() == 0


def test_lines_about_calls_fit_the_terminal(place: Path) -> None:
    call = f'/call save {{"text": "{"ä漢" * 80}"}}'
    with terminal("run", "--config", "c.json", "--yes", call, cwd=place, columns=40) as seen:
        assert seen.end() == 0
    (line,) = [line for line in seen.shown.splitlines() if line.startswith("→")]
    assert line.endswith("…")
    assert sum(2 if c == "漢" else 1 for c in line) <= 40


@pytest.mark.parametrize("how", ["interrupt", "end of input"])
def test_interrupting_the_question_ends_the_run(place: Path, how: str) -> None:
    with terminal("run", "--config", "c.json", CALL, cwd=place) as seen:
        seen.expect(QUESTION)
        if how == "interrupt":
            seen.interrupt()
        else:
            seen.type("\x04")
        assert seen.end() == 130
    assert seen.shown.endswith("\ninterrupted\n")
    assert "Traceback" not in seen.shown
    assert "saved" not in seen.shown


def test_plain_text_is_plain_if_that_is_wanted(place: Path) -> None:
    prompt = "/think Hm.\nHello"
    with terminal("run", "--provider", "echo", prompt, cwd=place, env={"NO_COLOR": "1"}) as seen:
        assert seen.end() == 0
    assert seen.raw.replace("\r\n", "\n") == "  Hm.\n  Hello\n"


def test_a_warning_is_shown_as_a_whole_and_breaks_between_words(place: Path) -> None:
    reason = "the one thing that this package cannot do without is not here"
    described = full("lost_pkg", "tool", "lost", tools={"find": "read"})
    source = f"raise RuntimeError({reason!r})"
    write_package(place / "lost", "lost_pkg", descriptor=described, source=source)
    (place / "lost.json").write_text(json.dumps({"plugins": ["path:lost"]}))
    with terminal("run", "--config", "lost.json", "Hello", cwd=place) as seen:
        assert seen.end() == 0
    assert f"raised RuntimeError: {reason}" in " ".join(seen.shown.split())
    assert all(len(line) <= 80 for line in seen.shown.splitlines())


def test_an_error_breaks_between_words(place: Path) -> None:
    name = "a config with a name that is longer than most, and that nobody has ever made.json"
    with terminal("run", "--config", name, "Hello", cwd=place) as seen:
        assert seen.end() == 1
    assert f"error: {name} cannot be read: " in " ".join(seen.shown.split())
    assert all(len(line) <= 80 for line in seen.shown.splitlines())


def test_a_list_of_plugins_fits_the_terminal(place: Path) -> None:
    described = full("long_pkg", "tool", "a_tool_whose_name_is_longer_than_most", label="Long")
    write_package(place / "long", "long_pkg", descriptor=described)
    with terminal("plugins", "list", "--plugin", "path:long", cwd=place) as seen:
        assert seen.end() == 0
    assert "\na_tool_whose_name_is_longer_than_most " in seen.shown
    assert all(len(line) <= 80 for line in seen.shown.splitlines())


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", [["explain"], ["explain", "--all"], ["info", "save"], ["list"]])
def test_what_is_told_of_plugins_fits_the_terminal(
    place: Path, command: list[str], columns: int
) -> None:
    config = json.loads((place / "c.json").read_text("utf-8"))
    config["allowed_plugins"] = ["echo", "bench_pkg"]
    (place / "c.json").write_text(json.dumps(config), encoding="utf-8")
    options = [*command, "--config", "c.json"]
    with terminal("plugins", *options, cwd=place, columns=columns) as seen:
        assert seen.end() == 0
    assert "workbench" in seen.shown
    long = [line for line in seen.shown.splitlines() if len(line) > columns]
    # What has no place to break, such as a path, may be longer; a table keeps its columns.
    assert [line for line in long if max(map(len, line.split())) < columns - 16] == []


def test_without_a_prompt_a_person_is_told_to_give_one(place: Path) -> None:
    with terminal("run", cwd=place) as seen:
        assert seen.end() == 2
    assert "give a prompt, or pipe one in" in seen.shown


@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_demo_tours_discovery_gating_a_stream_and_an_approval(
    tmp_path: Path, answer: str
) -> None:
    with terminal("demo", cwd=tmp_path) as seen:
        for text in ("Discovery", "echo_reasoning", "Gating", "echo-1", "needs tag", "A stream"):
            seen.expect(text)
        seen.expect("Hello! I live inside this process.")
        seen.expect("A tool call")
        seen.expect("take_note")
        seen.expect("wants to write something:")
        seen.expect("text: plugins are fun")
        seen.expect(QUESTION)
        seen.type(f"{answer}\n")
        seen.expect("noted (1 so far)" if answer == "y" else "denied: the answer was deny")
        seen.expect("Recorded: take_note was " + ("allowed" if answer == "y" else "denied"))
        seen.expect("What next")
        assert seen.end() == 0
    assert all(len(line) <= 80 for line in seen.shown.splitlines())
    # What is installed is remembered, as by every command; nothing that was said or allowed is.
    assert {path.name for path in (tmp_path / "home").iterdir()} == {"cache"}


def test_the_demo_runs_by_itself_when_told_to(tmp_path: Path) -> None:
    with terminal("demo", "--yes", cwd=tmp_path) as seen:
        assert seen.end() == 0
    assert "Allow it?" not in seen.shown
    assert "noted (1 so far)" in seen.shown


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_a_person_is_asked_whether_to_trust_what_has_changed(
    place: Path, typed: str, code: int
) -> None:
    config = place / "agent-host.json"
    config.write_text('{"tools": {"max_turns": 5}}', encoding="utf-8")
    with terminal("config", "trust", cwd=place) as seen:
        assert seen.end() == 0
    config.write_text('{"tools": {"max_turns": 6}}', encoding="utf-8")
    with terminal("config", "trust", cwd=place, columns=250) as seen:
        seen.expect("~ agent-host.json")
        seen.expect('+    "max_turns": 6')
        seen.expect("as it is now? [y]es, [n]o [n]:")
        seen.type(f"{typed}\n")
        assert seen.end() == code
    with terminal("config", "show", cwd=place) as seen:
        assert seen.end() == code
