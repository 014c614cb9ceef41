"""What a command in the sandbox may not do, tried for real; and that nothing of it is left."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ToolError
from agent_host_shell.sandbox import Bubblewrap

SECRET = "sk-kept-by-the-host"
#: Ten gigabytes take a minute; CI tries a hundredth of it.
SIZE = 10 * 10**9 if os.environ.get("AGENT_HOST_LONG_TRIALS") == "1" else 10**8


def processes_with(word: str) -> list[int]:
    """The processes that have the word in their arguments, but for those that are over."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            arguments = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if word.encode() in arguments:
            found.append(int(folder.name))
    return found


def require_gone(word: str) -> None:
    deadline = time.monotonic() + 10
    while processes_with(word):
        assert time.monotonic() < deadline, "something goes on for nobody"
        threading.Event().wait(0.02)


@pytest.fixture
def mark() -> str:
    """An argument by which a process is found: so many seconds to sleep, like no other."""
    return f"1{uuid.uuid4().int % 10**9:09d}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    for name in (".ssh/id", ".config/agent-host/keys.json", "project/readme"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)
    monkeypatch.setenv("HOME", str(folder))
    return folder


# Files


@pytest.mark.parametrize("place", ["/etc", "/usr", "/", "/var", "/sys", "/proc", "/dev"])
def test_nothing_can_be_written_elsewhere(shell: Any, place: str) -> None:
    name = f"{place}/made-by-{uuid.uuid4().hex}"
    assert "[exit code 0]" not in shell.run(f"touch {name}")
    assert not os.path.exists(name)


def test_what_is_written_beside_the_workspace_is_nowhere(shell: Any) -> None:
    shell.run("touch ../made /tmp/made ~/made")
    assert not (shell.root.parent / "made").exists()
    assert not os.path.exists("/tmp/made")
    assert "made" not in shell.run("ls /tmp ~")


def test_the_home_is_hidden_but_for_the_workspace(
    open_shell: Callable[..., Any], home: Path
) -> None:
    shell = open_shell(home / "project")
    assert SECRET not in shell.run(f"cat ~/.ssh/id {home}/.ssh/id {home}/.config/*/*")
    assert shell.run("find ~ -type f; cat readme").startswith(f"{home}/project/readme\n{SECRET}")


def test_a_link_leads_nowhere(open_shell: Callable[..., Any], home: Path) -> None:
    (home / "project" / "link").symlink_to(home / ".ssh" / "id")
    (home / "project" / "folder").symlink_to(home)
    shell = open_shell(home / "project")
    assert SECRET not in shell.run("cat link folder/.ssh/id; echo x > link")
    assert (home / ".ssh" / "id").read_text() == SECRET


def test_the_hosts_own_places_are_empty_and_fixed_wherever_they_are(
    open_shell: Callable[..., Any], workspace: Path
) -> None:
    inside, store = workspace / "state", workspace / "runs.db"
    inside.mkdir()
    for file in (inside / "allowed-tools.json", store):
        file.write_text(SECRET)
    shell = open_shell(workspace, protected_paths=[str(inside), str(store)])
    commands = (
        "cat state/* runs.db",
        "echo '[]' > state/allowed-tools.json",
        "echo '[]' > state/new.json",
        "echo x > runs.db",
        "rm -rf state runs.db",
        "mv state other",
        "mv runs.db other.db; ln runs.db other.db; cat other.db",
        "umount state",
        "mount --bind / state",
        "unshare -rm umount state",
    )
    for command in commands:
        said = shell.run(command)
        assert SECRET not in said
        if not command.startswith("cat"):
            assert "exit code 0" not in said, command
    assert store.read_text() == SECRET
    assert [file.name for file in inside.iterdir()] == ["allowed-tools.json"]


def test_the_hosts_own_places_outside_are_hidden(
    open_shell: Callable[..., Any], bubblewrap: Bubblewrap, tmp_path: Path
) -> None:
    outside = tmp_path / "state"
    outside.mkdir()
    (outside / "keys.json").write_text(SECRET)
    (tmp_path / "work").mkdir()
    shell = open_shell(
        tmp_path / "work", readable_paths=[str(tmp_path)], protected_paths=[str(outside)]
    )
    said = shell.run("ls -a ../state; cat ../state/keys.json; touch ../state/x")
    assert SECRET not in said
    assert "keys.json\n" not in said
    assert "exit code 1" in said


