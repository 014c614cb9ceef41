"""The order in which every hook of a request is called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin, ProviderPlugin, ToolPlugin
from agent_hookspecs.roles import PLUGIN_ROLES, Plugin
from agent_hookspecs.specs import hooks_of
from agent_host import AgentCore
from loopback import Peer, Request, serve
from talking import WAYS, Way, ask, said

Given = dict[str, Any]

#: Hooks the host itself never calls, or calls only in place of one that is here.
ELSEWHERE = {
    "provider": {
        *("call_api", "acall_api", "stream_api", "astream_api", "get_models"),
        *("extract_delta", "process_delta", "map_error", "get_ui_elements"),
    },
    "extension": {"get_ui_elements"},
    "feature": {"get_ui_elements"},
    "tool": {"get_ui_elements"},
}

FINAL = {"role": "assistant", "content": "Hi"}
ACTION = {"id": "act", "trigger": ["request_start", "request_end"]}
SCHEMA = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}

ACTIONS: dict[str, Callable[[Given], Any]] = {
    "get_actions": lambda given: [ACTION],
    "execute_action": lambda given: {},
}
ANSWERS: Mapping[str, Mapping[str, Callable[[Given], Any]]] = {
    "extension": ACTIONS,
    "feature": ACTIONS,
    "provider": {
        **ACTIONS,
        "get_config_schema": lambda given: {},
        "models_request": lambda given: {"url": given["config"]["base_url"] + "/models"},
        "parse_models": lambda given: given["body"],
        "get_tags": lambda given: ["supports_tools"],
        "init": lambda given: {"config": given["config"]},
        "to_native_messages": lambda given: [dict(m) for m in given["messages"]],
        "from_native_messages": lambda given: [dict(m) for m in given["native_messages"]],
        "initialize_request": lambda given: (given["native_messages"], given["state"]),
        "build_request": lambda given: {
            "url": given["state"]["config"]["base_url"],
            "body": {"stream": given["stream"]},
        },
        "parse_response": lambda given: (
            [],
            [FINAL],
            [*given["native_messages"], FINAL],
            given["state"],
        ),
        "process_chunk": lambda given: ([], [], given["native_messages"], given["state"]),
        "finalize": lambda given: ([FINAL], [*given["native_messages"], FINAL], given["state"]),
    },
    "tool": {"get_tool_schemas": lambda given: [SCHEMA], "init": lambda given: {}},
}


def recording(base: type[Plugin], plugin: str, order: list[str], **attributes: Any) -> type:
    """A plugin that implements every hook of its role and writes each call down."""

    def made(hook: str) -> Callable[..., Any]:
        answer = ANSWERS.get(base.role, {}).get(hook)
        nothing: Any = [] if hook in ("required_tags", "forbidden_tags", "get_tags") else None

        def method(self: object, **given: Any) -> Any:
            order.append(f"{plugin}.{hook}")
            result = answer(given) if answer else None
            return nothing if result is None else result

        return method

    hooks = {hook: made(hook) for hook in hooks_of(base.role) if hook not in ELSEWHERE[base.role]}
    return type(plugin, (base,), {**hooks, "name": plugin, **attributes})


@contextmanager
def recorded_core(order: list[str]) -> Iterator[tuple[AgentCore, dict[str, Any]]]:
    """One provider, two extensions and two features in an order of their own, and a tool."""

    def play(peer: Peer, request: Request) -> None:
        if "/models" in request.line:
            peer.answer(json.dumps([{"id": "m"}]).encode())
        elif json.loads(request.body)["stream"]:
            peer.answer(b'data: {"n": 1}\n\ndata: {"n": 2}\n\n')
        else:
            peer.answer(b'{"n": 1}')

    with serve(play) as server, AgentCore() as core:
        core.register_provider(recording(ProviderPlugin, "p", order, framing="sse"))
        core.register_extension(recording(ProviderExtensionPlugin, "e2", order, after=["e1"]))
        core.register_extension(recording(ProviderExtensionPlugin, "e1", order))
        core.register_feature(recording(FeaturePlugin, "f2", order))
        core.register_feature(recording(FeaturePlugin, "f1", order, priority=1))
        core.register_tool(recording(ToolPlugin, "t", order))
        order.clear()
        yield core, {"base_url": server.url, "model": "m"}
    assert order[-1] == "t.close"


def each(plugins: str, *hooks: str) -> list[str]:
    return [f"{plugin}.{hook}" for hook in hooks for plugin in plugins.split()]


#: What is asked before a stack is known, and never again while it is.
COLD = [
    # What classes say of themselves, as they were registered.
    *("e2.required_tags", "e2.forbidden_tags", "e1.required_tags", "e1.forbidden_tags"),
    *("f2.required_tags", "f2.forbidden_tags", "f1.required_tags", "f1.forbidden_tags"),
    *("t.required_tags", "t.forbidden_tags"),
    # Models, for which secrets must be known first.
    *("p.get_config_schema", "p.models_request", "p.parse_models"),
    # Gating.
    "p.get_tags",
    *each("e1 e2 f1 f2 t", "is_enabled", "get_tags"),
    # The stack.
    *each("p e1 e2 f1 f2 t", "get_config_schema"),
    *each("p e1 e2 t", "get_tool_interop_contribution"),
    *("t.init", "t.prepare", "t.get_tool_schemas"),
    *each("e1 e2 f1 f2", "get_models"),
    *each("p e1 e2", "accepted_tool_schema_formats"),
]

#: Actions that name the trigger; those of provider and extensions are given native history.
REQUEST_START = [
    *each("p e1 e2 f1 f2", "get_actions"),
    *each("p e1 e2", "to_native_messages"),
    "p.execute_action",
    *each("p e1 e2", "to_native_messages"),
    "e1.execute_action",
    *each("p e1 e2", "to_native_messages"),
    "e2.execute_action",
    *each("f1 f2", "execute_action"),
]

BEFORE = [
    *each("p e1 e2 f1 f2", "init"),
    *REQUEST_START,
    *each("p e1 e2", "to_native_messages"),
    *each("p e1 e2 f1 f2", "initialize_request"),
    "p.build_request",
]

AFTER = [
    *each("e1 e2 f1 f2", "finalize"),
    *each("p e1 e2", "from_native_messages"),
    *each("p e1 e2 f1 f2", "get_actions", "execute_action"),
]

#: Each chunk goes through provider and extensions before the next one is looked at.
STREAMED = [
    *each("p e1 e2", "process_chunk"),
    *each("p e1 e2", "process_chunk"),
    "p.stream_complete",
    "p.finalize",
]

#: The finals come with the answer, so the provider has nothing left to finalize.
AT_ONCE = ["p.parse_response", *each("e1 e2", "process_chunk")]


@pytest.mark.parametrize("way", WAYS)
def test_every_hook_of_a_request_in_order(way: Way) -> None:
    order: list[str] = []
    reading = STREAMED if "stream" in way else AT_ONCE
    with recorded_core(order) as (core, config):
        ask(core, said("Hello"), config, way)
        assert order == [*COLD, *BEFORE, *reading, *AFTER]
        order.clear()
        ask(core, said("Hello"), config, way)
        assert order == [*BEFORE, *reading, *AFTER]


def test_these_are_all_the_hooks_there_are() -> None:
    order: list[str] = []
    with recorded_core(order) as (core, config):
        ask(core, said("Hello"), config, "call")
        ask(core, said("Hello"), config, "stream")
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        core.execute_tool_calls([call], config)
        core.close()
        roles = {"p": "provider", "e": "extension", "f": "feature", "t": "tool"}
        seen = {(roles[entry[0]], entry.partition(".")[2]) for entry in order}
    assert seen == {
        (role, hook)
        for role in PLUGIN_ROLES
        for hook in hooks_of(role)
        if hook not in ELSEWHERE[role]
    }


def test_a_tool_call_is_executed_and_then_formatted() -> None:
    order: list[str] = []
    with recorded_core(order) as (core, config):
        core.warm_up(config)
        order.clear()
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        core.execute_tool_calls([call], config)
        assert order == ["t.execute_tool", "t.format_tool_result"]
