"""The suites: every check says what it asks and where, and turns red for what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import agent_host_testing
from agent_host_testing import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    ToolConformance,
    Violation,
)
from agent_host_testing.suites.checking import Conformance, checks_of, contract_of

ROOT = Path(__file__).resolve().parents[3]
SUITES: list[type[Conformance]] = [
    ProviderConformance,
    ExtensionConformance,
    FeatureConformance,
    ToolConformance,
]
NUMBERS = count()


def checks() -> list[Any]:
    return [
        pytest.param(suite, name, id=f"{suite.__name__}.{name}")
        for suite in SUITES
        for name in checks_of(suite)
    ]


def headings(page: Path) -> Iterator[str]:
    """The anchors of a page, as they are made from its headings."""
    for line in page.read_text("utf-8").splitlines():
        if found := re.match(r"#+ (.*)", line):
            yield re.sub(r"[^\w\- ]", "", found[1].lower()).replace(" ", "-")


def test_public_names_are_those_of_their_modules() -> None:
    for name in agent_host_testing.__all__:
        assert getattr(agent_host_testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        agent_host_testing.nothing  # noqa: B018


@pytest.mark.parametrize(("suite", "name"), checks())
def test_every_check_says_what_it_asks_and_where(suite: type[Conformance], name: str) -> None:
    contract = contract_of(getattr(suite, name))
    assert contract is not None
    assert contract.sentence.endswith(".")
    page, _, anchor = contract.where.partition("#")
    if not (ROOT / "docs").exists():
        pytest.skip("the docs are not here")
    assert anchor in headings(ROOT / page), f"{page} has no heading for #{anchor}"


@pytest.mark.parametrize("suite", SUITES)
def test_every_test_of_a_suite_is_a_check(suite: type[Conformance]) -> None:
    methods = [name for name in dir(suite) if name.startswith("test")]
    assert sorted(methods) == sorted(checks_of(suite))


# Plugins that break one rule each, and the check that must see it.

EXTENSION = """
from agent_hookspecs import AccumulatorExtensionMixin, ProviderExtensionPlugin, accumulate_reasoning


