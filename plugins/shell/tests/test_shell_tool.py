"""What the model is told of a command: what it said, and how it ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ConfigError, ToolArgumentsError, ToolError, UnknownToolError
from agent_host_shell.plugin import ShellTools


def test_a_command_works_in_the_workspace(shell: Any) -> None:
    (shell.root / "a.txt").write_text("content\n")
    assert shell.run("cat a.txt; echo more > b.txt; pwd") == (
        f"content\n{shell.root}\n[exit code 0]"
    )
    assert (shell.root / "b.txt").read_text() == "more\n"


def test_output_and_errors_come_in_the_order_in_which_they_were_said(shell: Any) -> None:
    assert shell.run("echo one; echo two >&2; echo three; exit 3") == (
        "one\ntwo\nthree\n[exit code 3]"
    )


def test_a_command_that_says_nothing_has_ended_all_the_same(shell: Any) -> None:
    assert shell.run("true") == "[exit code 0]"


def test_an_unfinished_line_is_ended(shell: Any) -> None:
    assert shell.run("printf x") == "x\n[exit code 0]"


def test_a_signal_is_told(shell: Any) -> None:
    assert shell.run("kill -9 $$") == "[exit code 137, as after the signal SIGKILL]"


def test_the_display_has_what_a_program_wants_to_know(shell: Any) -> None:
    display = shell.result("echo hello; exit 4")["display"]
    assert display.pop("seconds") < 60
    assert display == {
        "kind": "command",
        "command": "echo hello; exit 4",
        "exit_code": 4,
        "ending": None,
        "output_bytes": 6,
        "sandbox": True,
    }


def test_what_is_no_text_and_what_controls_a_terminal_is_shown_as_data(shell: Any) -> None:
    said = shell.run(r"printf '\xff\x00\x1b[31mred\x07 caf\xc3\xa9\t\r\n'")
    assert said == "\\xff\\x00\\x1b[31mred\\x07 café\t\r\n[exit code 0]"


def test_of_long_output_beginning_and_end_are_kept_and_the_rest_is_told(
    open_shell: Callable[..., Any], workspace: Path
) -> None:
    shell = open_shell(workspace, max_output_bytes=20)
    said = shell.run("echo 0123456789abcdef; echo middle; echo fedcba9876543210")
    assert said.startswith("0123456789\n[truncated: 21 of 41 bytes are left out here")
    assert said.endswith("]\n876543210\n[exit code 0]")


def test_what_a_command_says_is_reported_while_it_runs(shell: Any) -> None:
    (shell.root / "go").write_text("")
    running = shell.start("echo first; while [ -e go ]; do sleep 0.05; done; echo last")
    assert next(running) == "first\n"
    (shell.root / "go").unlink()
    assert shell.finish(running)["text"] == "first\nlast\n[exit code 0]"


def test_reports_may_be_asked_for_by_threads_that_come_and_go(shell: Any) -> None:
    """The sandbox ends with the thread that started it, which must not be who happened to ask."""
    (shell.root / "go").write_text("")
    running = shell.start("echo first; while [ -e go ]; do sleep 0.05; done; echo last")
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(next, running).result() == "first\n"
    (shell.root / "go").unlink()
    assert shell.finish(running)["text"] == "first\nlast\n[exit code 0]"


def test_a_command_that_nobody_waits_for_is_ended(shell: Any) -> None:
    cancelled = threading.Event()
    running = shell.start("echo begun; sleep 1000", cancelled=cancelled.is_set)
    assert next(running) == "begun\n"
    cancelled.set()
    assert shell.finish(running)["text"] == "begun\n[cancelled]"


def test_the_time_of_a_command_is_limited_by_the_call(shell: Any) -> None:
    said = shell.run("echo begun; sleep 1000", seconds=1)
    assert said == "begun\n[ended after 1 s, which is all the time it had]"


def test_closing_the_tool_ends_what_runs(open_shell: Callable[..., Any], workspace: Path) -> None:
    shell = open_shell(workspace)
    running = shell.start("echo begun; sleep 1000")
    assert next(running) == "begun\n"
    (run,) = shell.state["shell"].runs
    shell.plugin.close(shell.state)
    assert run.is_over.is_set()


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"command": ""},
        {"command": " \n"},
        {"command": None},
        {"command": ["ls"]},
        {"command": "a\0b"},
        {"command": "\ud800"},
        {"command": "x" * 100_001},
        {"command": "ls", "seconds": 0},
        {"command": "ls", "seconds": True},
        {"command": "ls", "seconds": 1.5},
        {"command": "ls", "seconds": 121},
        {"command": "ls", "cwd": "/"},
        "ls",
        None,
    ],
)
def test_what_is_no_command_is_refused(workspace: Path, payload: Any) -> None:
    plugin = ShellTools()
    state = plugin.init({"root": str(workspace)})
    with pytest.raises(ToolArgumentsError):
        next(plugin.execute_tool("run_command", payload, state, {}))
    with pytest.raises(ToolArgumentsError):
        plugin.preview_tool("run_command", payload, state)


def test_there_is_no_other_tool(workspace: Path) -> None:
    plugin = ShellTools()
    with pytest.raises(UnknownToolError):
        next(plugin.execute_tool("run", {}, plugin.init({"root": str(workspace)}), {}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("root", ""),
        ("root", 1),
        ("root", "no/such/folder"),
        ("root", "/"),
        ("root", "/tmp"),
        ("root", "~"),
        ("max_command_seconds", 0),
        ("max_command_seconds", float("nan")),
        ("max_command_seconds", "10"),
        ("max_output_bytes", 1.5),
        ("max_output_bytes", True),
        ("command_network", "yes"),
        ("readable_paths", "~/.cache"),
        ("readable_paths", [1]),
        ("command_environment", {"A": "b"}),
        ("without_sandbox", "allow"),
    ],
)
def test_settings_are_checked_and_named(workspace: Path, key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as error:
        ShellTools().init({"root": str(workspace), key: value})
    assert error.value.key == key
    assert error.value.hint


def test_a_place_of_the_host_is_no_workspace(workspace: Path) -> None:
    with pytest.raises(ConfigError, match="of the host itself"):
        ShellTools().init({"root": str(workspace), "protected_paths": [str(workspace.parent)]})


def test_a_workspace_behind_a_link_is_the_same_one(
    open_shell: Callable[..., Any], workspace: Path
) -> None:
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    shell = open_shell(link)
    assert shell.run("pwd -P; echo x > made") == f"{workspace}\n[exit code 0]"
    assert (workspace / "made").exists()


def test_a_folder_in_the_place_of_the_workspace_is_not_worked_in(shell: Any) -> None:
    shell.root.rename(shell.root.parent / "moved")
    shell.root.symlink_to("/etc")
    with pytest.raises(ToolError, match="not the folder that it was"):
        shell.run("ls")


def test_a_program_that_the_sandbox_hides_is_explained(
    open_shell: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for folder in ("bin", "project"):
        (home / folder).mkdir(parents=True)
    program = home / "bin" / "hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    said = open_shell(home / "project").run("hello")
    assert "exit code 127" in said
    assert str(home / "bin") in said
    assert "readable_paths" in said
    shown = open_shell(home / "project", readable_paths=["~/bin"])
    assert shown.run("hello; touch ~/bin/x || echo fixed").endswith("fixed\n[exit code 0]")


def test_variables_that_are_named_are_passed_on(
    open_shell: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "clang")
    shell = open_shell(workspace, command_environment=["CC", "NOT_SET"])
    assert shell.run("echo $CC $TERM") == "clang dumb\n[exit code 0]"


def test_the_preview_says_what_keeps_the_command_apart(shell: Any) -> None:
    (told,) = shell.plugin.preview_tool("run_command", {"command": "ls"}, shell.state)
    assert told["path"] == str(shell.root)
    assert told["note"] == "in a sandbox, which may change only this folder and has no network"


def test_schemas_and_settings_are_handed_out_as_copies() -> None:
    ShellTools().get_tool_schemas()[0]["parameters"].clear()
    ShellTools().get_config_schema().clear()
    assert ShellTools().get_tool_schemas()[0]["parameters"]
    assert ShellTools().get_config_schema()
