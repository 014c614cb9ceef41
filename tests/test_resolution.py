"""Resolution: who is asked what, who takes part, and who is set aside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import (
    ConfigError,
    GatingError,
    HookError,
    OrderingError,
    UnknownPluginError,
)
from agent_host.core import AgentCore
from agent_host.plugins.activate import Activator
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog, LoaderSettings, build_catalog
from agent_host.plugins.resolve import Resolution
from agent_host.plugins.sources import bundles_of_sources
from making import EXTENSION, POISON, PROVIDER, full, write_package


@pytest.fixture(autouse=True)
def imports_are_undone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("pkg_"):
            del sys.modules[name]


class World:
    """Packages under one folder, and what is decided for a config."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.activator = Activator()
        self.settings = LoaderSettings()

    def add(self, name: str, role: str = "extension", body: str = "", **more: Any) -> None:
        source = (PROVIDER if role == "provider" else EXTENSION).format(name=name)
        source = source.replace("ProviderExtensionPlugin", BASES[role])
        descriptor = more.pop("descriptor", None) or full(f"pkg_{name}", role, name, **more)
        write_package(self.root, f"pkg_{name}", descriptor=descriptor, source=source + body)

    def poison(self, name: str, **more: Any) -> None:
        descriptor = full(f"pkg_{name}", "extension", name, **more)
        write_package(self.root, f"pkg_{name}", descriptor=descriptor, source=POISON)

    def bundles(self) -> list[Bundle]:
        return bundles_of_sources([f"path:{self.root}"], base=self.root, cache=None)

    def resolve(self, **config: Any) -> Resolution:
        return self.decide(build_catalog(self.bundles(), self.settings), **config)

    def decide(self, catalog: Catalog, **config: Any) -> Resolution:
        core = AgentCore(catalog=catalog)
        self.activator = core.stacks.activator
        return core.resolution({"provider": "main", **config})

    @property
    def imported(self) -> set[str]:
        return {
            path.partition(".")[0].removeprefix("pkg_") for path in self.activator.imported_entries
        }


