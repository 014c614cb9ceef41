"""The plugin inside the host, beside a model that calls its tool."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_host import AgentApplication
from agent_host.agent.policy import Approval
from agent_host.cli.approval import approval_rows

pytestmark = pytest.mark.usefixtures("bubblewrap")


def config(root: Path, **more: Any) -> dict[str, Any]:
    return {"request_defaults": {"root": str(root), **more}}


def call(command: str, **more: Any) -> str:
    return f"/call run_command {json.dumps({'command': command, **more})}"


def results(session: Any) -> list[str]:
    return [message["content"] for message in session.messages if message["role"] == "tool"]


def require_file(file: Path) -> None:
    """What a command leaves behind when it is asked to end."""
    for _ in range(500):
        if file.exists():
            return
        threading.Event().wait(0.02)
    pytest.fail("the command goes on for nobody")


def test_nothing_runs_without_a_yes_and_the_question_begins_with_the_command(
    workspace: Path,
) -> None:
    asked: list[Approval] = []

    def refuse(approval: Approval) -> str:
        asked.append(approval)
        return "deny"

    with AgentApplication(config(workspace)) as app:
        answer = app.run(call("touch made"), approve=refuse)
    assert not (workspace / "made").exists()
    assert "denied" in results(answer.session)[0]
    rows = [row.text.strip() for row in approval_rows(asked[0], 200).rows]
    assert rows[0] == "run_command (agent-host-shell) wants to run something:"
    assert rows[1] == "command: touch made"
    assert rows[2] == (
        f"M {workspace} (in a sandbox, which may change only this folder and has no network)"
    )


def test_output_comes_as_progress_and_the_result_as_a_message(workspace: Path) -> None:
    (workspace / "go").write_text("")
    updates = []
    with AgentApplication(config(workspace)) as app:
        command = "echo first; while [ -e go ]; do sleep 0.05; done; echo last"
        with app.stream(call(command), approve=lambda approval: True) as stream:
            for event in stream:
                if event["type"] == "tool_update":
                    updates.append(event["update"])
                    (workspace / "go").unlink(missing_ok=True)
    assert updates[0] == "first\n"
    assert results(stream.session) == ["first\nlast\n[exit code 0]"]


def test_a_run_that_is_cancelled_ends_its_command(workspace: Path) -> None:
    command = "trap 'echo x > ended; exit' TERM; echo begun; sleep 1000 & wait"

    async def run() -> None:
        async with (
            AgentApplication(config(workspace)) as app,
            app.astream(call(command), approve=lambda approval: True) as stream,
        ):
            async for event in stream:
                if event["type"] == "tool_update":
                    return

    asyncio.run(run())
    require_file(workspace / "ended")


def test_a_call_that_the_host_gives_up_is_ended(workspace: Path) -> None:
    values = {
        **config(workspace),
        "tools": {"max_call_seconds": 1, "effects": {"execute": "allow"}},
    }
    command = "trap 'echo x > ended; exit' TERM; sleep 1000 & wait"
    with AgentApplication(values) as app:
        answer = app.run(call(command))
    assert "given up" in results(answer.session)[0]
    require_file(workspace / "ended")


def test_no_command_reaches_config_decisions_or_store_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "agent-home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("AGENT_HOST_HOME", str(home))
    monkeypatch.chdir(work)
    (home / "allowed-tools.json").write_text("[]")
    config_file = work / "mine.json"
    values = {**config(work), "tools": {"effects": {"execute": "allow"}}}
    values["agents"] = {"default": {"system": "kept to ourselves"}}
    config_file.write_text(json.dumps(values))
    commands = [
        f"cat {home}/*; echo '[1]' > {home}/allowed-tools.json",
        "cat mine.json; echo '{}' > mine.json; rm -f mine.json",
    ]
    with AgentApplication(config_file) as app:
        said = results(app.run("\n".join(map(call, commands))).session)
    assert len(said) == 2
    assert all("kept to ourselves" not in each and "exit code 1" in each for each in said)
    assert (home / "allowed-tools.json").read_text() == "[]"
    assert "kept to ourselves" in config_file.read_text()
