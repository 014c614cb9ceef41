"""Every command with hostile text in its way: names, configs, plugins, answers, stored sessions."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from agent_host.application import AgentApplication
from agent_host.cli.app import root, run as run_command
from agent_host.cli.outside import LOOK_ALIKES
from making import full, write_package

#: A title, a cleared screen, a recoloured one, the start of the line, turned and hidden letters,
#: and the sign of questions. A slash is left out, for it stands in names of folders.
HOSTILE = "\x1b]0;x\x07\x1b[2J\x1b[31m\r\u202e\u200b\u3164◘\x9b8m\u2028EVIL"

BROKEN = f"raise RuntimeError({HOSTILE!r})"
TOOLS = f"""
from agent_hookspecs import ToolPlugin


class Plugin(ToolPlugin):
    name = "evil"
    label = {HOSTILE!r}
    effects = {{"save": "write", "tell": "read"}}

    def get_config_schema(self):
        return {{"evil_" + {HOSTILE!r}: {{"type": "string", "description": {HOSTILE!r}}}}}

    def get_tool_schemas(self):
        parameters = {{"type": "object", "properties": {{"text": {{"type": "string"}}}}}}
        return [
            {{"name": name, "description": {HOSTILE!r}, "parameters": parameters}}
            for name in ("save", "tell")
        ]

    def preview_tool(self, payload):
        raise OSError({HOSTILE!r})

    def execute_tool(self, tool_name, payload):
        if payload.get("text") == "fail":
            raise OSError({HOSTILE!r})
        return {HOSTILE!r}
"""


class Screen(io.StringIO):
    """A terminal, as far as a program can tell."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / f"folder {HOSTILE}"
    folder.mkdir()
    described = full(
        "evil_pkg", "tool", "evil", tools={"save": "write", "tell": "read"}, label=HOSTILE
    )
    write_package(folder / "plugins", "evil_pkg", descriptor=described, source=TOOLS)
    broken = full("broken_pkg", "tool", "broken", label=HOSTILE, tools={"break": "read"})
    write_package(folder / "plugins", "broken_pkg", descriptor=broken, source=BROKEN)
    config = {
        "plugins": ["path:plugins"],
        "providers": {"main": {"provider": "echo"}, f"alias{HOSTILE}": {"provider": "echo"}},
        "agents": {"default": {"system": HOSTILE, "provider": "main"}},
        "tools": {"rules": [{"tool": f"rule{HOSTILE}", "decision": "deny"}]},
    }
    (folder / "agent-host.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "wrong.json").write_text(json.dumps({HOSTILE: HOSTILE}), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    for name in ("AGENT_HOST_CONFIG_HOME", "AGENT_HOST_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    # What is coloured is ours, and would be in the way.
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("AGENT_HOST_DEBUG", raising=False)
    return folder


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, place: Path) -> Any:
    def run(*arguments: str) -> str:
        screen = Screen()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            patch.setattr(sys, "stdin", io.StringIO(""))
            run_command([*arguments])
        return screen.getvalue()

    return run


def found_in(shown: str) -> set[str]:
    """What no text from outside may print."""
    # A line about what is awaited is cleared so, by us.
    shown = re.sub(r"\r?\x1b\[K", "", shown)
    return {c for c in shown if not c.isprintable() and c not in "\n\t"} | (
        set(shown) & {*LOOK_ALIKES, "\u3164"}
    )


@pytest.fixture
def stored(place: Path) -> dict[str, str]:
    """A session and runs that hold hostile text: one that succeeded, one that waits."""
    with AgentApplication("agent-host.json", store=True) as app:
        done = app.run(f"say {HOSTILE}", session_name=f"name {HOSTILE}", provider="main")
        call = f"/call save {json.dumps({'text': HOSTILE})}"
        stream = app.stream(call, park=True, provider="main")
        for _ in stream:
            continue
        return {"session": str(done.session.id), "run": str(stream.run_id)}


CALL = f"/call tell {json.dumps({'text': HOSTILE})}"
FAILING = '/call tell {"text": "fail"}'
#: The arguments with which each command is called; others are called without any.
COMMANDS: dict[tuple[str, ...], list[list[str]]] = {
    ("config", "show"): [[], ["--config", "wrong.json"], ["--config", HOSTILE]],
    ("config", "trust"): [[], ["--revoke"], ["."]],
    ("config", "validate"): [[], ["wrong.json"], [HOSTILE]],
    ("config", "schema"): [[]],
    ("demo",): [["--yes"]],
    ("plugins", "list"): [[], ["--plugin", f"path:{HOSTILE}"]],
    ("plugins", "info"): [["evil"], ["broken"], ["save"], [HOSTILE]],
    ("plugins", "explain"): [[], ["--all"], ["--model", HOSTILE], ["--provider", HOSTILE]],
    ("plugins", "doctor"): [[]],
    ("plugins", "validate"): [["plugins"], [HOSTILE]],
    ("plugins", "describe"): [["plugins"], [HOSTILE]],
    ("run",): [
        ["--yes", "--no-store", HOSTILE],
        ["--yes", "--no-store", f"/think {HOSTILE}\n{HOSTILE}"],
        ["--yes", "--no-store", CALL],
        ["--yes", "--no-store", FAILING],
        ["--yes", "--no-store", "--trace-hooks", CALL],
        ["--yes", "--no-store", "--model", HOSTILE, "x"],
        ["--no-store", "--agent", HOSTILE, "x"],
        ["--no-store", "--set", f"{HOSTILE}=1", "x"],
        ["--no-store", "--tools", HOSTILE, "x"],
        ["--session", HOSTILE, "x"],
        ["--json", "--no-store", HOSTILE],
    ],
    ("runs", "show"): [["{run}"], [HOSTILE]],
    ("runs", "watch"): [["{run}"]],
    ("runs", "answer"): [["{run}", HOSTILE]],
    ("runs", "approve"): [["{run}"]],
    ("runs", "resume"): [["{run}", "--yes"]],
    ("sessions", "show"): [["{session}"], [HOSTILE]],
    ("sessions", "search"): [["EVIL"], [HOSTILE]],
    ("sessions", "export"): [["{session}"]],
    ("tools", "list"): [[]],
    ("tools", "revoke"): [[HOSTILE]],
}
#: Not walked: they ask, or write, or go on until they are told to end.
LEFT_OUT = {("chat",), ("plugins", "new"), ("completion",), ("config", "edit"), ("config", "init")}


def leaves(
    group: click.Group, context: click.Context, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, context, (*above, name))
        else:
            yield (*above, name)


def every_command() -> list[tuple[str, ...]]:
    with click.Context(root) as context:
        there = [*leaves(root, context)]
    return [each for each in there if each not in LEFT_OUT]


def test_no_command_lets_text_from_outside_act_on_the_terminal(
    show: Any, stored: dict[str, str]
) -> None:
    leaking: dict[str, set[str]] = {}
    for command in every_command():
        for arguments in COMMANDS.get(command, [[]]):
            given = [each.format(**stored) if "{" in each[:1] else each for each in arguments]
            shown = show(*command, *given)
            if bad := found_in(shown):
                leaking[" ".join([*command, *arguments])] = bad
    assert leaking == {}


def test_a_traceback_with_text_from_outside_is_clean(
    show: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_DEBUG", "1")
    assert found_in(show("config", "validate", "wrong.json")) == set()
