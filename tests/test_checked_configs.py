"""Whatever a run refuses before it sends anything, `check` refuses in the same words, and no more.

``config validate`` is `check`; so a config that it calls valid gets as far as the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import AgentError
from agent_host import AgentApplication
from loopback import Peer, Request, serve
from making import full, run_host, write_package

#: A provider of the host's wire that is asked for a key, an address and a model.
WIRE = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "wired"

    def get_config_schema(self):
        return {
            "model": {"type": "string", "required": True, "description": "The model's id."},
            "temperature": {"type": "number"},
            "style": {"type": "string", "enum": ["plain", "ornate"]},
            "late": {"type": "string"},
        }

    def get_models(self, config):
        return [{"id": "m-1"}, {"id": "m-2"}]

    def init(self, config):
        return {"config": config, "partial": None}

    def build_request(self, native_messages, state, stream, context):
        if state["config"].get("late") == "raise":
            raise ValueError("too late")
        return {"url": state["config"]["base_url"] + "/chat", "body": {"n": len(native_messages)}}

    def process_chunk(self, native_chunk, native_messages, state, event):
        final = {"role": "assistant", "content": native_chunk["text"]}
        return [final], [final], native_messages, state
"""

TOOL = """
from agent_hookspecs import ToolPlugin


class Plugin(ToolPlugin):
    name = "bench"

    def get_tool_schemas(self, state):
        return [{"type": "function", "function": {"name": "saw", "parameters": {}}}]

    def execute_tool(self, tool_name, payload, state, context):
        return "sawn"
"""

Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Case:
    """What to change in a valid config, and what is refused or warned of then."""

    change: Change
    refused: str = ""
    hint: str = ""
    warned: str = ""
    settings: dict[str, Any] | None = None
    use_tools: list[str] | None = None
    provider: str | None = None
    agent: str | None = None


def put(path: str, value: Any) -> Change:
    def change(config: dict[str, Any]) -> None:
        *above, last = path.split(".")
        for key in above:
            config = config.setdefault(key, {})
        if value is None:
            del config[last]
        else:
            config[last] = value

    return change


def leave(config: dict[str, Any]) -> None:
    """Change nothing."""


CASES = {
    "valid": Case(leave),
    "a misspelt setting of an alias": Case(
        put("providers.main.temprature", 0.1),
        "there is no key 'providers.main.temprature', and no installed plugin has such a setting",
        "did you mean 'temperature'?",
    ),
    "a setting of a plugin that is not installed": Case(
        put("providers.main.zebra_stripes", 3),
        "there is no key 'providers.main.zebra_stripes'",
        "take it out, or install the plugin that knows it",
    ),
    "a misspelt key of an agent": Case(
        put("agents.default.sytem", "Be brief."),
        "there is no key 'agents.default.sytem'",
        "did you mean 'system'?",
    ),
    "a misspelt request default": Case(
        put("request_defaults.retrys", 1),
        "there is no key 'request_defaults.retrys'",
        "did you mean 'retries'?",
    ),
    "a value of the wrong type": Case(
        put("providers.main.temperature", "hot"),
        "providers.main.temperature is text",
        "plugin 'wired' wants a number",
    ),
    "a knob of the wrong type in the defaults": Case(
        put("request_defaults.temperature", "hot"),
        "request_defaults.temperature is text",
        "this knob wants a number",
    ),
    "none of the choices": Case(
        put("agents.default.style", "loud"),
        "agents.default.style is none of the choices",
        "plugin 'wired' wants one of plain, ornate",
    ),
    "a placeholder without env": Case(
        put("providers.main.api_key", "${NOPE}"),
        "providers.main.api_key has ${NOPE}, which nothing fills in",
        "write ${env:NOPE} for the environment variable",
    ),
    "a placeholder in a prompt": Case(put("agents.default.system", "Explain ${HOME}.")),
    "a variable that is not set": Case(
        put("providers.main.api_key", "${env:NOT_SET_AT_ALL}"),
        "providers.main.api_key needs the environment variable NOT_SET_AT_ALL",
        "export NOT_SET_AT_ALL=…",
    ),
    "a source that is not there": Case(
        put("plugins", ["path:wired", "path:bench", "path:nowhere"]), "plugins[2]: "
    ),
    "a deny list with a slip": Case(
        put("denied_plugins", ["eco"]), "denied_plugins: there is no bundle 'eco'", "'echo'"
    ),
    "a deny list with the name of a plugin": Case(
        put("denied_plugins", ["wired"]),
        "denied_plugins: there is no bundle 'wired'",
        "it is in the bundle 'wired_pkg'",
    ),
    "an allow list with a slip": Case(
        put("allowed_plugins", ["wired_pkg", "bench_pkg", "ecco"]),
        "allowed_plugins: there is no bundle 'ecco'",
        "did you mean 'echo'?",
    ),
    "a preference for nobody": Case(
        put("prefer_plugins", {"provider:wired": "nobody-dist"}),
        "prefer_plugins: there is no distribution 'nobody-dist'",
    ),
    "an enabled plugin with a slip": Case(
        put("enabled_plugins", ["bensh"]),
        "enabled_plugins names 'bensh', and there is no such plugin",
        "did you mean 'bench'?",
    ),
    "a forced plugin that is not there": Case(
        put("force_enabled_plugins", ["quite_another"]),
        "force_enabled_plugins names 'quite_another'",
        "agent-host plugins list says which there are",
    ),
    "an alias of no provider": Case(
        put("providers.main.provider", "wierd"),
        "there is no provider 'wierd'",
        "did you mean 'wired'?",
    ),
    "an agent of no provider": Case(
        put("agents.default.provider", "mian"),
        "there is no provider 'mian'",
        "did you mean 'main'?",
    ),
    "no model": Case(
        put("providers.main.model", None),
        "plugin 'wired' needs the setting 'model'",
        "choose one with --model, or set 'model' in the config; there are: m-1, m-2",
    ),
    "an address without http": Case(
        put("providers.main.base_url", "localhost:8000"),
        "base_url is 'localhost:8000', which does not begin with http:// or https://",
        "write the whole address",
    ),
    "a hook that raises": Case(
        put("providers.main.late", "raise"),
        "plugin 'wired': hook 'build_request' raised ValueError: too late",
    ),
    "a timeout that is none": Case(put("providers.main.timeout", "soon"), "timeout is 'soon'"),
    "retries that are none": Case(put("providers.main.retries", -1), "retries is -1"),
    "an agent that is not there": Case(
        leave, "there is no agent 'nobody'", "there are: default", agent="nobody"
    ),
    "a misspelt setting of a call": Case(
        leave,
        warned="the setting 'tempratur' is ignored: no plugin knows it; did you mean",
        settings={"tempratur": 0.1},
    ),
    "a setting of another plugin": Case(
        put("agents.default.reasoning", True),
        warned="the setting 'reasoning' is ignored: plugin 'echo_reasoning', which knows it, takes",
    ),
    "a pattern that fits no tool": Case(
        leave, warned="no tool is called 'nope*'; there are: saw", use_tools=["nope*"]
    ),
    "a rule that fits no tool": Case(
        put("tools", {"rules": [{"tool": "sew", "decision": "deny"}]}),
        warned="the rule for 'sew' is about no tool that there is",
    ),
    "a knob that nobody takes": Case(
        put("agents.default.seed", 7), warned="'seed' is set, but wired has no use for it"
    ),
}