def test_a_further_name_of_a_file_of_the_host_is_hidden(
    open_shell: Callable[..., Any], workspace: Path
) -> None:
    place = workspace.parent / "state"
    place.mkdir()
    (place / "keys.json").write_text(SECRET)
    (workspace / "deep").mkdir()
    os.link(place / "keys.json", workspace / "deep" / "harmless")
    shell = open_shell(workspace, protected_paths=[str(place)])
    said = shell.run("cat deep/harmless; echo x > deep/harmless")
    assert SECRET not in said
    assert (place / "keys.json").read_text() == SECRET


@pytest.mark.parametrize("name", ["agent-host.json", "deep/agent-host.toml"])
def test_configs_of_the_workspace_can_neither_be_read_nor_changed(
    open_shell: Callable[..., Any], workspace: Path, name: str
) -> None:
    file = workspace / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(SECRET)
    shell = open_shell(workspace, protected_paths=["agent-host.json", "agent-host.toml"])
    said = shell.run(f"cat {name}; echo x > {name}; rm -f {name}; mv {name} y; ls")
    assert SECRET not in said
    assert file.read_text() == SECRET


@pytest.mark.parametrize("kind", ["missing", "link"])
def test_nothing_runs_where_a_place_of_the_host_cannot_be_hidden(
    open_shell: Callable[..., Any], workspace: Path, kind: str
) -> None:
    place = workspace / "state"
    if kind == "link":
        (workspace.parent / "elsewhere").mkdir()
        place.symlink_to(workspace.parent / "elsewhere")
    shell = open_shell(workspace, protected_paths=[str(place)])
    with pytest.raises(ToolError, match="cannot be hidden"):
        shell.run("true")


def test_what_the_host_runs_from_cannot_be_changed(
    open_shell: Callable[..., Any], tmp_path: Path
) -> None:
    """An environment in the workspace would have what it runs next written by what it runs now."""
    environment = tmp_path / "project" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    script = (
        "from agent_host_shell.view import make_view\n"
        f"print(make_view({str(tmp_path / 'project')!r}, (), ()).fixed)\n"
    )
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"({str(environment)!r},)\n"


def test_a_bubblewrap_that_a_model_wrote_is_not_run(
    open_shell: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = workspace / "bwrap"
    trap.write_text(f"#!/bin/sh\ntouch {workspace.parent}/trapped\n")
    trap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}:{os.environ['PATH']}")
    monkeypatch.chdir(workspace)
    assert open_shell(workspace).run("echo kept") == "kept\n[exit code 0]"
    assert not (workspace.parent / "trapped").exists()


# What is the host's


def test_no_secret_of_the_environment_is_passed_on(
    open_shell: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "LC_SECRET",
        "SSH_AUTH_SOCK",
        "BASH_ENV",
    ):
        monkeypatch.setenv(name, SECRET)
    said = open_shell(workspace).run("env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert SECRET not in said
    assert "PATH=" in said


def test_other_processes_can_be_neither_seen_nor_ended(shell: Any) -> None:
    with subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL) as other:
        said = shell.run(f"ls -d /proc/{other.pid}; kill -9 {other.pid} {os.getpid()}; ls /proc")
        assert other.poll() is None
        other.kill()
    assert f"\n{other.pid}\n" not in said
    assert "No such process" in said


def test_there_is_no_terminal_and_no_input(shell: Any) -> None:
    said = shell.run("read line || echo end; tty; echo x > /dev/tty")
    assert "end\nnot a tty\n" in said
    assert "exit code 1" in said


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_network_is_off_unless_it_is_switched_on(
    open_shell: Callable[..., Any], workspace: Path, port: int
) -> None:
    command = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
    assert "connected\n" not in open_shell(workspace).run(command)
    assert "connected\n" in open_shell(workspace, command_network=True).run(command)


def test_sockets_of_daemons_are_hidden(shell: Any) -> None:
    said = shell.run("find /run /var/run/ /tmp -type s | wc -l; ls /run | wc -l")
    assert said == "0\n0\n[exit code 0]"


