"""The plugin inside a core, beside a model that calls its tools."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_host import AgentApplication
from agent_host.core import AgentCore
from agent_host_echo.provider import EchoProvider
from agent_host_files.plugin import FilesTools


@pytest.fixture
def core() -> Iterator[AgentCore]:
    with AgentCore() as made:
        made.register_provider(EchoProvider)
        made.register_tool(FilesTools)
        yield made


def config(root: Path) -> dict[str, Any]:
    return {"provider": "echo", "root": str(root)}


def called(core: AgentCore, root: Path, prompt: str) -> tuple[list[dict[str, Any]], str]:
    """The tool messages that a prompt leads to, and what the model says of them."""
    session = core.add_message(core.create_session(), "user", prompt)
    session, (answer,) = core.send_request(session, config(root))
    messages = core.execute_tool_calls(answer["metadata"]["tool_calls"], config(root))
    for message in messages:
        session = core.add_message(
            session,
            "tool",
            message["content"],
            message["metadata"],
            toolResult=message["toolResult"],
        )
    _, (final,) = core.send_request(session, config(root))
    return [dict(message) for message in messages], final["content"]


def test_the_model_is_offered_every_tool_as_it_was_written(core: AgentCore, tmp_path: Path) -> None:
    offered = core.get_tool_schemas(config(tmp_path))
    assert [each.tool_name for each in offered] == list(FilesTools.effects)
    assert [each.schema for each in offered] == FilesTools().get_tool_schemas()
    assert {"root", "max_read_bytes"} <= set(core.get_config_schema(config(tmp_path)))


def test_a_model_writes_lists_searches_and_reads(core: AgentCore, tmp_path: Path) -> None:
    messages, said = called(
        core,
        tmp_path,
        '/call write_file {"path": "src/a.py", "content": "x = 1\\n"}\n'
        '/call list_files {"depth": 2}\n'
        '/call search_files {"pattern": "x.*1"}\n'
        '/call read_file {"path": "src/a.py"}\n',
    )
    assert [message["content"] for message in messages] == [
        "Created 'src/a.py': 1 line.",
        "src/\nsrc/a.py",
        "src/a.py:1: x = 1",
        "x = 1\n",
    ]
    assert [message["metadata"]["display"]["kind"] for message in messages] == [
        "diff",
        "files",
        "matches",
        "file",
    ]
    assert "read_file returned: x = 1" in said


@pytest.mark.parametrize("form", ["custom", "function"])
def test_a_patch_arrives_in_either_form(core: AgentCore, tmp_path: Path, form: str) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+hello\n*** End Patch"
    calls: dict[str, dict[str, Any]] = {
        "custom": {"id": "1", "type": "custom", "custom": {"name": "apply_patch", "input": patch}},
        "function": {"id": "1", "name": "apply_patch", "arguments": {"input": patch}},
    }
    (message,) = core.execute_tool_calls([calls[form]], config(tmp_path))
    assert message["content"] == "Done.\nA a (+1 -0)"
    assert message["metadata"]["tool_call_id"] == "1"
    assert (tmp_path / "a").read_text() == "hello\n"


def test_errors_reach_the_model_without_the_root(core: AgentCore, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    messages, said = called(
        core,
        tmp_path,
        '/call read_file {"path": "link/passwd"}\n'
        '/call read_file {"path": "../x"}\n'
        '/call read_file {"path": "none"}\n'
        "/call apply_patch not a patch\n",
    )
    assert all(message["metadata"]["error"] for message in messages)
    assert "symbolic link" in messages[0]["content"]
    assert "has '..'" in messages[1]["content"]
    assert "does not exist" in messages[2]["content"]
    assert "nothing was changed" in messages[3]["content"]
    assert not any(str(tmp_path) in message["content"] for message in messages)
    assert str(tmp_path) not in said


def test_a_picture_is_kept_as_one(core: AgentCore, tmp_path: Path) -> None:
    data = b"GIF89a" + bytes(10)
    (tmp_path / "a.gif").write_bytes(data)
    (message,), _ = called(core, tmp_path, '/call read_file {"path": "a.gif"}')
    assert message["content"] == "'a.gif' is a picture (image/gif, 16 bytes)."
    (_, part) = message["toolResult"]["content"]
    url = f"data:image/gif;base64,{base64.b64encode(data).decode()}"
    assert part == {"type": "image_url", "image_url": {"url": url}}


def test_a_folder_that_is_not_there_leaves_the_tools_out(core: AgentCore, tmp_path: Path) -> None:
    assert core.get_tool_schemas(config(tmp_path / "none")) == []


def test_no_tool_reaches_config_decisions_or_store_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("AGENT_HOST_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    values = {
        "request_defaults": {"root": str(tmp_path)},
        "tools": {"effects": {"write": "allow"}},
        "store": f"sqlite:///{work}/runs.db",
        "plugin_cache_dir": str(work / "clones"),
    }
    config_file = work / "mine.json"
    config_file.write_text(json.dumps(values), encoding="utf-8")
    paths = [
        "home/allowed-tools.json",
        "home/cache/index/x.json",
        "work/mine.json",
        "work/runs.db",
        "work/runs.db-wal",
        "work/clones/git/plugin.py",
        "work/agent-host.json",
    ]
    lines = [f'/call write_file {{"path": "{path}", "content": "[]"}}' for path in paths]
    with AgentApplication(config_file) as app:
        answer = app.run("\n".join([*lines, '/call read_file {"path": "work/runs.db"}']))
    results = [m["content"] for m in answer.session.messages if m["role"] == "tool"]
    assert len(results) == len(paths) + 1
    assert all("belongs to the host itself" in result for result in results), results
    assert not (home / "allowed-tools.json").exists()