def answer(peer: Peer, request: Request) -> None:
    peer.answer(b'data: {"text": "ok"}\n\ndata: [DONE]\n\n')


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written once, because a process imports a package from one place only."""
    folder = tmp_path_factory.mktemp("packages")
    described = full(
        "wired_pkg",
        "provider",
        "wired",
        dynamic=["get_models"],
        config_schema={
            "model": {"type": "string", "required": True, "description": "The model's id."},
            "temperature": {"type": "number"},
            "style": {"type": "string", "enum": ["plain", "ornate"]},
            "late": {"type": "string"},
        },
    )
    write_package(folder / "wired", "wired_pkg", descriptor=described, source=WIRE)
    described = full("bench_pkg", "tool", "bench", tools={"saw": "read"})
    write_package(folder / "bench", "bench_pkg", descriptor=described, source=TOOL)
    return folder


@pytest.fixture
def place(packages: Path, tmp_path: Path) -> Path:
    for name in ("wired", "bench"):
        (tmp_path / name).symlink_to(packages / name)
    return tmp_path


def write_config(place: Path, change: Change, base_url: str) -> Path:
    alias = {"provider": "wired", "model": "m-1", "base_url": base_url}
    config: dict[str, Any] = {
        "plugins": ["path:wired", "path:bench"],
        "allowed_plugins": ["echo", "wired_pkg", "bench_pkg"],
        "providers": {"main": alias},
        "agents": {"default": {"provider": "main"}},
    }
    change(config)
    file = place / "c.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


def outcome(begin: Callable[[], Any]) -> tuple[str, str]:
    """What was refused, and the way out; empty if nothing was."""
    try:
        begin()
    except AgentError as error:
        return error.message, error.hint
    return "", ""


@pytest.mark.parametrize("name", CASES)
def test_a_run_and_a_check_refuse_and_warn_of_the_same(place: Path, name: str) -> None:
    case = CASES[name]
    options: dict[str, Any] = {
        "settings": case.settings,
        "use_tools": case.use_tools,
        "agent": case.agent,
    }
    with serve(answer) as server:
        file = write_config(place, case.change, server.url)
        warnings: dict[str, Any] = {}

        def check() -> None:
            with AgentApplication(file) as app:
                warnings["check"] = app.check(**options)

        def run() -> None:
            with AgentApplication(file) as app:
                warnings["run"] = app.run("Hello", **options).warnings

        checked, ran = outcome(check), outcome(run)
    assert checked == ran
    assert case.refused in checked[0]
    assert bool(case.refused) == bool(checked[0])
    assert case.hint in checked[1]
    if not case.refused:
        assert warnings["check"] == warnings["run"]
        said = [warning["message"] for warning in warnings["run"]]
        assert len(said) == bool(case.warned)
        assert all(message.startswith(case.warned) for message in said)


@pytest.mark.parametrize("name", ["a misspelt setting of an alias", "no model", "valid"])
def test_the_command_line_says_the_same_of_both(place: Path, name: str) -> None:
    case = CASES[name]
    with serve(answer) as server:
        write_config(place, case.change, server.url)
        validated = run_host("config", "validate", "c.json", cwd=place)
        ran = run_host("run", "--config", "c.json", "Hello", cwd=place)
    assert (validated.code, validated.err) == (ran.code, ran.err)
    assert validated.code == bool(case.refused)
    assert case.refused in validated.err


def test_a_check_sends_nothing(place: Path) -> None:
    with serve(answer) as server, AgentApplication(write_config(place, leave, server.url)) as app:
        assert app.check() == []
        assert server.requests == []
        app.run("Hello")
        assert len(server.requests) == 1
