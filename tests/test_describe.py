"""``plugins describe``: what a descriptor takes from its classes, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.inspect.describe import render_descriptor
from making import full, install, run_host, write_package

PROVIDER = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "acme"
    label = "Acme"
    requires_api_key = True

    def init(self, config):
        return {"config": config}

    def get_tags(self, config, models):
        return ["provider:acme"]

    def get_config_schema(self):
        print("asked")
        return {"model": {"type": "string", "required": True}, "depth": {"enum": (1, 2)}}

    def call_api(self, native_messages, state):
        return [], [], native_messages, state
"""

TOOL = """
from agent_hookspecs import ToolPlugin


class Plugin(ToolPlugin):
    name = "acme"
    default_enabled = False
    priority = 3
    after = ("other",)
    required_plugins = ("feature:guide",)
    effects = {"look": "read"}

    def get_tool_schemas(self, config):
        return []

    def execute_tool(self, tool_name, payload):
        return tool_name
"""


def project(root: Path, source: str, descriptor: dict[str, Any]) -> Path:
    """The descriptor's file in a source folder."""
    folder = write_package(root / "src", "pkg_acme", descriptor=descriptor, source=source)
    return folder / "agent_plugin.json"


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def test_what_the_class_says_is_put_into_the_file_and_the_rest_is_left(tmp_path: Path) -> None:
    entry = {
        "name": "acme",
        "entry": "pkg_acme.plugin:Plugin",
        "role": "provider",
        "key_variable": "ACME_KEY",
        "description": "Mine.",
        "futur": 1,
        "config_schema": {"old": {}},
    }
    file = project(tmp_path, PROVIDER, {"api": ">=1,<2", "entries": [entry], "note": "kept"})
    run = run_host("plugins", "describe", "--write", str(tmp_path))
    assert run.code == 0
    assert run.out.startswith(f"{file}: 4 changes\n")
    written = read(file)
    assert list(written) == ["api", "entries", "note"]
    (made,) = written["entries"]
    assert made == {
        **entry,
        "label": "Acme",
        "dynamic": ["get_tags"],
        "requires_api_key": True,
        "config_schema": {
            "model": {"type": "string", "required": True},
            "depth": {"enum": [1, 2]},
        },
    }
    assert [key for key in made if key in entry] == list(entry)
    again = run_host("plugins", "describe", "--check", str(tmp_path))
    assert (again.code, again.out) == (0, f"{file}: agrees\n")


def test_a_tool_says_its_effects_and_its_place(tmp_path: Path) -> None:
    file = project(tmp_path, TOOL, full("pkg_acme", "tool", "acme"))
    run_host("plugins", "describe", "--write", str(tmp_path))
    (made,) = read(file)["entries"]
    assert made == {
        "entry": "pkg_acme.plugin:Plugin",
        "role": "tool",
        "name": "acme",
        "required_plugins": ["feature:guide"],
        "after": ["other"],
        "priority": 3,
        "default_enabled": False,
        "tools": {"look": "read"},
    }


def test_a_short_form_becomes_a_full_one(tmp_path: Path) -> None:
    file = project(tmp_path, PROVIDER, {"entries": ["pkg_acme.plugin:Plugin"]})
    assert run_host("plugins", "describe", "--check", str(tmp_path)).code == 1
    assert run_host("plugins", "describe", "--write", str(tmp_path)).code == 0
    (made,) = read(file)["entries"]
    assert list(made) == [
        "entry",
        "role",
        "name",
        "label",
        "dynamic",
        "requires_api_key",
        "config_schema",
    ]
    assert run_host("plugins", "describe", "--check", str(tmp_path)).code == 0


def test_a_package_for_another_contract_is_told_so_and_not_that_its_class_is_wrong(
    tmp_path: Path,
) -> None:
    descriptor = full("pkg_acme", "tool", "acme", tools={"look": "write"})
    project(tmp_path, "class Plugin: pass\n", {**descriptor, "api": ">=7"})
    run = run_host("plugins", "describe", "--check", str(tmp_path))
    assert run.code == 1
    assert "made for contract >=7" in " ".join(run.err.split())
    assert "role" not in run.err


