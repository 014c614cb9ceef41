"""Plugins without a descriptor: found, listed, shown, checked and run like all others."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import SourceError
from agent_host.plugins.single_file import read_plugin_file
from agent_host.plugins.sources import bundles_of_sources
from making import POISON, Run, entry_points, run_host, write_metadata, write_package

PROVIDER = """
from agent_hookspecs import ProviderPlugin

class Parrot(ProviderPlugin):
    name = "parrot"
    label = "Parrot"

    def call_api(self, native_messages, state):
        final = {"role": "assistant", "content": "said " + native_messages[-1]["content"]}
        return [], [final], [*native_messages, final], state
"""
PYPROJECT = """
[build-system]
requires = ["hatchling"]
[project]
name = "acme"
description = "d"
readme = "README.md"
license = "MIT"
requires-python = ">=3.10"
dependencies = ["agent-hookspecs>=0.1"]
[project.entry-points."agent_host.plugins"]
acme = "pkg_parrot.plugin:Parrot"
"""


def tree(root: Path, source: str = PROVIDER, pyproject: str = PYPROJECT) -> Path:
    """A source tree whose entry point names a class."""
    write_package(root / "src", "pkg_parrot", source=source)
    (root / "pyproject.toml").write_text(pyproject)
    return root


def wheel(folder: Path) -> Path:
    file = folder / "acme-1.0-py3-none-any.whl"
    info = "acme-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\nSummary: d\n"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("pkg_parrot/__init__.py", "")
        archive.writestr("pkg_parrot/py.typed", "")
        archive.writestr("pkg_parrot/plugin.py", PROVIDER)
        archive.writestr(f"{info}/METADATA", f"{metadata}Requires-Dist: agent-hookspecs>=0.1\n")
        points = entry_points({"acme": "pkg_parrot.plugin:Parrot"})
        archive.writestr(f"{info}/entry_points.txt", points)
        archive.writestr(f"{info}/RECORD", "")
    return file


def single(folder: Path, source: str = PROVIDER) -> Path:
    file = folder / "one_parrot.py"
    file.write_text(source)
    return file


@pytest.mark.parametrize("make", [tree, wheel, single])
def test_validate_takes_it_and_says_what_it_cannot_know(tmp_path: Path, make: Any) -> None:
    done: Run = run_host("plugins", "validate", str(make(tmp_path)), "--json")
    assert done.code == 0
    checks = done.json["checks"]
    assert [each["level"] for found in checks.values() for each in found].count("problem") == 0
    (finding,) = checks["descriptor and contract"]
    assert "has no agent_plugin.json" in finding["message"]
    assert "known only once it is imported" in finding["message"]


def test_validate_looks_at_the_packaging_of_a_wheel(tmp_path: Path) -> None:
    file = tmp_path / "acme-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel(tmp_path)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data.replace(b"Requires-Dist: agent-hookspecs>=0.1\n", b""))
    done = run_host("plugins", "validate", str(file))
    assert done.code == 1
    assert "does not depend on agent-hookspecs" in done.out


@pytest.mark.parametrize("make", [tree, single])
def test_it_runs_from_its_path(tmp_path: Path, make: Any) -> None:
    source = f"path:{make(tmp_path)}"
    (tmp_path / "c.json").write_text(f'{{"plugins": ["{source}"]}}')
    done = run_host("run", "--config", "c.json", "--provider", "parrot", "hello", cwd=tmp_path)
    assert (done.code, done.out.strip()) == (0, "said hello")


@pytest.mark.parametrize("make", [tree, single])
def test_list_shows_it_under_every_role_and_info_finds_it_by_its_name(
    tmp_path: Path, make: Any
) -> None:
    source = f"path:{make(tmp_path)}"
    for role in ("provider", "tool"):
        listed = run_host("plugins", "list", "--role", role, "--plugin", source, "--json").json
        (shown,) = [each for each in listed["plugins"] if each["source"] == source]
        assert shown["role"] is None
        assert shown["name"].endswith(":Parrot")
    found = run_host("plugins", "info", "parrot", "--plugin", source, "--json").json["plugins"]
    assert [(each["name"], each["role"]) for each in found] == [("parrot", "provider")]


def test_listing_imports_nothing(tmp_path: Path) -> None:
    file = single(tmp_path, POISON + PROVIDER)
    listed = run_host("plugins", "list", "--plugin", f"path:{file}")
    assert (listed.code, "one_parrot:Parrot" in listed.out) == (0, True)


def test_info_finds_what_is_installed_without_a_descriptor(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_parrot", source=PROVIDER)
    write_metadata(tmp_path, "acme", {"acme": "pkg_parrot.plugin:Parrot"})
    done = run_host("plugins", "info", "parrot", trees=[tmp_path])
    assert done.code == 0
    assert "Parrot" in done.out


def names_in(folder: Path, source: str) -> list[str]:
    entries = read_plugin_file(single(folder, source)).entries
    return [entry.entry.partition(":")[2] for entry in entries]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("class A(FeaturePlugin):\n name = 'a'\n", ["A"]),
        ("class A(specs.FeaturePlugin):\n name: str = 'a'\n", ["A"]),
        ("class B(ToolPlugin): pass\nclass A(B):\n name = 'a'\n", ["A"]),
        ("class B(ToolPlugin):\n name = 'b'\nclass A(B): pass\n", ["B", "A"]),
        ("class _A(ToolPlugin):\n name = 'a'\nclass C:\n name = 'c'\n", None),
        ("class A:\n role = 'tool'\n name = 'a'\n", ["A"]),
        ("@tool\ndef f(): ...\n@tool(effect='read')\nasync def g(): ...\ndef h(): ...", ["f", "g"]),
        ("import this_is_not_run\nif True:\n class A(ToolPlugin):\n  name = 'a'\n", None),
    ],
)
def test_the_plugins_of_a_file_are_found_without_running_it(
    tmp_path: Path, source: str, names: list[str] | None
) -> None:
    if names is None:
        with pytest.raises(SourceError, match="there is no plugin in"):
            names_in(tmp_path, source)
    else:
        assert names_in(tmp_path, source) == names


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("no-module.py", PROVIDER, "cannot be imported by that name"),
        ("broken.py", "class A(:", "is not Python"),
        ("json.py", PROVIDER, "would shadow"),
    ],
)
def test_a_file_that_cannot_be_a_plugin_says_why(
    tmp_path: Path, name: str, source: str, words: str
) -> None:
    (tmp_path / name).write_text(source)
    (bundle,) = bundles_of_sources([f"path:{name}"], base=tmp_path, cache=None)
    assert bundle.descriptor is None
    assert words in bundle.problem


def test_a_project_whose_metadata_cannot_be_read_says_why(tmp_path: Path) -> None:
    tree(tmp_path, pyproject="[project")
    (bundle,) = bundles_of_sources([f"path:{tmp_path}"], base=tmp_path, cache=None)
    assert "pyproject.toml cannot be read" in bundle.problem
