"""The specifications hold exactly the design's hooks, each bound and called as it says."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from agent_hookspecs.errors import BindingError, ContractError, HookError, HookResultError
from agent_hookspecs.markers import RESULT_PARTS, combining_of, hookimpl
from agent_hookspecs.roles import (
    FeaturePlugin,
    Plugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
)
from agent_hookspecs.specs import SPECS, Hook, SpecRole, hooks_of
from agent_host.plugins.implementations import find_implementations
from agent_host.plugins.manager import RoleManager

GATING = {
    "required_tags": "",
    "forbidden_tags": "",
    "is_enabled": "config tags models context",
    "get_tags": "config models",
    "get_config_schema": "",
    "get_ui_elements": "config tags models context",
}

#: The hooks as the design lists them, written down by hand.
DESIGN: dict[SpecRole, dict[str, str]] = {
    "provider": {
        "get_config_schema": "",
        "get_models": "config",
        "models_request": "config",
        "parse_models": "body",
        "get_tags": "config models",
        "get_ui_elements": "config tags models context",
        "accepted_tool_schema_formats": "config models",
        "get_tool_interop_contribution": "config",
        "init": "config",
        "to_native_messages": "messages state",
        "from_native_messages": "native_messages state",
        "initialize_request": "native_messages state context",
        "build_request": "native_messages state stream context",
        "get_batch_endpoint": "config request",
        "call_api": "native_messages state context",
        "acall_api": "native_messages state context",
        "stream_api": "native_messages state context",
        "astream_api": "native_messages state context",
        "parse_response": "body native_messages state",
        "process_chunk": "native_chunk native_messages state event",
        "extract_delta": "chunk",
        "process_delta": "delta accumulated",
        "stream_complete": "state",
        "usage_so_far": "state",
        "finalize": "native_messages state context",
        "map_error": "status headers body",
        "get_actions": "state",
        "execute_action": "action_id session native_messages params context state",
    },
    "extension": {
        **GATING,
        "get_models": "config models",
        "accepted_tool_schema_formats": "config models",
        "get_tool_interop_contribution": "config",
        "init": "config state",
        "initialize_request": "native_messages state context",
        "process_chunk": "native_chunk partial_messages final_messages native_messages state",
        "finalize": "final_messages native_messages state context",
        "to_native_messages": "messages native_messages",
        "from_native_messages": "native_messages messages",
        "get_actions": "state",
        "execute_action": "action_id session native_messages params context state",
    },
    "feature": {
        **GATING,
        "get_models": "config models",
        "init": "config state",
        "initialize_request": "native_messages state context",
        "finalize": "final_messages native_messages state context",
        "get_actions": "state",
        "get_instructions": "session config context",
        "get_context_parts": "session config context",
        "select_tools": "tools session config context",
        "execute_action": "action_id session params context state",
    },
    "tool": {
        **GATING,
        "init": "config",
        "prepare": "config state",
        "get_tool_schemas": "state",
        "get_tool_warnings": "state",
        "has_changed_tools": "state",
        "preview_tool": "tool_name payload state context",
        "get_prompts": "state",
        "read_prompt": "prompt_name arguments state context",
        "read_attachment": "address state context",
        "execute_tool": "tool_name payload state context",
        "format_tool_result": "tool_name result payload state context",
        "close": "state",
        "get_tool_interop_contribution": "config",
    },
    "host": {
        "observe_event": "event context",
        "outgoing_headers": "request context",
        "open_session_store": "url config",
        "open_batch_engine": "name config",
        "resolve_secret": "name config",
        "model_prices": "provider model base_url time",
        "cli_command": "name open_application",
        "host_started": "host",
        "host_closing": "host",
    },
}
ASYNC = {"acall_api", "astream_api", "prepare", "execute_tool", "execute_action"}
#: Run for every chunk or event, so the host calls them directly.
PER_CHUNK = {"process_chunk", "extract_delta", "process_delta", "observe_event"}
#: Give an iterator that is read while the answer comes.
STREAMS = {"stream_api", "astream_api"}
#: What each role's hooks hand on, and of which kind it has to be; None may be given for the last.
RESULTS: dict[SpecRole, dict[str, str]] = {
    "provider": {
        "get_tags": "tags",
        "get_ui_elements": "elements or None",
        "accepted_tool_schema_formats": "formats or None",
        "init": "state or None",
        "to_native_messages": "converted_messages",
        "from_native_messages": "messages",
        "initialize_request": "native_messages state",
        "build_request": "request",
        "call_api": "partials finals native_messages state",
        "acall_api": "partials finals native_messages state",
        "parse_response": "partials finals native_messages state",
        "process_chunk": "partials finals native_messages state",
        "finalize": "finals native_messages state",
        "execute_action": "action_result",
    },
    "extension": {
        "is_enabled": "enabled or None",
        "get_tags": "tags",
        "get_ui_elements": "elements or None",
        "get_models": "models or None",
        "accepted_tool_schema_formats": "formats or None",
        "init": "state or None",
        "initialize_request": "native_messages state",
        "process_chunk": "partial_messages final_messages native_messages state",
        "finalize": "final_messages native_messages state",
        "to_native_messages": "converted_messages or None",
        "from_native_messages": "messages or None",
        "execute_action": "action_result",
    },
    "feature": {
        "is_enabled": "enabled or None",
        "get_tags": "tags",
        "get_ui_elements": "elements or None",
        "get_models": "models or None",
        "init": "state or None",
        "initialize_request": "native_messages state",
        "finalize": "final_messages native_messages state",
        "get_instructions": "instructions or None",
        "get_context_parts": "context_parts or None",
        "select_tools": "tools or None",
        "execute_action": "action_result",
    },
    "tool": {
        "is_enabled": "enabled or None",
        "get_tags": "tags",
        "get_ui_elements": "elements or None",
        "get_tool_warnings": "warnings or None",
        "has_changed_tools": "changed or None",
        "preview_tool": "changes or None",
        "get_prompts": "prompts or None",
        "read_prompt": "context_parts",
        "read_attachment": "context_parts or None",
    },
    "host": {
        "outgoing_headers": "headers or None",
        "resolve_secret": "secret or None",
        "model_prices": "prices or None",
    },
}
#: Go on without a plugin that fails.
SKIPPING = {"get_ui_elements", "get_models"}
HOOKS = [hook for role in SPECS for hook in hooks_of(role).values()]
every_hook = pytest.mark.parametrize("hook", HOOKS, ids=[f"{h.role}.{h.name}" for h in HOOKS])


@pytest.mark.parametrize("role", SPECS)
def test_a_role_has_exactly_the_hooks_of_the_design_with_their_arguments(role: SpecRole) -> None:
    assert {name: " ".join(hook.args) for name, hook in hooks_of(role).items()} == DESIGN[role]


def test_only_the_hooks_the_design_names_may_be_async() -> None:
    assert {hook.name for hook in HOOKS if hook.combining.may_be_async} == ASYNC


def test_exactly_the_hooks_that_run_for_every_chunk_or_event_are_called_directly() -> None:
    assert {hook.name for hook in HOOKS if hook.combining.per_chunk} == PER_CHUNK
    assert [hook for hook in HOOKS if hook.name in PER_CHUNK and not hook.combining.per_chunk] == []


def test_no_hook_that_runs_for_every_chunk_allows_wrappers() -> None:
    assert {hook.name for hook in HOOKS if hook.combining.wrappers}.isdisjoint(PER_CHUNK | STREAMS)


@pytest.mark.parametrize("role", SPECS)
def test_every_hook_that_hands_data_on_declares_its_result(role: SpecRole) -> None:
    declared = {
        name: " ".join(hook.combining.result) + " or None" * hook.combining.optional
        for name, hook in hooks_of(role).items()
        if hook.combining.result
    }
    assert declared == RESULTS[role]


@every_hook
def test_a_fold_and_only_a_fold_hands_on_what_it_runs_over(hook: Hook) -> None:
    combining = hook.combining
    if combining.mode == "fold":
        handed_on = ("converted_messages",) if hook.name == "to_native_messages" else combining.over
        assert (combining.result, combining.optional) == (handed_on, len(combining.over) == 1)
    else:
        assert combining.over == ()
    assert set(combining.result) <= set(RESULT_PARTS)


def test_these_hooks_go_on_without_a_plugin_that_fails() -> None:
    skipping = {hook.name for hook in HOOKS if hook.combining.skips}
    assert skipping == SKIPPING
    for hook in HOOKS:
        goes_on = "and a warning says so" in hook.doc and hook.name in SKIPPING
        assert hook.combining.skips is goes_on, f"{hook.role}.{hook.name}"


@pytest.mark.parametrize(
    ("role", "name", "mode"),
    [
        ("provider", "call_api", "single"),
        ("tool", "execute_tool", "single"),
        ("host", "open_session_store", "first"),
        ("host", "open_batch_engine", "first"),
        ("host", "resolve_secret", "first"),
        ("host", "model_prices", "first"),
        ("host", "cli_command", "first"),
        ("host", "observe_event", "collect"),
        ("extension", "process_chunk", "fold"),
        ("feature", "get_models", "fold"),
    ],
)
def test_the_modes_that_the_design_names(role: SpecRole, name: str, mode: str) -> None:
    assert hooks_of(role)[name].combining.mode == mode


@every_hook
def test_a_docstring_says_when_it_fires_what_it_may_change_and_what_an_exception_does(
    hook: Hook,
) -> None:
    paragraphs = ("Fires", "May change", "On exception", "Mode")
    places = [hook.doc.find(f"\n{name}: ") for name in paragraphs]
    assert -1 not in places, f"{hook.role}.{hook.name} lacks a paragraph"
    assert places == sorted(places)
    assert re.search(r"^Mode: " + hook.combining.mode, hook.doc, re.MULTILINE)
    assert hook.doc.splitlines()[0].rstrip().endswith((".", "else None."))


@every_hook
def test_a_specification_declares_types_and_no_defaults(hook: Hook) -> None:
    function = getattr(SPECS[hook.role], hook.name)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    assert all(p.default is inspect.Parameter.empty for p in parameters)
    assert all(p.annotation is not inspect.Parameter.empty for p in parameters)
    assert hook.signature.startswith(f"{hook.name}(")
    assert " -> " in hook.signature


@pytest.mark.parametrize(
    "base", [Plugin, ProviderPlugin, ProviderExtensionPlugin, FeaturePlugin, ToolPlugin]
)
def test_role_bases_carry_no_hook_methods(base: type[Plugin]) -> None:
    role: SpecRole = getattr(base, "role", "provider")
    assert find_implementations(base(), role, "bare") == {}
    assert find_implementations(base(), "host", "bare") == {}


@every_hook
def test_every_spec_method_is_a_hook_of_pluggy_too(hook: Hook) -> None:
    function = getattr(SPECS[hook.role], hook.name)
    assert combining_of(function) == hook.combining
    # Of a fold the host's own implementation is the first, and has the result.
    assert function.agent_host_spec["firstresult"] is (hook.combining.mode != "collect")


# Binding, for every hook of every role -----------------------------------------------------------


def plugin_with(hook: Hook, signature: str, result: object = None) -> tuple[object, list[Any]]:
    """A plugin whose hook has that signature, and the list of what its calls received."""
    seen: list[Any] = []
    namespace: dict[str, Any] = {"_seen": seen, "_answer": result}
    comma = ", " if signature else ""
    exec(
        f"def {hook.name}(self{comma}{signature}):\n"
        "    received = dict(locals())\n"
        "    del received['self']\n"
        "    _seen.append(received)\n"
        "    return _answer\n",
        namespace,
    )
    plugin: object = type("Made", (), {hook.name: namespace[hook.name]})()
    return plugin, seen


def manager_of(role: SpecRole, *plugins: object) -> RoleManager:
    return RoleManager(
        role,
        [
            (f"p{number}", find_implementations(plugin, role, f"p{number}"))
            for number, plugin in enumerate(plugins)
        ],
    )


def call(hook: Hook, *plugins: object) -> tuple[Any, dict[str, object]]:
    """What pluggy's call of the hook gives for distinct values, and those values."""
    folded = hook.combining.over
    values: dict[str, object] = {
        name: part_of(name, "given") if name in folded else f"<{name}>" for name in hook.args
    }
    manager = manager_of(hook.role, *plugins)
    return getattr(manager.hook, hook.name)(**values), values


