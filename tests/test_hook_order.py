"""The order in which every hook of a request is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin, ProviderPlugin, ToolPlugin
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_hookspecs.specs import hooks_of
from agent_host import AgentCore
from recording import CALL, ELSEWHERE, Calls, recording, serve_answers
from talking import WAYS, Way, ask, said


@contextmanager
def recorded_core() -> Iterator[tuple[AgentCore, dict[str, Any], list[str]]]:
    """One provider, two extensions and two features in an order of their own, and a tool."""
    calls = Calls()
    with serve_answers() as server, AgentCore() as core:
        core.register_provider(recording(ProviderPlugin, "p", calls, framing="sse"))
        core.register_extension(recording(ProviderExtensionPlugin, "e2", calls, after=["e1"]))
        core.register_extension(recording(ProviderExtensionPlugin, "e1", calls))
        core.register_feature(recording(FeaturePlugin, "f2", calls))
        core.register_feature(recording(FeaturePlugin, "f1", calls, priority=1))
        core.register_tool(recording(ToolPlugin, "t", calls))
        calls.clear()
        yield core, {"base_url": server.url, "model": "m"}, calls.made
    assert calls.made[-1] == "t.close"


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
    *each("e1 e2 f1 f2", "is_enabled"),
    # Which settings are a tool's own, of which others it must not see the secrets.
    *each("p t", "get_config_schema"),
    "t.is_enabled",
    *each("e1 e2 f1 f2 t", "get_tags"),
    # The stack.
    *each("p e1 e2 f1 f2 t", "get_config_schema"),
    *each("p e1 e2 t", "get_tool_interop_contribution"),
    *("t.init", "t.prepare", "t.get_tool_schemas", "t.get_tool_warnings"),
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
    *each("f1 f2", "select_tools"),
    *each("f1 f2", "get_context_parts"),
    *each("p e1 e2", "to_native_messages"),
    *each("f1 f2", "get_instructions"),
    *each("p e1 e2 f1 f2", "initialize_request"),
    "p.build_request",
]

AFTER = [
    *each("e1 e2 f1 f2", "finalize"),
    *each("p e1 e2", "from_native_messages"),
    *each("p e1 e2 f1 f2", "execute_action"),
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
    reading = STREAMED if "stream" in way else AT_ONCE
    with recorded_core() as (core, config, order):
        ask(core, said("Hello"), config, way)
        assert order == [*COLD, *BEFORE, *reading, *AFTER]
        order.clear()
        ask(core, said("Hello"), config, way)
        assert order == ["t.has_changed_tools", *BEFORE, *reading, *AFTER]


def test_these_are_all_the_hooks_there_are() -> None:
    with recorded_core() as (core, config, order):
        ask(core, said("Hello"), config, "call")
        ask(core, said("Hello"), config, "stream")
        core.execute_tool_calls([CALL], config)
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
    with recorded_core() as (core, config, order):
        core.warm_up(config)
        order.clear()
        core.execute_tool_calls([CALL], config)
        assert order == ["t.has_changed_tools", "t.execute_tool", "t.format_tool_result"]