def test_a_check_lists_what_differs_and_changes_nothing(tmp_path: Path) -> None:
    file = project(tmp_path, TOOL, full("pkg_acme", "tool", "acme", tools={"look": "write"}))
    before = file.read_bytes()
    run = run_host("plugins", "describe", "--check", str(tmp_path))
    assert run.code == 1
    assert "tool:acme: effects is {'look': 'read'} in the class" in " ".join(run.out.split())
    assert f"agent-host plugins describe --write {tmp_path}" in run.out
    assert file.read_bytes() == before


def test_a_file_that_agrees_is_not_written_anew(tmp_path: Path) -> None:
    described = full("pkg_acme", "tool", "acme", tools={"look": "read"}, priority=3)
    described["entries"][0] |= {"default_enabled": False, "after": ["other"]}
    described["entries"][0]["required_plugins"] = ["feature:guide"]
    file = project(tmp_path, TOOL, described)
    before = file.read_bytes()
    run = run_host("plugins", "describe", "--write", str(tmp_path))
    assert (run.code, run.out) == (0, f"{file}: unchanged\n")
    assert file.read_bytes() == before


def test_without_an_option_it_is_printed(tmp_path: Path) -> None:
    file = project(tmp_path, TOOL, full("pkg_acme", "tool", "acme"))
    printed = run_host("plugins", "describe", str(tmp_path))
    assert printed.code == 0
    shown = run_host("plugins", "describe", str(tmp_path), "--json").json["descriptors"][0]
    assert json.loads(printed.out) == shown["descriptor"]
    assert shown["file"] == str(file)
    assert shown["agrees"] is False
    assert len(shown["differences"]) == 5


def test_an_installed_distribution_is_checked_and_never_written(tmp_path: Path) -> None:
    install(tmp_path, "one", "feature")
    where = {"trees": [tmp_path]}
    assert run_host("plugins", "describe", "--check", "dist-one", **where).code == 0
    refused = run_host("plugins", "describe", "--write", "dist-one", **where)
    assert refused.code == 2
    assert "needs a source folder" in refused.err


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ValueError('broken')", "importing 'pkg_acme.plugin' failed"),
        (
            PROVIDER.replace('print("asked")', "raise ValueError('no config')"),
            "hook 'get_config_schema' raised ValueError: no config",
        ),
        (PROVIDER.replace("(1, 2)", "{1, 2}"), "cannot be written as JSON"),
    ],
)
def test_a_class_that_cannot_be_asked_is_an_error(tmp_path: Path, source: str, words: str) -> None:
    file = project(tmp_path, source, full("pkg_acme", "provider", "acme"))
    before = file.read_bytes()
    run = run_host("plugins", "describe", "--write", str(tmp_path))
    assert run.code == 1
    assert words in run.err
    assert file.read_bytes() == before


def test_writing_and_checking_exclude_each_other(tmp_path: Path) -> None:
    run = run_host("plugins", "describe", "--write", "--check", str(tmp_path))
    assert run.code == 2


def test_a_folder_without_a_descriptor_is_an_error(tmp_path: Path) -> None:
    run = run_host("plugins", "describe", str(tmp_path))
    assert run.code == 1
    assert "there is no agent_plugin.json" in run.err


def test_what_fits_in_a_line_stands_in_one() -> None:
    document = {
        "tags": ["a", "b"],
        "settings": {"one": {"type": "string"}, "two": {}},
        "long": ["x" * 60, "y" * 60],
        "none": {},
        "text": "ü",
    }
    text = render_descriptor(document)
    assert json.loads(text) == document
    assert text.splitlines() == [
        "{",
        '  "tags": ["a", "b"],',
        '  "settings": {',
        '    "one": {"type": "string"},',
        '    "two": {}',
        "  },",
        '  "long": [',
        f'    "{"x" * 60}",',
        f'    "{"y" * 60}"',
        "  ],",
        '  "none": {},',
        '  "text": "ü"',
        "}",
    ]
