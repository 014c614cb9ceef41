"""What ``plugins explain`` says is what a run does: one resolution, compared over many configs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from making import EXTENSION, FEATURE, full, install, run_host, run_python, write_package

#: A provider whose tags follow the model and the settings, and that answers by itself.
MAIN = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = {name!r}

    def get_models(self, config):
        return [{{"id": "small"}}, {{"id": "large"}}]

    def get_tags(self, config, models):
        tags = ["provider:" + self.name, "wire:own"]
        if config.get("model") == "large":
            tags += ["supports_tools", "supports_reasoning"]
        return tags + (["quirk:slow"] if config.get("slow") else [])

    def init(self, config):
        return {{"config": config, "request": {{}}}}

    def call_api(self, native_messages, state):
        answer = {{"role": "assistant", "content": "done"}}
        return [], [answer], [*native_messages, answer], state
"""

#: It writes down what a run really has: its tags, and the tools on offer.
WITNESS = """
import json, os
from agent_hookspecs import FeaturePlugin


class Plugin(FeaturePlugin):
    name = "witness"

    def initialize_request(self, state, native_messages, context):
        with open(os.environ["WITNESS"], "w") as file:
            tools = [each.get("name") or each["function"]["name"] for each in
                     context["config"].get("tools", ())]
            json.dump({"tags": sorted(context["tags"]), "tools": tools}, file)
        return native_messages, state
"""

MARKED = """
from agent_hookspecs import ProviderExtensionPlugin, hookimpl


class Plugin(ProviderExtensionPlugin):
    name = {name!r}

    @hookimpl({mark}=True)
    def finalize(self, final_messages, native_messages, state):
        return final_messages, native_messages, state
"""

ASKED = """
    def is_enabled(self, config, tags):
        return bool(config.get("parallel_tool_calls")) or "quirk:slow" in tags

    def get_tags(self, config):
        return ["from:asked"]
"""

TOOLS = """
from agent_hookspecs.authoring import tool, tools


@tool(effect="read")
def look() -> str:
    \"\"\"Look.\"\"\"
    return "seen"


@tool(effect="write")
def touch() -> str:
    \"\"\"Touch.\"\"\"
    return "touched"


Plugin = tools(look, touch, name="bench")
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two providers, extensions of every habit, collisions, and what is broken."""
    root = tmp_path_factory.mktemp("explain")
    folder = root / "tree"
    dynamic = ["get_models", "get_tags"]
    for name in ("main", "other"):
        install(folder, name, "provider", source=MAIN.format(name=name), dynamic=dynamic)
    install(folder, "witness", "feature", source=WITNESS)
    install(folder, "plain")
    install(folder, "early", priority=9)
    install(folder, "late", after=["plain", "early"], provides_tags=["from:late"])
    install(folder, "third", required_tags=["from:late"], provides_tags=["from:third"])
    install(folder, "fourth", required_tags=["from:third"], before=["plain"])
    install(folder, "able", required_tags=["supports_tools"])
    install(folder, "unable", forbidden_tags=["supports_tools"])
    install(folder, "audit", "feature", default_enabled=False)
    install(folder, "mine", required_tags=["provider:main"])
    for mark in ("tryfirst", "trylast"):
        install(folder, mark, source=MARKED.format(name=mark, mark=mark))
    source = EXTENSION.format(name="asked") + ASKED
    install(folder, "asked", source=source, dynamic=["is_enabled", "get_tags"])
    install(folder, "broken", source="raise ValueError('broken')")
    install(folder, "unreadable", descriptor=b"{")
    for owner in ("one", "two"):
        described = full(f"pkg_{owner}", "extension", "shared")
        install(folder, owner, descriptor=described, source=EXTENSION.format(name="shared"))
    described = full("pkg_bench", "tool", "bench", tools={"look": "read", "touch": "write"})
    install(folder, "bench", "tool", descriptor=described, source=TOOLS)
    sourced = full("pkg_sourced", "feature", "sourced", provides_tags=["from:source"])
    write_package(
        root / "sources",
        "pkg_sourced",
        descriptor=sourced,
        source=FEATURE.format(name="sourced"),
    )
    return root


DEFAULT = {"agents": {"default": {"provider": "main"}}}

