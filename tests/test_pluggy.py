"""pluggy is the mechanism: it registers, orders and calls every hook but those of each chunk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby, product
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pluggy
import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import (
    FeaturePlugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
    hookimpl,
)
from agent_hookspecs.errors import AgentError, ContractError, LoadError, OrderingError
from agent_hookspecs.roles import PLUGIN_ROLES, Plugin
from agent_hookspecs.specs import SPECS, SpecRole, hooks_of
from agent_host import AgentApplication, AgentCore
from agent_host.plugins.catalog import LoaderSettings, build_catalog
from agent_host.plugins.order import Sortable, order
from agent_host.plugins.sources import bundles_of_sources
from making import full, write_package
from recording import CALL, ELSEWHERE, Calls, recording, serve_answers
from talking import WAYS, Way, ask, core_with, said, talker

DOCS = Path(__file__).parents[1] / "docs"

#: What a class without a descriptor says of itself is read before it can be registered.
BEFORE_REGISTRATION = {"required_tags", "forbidden_tags"}


# Without registration nothing works ---------------------------------------------------------------


@pytest.fixture
def without_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    def register(self: object, plugin: object, name: str | None = None) -> str | None:
        return name

    monkeypatch.setattr(pluggy.PluginManager, "register", register)


class Wired(ProviderPlugin):
    """Sends by the wire, which it never gets to."""

    name = "wired"

    def build_request(self) -> Any:
        raise AssertionError("it is never called")

    def process_chunk(self) -> Any:
        raise AssertionError("it is never called")


class Streaming(ProviderPlugin):
    """Has a stream of its own."""

    name = "streaming"

    def stream_api(self) -> Any:
        raise AssertionError("it is never called")

    def process_chunk(self) -> Any:
        raise AssertionError("it is never called")


@pytest.mark.usefixtures("without_registration")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("provider", [talker(), Wired, Streaming])
def test_without_registration_no_provider_can_be_asked(way: Way, provider: type) -> None:
    with core_with(provider) as core, pytest.raises(AgentError, match="has no build_request"):
        ask(core, said("Hello"), {}, way)


@pytest.mark.usefixtures("without_registration")
def test_without_registration_nothing_is_read_and_nobody_else_acts_or_offers_tools() -> None:
    calls = Calls()
    plugins = [
        recording(ProviderExtensionPlugin, "e", calls),
        recording(FeaturePlugin, "f", calls),
        recording(ToolPlugin, "t", calls),
    ]
    with serve_answers() as server:
        with core_with(recording(ProviderPlugin, "p", calls), *plugins) as core:
            config = {"base_url": server.url}
            for way in WAYS:
                with pytest.raises(AgentError):
                    ask(core, said("Hello"), config, way)
            (result,) = core.execute_tool_calls([CALL], config)
            assert result["content"] == "Tool not found: look. Available: none."
        assert server.requests == []
    assert {made.partition(".")[2] for made in calls.made} <= BEFORE_REGISTRATION


# Every call of a run is pluggy's ------------------------------------------------------------------


def observing(base: type[Plugin], name: str, calls: Calls, **attributes: Any) -> type:
    """A plugin with every hook of its role, and those with which it sees the application."""

    def noting(hook: str) -> Callable[[object], None]:
        return lambda self: calls.note("host", name, hook)

    hooks = {hook: noting(hook) for hook in ("host_started", "host_closing", "observe_event")}
    return recording(base, name, calls, **hooks, **attributes)


@contextmanager
def recorded_application(calls: Calls) -> Iterator[tuple[AgentApplication, dict[str, Any]]]:
    """An application with one plugin of each role, each with every hook of its role."""
    config: dict[str, list[str]] = {"allowed_plugins": []}
    with (
        serve_answers() as server,
        AgentApplication(
            config, approve=lambda approval: "once", on_manager=calls.watch
        ) as application,
    ):
        core = application.core
        core.register_provider(observing(ProviderPlugin, "p", calls, framing="sse"))
        core.register_extension(observing(ProviderExtensionPlugin, "e", calls))
        core.register_feature(observing(FeaturePlugin, "f", calls))
        core.register_tool(observing(ToolPlugin, "t", calls))
        yield application, {"settings": {"base_url": server.url}, "model": "m"}


@pytest.fixture(scope="module")
def run_calls() -> Calls:
    """The calls of a run of two turns with a tool call between them."""
    calls = Calls()
    with recorded_application(calls) as (application, options):
        answer = application.run("call", **options)
    assert [message["role"] for message in answer.messages] == ["assistant", "tool", "assistant"]
    assert answer.text == "Hi"
    return calls


def documented_calls() -> list[str]:
    """The calls that the page about the order lists: a hook a line, with the roles it goes to."""
    page = (DOCS / "order.md").read_text("utf-8")
    _, _, section = page.partition("## The calls of a run")
    block = section.split("```text\n")[1].split("```")[0]
    lines = [line.split(maxsplit=1) for line in block.splitlines() if line and line[0] != "#"]
    return [f"{role}.{hook}" for hook, roles in lines for role in roles.split(", ")]


def test_the_calls_of_a_run_are_those_of_the_documentation(run_calls: Calls) -> None:
    # A call for each plugin is one line.
    assert [name for name, _ in groupby(run_calls.monitored)] == documented_calls()


def test_no_hook_is_called_past_pluggy_but_those_of_each_chunk(run_calls: Calls) -> None:
    per_chunk = {
        f"{role}.{name}"
        for role in SPECS
        for name, hook in hooks_of(role).items()
        if hook.combining.per_chunk
    }
    declarations = {f"{role}.{name}" for role, name in product(PLUGIN_ROLES, BEFORE_REGISTRATION)}
    assert set(run_calls.outside) <= per_chunk | declarations
    # The other way round: nothing that runs for every chunk costs a call of pluggy's.
    assert set(run_calls.outside) >= {
        *("provider.process_chunk", "extension.process_chunk", "host.observe_event"),
    }
    assert set(run_calls.monitored).isdisjoint(per_chunk)


def test_every_hook_that_a_run_uses_is_called_by_pluggy(run_calls: Calls) -> None:
    #: A run streams, so it has no whole body to parse; the first has no stack to use again.
    unused = {"parse_response", "has_changed_tools"}
    for role in PLUGIN_ROLES:
        used = {
            f"{role}.{name}"
            for name, hook in hooks_of(role).items()
            if not hook.combining.per_chunk
            and name not in ELSEWHERE[role] | BEFORE_REGISTRATION | unused
        }
        assert used <= set(run_calls.monitored)
    assert {"host.host_started", "host.host_closing"} <= set(run_calls.monitored)


def test_a_fold_is_one_implementation_of_the_hosts_that_pluggy_calls(run_calls: Calls) -> None:
    roles: tuple[SpecRole, ...] = ("extension", "feature")
    folds = {
        f"{role}.{name}"
        for role in roles
        for name, hook in hooks_of(role).items()
        if hook.combining.mode == "fold" and not hook.combining.per_chunk
    }
    first_called = {name: plugin for name, plugin in run_calls.first_called if name in folds}
    assert first_called == dict.fromkeys(folds, "<folds of the host>")


@pytest.mark.parametrize("way", WAYS)
def test_a_request_calls_nothing_past_pluggy_in_any_way_of_asking(way: Way) -> None:
    calls = Calls()
    with serve_answers() as server:
        core = core_with(
            recording(ProviderPlugin, "p", calls, framing="sse"),
            recording(ProviderExtensionPlugin, "e", calls),
            on_manager=calls.watch,
        )
        with core:
            calls.clear()
            ask(core, said("Hello"), {"base_url": server.url, "model": "m"}, way)
    outside = {name.partition(".")[2] for name in calls.outside}
    assert outside == {"process_chunk", *BEFORE_REGISTRATION}


# The order is pluggy's ----------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d", "e"]
MARKS: list[dict[str, bool]] = [{}, {}, {"tryfirst": True}, {"trylast": True}]
HOOKS = ("init", "finalize", "get_actions")
others = st.lists(st.sampled_from(NAMES), max_size=1)


def ordered(name: str, made: list[tuple[str, str]], **said_of_it: Any) -> type:
    """An extension that writes its calls down; ``marks`` are those of its hooks."""
    marks: dict[str, dict[str, bool]] = said_of_it.pop("marks")

    def method(hook: str, *, wrapper: bool) -> Any:
        def plain(self: object, **given: Any) -> Any:
            made.append((hook, name))
            over = hooks_of("extension")[hook].combining.over
            return tuple(given[each] for each in over) if len(over) > 1 else None

        def around(self: object) -> Any:
            made.append((hook, name))
            return (yield)

        first, last = ("tryfirst" in marks[hook], "trylast" in marks[hook])
        mark: Any = hookimpl(tryfirst=first, trylast=last, wrapper=wrapper)
        return mark(around if wrapper else plain)

    wraps = said_of_it.pop("wraps", ())
    methods = {hook: method(hook, wrapper=hook in wraps) for hook in marks}
    return type(name, (ProviderExtensionPlugin,), {"name": name, **methods, **said_of_it})


@st.composite
def extensions(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return [
        {
            "name": name,
            "before": [n for n in draw(others) if n != name],
            "after": [n for n in draw(others) if n != name],
            "priority": draw(st.sampled_from([0, 0, 0, 1])),
            "marks": {
                hook: draw(st.sampled_from(MARKS)) for hook in HOOKS if draw(st.integers(0, 3))
            },
            "wraps": draw(st.sampled_from([(), (), ("init",), ("init", "finalize")])),
        }
        for name in names
    ]


@settings(max_examples=60, deadline=None)
@given(extensions())
def test_the_order_that_is_printed_is_that_of_the_calls(plugins: list[dict[str, Any]]) -> None:
    made: list[tuple[str, str]] = []
    with core_with(talker(), *(ordered(made=made, **plugin) for plugin in plugins)) as core:
        try:
            orders = core.resolution({}).hook_orders()
        except OrderingError:
            return
        ask(core, said("Hello"))
    printed = {
        each.hook: [placed.name for placed in each.plugins]
        for each in orders
        if each.role == "extension"
    }
    for hook in HOOKS:
        called = [name for other, name in made if other == hook]
        assert called == printed.get(hook, [])


@settings(max_examples=200, deadline=None)
@given(extensions())
def test_marks_never_go_against_before_after_and_priority(plugins: list[dict[str, Any]]) -> None:
    for plugin in plugins:
        plugin["wraps"] = ()
    with core_with(talker(), *(ordered(made=[], **plugin) for plugin in plugins)) as core:
        try:
            orders = core.resolution({}).hook_orders()
        except OrderingError:
            return
    sortables = [
        Sortable(p["name"], tuple(p["before"]), tuple(p["after"]), p["priority"]) for p in plugins
    ]
    usual = [placed.name for placed in order(sortables)]
    priorities = {plugin["name"]: plugin["priority"] for plugin in plugins}
    constraints = {(p["name"], other) for p in plugins for other in p["before"]}
    constraints |= {(other, p["name"]) for p in plugins for other in p["after"]}
    for each in orders:
        if each.role != "extension":
            continue
        names = [placed.name for placed in each.plugins]
        marked = {placed.name for placed in each.plugins if placed.why.startswith("try")}
        for first, then in constraints:
            if first in names and then in names:
                assert names.index(first) < names.index(then)
        unmarked = [name for name in names if name not in marked]
        assert unmarked == [name for name in usual if name in unmarked]
        # Whoever is moved by a mark is tied with everybody whom it passes.
        assert not marked or len({priorities[name] for name in names}) == 1


def printed_order(*plugins: type, hook: str = "init") -> list[tuple[str, str]]:
    with core_with(talker(), *plugins) as core:
        found = core.resolution({}).hook_orders()
    (only,) = [each for each in found if (each.role, each.hook) == ("extension", hook)]
    return [(placed.name, placed.why) for placed in only.plugins]


FIRST = {"init": {"tryfirst": True}}
LAST = {"init": {"trylast": True}}
PLAIN: dict[str, dict[str, bool]] = {"init": {}}


def test_marks_break_ties_for_their_hook_alone() -> None:
    marks = {"init": {"tryfirst": True}, "finalize": {}}
    plugins = [ordered("a", [], marks={"init": {}, "finalize": {}}), ordered("b", [], marks=marks)]
    assert printed_order(*plugins) == [("b", "tryfirst"), ("a", "by name")]
    assert printed_order(*plugins, hook="finalize") == [("a", "by name"), ("b", "by name")]


def test_of_several_that_want_to_be_last_the_first_by_name_is() -> None:
    plugins = [ordered(name, [], marks=LAST) for name in "ab"]
    assert printed_order(ordered("c", [], marks=PLAIN), *plugins) == [
        ("c", "by name"),
        ("b", "trylast"),
        ("a", "trylast"),
    ]


@pytest.mark.parametrize("more", [{"priority": -1}, {"after": ["a"]}])
def test_before_after_and_priority_are_stronger_than_marks(more: dict[str, Any]) -> None:
    plugins = [ordered("a", [], marks=PLAIN), ordered("b", [], marks=FIRST, **more)]
    assert [name for name, _ in printed_order(*plugins)] == ["a", "b"]


def test_a_mark_counts_against_those_alone_who_implement_the_hook() -> None:
    plugins = [
        ordered("a", [], marks=PLAIN),
        ordered("b", [], marks=FIRST),
        ordered("c", [], marks={"finalize": {}}, priority=1),
    ]
    assert printed_order(*plugins) == [("b", "tryfirst"), ("a", "by name")]


def test_wrappers_are_printed_before_what_they_enclose() -> None:
    plugins = [ordered("a", [], marks=PLAIN), ordered("b", [], marks=PLAIN, wraps=("init",))]
    assert printed_order(*plugins) == [("b", "by name; wrapper"), ("a", "by name")]


# Modules and objects are plugins ------------------------------------------------------------------

MODULE = """
from agent_hookspecs import hookimpl