def bound(hook: Hook, signature: str) -> tuple[list[Any], dict[str, object]]:
    """What a plugin of that signature receives, and the values of the call."""
    plugin, seen = plugin_with(hook, signature, result_of(hook, "a"))
    _, values = call(hook, plugin)
    return seen, values


def result_of(hook: Hook, mark: str) -> Any:
    """A result of the shape that the hook declares."""
    parts = tuple(part_of(name, mark) for name in hook.combining.result)
    return parts if len(parts) > 1 else parts[0] if parts else mark


def part_of(name: str, mark: str) -> object:
    made: dict[str, object] = {"dict": {"mark": mark}, "texts": [mark], "flag": True, "text": mark}
    return made.get(RESULT_PARTS[name], [{mark: name}])


@every_hook
def test_arguments_arrive_by_name_in_any_order(hook: Hook) -> None:
    for names in (hook.args, hook.args[::-1], hook.args[1:], hook.args[:1]):
        seen, values = bound(hook, ", ".join(names))
        assert seen == [{name: values[name] for name in names}]


@every_hook
def test_each_argument_can_be_asked_for_alone(hook: Hook) -> None:
    for name in hook.args:
        seen, values = bound(hook, name)
        assert seen == [{name: values[name]}]


@every_hook
def test_keyword_only_and_defaulted_parameters_are_bound(hook: Hook) -> None:
    if not hook.args:
        seen, _ = bound(hook, "own=1")
        assert seen == [{"own": 1}]
        return
    first, *rest = hook.args
    for signature in (
        f"*, {', '.join(reversed(hook.args))}",
        ", ".join(f"{name}=None" for name in hook.args),
        ", ".join([first, "*", *(f"{name}=None" for name in rest)]) if rest else f"*, {first}=None",
        ", ".join(["own=7", *(f"{name}=None" for name in hook.args)]),
    ):
        seen, values = bound(hook, signature)
        own = {"own": 7} if "own" in signature else {}
        assert seen == [{**own, **values}]


