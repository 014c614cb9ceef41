"""`agent-host run` as a process of its own, against servers that are processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from stops import STOPS, Stop, stop

from agent_host.plugins.catalog import build_catalog
from agent_host.plugins.discover import discover

#: The dialect in which a server that stands alone shows thoughts, where the format has several.
REASONING = {"openrouter": "reasoning_details", "custom": "reasoning_content"}
PROMPT = "Call list_files and then write_file."
RESULT = "Created 'text': 1 line."
#: The model repeats a result as its API hands it over, which is not as text everywhere.
ANSWERS = {"google": f"The result is: {{'result': \"{RESULT}\"}}"}
ANSWER = f"The result is: {RESULT}"
THOUGHT = f"The user said {len(PROMPT)} characters; "

providers = pytest.mark.parametrize("at", STOPS, ids=lambda each: each.name)


def key_variable(provider: str) -> str | None:
    """Where the descriptor says that the key customarily is."""
    found = [each for each in build_catalog(discover()).usable("provider") if each.name == provider]
    assert found[0].entry is not None
    return found[0].entry.key_variable


@dataclass(frozen=True)
class Standalone:
    """A server in a process of its own; what it logged is known once it has ended."""

    base_url: str
    process: subprocess.Popen[str]

    def log(self) -> list[str]:
        self.process.terminate()
        _, logged = self.process.communicate(timeout=20)
        return logged.splitlines()


@contextmanager
def serving(at: Stop) -> Iterator[Standalone]:
    dialect = ["--reasoning", REASONING[at.name]] if at.name in REASONING else []
    options = ["--key", at.key, "--models", at.model, "--json", *dialect]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_host_testing.serve", at.wire, *options],
        # A format of a package's own is in its tests.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield Standalone(json.loads(process.stdout.readline())["base_url"], process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "notes.txt").write_text("a word\n", encoding="utf-8")
    return folder


def run(
    workspace: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENT_HOST_", "NO_COLOR")) and not name.endswith("_API_KEY")
    }
    return subprocess.run(
        [sys.executable, "-m", "agent_host", "run", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=workspace,
        env={
            **kept,
            "AGENT_HOST_HOME": str(workspace.parent / "home"),
            "PYTHONUTF8": "1",
            "COLUMNS": "200",
            **(env or {}),
        },
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def setting(name: str, value: object) -> list[str]:
    return ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]


def asked(at: Stop) -> list[str]:
    """The arguments that say whom to ask and make the model reason; address and key are missing."""
    settings = {**at.always, **at.settings}
    told = [word for name, value in settings.items() for word in setting(name, value)]
    return ["--provider", at.provider, "--model", at.model, "--yes", *told]


def check_shown(at: Stop, done: subprocess.CompletedProcess[str], workspace: Path) -> None:
    """The answer, and only that, is on standard output; the way to it on standard error."""
    assert done.returncode == 0, done.stderr
    assert done.stdout == ANSWERS.get(at.name, ANSWER) + "\n"
    aside = done.stderr.splitlines()
    calls = [line for line in aside if line.startswith(("→", "←"))]
    assert calls == [
        "→ list_files()",
        "← list_files: notes.txt",
        '→ write_file(path="text", content="text")',
        f"← write_file: {RESULT}",
    ]
    thoughts = [line for line in aside if line not in calls]
    results = [f"{THOUGHT}{count} result(s) so far." for count in range(3)]
    assert thoughts == (results if at.shows else [])
    assert (workspace / "text").read_text("utf-8") == "text"


def check_accepted(at: Stop, server: Standalone) -> None:
    """The server found nothing wrong in three turns, and its log has no key."""
    log = server.log()
    assert [line for line in log if line.startswith("problem")] == []
    generating = [line for line in log if line.startswith("POST") and "/api/show" not in line]
    assert [line.split()[-1] for line in generating] == ["200"] * 3
    assert at.key not in "\n".join(log)


@providers
def test_a_run_with_tools_and_reasoning_by_settings(at: Stop, workspace: Path) -> None:
    with serving(at) as server:
        where = [*setting("base_url", server.base_url), *setting("api_key", at.key)]
        done = run(workspace, *asked(at), *where, PROMPT)
        check_shown(at, done, workspace)
        check_accepted(at, server)


@providers
def test_a_run_by_a_config_file_told_as_json(at: Stop, workspace: Path) -> None:
    with serving(at) as server:
        alias = {
            "provider": at.provider,
            "model": at.model,
            "base_url": "${env:FAKE_URL}",
            "api_key": "${env:FAKE_KEY}",
            **at.always,
            **at.settings,
        }
        config = {
            "providers": {"fake": alias},
            "agents": {"default": {"provider": "fake", "tools": ["list_files", "write_file"]}},
            "tools": {"rules": [{"tool": "write_file", "decision": "allow"}]},
        }
        file = workspace.parent / "config.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        env = {"FAKE_URL": server.base_url, "FAKE_KEY": at.key}
        done = run(workspace, "--config", str(file), "--json", PROMPT, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        check_events(at, [json.loads(line) for line in done.stdout.splitlines()])
        assert at.key not in done.stdout
        check_accepted(at, server)


def check_events(at: Stop, events: Sequence[dict[str, Any]]) -> None:
    def of(kind: str) -> list[dict[str, Any]]:
        return [event for event in events if event["type"] == kind]

    assert [event["provider"] for event in of("request_started")] == [at.provider] * 3
    assert [event["name"] for event in of("tool_result")] == ["list_files", "write_file"]
    assert "".join(event["text"] for event in of("reasoning")).count(THOUGHT) == 3 * at.shows
    assert len(of("usage")) == 3
    assert of("warning") == []
    text = "".join(event["message"]["content"] for event in of("partial"))
    assert text == ANSWERS.get(at.name, ANSWER)
    assert [event["type"] for event in events[-3:]] == ["final", "turn_end", "done"]
    roles = [message["role"] for message in of("final")[-1]["session"]["messages"]]
    assert roles == ["user", *["assistant", "tool"] * 2, "assistant"]


@pytest.mark.parametrize(
    # A server of anybody's has no customary variable.
    "at",
    [each for each in STOPS if each.provider != "custom"],
    ids=lambda each: each.name,
)
def test_the_key_is_taken_from_the_variable_that_the_descriptor_names(
    at: Stop, workspace: Path
) -> None:
    variable = key_variable(at.provider)
    assert variable
    with serving(at) as server:
        where = setting("base_url", server.base_url)
        done = run(workspace, *asked(at), *where, "--no-tools", "Hello", env={variable: at.key})
        assert (done.returncode, done.stdout) == (0, "You said: Hello\n"), done.stderr


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "openrouter", "groq"])
@pytest.mark.parametrize("as_json", [False, True], ids=["shown", "json"])
def test_a_missing_key_is_an_error_that_names_the_variable(
    provider: str, as_json: bool, workspace: Path
) -> None:
    variable = key_variable(provider)
    assert variable
    flags = ["--json"] if as_json else []
    done = run(workspace, "--provider", provider, "--model", "some-model", *flags, "Hello")
    assert done.returncode == 1
    if as_json:
        error = json.loads(done.stdout.splitlines()[-1])["error"]
        said = f"{error['message']} {error['hint']}"
    else:
        assert done.stdout == ""
        said = done.stderr
    assert f"provider {provider!r} needs the setting 'api_key'" in said
    assert f"{variable} in the environment" in said


@providers
def test_a_wrong_key_is_an_error_that_does_not_repeat_it(at: Stop, workspace: Path) -> None:
    with serving(at) as server:
        where = [*setting("base_url", server.base_url), *setting("api_key", "wrong.key.9f")]
        done = run(workspace, *asked(at), *where, "Hello")
        assert (done.returncode, done.stdout) == (1, "")
        assert f"error: {at.provider} answered HTTP 40" in done.stderr
        assert "hint: check the API key of this provider" in done.stderr
        assert "wrong.key.9f" not in done.stderr


def test_a_server_without_keys_gets_none(workspace: Path) -> None:
    at = stop("ollama")
    command = [sys.executable, "-m", "agent_host_testing.serve", at.wire, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        where = setting("base_url", json.loads(process.stdout.readline())["base_url"])
        done = run(workspace, "--provider", "ollama", "--model", "fake-model", *where, "Hello")
        assert (done.returncode, done.stdout) == (0, "You said: Hello\n"), done.stderr
    finally:
        process.kill()
        process.communicate()