class Plugin(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    name = "subject"
    required_tags = ("provider:echo",)

    def init(self, config, state):
        return {**state, "subject": 1}

    def initialize_request(self, native_messages, state):
        state["request"].setdefault("payload", {})["thinking"] = True
        return native_messages, state

    def process_delta(self, delta, accumulated):
        return accumulate_reasoning(delta, accumulated)

    def finalize(self, final_messages, native_messages, state):
        return final_messages, native_messages, state

    def to_native_messages(self, messages, native_messages):
        if len(messages) != len(native_messages):
            return native_messages
        return [{**native, "thinking": True} for native in native_messages]

    def from_native_messages(self, native_messages, messages):
        if len(messages) != len(native_messages):
            return messages
        return [{**m, "metadata": {**m["metadata"], "thinking": True}} for m in messages]
"""
CHUNK = """
    def process_chunk(self, native_chunk, partial_messages, final_messages, native_messages, state):
        {}
        return partial_messages, final_messages, native_messages, state
"""
FEATURE = """
from agent_hookspecs import FeaturePlugin


class Plugin(FeaturePlugin):
    name = "subject"
    required_tags = ("provider:echo",)

    def init(self, config, state):
        return state

    def initialize_request(self, native_messages, state):
        return native_messages, state

    def finalize(self, final_messages, native_messages, state):
        return final_messages, native_messages, state

    def get_actions(self):
        return [{"id": "subject_act", "label": "Act", "inputs": {}}]

    def execute_action(self, action_id):
        return {"session_metadata": {"acted": True}}
"""
TOOL = """
from agent_hookspecs import ToolPlugin, UnknownToolError


class Plugin(ToolPlugin):
    name = "subject"
    effects = {"shout": "read"}

    def init(self, config):
        return {"open": True}

    def get_tool_schemas(self):
        properties = {"text": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["text"]}
        return [{"name": "shout", "description": "Say it loud.", "parameters": parameters}]

    def execute_tool(self, tool_name, payload, state, context):
        if tool_name != "shout":
            raise UnknownToolError(f"no tool {tool_name}", tool=tool_name)
        assert state["open"]
        return payload["text"].upper()

    def close(self, state):
        state["open"] = False
"""
TAGS = ', "required_tags": ["provider:echo"]'
SOURCES: dict[str, tuple[str, str, type[Any]]] = {
    "extension": (EXTENSION, TAGS, ExtensionConformance),
    "feature": (FEATURE, TAGS, FeatureConformance),
    "tool": (TOOL, ', "tools": {"shout": "read"}', ToolConformance),
}


def red_checks(role: str, folder: Path, old: str, new: str) -> set[str]:
    """The checks that fail for a plugin of that role whose source was changed."""
    source, more, suite = SOURCES[role]
    package = f"subject_{role}_{next(NUMBERS)}"
    descriptor = (
        f'{{"api": ">=1,<2", "entries": [{{"entry": "{package}.plugin:Plugin", '
        f'"role": "{role}", "name": "subject"{more}}}]}}'
    )
    assert old in source or old in descriptor
    place = folder / package
    place.mkdir()
    (place / "__init__.py").write_text("", encoding="utf-8")
    (place / "plugin.py").write_text(source.replace(old, new) if old else source, encoding="utf-8")
    text = descriptor.replace(old, new) if old and old not in source else descriptor
    (place / "agent_plugin.json").write_text(text, encoding="utf-8")
    told = f'''
from agent_host_testing import {suite.__name__}

SAMPLES = {{"shout": {{"text": "hi"}}}}


class TestSubject({suite.__name__}):
    package = "{package}"
    plugin = "subject"
    folder = {str(folder)!r}
    also = ("agent_host_echo",)
    wire = "openai.chat"
    samples = SAMPLES
'''
    file = folder / f"test_{package}.py"
    file.write_text(told, encoding="utf-8")
    failed: set[str] = set()

    class Noting:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.add(report.nodeid.rpartition("::")[2].partition("[")[0])

    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # Its own rootdir, so that neither the options nor the paths of this repository apply.
    options += ["-c", str(folder / "none.ini"), "--rootdir", str(folder), "--import-mode=importlib"]
    (folder / "none.ini").write_text("[pytest]\n", encoding="utf-8")
    assert pytest.main([*options, str(file)], plugins=[Noting()]) in (0, 1)
    return failed


@pytest.mark.parametrize("role", SOURCES)
def test_a_plugin_that_keeps_the_rules_passes(role: str, tmp_path: Path) -> None:
    assert red_checks(role, tmp_path, "", "") == set()


@pytest.mark.parametrize(
    ("role", "old", "new", "red"),
    [
        (
            "extension",
            '{**state, "subject": 1}',
            '{k: v for k, v in state.items() if k != "another_plugin"}',
            "test_init_keeps_the_state",
        ),
        (
            "extension",
            '.setdefault("payload", {})["thinking"] = True',
            '["payload"] = {"thinking": True}',
            "test_request_is_decorated",
        ),
        (
            "extension",
            "    def process_delta",
            CHUNK.format("native_chunk['choices']") + "\n    def process_delta",
            "test_no_chunk_is_tolerated",
        ),
        (
            "extension",
            "    def process_delta",
            CHUNK.format('state["partial"] = native_chunk and {"content": "So far."}')
            + "\n    def process_delta",
            "test_partial_is_merged",
        ),
        (
            "extension",
            "    def process_delta",
            CHUNK.format('partial_messages = [{"content": "new"} for _ in partial_messages]')
            + "\n    def process_delta",
            "test_partial_messages_are_patched",
        ),
        (
            "extension",
            "    def process_delta",
            CHUNK.format("native_chunk and native_messages.append(native_chunk)")
            + "\n    def process_delta",
            "test_history_is_passed_on",
        ),
        (
            "extension",
            "    def process_delta",
            "    seen = 0\n"
            + CHUNK.format(
                "self.seen += bool(native_chunk)\n        if native_chunk:\n            "
                'state["partial"] = {**(state["partial"] or {}), "seen": self.seen}'
            )
            + "\n    def process_delta",
            "test_requests_do_not_see_each_other",
        ),
        (
            "extension",
            "        return final_messages, native_messages, state",
            "        return final_messages, native_messages[-1:], state",
            "test_finalize_keeps_the_history",
        ),
        (
            "extension",
            '{**native, "thinking": True}',
            '{"role": native["role"], "content": native["content"]}',
            "test_natives_keep_what_is_not_mapped",
        ),
        (
            "extension",
            '{**m["metadata"], "thinking": True}',
            '{"thinking": True}',
            "test_messages_keep_what_is_not_mapped",
        ),
        (
            "extension",
            "            return native_messages\n",
            "            return []\n",
            "test_lists_of_other_lengths_are_passed_on",
        ),
        ("extension", TAGS, ', "required_tags": ["other"]', "test_descriptor_equals_code"),
        (
            "extension",
            "\n\nclass",
            "\n\nopen(__file__ + 'x', 'w').close()\n\n\nclass",
            "test_import_does_no_work",
        ),
        (
            "feature",
            "        return state\n",
            '        return {"config": config, "request": state["request"]}\n',
            "test_init_keeps_the_state",
        ),
        (
            "feature",
            "        return native_messages, state\n",
            '        state["request"]["payload"] = {}\n        return native_messages, state\n',
            "test_request_is_decorated",
        ),
        (
            "feature",
            "return final_messages, native_messages, state",
            "return final_messages, native_messages[-1:], state",
            "test_finalize_keeps_the_history",
        ),
        (
            "feature",
            '{"session_metadata": {"acted": True}}',
            '{"saved": True}',
            "test_actions_change_nothing_themselves",
        ),
        ("tool", '"description": "Say it loud."', '"description": ""', "test_schemas"),
        (
            "tool",
            "            raise UnknownToolError",
            "            return 'fine'\n            raise UnknownToolError",
            "test_unknown_tools",
        ),
        ("tool", 'return payload["text"].upper()', 'return payload["txet"]', "test_samples_run"),
        ("tool", '        state["open"] = False', "        state.shut()", "test_close"),
        (
            "tool",
            '        return {"open": True}',
            '        self.state = getattr(self, "state", None) or {"open": True}\n'
            "        return self.state",
            "test_close",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("test_") else "",
)
def test_a_broken_rule_turns_its_check_red(
    role: str, old: str, new: str, red: str, tmp_path: Path
) -> None:
    assert red_checks(role, tmp_path, old, new) == {red}


def test_a_suite_that_says_too_little_is_told_so() -> None:
    class TestNothing(ToolConformance):
        plugin = "x"

    suite = TestNothing()
    suite.servers = []
    with pytest.raises(Violation, match="must say its 'package'"):
        suite.test_effects()


def test_a_plugin_that_is_not_there_is_told_with_those_that_are() -> None:
    class TestElsewhere(ToolConformance):
        package = "agent_host_echo"
        plugin = "elsewhere"

    suite = TestElsewhere()
    suite.servers = []
    with pytest.raises(Violation, match="has no tool 'elsewhere'; there is provider:echo"):
        suite.test_descriptor_equals_code()