def test_no_further_namespaces_can_be_made(shell: Any, bubblewrap: Bubblewrap) -> None:
    if "--disable-userns" not in bubblewrap.options:
        pytest.skip("this bubblewrap is too old to forbid it")
    assert "[exit code 0]" not in shell.run("unshare -U true")


def test_there_are_no_capabilities(shell: Any) -> None:
    said = shell.run("grep Cap /proc/self/status")
    assert {line.split()[1] for line in said.splitlines() if "Cap" in line} == {"0" * 16}


# Ends


@pytest.mark.parametrize(
    "command",
    [
        "sleep {0} &",
        "nohup sleep {0} >/dev/null 2>&1 &",
        "setsid sleep {0} >/dev/null 2>&1 &",
        "(setsid sh -c '(trap \"\" HUP TERM; sleep {0}; true) &' &) &",
        "sleep {0} & disown; exec true",
    ],
)
def test_who_forks_away_is_ended_with_the_command(shell: Any, mark: str, command: str) -> None:
    assert "[exit code 0]" in shell.run(f"{command.format(mark)} echo begun")
    require_gone(mark)


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM INT HUP; sleep {0}; sleep {0}",
        "setsid sleep {0} & sleep {0}",
        "kill -STOP $$; sleep {0}",
        "sleep {0} & kill -STOP -1; sleep {0}",
        "kill -STOP 1; sleep {0}",
        "while :; do sleep {0} & sleep 0.01; done",
    ],
)
def test_time_is_up_for_everybody(shell: Any, mark: str, command: str) -> None:
    said = shell.run(command.format(mark), seconds=1)
    assert "ended after 1 s" in said
    require_gone(mark)


def test_a_command_may_clean_up_when_its_time_is_up(shell: Any) -> None:
    said = shell.run("trap 'rm lock; exit' TERM; touch lock; sleep 1000 & wait", seconds=1)
    assert "ended after 1 s" in said
    assert not (shell.root / "lock").exists()


HOST = """
import sys
from agent_host_shell.output import Output
from agent_host_shell.plugin import ShellTools
from agent_host_shell.running import Run
from agent_host_shell.sandbox import Unsandboxed, make_environment
import os

root, command, kind = sys.argv[1:]
if kind == "sandboxed":
    plugin = ShellTools()
    state = plugin.init({"root": root})
    running = plugin.execute_tool("run_command", {"command": command}, state, {})
    print(next(running), flush=True)
    next(running)
else:
    environment = make_environment(os.environ, "/", ())
    run = Run(Unsandboxed(root, environment, command), Output(1000), 1000, bool)
    run.start()
    while not run.output.size:
        run.is_over.wait(0.01)
    print(run.output.take_news(), flush=True)
    run.is_over.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda each: each.name)
@pytest.mark.parametrize("kind", ["sandboxed", "unsandboxed"])
@pytest.mark.usefixtures("bubblewrap")
def test_no_command_outlives_its_host(
    workspace: Path, mark: str, kind: str, number: signal.Signals
) -> None:
    command = f"setsid sleep {mark} & (setsid sh -c 'sleep {mark} &'); echo begun; sleep {mark}"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(workspace), command, kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with host:
        assert host.stdout is not None
        assert host.stdout.readline() == "begun\n"
        host.send_signal(number)
        host.wait(30)
        require_gone(mark)


# Output


def test_output_without_end_costs_neither_memory_nor_more_than_its_time(shell: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = shell.run("yes", seconds=1)
    assert "bytes are left out here" in said
    assert len(said) < 40_000
    assert all(len(each) < 20_000 for each in shell.reports)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32_000


def test_much_output_is_counted_and_not_kept(shell: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = shell.result(f"head -c {SIZE} /dev/zero | tr '\\0' x")
    assert result["display"]["output_bytes"] == SIZE
    assert f"of {SIZE} bytes are left out here" in result["text"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32_000


def test_garbage_is_shown_as_data(shell: Any) -> None:
    said = shell.run("head -c 100000 /dev/urandom")
    said.encode()
    assert not {*said} & {chr(each) for each in range(32)} - {*"\t\n\r"}


def test_scratch_folders_are_bounded(shell: Any) -> None:
    said = shell.run("df -k --output=size /tmp /var/tmp /dev/shm | tail -n +2")
    sizes = [int(each) for each in said.split() if each.isdigit()]
    assert max(sizes) <= 1 << 19
