"""Finding and checking what a plugin implements, and the guard at registration."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from agent_hookspecs.authoring.mixins import AccumulatorStreamingMixin
from agent_hookspecs.errors import BindingError, ContractError
from agent_hookspecs.markers import hookimpl
from agent_hookspecs.roles import ProviderPlugin, ToolPlugin
from agent_host.plugins.implementations import find_implementations, require_contract


class Minimal(ProviderPlugin):
    name = "minimal"

    def init(self, config: Any) -> Any:
        return {"config": config}

    def call_api(self, native_messages: Any, state: Any) -> Any:
        return [], [], native_messages, state


def test_the_minimal_provider_of_the_source_documents_passes() -> None:
    require_contract("provider", Minimal(), "minimal")
    assert set(find_implementations(Minimal(), "provider", "minimal")) == {"init", "call_api"}


def provider(*hooks: str, **attributes: Any) -> object:
    return type("Made", (), {"supports_tools": True, **dict.fromkeys(hooks, print), **attributes})()


@pytest.mark.parametrize(
    "hooks",
    [
        ("build_request", "process_chunk"),
        ("build_request", "parse_response"),
        ("build_request", "extract_delta", "process_delta"),
        ("stream_api", "process_chunk"),
        ("initialize_request", "process_chunk"),
        ("call_api",),
        ("acall_api",),
    ],
)
def test_a_provider_that_can_send_and_read_is_accepted(hooks: tuple[str, ...]) -> None:
    require_contract("provider", provider(*hooks), "good")


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (provider(), "'bad' has no way to send: one of build_request, call_api, stream_api"),
        (provider("process_chunk"), "has no way to send"),
        (provider("build_request"), "'bad' has no way to read an answer: one of process_chunk"),
        (provider("build_request", "extract_delta"), "extract_delta with process_delta"),
        (provider("stream_api"), "has no way to read"),
        (provider("call_api", supports_tools=False), "'bad' must have supports_tools = True"),
        (provider("call_api", supports_tools=1), "must have supports_tools = True"),
    ],
)
def test_a_provider_that_cannot_is_refused_naming_plugin_and_method(
    plugin: object, words: str
) -> None:
    with pytest.raises(ContractError, match=words) as caught:
        require_contract("provider", plugin, "bad")
    assert caught.value.plugin == "bad"
    assert caught.value.hook
    assert "provider class" in caught.value.hint


def test_a_plain_class_without_supports_tools_is_refused() -> None:
    class Plain:
        def call_api(self) -> None:
            raise AssertionError("it is never called")

    with pytest.raises(ContractError, match="supports_tools"):
        require_contract("provider", Plain(), "plain")


@pytest.mark.parametrize("missing", ["get_tool_schemas", "execute_tool"])
def test_a_tool_needs_schemas_and_a_way_to_run(missing: str) -> None:
    hooks = {"get_tool_schemas": print, "execute_tool": print}
    require_contract("tool", type("Whole", (), hooks)(), "whole")
    del hooks[missing]
    with pytest.raises(ContractError, match=f"'half' must implement '{missing}'"):
        require_contract("tool", type("Half", (), hooks)(), "half")


def test_extensions_and_features_may_implement_nothing() -> None:
    require_contract("extension", object(), "quiet")
    require_contract("feature", object(), "quiet")


def test_private_methods_and_other_names_are_no_implementations() -> None:
    class Mixed(ToolPlugin):
        def _init(self) -> None:
            raise AssertionError("it is never called")

        def helper(self) -> None:
            raise AssertionError("it is never called")

        def close(self) -> str:
            return "closed"

    found = find_implementations(Mixed(), "tool", "mixed")
    assert {name: i[0].call("state") for name, i in found.items()} == {"close": "closed"}


def test_static_class_and_instance_level_methods_count() -> None:
    class Kinds(ToolPlugin):
        @staticmethod
        def init(config: Any) -> Any:
            return config

        @classmethod
        def close(cls, state: Any) -> Any:
            return cls, state

    plugin = Kinds()
    plugin.get_tool_schemas = lambda state: [state]  # type: ignore[attr-defined]
    found = find_implementations(plugin, "tool", "kinds")
    assert found["init"][0].call("c") == "c"
    assert found["close"][0].call("s") == (Kinds, "s")
    assert found["get_tool_schemas"][0].call("s") == ["s"]


def test_specname_gives_a_method_another_name() -> None:
    class Renamed(ToolPlugin):
        @hookimpl(specname="close")
        def let_go(self, state: Any) -> Any:
            return state

    assert find_implementations(Renamed(), "tool", "t")["close"][0].call("s") == "s"


def test_a_marked_method_that_fits_no_hook_is_refused_with_the_name_that_was_meant() -> None:
    class Misspelt(ToolPlugin):
        @hookimpl
        def get_tool_schema(self) -> Any:
            raise AssertionError("it is never called")

    with pytest.raises(ContractError, match="no tool hook 'get_tool_schema'") as caught:
        find_implementations(Misspelt(), "tool", "t")
    assert "'get_tool_schemas'" in caught.value.hint
    with pytest.raises(ContractError):
        find_implementations(Misspelt(), "host", "t")


def test_a_marked_method_that_says_that_it_is_optional_may_fit_no_hook() -> None:
    class Hopeful(ToolPlugin):
        @hookimpl(optionalhook=True)
        def hook_of_a_later_version(self) -> Any:
            raise AssertionError("it is never called")

    assert find_implementations(Hopeful(), "tool", "t") == {}


def test_marks_of_the_role_do_not_disturb_the_hooks_of_the_host_and_vice_versa() -> None:
    class Both(ToolPlugin):
        @hookimpl
        def close(self) -> None:
            raise AssertionError("it is never called")

        @hookimpl(specname="observe_event")
        def see(self, event: Any) -> Any:
            return event

    assert set(find_implementations(Both(), "tool", "t")) == {"close"}
    assert set(find_implementations(Both(), "host", "t")) == {"observe_event"}


def test_one_plugin_cannot_implement_a_hook_with_one_owner_twice() -> None:
    class Twice(Minimal):
        @hookimpl(specname="init")
        def begin(self, config: Any) -> Any:
            raise AssertionError("it is never called")

    with pytest.raises(ContractError, match="'t' implements provider hook 'init' 2 times"):
        find_implementations(Twice(), "provider", "t")


def test_a_wrapper_beside_the_owner_is_no_second_owner() -> None:
    class Wrapped(Minimal):
        @hookimpl(specname="init", wrapper=True)
        def around(self, config: Any) -> Any:
            return (yield)

    found = find_implementations(Wrapped(), "provider", "t")
    assert [each.wrapper for each in found["init"]] == [True, False]


def test_tags_may_be_written_as_a_list() -> None:
    class Tagged:
        required_tags = ("a", "b")
        forbidden_tags: Any = frozenset({"c"})

    found = find_implementations(Tagged(), "extension", "t")
    assert found["required_tags"][0].call() == ["a", "b"]
    assert found["forbidden_tags"][0].call() == ["c"]


@pytest.mark.parametrize("value", ["text", None, 3])
def test_tags_that_are_no_list_are_refused(value: object) -> None:
    plugin = type("Made", (), {"required_tags": value})()
    with pytest.raises(ContractError, match="'required_tags'") as caught:
        find_implementations(plugin, "extension", "t")
    assert "list of tags" in caught.value.hint


def test_a_hooks_name_for_something_that_is_no_method_is_refused() -> None:
    plugin = type("Made", (), {"close": 3})()
    with pytest.raises(ContractError, match="'close' is a tool hook's name but not a method"):
        find_implementations(plugin, "tool", "t")


def test_old_style_wrappers_and_wrappers_that_do_not_yield_are_refused() -> None:
    class Old:
        @hookimpl(hookwrapper=True)
        def init(self) -> Any:
            yield

    class Plain:
        @hookimpl(wrapper=True)
        def init(self) -> Any:
            raise AssertionError("it is never called")

    for plugin in (Old(), Plain()):
        with pytest.raises(ContractError, match="cannot be a wrapper of this kind"):
            find_implementations(plugin, "extension", "t")


def test_async_generators_are_refused_where_nobody_iterates_them() -> None:
    class Streaming:
        async def stream_api(self) -> Any:
            yield 1

    with pytest.raises(ContractError, match="must be a plain function"):
        find_implementations(Streaming(), "provider", "t")


def test_a_coroutine_function_is_told_apart_where_it_is_allowed() -> None:
    class Waiting:
        async def execute_tool(self) -> None:
            raise AssertionError("it is never called")

        def prepare(self) -> None:
            raise AssertionError("it is never called")

    found = find_implementations(Waiting(), "tool", "t")
    assert found["execute_tool"][0].starts_coroutine
    assert not found["prepare"][0].starts_coroutine


def test_the_marks_that_break_ties_are_read() -> None:
    class Eager:
        @hookimpl(tryfirst=True)
        def init(self) -> None:
            raise AssertionError("it is never called")

        @hookimpl(trylast=True)
        def finalize(self) -> None:
            raise AssertionError("it is never called")

        @hookimpl
        def get_actions(self) -> None:
            raise AssertionError("it is never called")

    found = find_implementations(Eager(), "extension", "t")
    assert {name: (each.first, each.last) for name, (each,) in found.items()} == {
        "init": (True, False),
        "finalize": (False, True),
        "get_actions": (False, False),
    }


def test_mixins_carry_real_hooks() -> None:
    class Streaming(AccumulatorStreamingMixin, Minimal):
        def stream_api(self) -> Any:
            return iter(())

    found = find_implementations(Streaming(), "provider", "t")
    assert {"process_chunk", "finalize", "stream_api"} <= set(found)
    require_contract("provider", Streaming(), "t")


def module_with(source: str) -> ModuleType:
    module = ModuleType("made_module")
    exec("from agent_hookspecs import hookimpl\n" + source, vars(module))
    return module


def test_of_a_module_only_marked_functions_are_implementations() -> None:
    module = module_with(
        "@hookimpl\n"
        "def init(config, state):\n    return {**state, 'seen': config}\n"
        "def finalize(state):\n    raise AssertionError('it is never called')\n"
        "get_models = 3\n"
    )
    found = find_implementations(module, "extension", "m")
    assert set(found) == {"init"}
    assert found["init"][0].call(1, {}) == {"seen": 1}


def test_a_marked_function_of_a_module_must_fit_a_hook() -> None:
    module = module_with("@hookimpl\ndef initt(config, state):\n    return state\n")
    with pytest.raises(ContractError, match="'initt' is marked as a hook") as caught:
        find_implementations(module, "extension", "m")
    assert "'init'" in caught.value.hint


def test_arguments_that_no_hook_gives_are_refused_naming_plugin_and_hook() -> None:
    class Wrong(Minimal):
        def finalize(self, *, nonsense: Any) -> None:
            raise AssertionError("it is never called")

    with pytest.raises(BindingError, match="nonsense") as caught:
        find_implementations(Wrong(), "provider", "wrong")
    assert (caught.value.plugin, caught.value.hook) == ("wrong", "finalize")
