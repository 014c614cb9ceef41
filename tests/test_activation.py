"""Activation imports what is asked for, checks it, and turns whatever goes wrong into an error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from agent_hookspecs import (
    Effect,
    FeaturePlugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
)
from agent_hookspecs.errors import ContractError, LoadError, PluginError
from agent_host.plugins.activate import Activator, entry_from_class
from agent_host.plugins.catalog import PluginRecord, build_catalog
from agent_host.plugins.sources import bundles_of_sources
from making import EXTENSION, FEATURE, PROVIDER, full, run_python, write_package


@pytest.fixture(autouse=True)
def imports_are_undone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("pkg_"):
            del sys.modules[name]


def records(tmp_path: Path, source: str, descriptor: dict[str, Any]) -> list[PluginRecord]:
    write_package(tmp_path, "pkg_one", descriptor=descriptor, source=source)
    bundles = bundles_of_sources([f"path:{tmp_path}"], base=tmp_path, cache=None)
    return list(build_catalog(bundles))


def record(tmp_path: Path, source: str, role: str = "feature", **more: Any) -> PluginRecord:
    (found,) = records(tmp_path, source, full("pkg_one", role, "one", **more))
    return found


def short(tmp_path: Path, source: str) -> PluginRecord:
    (found,) = records(tmp_path, source, {"entries": ["pkg_one.plugin.Plugin"]})
    return found


def refused(made: PluginRecord) -> PluginError:
    activator = Activator()
    with pytest.raises(PluginError) as caught:
        activator.load(made)
    with pytest.raises(PluginError) as again:
        activator.load(made)
    assert again.value is caught.value, "a failure is remembered"
    return caught.value


def test_a_plugin_is_imported_constructed_and_registered_once(tmp_path: Path) -> None:
    made = record(tmp_path, FEATURE.format(name="one"))
    activator = Activator()
    assert activator.imported_entries == []
    loaded = activator.load(made)
    assert (loaded.key, loaded.name, loaded.role) == ("feature:one", "one", "feature")
    assert set(loaded.implementations) == {"init"}
    assert loaded.implementations["init"][0].call({}, {"s": 1}) == {"s": 1}
    assert loaded.host_manager is None
    assert activator.load(made) is loaded
    assert activator.imported_entries == ["pkg_one.plugin:Plugin"]


def test_a_source_is_appended_to_the_path_only_when_it_is_activated(tmp_path: Path) -> None:
    made = record(tmp_path, FEATURE.format(name="one"))
    assert str(tmp_path) not in sys.path
    Activator().load(made)
    assert sys.path[-1] == str(tmp_path)


def test_many_threads_get_one_instance(tmp_path: Path) -> None:
    made = record(tmp_path, FEATURE.format(name="one"))
    activator, seen = Activator(), []
    barrier = threading.Barrier(8)

    def load() -> None:
        barrier.wait()
        seen.append(activator.load(made).instance)

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len({id(instance) for instance in seen}) == 1


def test_options_of_the_descriptor_go_to_the_constructor(tmp_path: Path) -> None:
    source = FEATURE.format(name="one") + (
        "\n    def __init__(self, size, extra=None):\n        self.size = size\n"
    )
    made = record(tmp_path, source, options={"size": 3})
    instance: Any = Activator().load(made).instance
    assert instance.size == 3


def test_one_class_may_serve_many_rows_of_data(tmp_path: Path) -> None:
    source = (
        "from agent_hookspecs import FeaturePlugin\n\n"
        "class Plugin(FeaturePlugin):\n"
        "    def __init__(self, name):\n        self.name = name\n"
    )
    rows = [
        {
            "entry": "pkg_one.plugin:Plugin",
            "role": "feature",
            "name": name,
            "options": {"name": name},
        }
        for name in ("left", "right")
    ]
    activator = Activator()
    loaded = [activator.load(made) for made in records(tmp_path, source, {"entries": rows})]
    assert [plugin.instance.name for plugin in loaded] == ["left", "right"]  # type: ignore[attr-defined]


def test_hooks_of_the_host_are_found_besides_those_of_the_role(tmp_path: Path) -> None:
    source = (
        FEATURE.format(name="one") + "\n    def observe_event(self, event):\n        return event\n"
    )
    loaded = Activator().load(record(tmp_path, source))
    assert loaded.host_manager is not None
    (observing,) = loaded.host_manager.implementations("observe_event")
    assert observing.call("e", {}) == "e"


HEAD = "from agent_hookspecs import FeaturePlugin, ProviderPlugin\n\n"


@pytest.mark.parametrize(
    ("source", "words", "remedy"),
    [
        (
            "raise ValueError('at import')",
            "raised ValueError: at import",
            "report it to the author",
        ),
        (
            "import not_installed_anywhere",
            "needs the module 'not_installed_anywhere'",
            "pip install",
        ),
        ("import pkg_one.gone", "there is no module 'pkg_one.gone'", "reinstall"),
        ("import sys; sys.exit(3)", "called sys.exit(3)", "report it"),
        ("def f(): f()\nf()", "recursed without end", "report it"),
        (
            "class BaseError(BaseException): pass\nraise BaseError('x')",
            "raised BaseError: x",
            "report",
        ),
        ("this is no python", "raised SyntaxError", "report it"),
        ("x = 1", "has no class 'Plugin'", "correct 'pkg_one.plugin:Plugin' in"),
        ("Plugin = 3", "has no class 'Plugin'", "correct"),
        ("def __getattr__(name): raise KeyError(name)", "raised KeyError", "report it"),
        (
            "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
            "raised E",
            "report it",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    def __init__(self, x): pass",
            "TypeError",
            "options",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    def __init__(self): exit(1)",
            "SystemExit",
            "options",
        ),
        (HEAD + "class Plugin(FeaturePlugin):\n    name = 'two'", "has name 'two'", "or the class"),
        (
            HEAD + "class Plugin(ProviderPlugin):\n    name = 'one'",
            "has role 'provider'",
            "the class",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    name = property(lambda self: 1 / 0)",
            "raised ZeroDivisionError",
            "must be readable",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    init = property(lambda self: 1 / 0)",
            "raised ZeroDivisionError",
            "must be readable",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    def init(self, *, nonsense): pass",
            "'nonsense'",
            "config, state",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    async def init(self): pass",
            "must be a plain function",
            "",
        ),
        (
            HEAD + "class Plugin(FeaturePlugin):\n    def host_started(self, *, odd): pass",
            "'odd'",
            "host",
        ),
    ],
)
def test_whatever_a_plugin_does_becomes_an_error_that_says_what_to_do(
    tmp_path: Path, source: str, words: str, remedy: str
) -> None:
    error = refused(record(tmp_path, source))
    assert words in error.message
    assert remedy in error.hint
    assert "one'" in error.message


def test_a_failing_module_is_not_imported_again(tmp_path: Path) -> None:
    source = "import sys\nsys.attempts = getattr(sys, 'attempts', 0) + 1\nraise ValueError"
    refused(record(tmp_path, source))
    try:
        assert sys.attempts == 1  # type: ignore[attr-defined]
    finally:
        del sys.attempts  # type: ignore[attr-defined]


def test_a_refused_host_hook_takes_the_roles_hooks_back(tmp_path: Path) -> None:
    source = HEAD + (
        "class Plugin(FeaturePlugin):\n    name = 'one'\n"
        "    def init(self, state): return state\n"
        "    def observe_event(self, *, odd): pass\n"
    )
    activator = Activator()
    made = record(tmp_path, source)
    with pytest.raises(ContractError):
        activator.load(made)
    assert activator.loaded_plugins == []


def test_an_interruption_is_not_swallowed(tmp_path: Path) -> None:
    made = record(tmp_path, "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Activator().load(made)


def test_the_guard_refuses_a_provider_that_cannot_send(tmp_path: Path) -> None:
    source = HEAD + "class Plugin(ProviderPlugin):\n    name = 'one'\n"
    assert "no way to send" in refused(record(tmp_path, source, "provider")).message


# Short forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "key"),
    [(PROVIDER, "provider:n"), (EXTENSION, "extension:n"), (FEATURE, "feature:n")],
)
def test_a_short_form_is_known_once_it_is_imported(tmp_path: Path, source: str, key: str) -> None:
    made = short(tmp_path, source.format(name="n"))
    activator = Activator()
    entry = activator.identify(made)
    assert f"{entry.role}:{entry.name}" == key
    assert activator.load(made).key == key
    assert activator.imported_entries == ["pkg_one.plugin.Plugin"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("class Plugin: pass", "has no role"),
        (HEAD + "class Plugin(FeaturePlugin): pass", "has no name"),
        (HEAD + "class Plugin(FeaturePlugin):\n    name = 3", "has no name"),
    ],
)
def test_a_class_without_role_or_name_is_told_where_to_get_them(
    tmp_path: Path, body: str, words: str
) -> None:
    error = refused(short(tmp_path, body))
    assert words in error.message
    assert "ProviderPlugin, ProviderExtensionPlugin, FeaturePlugin or ToolPlugin" in error.hint


def test_what_a_class_says_of_itself_becomes_its_entry() -> None:
    class Mine(ProviderExtensionPlugin):
        name = "mine"
        label = "Mine"
        required_tags = ("a",)
        before = ("x",)
        after = ("y",)
        priority = 3
        default_enabled = False

        def forbidden_tags(self) -> list[str]:
            return ["b"]

        def is_enabled(self) -> None:
            raise AssertionError("it is only asked for a request")

    entry = entry_from_class("m:Mine", Mine())
    assert (entry.entry, entry.role, entry.name, entry.label) == (
        "m:Mine",
        "extension",
        "mine",
        "Mine",
    )
    assert (entry.required_tags, entry.forbidden_tags) == (("a",), ("b",))
    assert (entry.before, entry.after, entry.priority) == (("x",), ("y",), 3)
    assert entry.dynamic == ("is_enabled",)
    assert not entry.default_enabled


def test_a_provider_and_a_tool_say_what_is_theirs() -> None:
    class P(ProviderPlugin):
        name = "p"
        requires_api_key = True

    class T(ToolPlugin):
        name = "t"
        effects: Mapping[str, Effect] = MappingProxyType({"look": "read"})

    assert entry_from_class("<local>.P", P()).requires_api_key
    assert entry_from_class("m:T", T()).tools == {"look": "read"}


def test_a_plain_class_is_what_it_is_registered_as() -> None:
    class Plain:
        name = "plain"

    assert entry_from_class("m:Plain", Plain(), "tool").role == "tool"


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("priority", "high"),
        ("before", "one"),
        ("after", [3]),
        ("required_tags", "tag"),
        ("default_enabled", "no"),
        ("name", "with space"),
        ("label", 3),
    ],
)
def test_a_class_that_describes_itself_wrongly_is_refused_naming_the_attribute(
    attribute: str, value: object
) -> None:
    wrong = type("Wrong", (FeaturePlugin,), {"name": "w", attribute: value})()
    with pytest.raises(ContractError) as caught:
        entry_from_class("m:Wrong", wrong)
    assert f": {attribute}" in caught.value.message
    assert caught.value.hint.startswith("it must be")


def test_a_class_that_fails_when_it_is_asked_is_refused() -> None:
    broken = type("Broken", (FeaturePlugin,), {"name": property(lambda self: 1 / 0)})()
    with pytest.raises(ContractError, match="raised ZeroDivisionError") as caught:
        entry_from_class("m:Broken", broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_what_a_plain_class_says_is_known_without_pydantic() -> None:
    code = """
from agent_hookspecs import FeaturePlugin
from agent_host.config import parse_config
from agent_host.plugins.activate import entry_from_class

class Plain(FeaturePlugin):
    name, label = "plain", "Plain"

    def get_tags(self, config):
        return []

class Particular(Plain):
    name, priority = "particular", 3

parse_config({})
for plugin in (Plain, Particular):
    entry = entry_from_class("pkg:C", plugin())
    print(entry.name, entry.label, entry.dynamic, entry.priority, "pydantic" in sys.modules)
"""
    run = run_python(code)
    expected = ["plain Plain ('get_tags',) 0 False", "particular Plain ('get_tags',) 3 True"]
    assert run.out.splitlines() == expected, run.err


def test_a_record_without_an_entry_cannot_be_loaded(tmp_path: Path) -> None:
    (broken,) = bundles_of_sources([f"path:{tmp_path}"], base=tmp_path, cache=None)
    (made,) = build_catalog([broken])
    assert isinstance(refused(made), LoadError)