@hookimpl
def init(state):
    return {**state, "seen": [*state.get("seen", ()), __name__]}


def finalize(state):
    raise AssertionError("it is not marked")


class Plugin:
    def init(self, state):
        return {**state, "seen": [*state.get("seen", ()), "object"]}


thing = Plugin()
number = 3
"""


@pytest.fixture
def imports_are_undone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("pkg_"):
            del sys.modules[name]


def seeing(seen: list[Any]) -> type:
    """A feature that looks at what the extensions have left in the state."""

    class Seeing(FeaturePlugin):
        name = "seeing"

        def init(self, state: dict[str, Any]) -> None:
            seen.append(state.get("seen"))

    return Seeing


def module_of(source: str, name: str = "handmade") -> ModuleType:
    module = ModuleType(name)
    exec(source, vars(module))
    return module


def test_a_module_and_an_object_are_registered_by_hand() -> None:
    seen: list[Any] = []
    module = module_of(MODULE)
    with core_with(talker(), seeing(seen)) as core:
        core.register_extension(module)
        core.register_extension(module.thing)
        ask(core, said("Hello"))
        names = [placed.name for placed in core.resolution({}).order["extension"]]
    assert sorted(seen[0]) == ["handmade", "object"]
    assert names == ["Plugin", "handmade"]


def test_an_object_says_its_name_and_place_itself() -> None:
    seen: list[Any] = []
    thing = SimpleNamespace(
        name="thing", after=["handmade"], init=lambda state: {**state, "seen": [*state["seen"], 2]}
    )
    with core_with(talker(), seeing(seen)) as core:
        core.register_extension(thing)
        core.register_extension(module_of(MODULE))
        ask(core, said("Hello"))
    assert seen == [["handmade", 2]]


@pytest.mark.parametrize(
    ("register", "given", "words"),
    [
        ("extension", lambda: print, "register a class, an object or a module"),
        ("extension", lambda: "pkg.module", "register a class, an object or a module, not str"),
        ("tool", lambda: module_of(MODULE), "'handmade' must implement 'get_tool_schemas'"),
        ("provider", lambda: module_of(MODULE), "'handmade' must have supports_tools"),
        ("feature", lambda: module_of(MODULE + "role = 'extension'\n"), "is a extension, not a"),
    ],
)
def test_what_cannot_be_a_plugin_is_refused_by_hand(
    register: str, given: Callable[[], object], words: str
) -> None:
    with AgentCore() as core, pytest.raises(ContractError, match=words) as caught:
        getattr(core, f"register_{register}")(given())
    assert caught.value.hint


def test_a_module_whose_marks_fit_nothing_is_set_aside_with_the_reason() -> None:
    module = module_of("from agent_hookspecs import hookimpl\n@hookimpl\ndef initt(): pass\n")
    with core_with(talker()) as core:
        core.register_extension(module)
        catalog = core.resolution({}).catalog
    (record,) = [each for each in catalog if each.name == "handmade"]
    assert record.state == "failed"
    assert "did you mean 'init'?" in record.reason


def installed_core(root: Path, **entries: str) -> AgentCore:
    """A core with a package whose descriptor names these entries, by plugin name."""
    described = full("pkg_made", "extension", "unused")
    described["entries"] = [
        {"entry": entry, "role": "extension", "name": name} for name, entry in entries.items()
    ]
    write_package(root, "pkg_made", descriptor=described, source=MODULE)
    bundles = bundles_of_sources([f"path:{root}"], base=root, cache=None)
    core = AgentCore(catalog=build_catalog(bundles, LoaderSettings()))
    core.register_provider(talker())
    return core


@pytest.mark.usefixtures("imports_are_undone")
def test_a_module_and_an_object_are_installed_with_role_and_name_of_the_descriptor(
    tmp_path: Path,
) -> None:
    seen: list[Any] = []
    entries = {"whole": "pkg_made.plugin", "single": "pkg_made.plugin:thing"}
    with installed_core(tmp_path, **entries) as core:
        core.register_feature(seeing(seen))
        ask(core, said("Hello"))
        names = [placed.name for placed in core.resolution({}).order["extension"]]
    assert names == ["single", "whole"]
    assert seen == [["object", "pkg_made.plugin"]]


@pytest.mark.usefixtures("imports_are_undone")
@pytest.mark.parametrize("entry", ["pkg_made.plugin:missing", "pkg_made.plugin:number"])
def test_an_entry_that_names_nothing_with_hooks_says_which(tmp_path: Path, entry: str) -> None:
    with installed_core(tmp_path, wrong=entry) as core:
        (record,) = [each for each in core.resolution({}).catalog if each.name == "wrong"]
        with pytest.raises(LoadError, match=r"module 'pkg_made\.plugin' has no"):
            core.stacks.activator.load(record)
    assert record.state == "failed"
    assert entry.partition(":")[2] in record.reason
