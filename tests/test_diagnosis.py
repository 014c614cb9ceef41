"""What ``plugins doctor`` finds: broken plugins, descriptors that mislead, habits that surprise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.catalog import LoaderSettings, build_catalog
from agent_host.plugins.inspect import doctor
from agent_host.plugins.inspect.doctor import examine
from agent_host.plugins.sources import bundles_of_sources
from making import POISON, full, write_package


@pytest.fixture(autouse=True)
def imports_are_undone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("pkg_"):
            del sys.modules[name]


HEAD = {
    "feature": "from agent_hookspecs import FeaturePlugin, hookimpl\n\n"
    "class Plugin(FeaturePlugin):\n    name = 'one'\n",
    "provider": "from agent_hookspecs import ProviderPlugin\n\n"
    "class Plugin(ProviderPlugin):\n    name = 'one'\n    def call_api(self): pass\n",
    "tool": "from agent_hookspecs import ToolPlugin\n\n"
    "class Plugin(ToolPlugin):\n    name = 'one'\n"
    "    def get_tool_schemas(self): pass\n    def execute_tool(self): pass\n",
}


def examined(tmp_path: Path, settings: LoaderSettings | None = None) -> list[tuple[str, str]]:
    bundles = bundles_of_sources([f"path:{tmp_path}"], base=tmp_path, cache=None)
    return [(f.level, f.message) for f in examine(build_catalog(bundles, settings))]


def findings(
    tmp_path: Path, body: str, role: str = "feature", **more: Any
) -> list[tuple[str, str]]:
    descriptor = full("pkg_one", role, "one", **more)
    write_package(tmp_path, "pkg_one", descriptor=descriptor, source=HEAD[role] + body)
    return examined(tmp_path)


AGREEING: list[tuple[str, str, dict[str, Any]]] = [
    ("feature", "    def init(self, state): return state\n", {}),
    ("feature", "    required_tags = ['a', 'b']\n", {"required_tags": ["b", "a"]}),
    ("feature", "    def is_enabled(self): return True\n", {"dynamic": ["is_enabled"]}),
    ("feature", "    def get_tags(self): return ['t']\n", {"provides_tags": ["t"]}),
    ("feature", "", {"required_tags": ["only-in-the-descriptor"], "priority": 4}),
    ("feature", "    def get_models(self, models): return models\n", {}),
    ("provider", "    def get_models(self): return []\n", {"dynamic": ["get_models"]}),
    (
        "provider",
        "    def models_request(self): pass\n    def parse_models(self, body): pass\n",
        {"dynamic": ["get_models"]},
    ),
    ("provider", "    requires_api_key = True\n", {"requires_api_key": True}),
    ("tool", "    effects = {'t': 'read'}\n", {"tools": {"t": "read"}}),
]


@pytest.mark.parametrize(("role", "body", "more"), AGREEING)
def test_a_plugin_that_agrees_with_its_descriptor_is_left_in_peace(
    tmp_path: Path, role: str, body: str, more: dict[str, Any]
) -> None:
    assert findings(tmp_path, body, role, **more) == []


DISAGREEING: list[tuple[str, str, dict[str, Any], str]] = [
    ("feature", "    required_tags = ['a']\n", {}, "required_tags is ['a'] in the class but []"),
    (
        "feature",
        "    def forbidden_tags(self): return ['a']\n",
        {"forbidden_tags": ["b"]},
        "forbidden_tags is ['a'] in the class but ['b']",
    ),
    (
        "feature",
        "    def is_enabled(self): return True\n",
        {},
        "the class has is_enabled, but 'dynamic'",
    ),
    (
        "feature",
        "    def get_tags(self): return ['x']\n",
        {"provides_tags": ["t"]},
        "the class has get_tags, but 'dynamic' does not name it",
    ),
    (
        "feature",
        "    def get_tags(self): raise OSError\n",
        {"provides_tags": ["t"]},
        "has get_tags",
    ),
    (
        "feature",
        "",
        {"dynamic": ["is_enabled"]},
        "'dynamic' names is_enabled, but the class does not",
    ),
    ("feature", "", {"dynamic": ["get_config_schema"]}, "'dynamic' names get_config_schema"),
    ("provider", "", {"dynamic": ["get_models"]}, "'dynamic' names get_models"),
    ("provider", "    def get_models(self): return []\n", {}, "the class has get_models, but"),
    (
        "provider",
        "    def models_request(self): pass\n    def parse_models(self, body): pass\n",
        {},
        "the class has models_request, but 'dynamic' does not name get_models",
    ),
    (
        "provider",
        "    def models_request(self): pass\n",
        {"dynamic": ["get_models"]},
        "'dynamic' names get_models, but the class does not have it",
    ),
    ("feature", "    priority = 3\n", {"priority": 1}, "priority is 3 in the class but 1"),
    ("feature", "    after = ['x']\n", {}, "after is ['x'] in the class but []"),
    (
        "feature",
        "    default_enabled = False\n",
        {},
        "default_enabled is False in the class but True",
    ),
    ("feature", "    priority = 'high'\n", {}, "priority is 'high'"),
    ("provider", "    requires_api_key = True\n", {}, "requires_api_key is True in the class"),
    (
        "tool",
        "    effects = {'t': 'write'}\n",
        {"tools": {"t": "read"}},
        "effects is {'t': 'write'}",
    ),
    ("feature", "    priority = property(lambda self: 1 / 0)\n", {}, "raised ZeroDivisionError"),
]


@pytest.mark.parametrize(("role", "body", "more", "words"), DISAGREEING)
def test_a_descriptor_that_disagrees_with_its_code_is_a_problem(
    tmp_path: Path, role: str, body: str, more: dict[str, Any], words: str
) -> None:
    ((level, message),) = findings(tmp_path, body, role, **more)
    assert level == "problem"
    assert words in message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    def init(self, settings, state): return state\n", "bound by position"),
        (
            "    def initialise_request(self, native_messages, state): pass\n",
            "did you mean 'initialize_request'?",
        ),
        (
            "    priority = 1\n    @hookimpl(tryfirst=True)\n    def init(self): pass\n",
            "'init' is marked tryfirst or trylast, which only breaks ties",
        ),
    ],
)
def test_a_habit_that_may_surprise_is_a_warning(tmp_path: Path, body: str, words: str) -> None:
    more: dict[str, Any] = {"priority": 1} if "priority" in body else {}
    ((level, message),) = findings(tmp_path, body, **more)
    assert level == "warning"
    assert words in message


def test_a_misspelt_key_is_a_warning_with_the_one_that_was_meant(tmp_path: Path) -> None:
    ((level, message),) = findings(tmp_path, "", required_tag=["x"])
    assert (level, message) == (
        "warning",
        "unknown key 'entries[0].required_tag'; did you mean 'required_tags'?",
    )


def test_a_cycle_is_a_warning_since_they_may_never_meet(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        source = HEAD["feature"].replace("'one'", repr(name))
        descriptor = full(f"pkg_{name}", "feature", name, after=[other])
        write_package(tmp_path, f"pkg_{name}", descriptor=descriptor, source=source)
    ((level, message),) = examined(tmp_path)
    assert level == "warning"
    assert "a → b → a" in message


def test_disabled_plugins_are_left_alone(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_one", descriptor=full("pkg_one", "tool", "one"), source=POISON)
    assert examined(tmp_path, LoaderSettings(deny=frozenset({"pkg_one"}))) == []
    assert "a plugin was imported" in examined(tmp_path)[0][1]


def test_incompatible_plugins_are_problems_and_not_imported(tmp_path: Path) -> None:
    descriptor = {**full("pkg_one", "tool", "one"), "api": ">=9"}
    write_package(tmp_path, "pkg_one", descriptor=descriptor, source=POISON)
    ((level, message),) = examined(tmp_path)
    assert level == "problem"
    assert "made for contract >=9" in message


def test_short_forms_are_examined_too(tmp_path: Path) -> None:
    descriptor = {"entries": ["pkg_one.plugin.Plugin"]}
    write_package(tmp_path, "pkg_one", descriptor=descriptor, source=HEAD["feature"])
    assert examined(tmp_path) == []


@pytest.mark.parametrize(
    "body",
    [
        "    @property\n    def priority(self): raise SystemExit(0)\n",
        "    @property\n    def label(self): import sys; sys.exit(0)\n",
        "    def get_config_schema(self): raise SystemExit(0)\n",
    ],
)
def test_a_plugin_that_exits_when_it_is_asked_is_a_problem(tmp_path: Path, body: str) -> None:
    ((level, message), *_) = findings(tmp_path, body)
    assert level == "problem"
    assert "SystemExit" in message


def test_an_import_that_hangs_is_a_problem_and_the_others_are_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LOAD_SECONDS", 0.5)
    hanging = "import threading\nthreading.Event().wait()\n"
    write_package(
        tmp_path, "pkg_hangs", descriptor=full("pkg_hangs", "feature", "hangs"), source=hanging
    )
    found = findings(tmp_path, "    def get_tags(self): raise SystemExit(0)\n")
    assert any("takes more than 0.5 s" in message for _, message in found)
    assert len(found) == 2