@every_hook
def test_variadic_parameters_receive_everything(hook: Hook) -> None:
    seen, values = bound(hook, "*given")
    assert seen == [{"given": tuple(values.values())}]
    seen, values = bound(hook, "**given")
    assert seen == [{"given": values}]
    if hook.args:
        first, *rest = hook.args
        seen, values = bound(hook, f"{first}, **given")
        assert seen == [{first: values[first], "given": {name: values[name] for name in rest}}]


@every_hook
def test_renamed_arguments_are_bound_by_position_and_it_is_remembered(hook: Hook) -> None:
    if not hook.args:
        plugin, _ = plugin_with(hook, "stranger")
        with pytest.raises(BindingError) as caught:
            find_implementations(plugin, hook.role, "p")
        assert caught.value.hint == "it takes no arguments"
        return
    renamed = [f"my_{name}" for name in hook.args]
    for count in range(1, len(hook.args) + 1):
        seen, values = bound(hook, ", ".join(renamed[:count]))
        assert list(seen[0].values()) == list(values.values())[:count]
        plugin, _ = plugin_with(hook, ", ".join(renamed[:count]))
        (implementation,) = find_implementations(plugin, hook.role, "p")[hook.name]
        assert implementation.by_position


@every_hook
def test_too_many_unknown_arguments_are_refused_by_name(hook: Hook) -> None:
    strangers = ", ".join(f"stranger_{number}" for number in range(len(hook.args) + 1))
    plugin, _ = plugin_with(hook, strangers)
    with pytest.raises(BindingError) as caught:
        find_implementations(plugin, hook.role, "culprit")
    assert caught.value.plugin == "culprit"
    assert caught.value.hook == hook.name
    assert "stranger_0" in caught.value.message
    assert all(name in caught.value.hint for name in hook.args)


