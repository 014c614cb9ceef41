"""A method that was meant to be a hook is found by doctor and validate, with the right name."""

from __future__ import annotations

import types
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from agent_hookspecs import (
    FeaturePlugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
    hookimpl,
)
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.specs import hooks_of
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.inspect.misspelt import misspelt_hooks
from agent_host.plugins.register import record_plugin

BASES: dict[PluginRole, type] = {
    "provider": ProviderPlugin,
    "extension": ProviderExtensionPlugin,
    "feature": FeaturePlugin,
    "tool": ToolPlugin,
}
NEEDED: dict[PluginRole, dict[str, Any]] = {
    "provider": {"call_api": lambda self: None},
    "extension": {},
    "feature": {},
    "tool": {"get_tool_schemas": lambda self: [], "execute_tool": lambda self: None},
}


def found(plugin: object, role: PluginRole) -> list[str]:
    activator = Activator()
    return [*misspelt_hooks(activator.load(record_plugin(plugin, role, Catalog(()), activator)))]


def taking(*arguments: str) -> Any:
    names = ", ".join(("self", *arguments))
    namespace: dict[str, Any] = {}
    exec(f"def method({names}): ...", namespace)
    return namespace["method"]


def with_method(role: PluginRole, name: str, method: Any, *bases: type) -> type:
    body = {"name": "one", **NEEDED[role], name: method}
    return type("One", (*bases, BASES[role]), body)


@pytest.mark.parametrize(
    ("role", "name", "arguments", "meant"),
    [
        ("feature", "initialise_request", ["native_messages", "state"], "initialize_request"),
        ("feature", "finalise", ["final_messages"], "finalize"),
        ("feature", "intialize_request", [], "initialize_request"),
        ("feature", "request_initialize", ["state"], "initialize_request"),
        ("feature", "get_action", ["state"], "get_actions"),
        ("feature", "enabled", ["config"], "is_enabled"),
        ("feature", "inti", ["config", "state"], "init"),
        ("extension", "processChunk", ["native_chunk"], "process_chunk"),
        ("provider", "buildRequest", ["state"], "build_request"),
        ("provider", "get_tag", ["config"], "get_tags"),
        ("tool", "format_tools_result", [], "format_tool_result"),
        ("tool", "closes", ["state"], "close"),
    ],
)
def test_a_name_near_that_of_a_hook_is_found(
    role: PluginRole, name: str, arguments: list[str], meant: str
) -> None:
    (message,) = found(with_method(role, name, taking(*arguments)), role)
    assert f"{name!r} is no hook of role {role}" in message
    assert f"did you mean {meant!r}?" in message


@pytest.mark.parametrize(
    ("role", "name", "arguments", "alike"),
    [
        ("feature", "before_sending", ["native_messages", "state"], "initialize_request"),
        ("extension", "on_chunk", ["native_chunk", "partial_messages", "state"], "process_chunk"),
        ("tool", "present", ["tool_name", "result"], "format_tool_result"),
    ],
)
def test_a_method_that_takes_what_only_a_hook_is_given_is_found(
    role: PluginRole, name: str, arguments: list[str], alike: str
) -> None:
    (message,) = found(with_method(role, name, taking(*arguments)), role)
    assert f"{name!r} takes {', '.join(arguments)} like the {role} hook {alike!r}" in message


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("_initialise_request", taking("native_messages", "state")),
        ("remember", taking("text")),
        ("unit", taking("length")),
        ("describe", taking("native_messages")),
        ("anything", hookimpl(specname="finalize")(taking("final_messages", "state"))),
        ("finalise", "text"),
        ("get_label", property(lambda self: "text")),
    ],
)
def test_what_is_a_plugins_own_is_left_in_peace(name: str, method: Any) -> None:
    assert found(with_method("feature", name, method), "feature") == []


def test_steps_of_the_contracts_mixin_are_no_hooks() -> None:
    step = taking("delta", "accumulated", "fragment")
    plugin = with_method("provider", "merge_more", step, AccumulatorStreamingMixin)
    assert found(plugin, "provider") == []


def test_a_function_of_a_module_that_is_not_marked_is_found() -> None:
    module: Any = types.ModuleType("one_module")
    source = "name = 'one'\nrole = 'feature'\ndef init(config, state): return state\n"
    exec(source, vars(module))
    (message,) = found(module, "feature")
    assert "'init' has the name of a hook" in message
    assert "marked with hookimpl" in message


LETTERS = st.sampled_from("aeiorstn")


@given(st.data(), st.sampled_from(PLUGIN_ROLES))
def test_one_wrong_letter_in_a_hook_is_always_found(data: st.DataObject, role: PluginRole) -> None:
    hooks = {name: hook for name, hook in hooks_of(role).items() if name not in NEEDED[role]}
    hook = hooks[data.draw(st.sampled_from(sorted(hooks)))]
    place = data.draw(st.integers(0, len(hook.name) - 1))
    letter = data.draw(LETTERS)
    instead = data.draw(st.sampled_from(["", letter, letter + hook.name[place]]))
    name = hook.name[:place] + instead + hook.name[place + 1 :]
    assume(name not in {*hooks_of(role), *hooks_of("host")} and not name.startswith("_"))
    assert any(f"{name!r}" in message for message in found(with_method(role, name, taking()), role))
