"""The repairs in requests: on by tag, by config or by force, and absent from everything else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Any

import pytest

from agent_hookspecs import (
    Config,
    ConfigError,
    Context,
    NativeMessage,
    ProviderPlugin,
    State,
    ToolPlugin,
)
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_host.core import AgentCore
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import LoaderSettings, build_catalog
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.gate import Candidate, gate
from agent_host.sessions.session import Session
from agent_host_repairs.signature import PLACEHOLDER
from agent_host_repairs.switch import REPAIRS, RepairSwitch

ROUTING, REASONING, SIGNATURE, TAGS, DESCRIPTIONS = REPAIRS
DESCRIPTOR = parse_descriptor(
    json.loads(
        files("agent_host_repairs").joinpath("agent_plugin.json").read_text(encoding="utf-8")
    )
)
BUNDLE = Bundle("repairs", "installed", "agent_host_repairs", descriptor=DESCRIPTOR)

Message = dict[str, Any]


class Capture(AccumulatorStreamingMixin, ProviderPlugin):
    """Answers what the config says and notes what was sent in the list of the context."""

    name = "capture"

    def get_tags(self, config: Config) -> list[str]:
        return ["provider:capture", *config.get("carried_tags", ())]

    def init(self, config: Config) -> State:
        return {"config": config, "request": {}, "partial": None}

    def to_native_messages(self, messages: Iterable[Message]) -> list[NativeMessage]:
        return [
            {"role": message["role"], "content": message["content"]}
            | {k: v for k, v in message["metadata"].items() if k in ("tool_calls", "tool_call_id")}
            for message in messages
        ]

    def from_native_messages(self, native_messages: Iterable[NativeMessage]) -> list[Any]:
        return [
            {
                "role": native["role"],
                "content": native["content"],
                "metadata": {k: native[k] for k in ("tool_calls",) if k in native},
            }
            for native in native_messages
        ]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        tools = [
            {"type": "function", "function": tool} for tool in state["config"].get("tools") or ()
        ]
        state["request"]["payload"] = {"model": "m", **({"tools": tools} if tools else {})}
        return native_messages, state

    def _answer(self, natives: list[NativeMessage], state: State, context: Context) -> str:
        request = state["request"]
        messages = request.get("messages", natives)
        context["sent"].append({**request["payload"], "messages": messages})
        answer: str = state["config"].get("answer", "ok")
        return answer

    def call_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[Any], list[NativeMessage], list[NativeMessage], State]:
        final = {"role": "assistant", "content": self._answer(native_messages, state, context)}
        return [], [final], [*native_messages, final], state

    def stream_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Iterator[Message]:
        for character in self._answer(native_messages, state, context):
            yield {"choices": [{"delta": {"content": character}}]}
        yield {"choices": [{"delta": {}, "finish_reason": "stop"}]}


class Adding(ToolPlugin):
    """Adds."""

    name = "adding"
    effects = {"add": "read"}  # noqa: RUF012

    def get_tool_schemas(self) -> list[Message]:
        integer = {"type": "integer"}
        parameters = {"type": "object", "properties": {"a": integer, "b": integer}}
        return [{"name": "add", "description": "Add.", "parameters": parameters}]

    def execute_tool(self, payload: Message) -> int:
        total: int = payload["a"] + payload["b"]
        return total


def make_core(**settings: Any) -> AgentCore:
    core = AgentCore(catalog=build_catalog([BUNDLE], LoaderSettings(**settings)))
    core.register_provider(Capture)
    core.register_tool(Adding)
    return core


CALLS = [{"id": "tc_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]


def conversation(core: AgentCore) -> Session:
    session = core.add_message(core.create_session(), "user", "Add.")
    session = core.add_message(session, "assistant", "", {"tool_calls": CALLS})
    return core.add_message(session, "tool", "3", {"tool_call_id": "tc_1"})


def exchange(core: AgentCore, **config: Any) -> tuple[Message, Session, list[Any]]:
    """What was sent, and what came of it."""
    sent: list[Message] = []
    config = {"provider": "capture", **config}
    session, finals = core.send_request(conversation(core), config, context={"sent": sent})
    (payload,) = sent
    return payload, session, finals


# The gate.


def on(tags: Iterable[str], config: Config, **settings: Any) -> set[str]:
    """The repairs that take part, decided by the gate from what the descriptor says."""
    candidates = [
        Candidate(
            key=str(entry.name),
            name=str(entry.name),
            required=frozenset(entry.required_tags),
            forbidden=frozenset(entry.forbidden_tags),
            provides=frozenset(entry.provides_tags),
            default_enabled=entry.default_enabled,
            get_tags=(lambda: RepairSwitch().get_tags(config)) if entry.dynamic else None,
        )
        for entry in DESCRIPTOR.entries
    ]
    return set(gate(tags, candidates, **settings).enabled) - {"repairs"}


@pytest.mark.parametrize("name", REPAIRS)
@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("configured", [False, True])
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("enabled", [False, True])
def test_a_repair_is_on_by_tag_by_config_or_by_force_and_never_takes_another_along(
    name: str, tagged: bool, configured: bool, forced: bool, enabled: bool
) -> None:
    found = on(
        ["provider:any", *([f"repair:{name}"] if tagged else [])],
        {"repairs": [name]} if configured else {},
        forced=[name] if forced else [],
        enabled=[name] if enabled else [],
    )
    # To be named in enabled_plugins is no more than a permission, which every repair has.
    assert found == ({name} if tagged or configured or forced else set())


def test_without_the_switch_the_config_switches_nothing_on() -> None:
    core = make_core(deny=frozenset({"repairs"}))
    sent, _, _ = exchange(core, repairs=list(REPAIRS))
    assert sent["messages"][1] == {"role": "assistant", "content": "", "tool_calls": CALLS}


# In requests.


def test_with_nothing_asked_for_no_repair_takes_part() -> None:
    core = make_core()
    sent, _, finals = exchange(
        core,
        answer='<tool_call>{"name": "add"}</tool_call>',
        openrouter_routing={"route": "fallback"},
    )
    assert set(sent) == {"model", "tools", "messages"}
    assert sent["tools"][0]["function"]["description"] == "Add."
    assert sent["messages"][1] == {"role": "assistant", "content": "", "tool_calls": CALLS}
    assert finals[0]["content"] == '<tool_call>{"name": "add"}</tool_call>'
    assert "tool_calls" not in finals[0]["metadata"]
    assert [tag for tag in core.get_tags({}) if tag.startswith("repair:")] == []


def ways(name: str) -> list[Any]:
    return [
        pytest.param({}, {"repairs": [name]}, id="config"),
        pytest.param({}, {"carried_tags": [f"repair:{name}"]}, id="tag"),
        pytest.param({"forced": frozenset({name})}, {}, id="force"),
    ]


@pytest.mark.parametrize(("settings", "config"), ways(ROUTING))
def test_routing_on(settings: Any, config: Any) -> None:
    knobs = {"route": "fallback", "provider": {"only": ["a"]}}
    core = make_core(**settings)
    sent, _, _ = exchange(core, openrouter_routing=knobs, openrouter_tool_calling=True, **config)
    assert sent["route"] == "fallback"
    assert sent["provider"] == {"only": ["a"], "require_parameters": True}


@pytest.mark.parametrize(("settings", "config"), ways(REASONING))
def test_reasoning_content_on(settings: Any, config: Any) -> None:
    sent, session, _ = exchange(make_core(**settings), **config)
    assert sent["messages"][1]["reasoning_content"] == ""
    assert ["reasoning_content" in message for message in sent["messages"]] == [False, True, False]
    assert "reasoning_content" not in json.dumps(session.metadata["native_messages"])


@pytest.mark.parametrize(("settings", "config"), ways(SIGNATURE))
def test_signature_on(settings: Any, config: Any) -> None:
    sent, session, _ = exchange(make_core(**settings), **config)
    assert sent["messages"][1]["tool_calls"] == [{**CALLS[0], "signature": PLACEHOLDER}]
    assert PLACEHOLDER not in json.dumps(session.metadata["native_messages"])
    assert PLACEHOLDER not in json.dumps(session.to_dict()["messages"])


@pytest.mark.parametrize(("settings", "config"), ways(DESCRIPTIONS))
def test_descriptions_on(settings: Any, config: Any) -> None:
    core = make_core(**settings)
    sent, _, _ = exchange(core, **config)
    assert "description" not in sent["tools"][0]["function"]
    (tool,) = core.get_tool_schemas({"provider": "capture", **config})
    assert tool.schema["description"] == "Add."


@pytest.mark.parametrize(("settings", "config"), ways(TAGS))
@pytest.mark.parametrize("stream", [False, True])
def test_tags_on(settings: Any, config: Any, stream: bool) -> None:
    core = make_core(**settings)
    answer = 'Adding. <tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    config = {"provider": "capture", "answer": answer, **config}
    context: dict[str, Any] = {"sent": []}
    if stream:
        events = list(core.send_request_stream(conversation(core), config, context=context))
        (final,) = (event for event in events if event["type"] == "final")
        session, (message,) = final["session"], final["messages"]
        assert [event["call"]["id"] for event in events if event["type"] == "tool_call"] == ["tc_2"]
    else:
        session, (message,) = core.send_request(conversation(core), config, context=context)
    assert message["content"] == "Adding. "
    (made,) = message["metadata"]["tool_calls"]
    assert made["id"] == "tc_2"
    assert "tool_call_errors" not in message["metadata"]
    assert session.metadata["native_messages"][-1]["tool_calls"] == [made]
    assert session.metadata["native_messages"][1]["tool_calls"] == CALLS
    (result,) = core.execute_tool_calls([made], config)
    assert result["content"] == "3"


def test_all_repairs_together() -> None:
    core = make_core()
    sent, _, finals = exchange(
        core,
        repairs=list(REPAIRS),
        openrouter_routing={"transforms": []},
        answer='<tool_call>{"name": "add"}</tool_call>',
    )
    mended = sent["messages"][1]
    assert mended["reasoning_content"] == ""
    assert mended["tool_calls"][0]["signature"] == PLACEHOLDER
    assert sent["transforms"] == []
    assert "description" not in sent["tools"][0]["function"]
    assert finals[0]["metadata"]["tool_calls"]


def test_one_request_with_a_repair_leaves_the_next_without_it() -> None:
    core = make_core()
    exchange(core, repairs=list(REPAIRS))
    sent, _, _ = exchange(core)
    assert sent["messages"][1] == {"role": "assistant", "content": "", "tool_calls": CALLS}
    assert sent["tools"][0]["function"]["description"] == "Add."


def test_an_unknown_repair_ends_the_request_with_an_error_that_lists_them() -> None:
    with pytest.raises(ConfigError, match="'openrouter', which is no repair") as caught:
        exchange(make_core(), repairs=["openrouter"])
    assert all(name in caught.value.hint for name in REPAIRS)


def test_a_setting_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="repairs"):
        exchange(make_core(), repairs="openrouter_routing")