# Combining, for every hook of every role ---------------------------------------------------------


@every_hook
def test_one_implementation_gives_the_hooks_result_as_its_mode_says(hook: Hook) -> None:
    result = result_of(hook, "a") if hook.combining.result else object()
    plugin, _ = plugin_with(hook, ", ".join(hook.args), result)
    given, _ = call(hook, plugin)
    assert given == ([result] if hook.combining.mode == "collect" else result)


@every_hook
def test_two_implementations_are_combined_as_the_mode_says(hook: Hook) -> None:
    mode, over = hook.combining.mode, hook.combining.over
    results = [result_of(hook, mark) for mark in "ab"]
    made = [plugin_with(hook, ", ".join(hook.args), result) for result in results]
    plugins, seen = [plugin for plugin, _ in made], [received for _, received in made]
    given, values = call(hook, *plugins)
    if mode == "collect":
        assert given == results
        assert seen[0] == seen[1] == [values]
    elif mode == "fold":
        assert given == results[1]
        (second,) = seen[1]
        parts = zip(over, hook.combining.result, strict=True)
        assert second == {**values, **{name: part_of(part, "a") for name, part in parts}}
    else:
        assert given == results[0]
        assert seen[1] == []


@every_hook
def test_none_is_no_answer_and_no_change_or_refused_where_a_result_is_needed(hook: Hook) -> None:
    silent, _ = plugin_with(hook, ", ".join(hook.args), None)
    combining = hook.combining
    if combining.result and not combining.optional and not combining.may_be_async:
        with pytest.raises(HookResultError, match=f"'p0': hook '{hook.name}' must return"):
            call(hook, silent)
        return
    given, values = call(hook, silent)
    over = combining.over
    unchanged = tuple(values[n] for n in over) if len(over) > 1 else values.get((*over, "")[0])
    expected = {"single": None, "first": None, "collect": [], "fold": unchanged}
    assert given == expected[combining.mode]