#: Each config with the options that both commands get.
CONFIGS: dict[str, tuple[Mapping[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "a provider by option": ({}, ["--provider", "main"]),
    "a model that gives tags": ({}, ["--provider", "main", "--model", "large"]),
    "a model that gives none": ({}, ["--provider", "main", "--model", "small"]),
    "an agent": (DEFAULT, []),
    "another agent": (
        {"agents": {"a": {"provider": "other", "model": "large"}}},
        ["--agent", "a"],
    ),
    "one alias alone": ({"providers": {"x": {"provider": "main", "model": "large"}}}, []),
    "an alias by option": (
        {
            "providers": {"x": {"provider": "main", "model": "large"}, "y": {"provider": "other"}},
            "agents": {"default": {"provider": "y"}},
        },
        ["--provider", "x"],
    ),
    "a deny list": ({**DEFAULT, "denied_plugins": ["late", "bench"]}, []),
    "an allow list": ({**DEFAULT, "allowed_plugins": ["main", "plain", "witness", "early"]}, []),
    "a path source": ({**DEFAULT, "plugins": ["path:sources"]}, []),
    "an enabled plugin": ({**DEFAULT, "enabled_plugins": ["audit"]}, []),
    "a forced plugin": ({**DEFAULT, "force_enabled_plugins": ["able", "asked"]}, []),
    "a settled collision": ({**DEFAULT, "prefer_plugins": {"extension:shared": "dist-two"}}, []),
    "an agent with tool patterns": (
        {"agents": {"default": {"provider": "main", "tools": ["lo*"]}}},
        [],
    ),
    "tool patterns by option": (DEFAULT, ["--tools", "touch"]),
    "added and removed tags": (
        {
            "agents": {
                "default": {
                    "provider": "main",
                    "add_tags": ["supports_tools"],
                    "remove_tags": ["from:late", "provider:main"],
                }
            }
        },
        [],
    ),
    "request defaults": ({**DEFAULT, "request_defaults": {"model": "large", "seed": 7}}, []),
    "a setting by option": (DEFAULT, ["--set", "slow=true"]),
    "settings that the loop adds": ({**DEFAULT, "tools": {"parallel": True}}, []),
    "plugins enabled by the request": (
        {"agents": {"default": {"provider": "main", "enabled_plugins": ["audit"]}}},
        [],
    ),
    "an environment of the config": (
        {
            "env": {"WHICH": "large"},
            "providers": {"x": {"provider": "main", "model": "${env:WHICH}"}},
        },
        [],
    ),
}

#: What a real run has, from pluggy's own managers; its options are read as the command reads them.
RUN = """
import json
from agent_host import AgentApplication
from agent_host.cli.run import run
from agent_hookspecs.specs import hooks_of

given = run.make_context("run", [*sys.argv[1:], "Hello"]).params
options = {key: given[key] for key in ("agent", "provider", "model", "settings")}
managers = {}
with AgentApplication(
    given["config_file"],
    on_manager=lambda manager: managers.setdefault(manager.role, []).append(manager),
) as app:
    answer = app.run("Hello", use_tools=given["tools"] or None, **options)
orders = {}
for role in ("provider", "extension", "feature", "tool"):
    # Each plugin has one for itself as well, also such as no stack has; that of the stack has all.
    manager = max(managers[role], key=lambda each: len(each.list_name_plugin()))
    # What the host itself registers has a name that no plugin can have.
    plugins = {name for name, _ in manager.list_name_plugin() if not name.startswith("<")}
    for hook in hooks_of(role):
        calls = reversed(getattr(manager.hook, hook).get_hookimpls())
        names = [call.plugin_name for call in calls if call.plugin_name in plugins]
        if names:
            orders[f"{role} {hook}"] = names
print(json.dumps(orders))
"""


def explained_orders(explained: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        f"{order['role']} {order['hook']}": [each["name"] for each in order["plugins"]]
        for order in explained["order"]
    }


@pytest.mark.parametrize("case", CONFIGS)
def test_explain_says_what_the_stack_of_a_run_is(tree: Path, tmp_path: Path, case: str) -> None:
    config, options = CONFIGS[case]
    file = tree / f"{re.sub('[^a-z]', '-', case)}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    arguments = ["--config", str(file), *options]
    where: dict[str, Any] = {
        "trees": [tree / "tree"],
        "cwd": tmp_path,
        "WITNESS": str(tmp_path / "seen.json"),
    }
    ran = run_python(RUN, *arguments, **where)
    said = run_host("plugins", "explain", "--json", *arguments, **where)
    assert said.code == 0, said.out
    assert ran.code == 0, ran.err
    assert ran.json == explained_orders(said.json)
    names = {f"{each['role']}:{each['name']}" for each in said.json["participants"]}
    assert names - {f"provider:{said.json['provider']}"} == set(said.json["enabled"])
    seen = json.loads((tmp_path / "seen.json").read_text("utf-8"))
    assert seen["tags"] == said.json["tags"]
    assert seen["tools"] == [
        each["name"] for each in said.json["tools"] if each["schema"] != "left out"
    ]


def draw(tree: Path, file: Path, *options: str) -> str:
    run = run_host("plugins", "explain", *options, "--graph", str(file), trees=[tree])
    assert run.code == 0, run.err
    return file.read_text("utf-8")


def shown_texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [each.text or "" for each in root.iter() if each.tag.endswith("}text")]


def test_a_graph_as_svg_shows_rounds_tags_and_the_order_of_every_hook(
    tree: Path, tmp_path: Path
) -> None:
    svg = draw(tree / "tree", tmp_path / "a.svg", "--provider", "main", "--model", "large")
    texts = shown_texts(svg)
    assert texts[0] == "main · large"
    for text in ("Provider", "Round 1", "Round 2", "Round 3", "Order of calls"):
        assert text in texts
    for text in ("able", "third", "from:late", "supports_tools", "finalize", "process_chunk"):
        assert (text in texts) is (text != "process_chunk"), text
    assert "feature:audit" in texts
    assert "--enable audit tries it" in texts


def test_a_graph_as_svg_stands_alone_on_light_and_dark_pages(tree: Path, tmp_path: Path) -> None:
    svg = draw(tree / "tree", tmp_path / "a.svg", "--provider", "main")
    root = ElementTree.fromstring(svg)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {
        *("svg", "title", "desc", "style", "g", "rect", "path", "circle", "text"),
    }
    assert "prefers-color-scheme:dark" in svg
    assert svg.count("http") == 1, "its namespace alone"
    assert "url(" not in svg
    width = float(root.attrib["width"])
    places = [float(each.attrib["x"]) for each in root.iter() if each.tag.endswith("}text")]
    assert min(places) > 0
    assert max(places) < width


def test_a_graph_as_mermaid_has_the_same_plugins_and_tags(tree: Path, tmp_path: Path) -> None:
    text = draw(tree / "tree", tmp_path / "a.mmd", "--provider", "main", "--model", "large")
    assert text.startswith("flowchart LR\n")
    for part in ('["Round 3"]', "able<br/>extension", '(["from:late"]):::tag', "finalize: "):
        assert part in text, part
    declared = set(re.findall(r"^\s*(?:subgraph )?(\w+)[\[(]", text, re.MULTILINE))
    for start, end in re.findall(r"^  (\w+) -\S*(?: loses \S+)? (\w+)$", text, re.MULTILINE):
        assert {start, end} <= declared


def test_foreign_text_cannot_break_out_of_a_graph(tmp_path: Path) -> None:
    evil = '</text><script>alert(1)</script>"];x --> y<br/>#quot;\x1b[2J'
    install(tmp_path / "tree", "main", "provider", provides_tags=[evil])
    install(tmp_path / "tree", "one", required_tags=[evil], provides_tags=["a:" + evil])
    svg = draw(tmp_path / "tree", tmp_path / "a.svg", "--provider", "main", "--model", evil)
    assert not [each for each in ElementTree.fromstring(svg).iter() if "script" in each.tag]
    text = draw(tmp_path / "tree", tmp_path / "a.mmd", "--provider", "main", "--model", evil)
    assert "<script>" not in text
    assert "\x1b" not in svg + text


def test_a_graph_of_another_ending_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    run = run_host("plugins", "explain", "--graph", str(tmp_path / "a.png"))
    assert run.code == 2
    assert ".svg or .mmd" in run.err
    run = run_host("plugins", "explain", "--graph", str(tmp_path / "no" / "a.svg"))
    assert run.code == 1
    assert "cannot be written" in run.err
