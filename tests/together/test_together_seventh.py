"""A seventh provider: one row of data if it speaks a known format, else one package of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from stops import TOOL_BUNDLES
from telegraph_format import TelegraphFormat
from touring import WAYS, Way, asked

from agent_host import AgentApplication
from agent_host.cli import main
from agent_host_testing import Call, FakeServer, Reply, Text, WireFormat
from agent_host_testing.formats.openai_chat import OpenAIChat
from agent_host_testing.suites.hosting import recording_tools
from making import write_package

KEY = "key.of.the.seventh.77aa"
#: All that a further server of the chat format needs.
ROW = {
    "entry": "seventh_row.plugin:ChatCompletionsProvider",
    "role": "provider",
    "name": "seventh",
    "label": "Seventh",
    "provides_tags": ["provider:seventh", "wire:openai-chat", "supports_streaming"],
    "dynamic": ["get_models", "get_tags", "get_config_schema"],
    "key_variable": "SEVENTH_API_KEY",
    "requires_api_key": True,
    "options": {
        "name": "seventh",
        "label": "Seventh",
        "base_url": "https://seventh.invalid/v1",
        "quirks": ["max_tokens"],
        "models": [{"match": "sage-*", "reasoning": True, "efforts": ["low", "high"]}],
    },
}
#: The class is another package's; a descriptor names modules of its own package.
ROW_MODULE = "from agent_host_openai_compatible.chat import ChatCompletionsProvider\n"
OWN = {
    "entry": "seventh_own.plugin:Telegraph",
    "role": "provider",
    "name": "telegraph",
    "label": "Telegraph",
    "provides_tags": ["provider:telegraph", "supports_streaming", "supports_tools"],
    "requires_api_key": True,
    "requires_base_url": True,
    "key_variable": "TELEGRAPH_KEY",
}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("row")
    described = {"api": ">=1,<2", "entries": [ROW]}
    write_package(root, "seventh_row", descriptor=described, source=ROW_MODULE)
    return root


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own")
    package = write_package(root, "seventh_own", descriptor={"api": ">=1,<2", "entries": [OWN]})
    shutil.copy(Path(__file__).with_name("telegraph_provider.py"), package / "plugin.py")
    return root


def check_conversation(
    root: Path, wire: WireFormat, config: dict[str, Any], way: Way
) -> list[dict[str, Any]]:
    """A question, two calls at once, their results and the answer; gives the bodies of requests."""
    noted: list[tuple[str, Any]] = []
    calls = (Call("weather", {"place": "Oslo"}), Call("clock", {"place": "Rome"}))
    with (
        FakeServer(wire, Reply((Text("Let me see."), *calls)), key=KEY) as server,
        AgentApplication(
            {"plugins": [f"path:{root}"], "denied_plugins": [*TOOL_BUNDLES, "context"]},
            tools=[recording_tools(noted)],
        ) as app,
    ):
        server.queue(Reply((Text("It rains at noon."),)))
        settings = {"base_url": server.base_url, "api_key": KEY, "retries": 0, **config}
        session = asked(app, "Well?", way, settings=settings)
        assert server.problems == []
        assert noted == [("weather", {"place": "Oslo"}), ("clock", {"place": "Rome"})]
        messages = session.to_dict()["messages"]
        roles = [message["role"] for message in messages]
        assert roles == ["user", "assistant", "tool", "tool", "assistant"]
        assert messages[1]["content"] == "Let me see."
        assert messages[-1]["content"] == "It rains at noon."
        assert messages[-1]["metadata"]["usage"]["input"] == 11
        return [request.body for request in server.requests if request.body is not None]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_seventh_server_of_the_chat_format_is_one_row(row: Path, way: Way) -> None:
    config = {"provider": "seventh", "model": "sage-1", "effort": "high", "max_output_tokens": 900}
    bodies = check_conversation(row, OpenAIChat("reasoning_content"), config, way)
    # What the row says of its models and quirks is in force.
    assert [body["reasoning_effort"] for body in bodies] == ["high", "high"]
    assert [body["max_tokens"] for body in bodies] == [900, 900]
    assert [tool["function"]["name"] for tool in bodies[0]["tools"]] == ["weather", "clock"]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_seventh_format_is_one_package(own: Path, way: Way) -> None:
    config = {"provider": "telegraph", "model": "morse-1"}
    bodies = check_conversation(own, TelegraphFormat(), config, way)
    assert [tool["name"] for tool in bodies[0]["kit"]] == ["weather", "clock"]
    refs = [ask["ref"] for ask in bodies[1]["turns"][1]["ask"]]
    assert [turn["ref"] for turn in bodies[1]["turns"][2:]] == refs


@pytest.mark.parametrize(("made", "name"), [("row", "seventh"), ("own", "telegraph")])
def test_the_package_is_found_explained_and_without_fault(
    made: str,
    name: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = ["--plugin", f"path:{request.getfixturevalue(made)}"]
    assert main(["plugins", "explain", "--json", "--provider", name, "--model", "m", *source]) == 0
    assert "supports_tools" in json.loads(capsys.readouterr().out)["tags"]
    main(["plugins", "doctor", "--json", *source])
    told = json.loads(capsys.readouterr().out)
    assert [each for each in told["problems"] if name in json.dumps(each)] == []


def test_its_key_variable_is_known_without_importing_it(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--plugin", f"path:{own}", "--json"]
    assert main(["plugins", "info", "telegraph", *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)["plugins"]
    assert (found["key_variable"], found["state"]) == ("TELEGRAPH_KEY", "discovered")