@every_hook
def test_without_an_implementation_a_fold_returns_what_it_was_given(hook: Hook) -> None:
    given, values = call(hook)
    mode, over = hook.combining.mode, hook.combining.over
    if mode == "fold":
        same = tuple(values[name] for name in over)
        assert given == (same if len(over) > 1 else same[0])
    else:
        assert given == ([] if mode == "collect" else None)


@every_hook
def test_an_exception_becomes_a_hook_error_that_names_plugin_and_hook(hook: Hook) -> None:
    class Broken:
        pass

    def raising(self: object) -> None:
        raise ZeroDivisionError("by nothing")

    setattr(Broken, hook.name, raising)
    with pytest.raises(HookError, match="p0.*" + hook.name) as caught:
        call(hook, Broken())
    assert (caught.value.plugin, caught.value.hook) == ("p0", hook.name)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


#: What an awaitable comes to is looked at by whoever awaits it.
SHAPED = [hook for hook in HOOKS if hook.combining.result and not hook.combining.may_be_async]


@pytest.mark.parametrize("hook", SHAPED, ids=[f"{h.role}.{h.name}" for h in SHAPED])
def test_a_result_of_another_shape_is_refused(hook: Hook) -> None:
    several = len(hook.combining.result) > 1
    wrong: list[object] = [b"text", 3, (1,), tuple(range(9)), ["a", 1] if several else object()]
    wrong += [tuple("x" for _ in hook.combining.result)] if several else []
    for result in wrong:
        plugin, _ = plugin_with(hook, "", result)
        with pytest.raises(
            HookResultError, match=f"'p0': hook '{hook.name}' must return"
        ) as caught:
            call(hook, plugin)
        assert (caught.value.plugin, caught.value.hook) == ("p0", hook.name)
        if several or hook.combining.mode == "fold":
            assert any(name in caught.value.message for name in hook.combining.result)


@every_hook
def test_wrappers_enclose_hooks_that_run_once_and_are_refused_elsewhere(hook: Hook) -> None:
    received: list[Any] = []
    outer = result_of(hook, "outer")

    class Wrapping:
        pass

    @hookimpl(wrapper=True)
    def around(self: object) -> Any:
        result = yield
        received.append(result)
        return outer

    around.__name__ = hook.name
    setattr(Wrapping, hook.name, around)
    if not hook.combining.wrappers:
        with pytest.raises(ContractError, match="cannot be a wrapper") as caught:
            find_implementations(Wrapping(), hook.role, "p")
        assert caught.value.hook == hook.name
        return
    inner = result_of(hook, "a")
    plain, _ = plugin_with(hook, "", inner)
    given, _ = call(hook, plain, Wrapping())
    assert given == outer
    assert received == [inner]


@every_hook
def test_async_implementations_are_refused_where_nobody_awaits_them(hook: Hook) -> None:
    class Waiting:
        pass

    async def waiting(self: object) -> None:
        raise AssertionError("never awaited here")

    setattr(Waiting, hook.name, waiting)
    if hook.combining.may_be_async:
        assert set(find_implementations(Waiting(), hook.role, "p")) == {hook.name}
    else:
        with pytest.raises(ContractError, match="must be a plain function"):
            find_implementations(Waiting(), hook.role, "p")


@every_hook
def test_a_manager_of_its_role_takes_an_implementation_and_drops_it(hook: Hook) -> None:
    plugin, _ = plugin_with(hook, ", ".join(hook.args[1:]))
    manager = manager_of(hook.role, plugin)
    assert [each.plugin for each in manager.implementations(hook.name)] == ["p0"]
    manager.drop_plugin("p0")
    assert not manager.implements(hook.name)