BASES = {
    "provider": "ProviderPlugin",
    "extension": "ProviderExtensionPlugin",
    "feature": "FeaturePlugin",
    "tool": "ToolPlugin",
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.add("main", "provider", provides_tags=["provider:main"])
    return made


def names(found: Resolution, role: Any = "extension") -> list[str]:
    return [plugin.name for plugin in found.plugins[role]]


def state(found: Resolution, name: str) -> tuple[str, str]:
    (record,) = [r for r in found.catalog if r.name == name]
    return record.state, record.reason


def test_only_what_takes_part_is_imported(world: World) -> None:
    world.add("wanted", required_tags=["provider:main"])
    world.poison("foreign", required_tags=["provider:other"])
    world.poison("off", default_enabled=False)
    found = world.resolve()
    assert names(found) == ["wanted"]
    assert world.imported == {"main", "wanted"}
    assert state(found, "wanted") == ("loaded", "")
    assert state(found, "main") == ("loaded", "")
    assert state(found, "foreign")[0] == "gated"
    assert "needs tag provider:other" in state(found, "foreign")[1]


READING = {"read_note": "read", "write_note": "write"}
OFFERING = """
    def get_tool_schemas(self, state): return []
    def execute_tool(self, tool_name, payload, state, context): return ""
"""


def test_a_plugin_none_of_whose_tools_is_wanted_is_not_imported(world: World) -> None:
    world.add("notes", "tool", OFFERING, tools=READING)
    found = world.resolve(use_tools=["read_mail", "draw_*"])
    assert world.imported == {"main"}
    reason = "use_tools names none of its tools: read_note, write_note"
    assert state(found, "notes") == ("gated", reason)


def test_a_plugin_that_learns_its_tools_elsewhere_is_not_asked_if_none_are_wanted(
    world: World,
) -> None:
    world.add("server", "tool", OFFERING)
    found = world.resolve(use_tools=[])
    assert world.imported == {"main"}
    assert state(found, "server") == ("gated", "use_tools names no tool at all")
    assert names(world.resolve(use_tools=["read_*"]), "tool") == ["server"]


@pytest.mark.parametrize("wanted", [None, ["write_*"], ["read_note"]])
def test_a_plugin_with_a_wanted_tool_takes_part(world: World, wanted: list[str] | None) -> None:
    world.add("notes", "tool", OFFERING, tools=READING)
    assert names(world.resolve(use_tools=wanted), "tool") == ["notes"]


def test_a_plugin_that_lists_no_tools_is_asked_for_them(world: World) -> None:
    world.add("notes", "tool", OFFERING)
    assert names(world.resolve(use_tools=["read_note"]), "tool") == ["notes"]


def test_a_forced_plugin_takes_part_whatever_tools_are_wanted(world: World) -> None:
    world.add("notes", "tool", OFFERING, tools=READING)
    found = world.resolve(use_tools=[], force_enabled_plugins=["notes"])
    assert names(found, "tool") == ["notes"]


def test_a_dynamic_plugin_is_imported_only_when_it_passes_the_static_gate(world: World) -> None:
    asked = "\n    def is_enabled(self, config):\n        return config.get('on')\n"
    world.add("asked", body=asked, dynamic=["is_enabled"])
    world.poison("hidden", dynamic=["is_enabled", "get_tags"], required_tags=["absent"])
    assert names(world.resolve(on=True)) == ["asked"]
    assert names(world.resolve(on=False)) == []
    assert names(world.resolve(on=None)) == ["asked"]
    assert "hidden" not in world.imported


def test_tags_of_the_provider_come_from_descriptor_and_class(world: World) -> None:
    body = (
        "\n    def get_models(self, config):\n"
        "        return [{'id': 'm', 'kind': 'x'}, {'id': ''}, 'junk', {'id': 3}]\n"
        "\n    def get_tags(self, models):\n        return [m['kind'] for m in models]\n"
    )
    world.add(
        "main", "provider", body, dynamic=["get_models", "get_tags"], provides_tags=["static"]
    )
    world.add("needs", required_tags=["x", "static"])
    found = world.resolve()
    assert names(found) == ["needs"]
    assert [model["id"] for model in found.models] == ["m"]
    assert found.provider_tags == {"x", "static"}


@pytest.mark.parametrize("models", ["raise OSError", "return None", "return 'text'"])
def test_models_that_cannot_be_had_are_no_models(world: World, models: str) -> None:
    body = f"\n    def get_models(self, config):\n        {models}\n"
    world.add("main", "provider", body, dynamic=["get_models"])
    assert world.resolve().models == ()


def test_models_that_the_descriptor_says_not_to_ask_for_are_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.add("main", "provider", "\n    def get_models(self):\n        return [{'id': 'm'}]\n")
    assert world.resolve().models == ()
    assert "models_not_asked" in caplog.text
    assert "'dynamic' does not name get_models" in caplog.text


def test_a_provider_whose_tags_fail_ends_the_decision(world: World) -> None:
    body = "\n    def get_tags(self):\n        raise OSError('no tags')\n"
    world.add("main", "provider", body, dynamic=["get_tags"])
    with pytest.raises(HookError, match=r"'main'.*'get_tags' raised OSError"):
        world.resolve()


@pytest.mark.parametrize("answer", ["3", "'tag'", "[1]", "None"])
def test_tags_must_be_a_list_of_strings(world: World, answer: str) -> None:
    body = f"\n    def get_tags(self):\n        return {answer}\n"
    world.add("odd", body=body, dynamic=["get_tags"])
    found = world.resolve()
    assert names(found) == []
    assert "must return a list of strings" in state(found, "odd")[1]


def test_tags_gained_let_others_join(world: World) -> None:
    body = "\n    def get_tags(self, config):\n        return [config['gives']]\n"
    world.add("giver", body=body, dynamic=["get_tags"])
    world.add("taker", required_tags=["wanted"])
    found = world.resolve(gives="wanted")
    assert names(found) == ["giver", "taker"]
    assert [change.joined for change in found.gating.rounds] == [
        ("extension:giver",),
        ("extension:taker",),
    ]


BREAKS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "import": ("raise ValueError('broken')", {}, "raised ValueError: broken"),
    "is_enabled": (
        "\n    def is_enabled(self):\n        raise KeyError('x')\n",
        {"dynamic": ["is_enabled"]},
        "'is_enabled' raised KeyError",
    ),
    "no bool": (
        "\n    def is_enabled(self):\n        return 'yes'\n",
        {"dynamic": ["is_enabled"]},
        "must return True, False or None",
    ),
    "get_tags": (
        "\n    def get_tags(self):\n        raise KeyError('x')\n",
        {"dynamic": ["get_tags"]},
        "'get_tags' raised KeyError",
    ),
    "binding": ("\n    def init(self, *, odd):\n        pass\n", {}, "'odd'"),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_plugin_that_breaks_is_set_aside_and_the_decision_made_without_it(
    world: World, case: str
) -> None:
    body, more, words = BREAKS[case]
    world.add("broken", body=body, provides_tags=["from-broken"], **more)
    world.add("healthy")
    world.add("dependent", required_tags=["from-broken"])
    found = world.resolve()
    assert names(found) == ["healthy"]
    assert state(found, "broken")[0] == "failed"
    assert words in state(found, "broken")[1]
    assert state(found, "dependent")[0] == "gated"


def test_plugins_are_ordered_within_their_role(world: World) -> None:
    world.add("late", after=["early"])
    world.add("early", priority=-1)
    world.add("first", priority=5)
    world.add("a_feature", "feature")
    found = world.resolve()
    assert names(found) == ["first", "early", "late"]
    (finalize,) = [o for o in found.hook_orders() if o.role == "extension"]
    assert [(p.name, p.why) for p in finalize.plugins] == [
        ("first", "priority 5"),
        ("early", "priority -1"),
        ("late", "after early"),
    ]
    assert [order.role for order in found.hook_orders()] == [
        "provider",
        "provider",
        "extension",
        "feature",
    ]


def test_contradictions_are_errors(world: World) -> None:
    world.add("a", after=["b"])
    world.add("b", after=["a"])
    with pytest.raises(OrderingError, match="a → b → a"):
        world.resolve()


def test_plugins_that_flip_are_an_error(world: World) -> None:
    world.add("flip", forbidden_tags=["flop"], provides_tags=["flop"])
    with pytest.raises(GatingError, match="extension:flip"):
        world.resolve()


def test_a_short_form_is_imported_asked_first_and_takes_part(world: World) -> None:
    body = (
        "\n    required_tags = ['absent']\n"
        "    def is_enabled(self, config):\n        return config.get('on')\n"
    )
    world.add("brief", body=body, descriptor={"entries": ["pkg_brief.plugin.Plugin"]})
    assert names(world.resolve(on=True)) == ["brief"]
    assert names(world.resolve(on=None)) == []
    assert names(world.resolve(on=False)) == []


def test_a_provider_that_cannot_be_used_is_an_error_with_its_cause(world: World) -> None:
    write_package(
        world.root,
        "pkg_main",
        descriptor=full("pkg_main", "provider", "main"),
        source="import gone_missing",
    )
    with pytest.raises(
        UnknownPluginError, match=r"'main' cannot be used.*'gone_missing'"
    ) as caught:
        world.resolve()
    assert "pip install" in caught.value.hint
    with pytest.raises(UnknownPluginError, match="no provider 'other'"):
        world.resolve(provider="other")


def test_settings_enable_and_force(world: World) -> None:
    world.add("off", default_enabled=False)
    world.add("unfit", required_tags=["absent"])
    world.settings = LoaderSettings(enabled=frozenset({"off"}), forced=frozenset({"unfit"}))
    assert names(world.resolve()) == ["off", "unfit"]


def test_forcing_never_overrides_the_contract_or_a_deny_list(world: World) -> None:
    old = {**full("pkg_old", "extension", "old"), "api": "<1"}
    write_package(world.root, "pkg_old", descriptor=old, source=POISON)
    world.poison("denied")
    world.settings = LoaderSettings(
        forced=frozenset({"old", "denied"}), deny=frozenset({"pkg_denied"})
    )
    found = world.resolve()
    assert names(found) == []
    assert state(found, "old")[0] == "incompatible"
    assert state(found, "denied")[0] == "disabled"


def test_the_same_decision_for_any_order_of_discovery(world: World) -> None:
    for name in ("c", "a", "b"):
        world.add(name, provides_tags=[name], priority=1 if name == "b" else 0)
    bundles = world.bundles()

    def decided(arrange: Callable[[list[Bundle]], list[Bundle]]) -> object:
        found = world.decide(build_catalog(arrange(bundles)))
        return found.gating, found.order, [(r.key, r.state) for r in found.catalog]

    assert decided(list) == decided(lambda given: given[::-1])
    assert decided(list) == decided(lambda given: given[2:] + given[:2])


def test_the_user_knows_more_of_a_model_than_its_provider(world: World) -> None:
    world.add("main", "provider", provides_tags=["supports_tools"])
    world.add("tools", required_tags=["supports_tools"])
    world.add("thoughts", required_tags=["supports_reasoning"])
    assert "supports_tools" in world.resolve().tags
    changed = world.resolve(add_tags=["supports_thinking"], remove_tags=["supports_tools"])
    assert [plugin.name for plugin in changed.plugins["extension"]] == ["thoughts"]
    assert "supports_tools" not in changed.tags


@pytest.mark.parametrize("key", ["add_tags", "remove_tags"])
def test_tags_that_are_no_list_are_refused(world: World, key: str) -> None:
    world.add("main", "provider")
    with pytest.raises(ConfigError, match=key):
        world.resolve(**{key: "supports_tools"})
