"""``plugins validate``: what it finds in a package, and that it finds nothing in a sound one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from making import FEATURE, full, install, run_host, write_package

PYPROJECT = """
[build-system]
requires = ["hatchling"]
[project]
name = "acme"
description = "d"
readme = "README.md"
license = "MIT"
requires-python = ">=3.10"
dependencies = [{dependencies}]
[project.entry-points."agent_host.plugins"]
acme = "{package}"
[project.optional-dependencies]
{extra}
"""


def project(
    root: Path,
    source: str = "",
    *,
    pyproject: str = PYPROJECT,
    dependencies: str = '"agent-hookspecs>=0.1"',
    package: str = "pkg_acme",
    extra: str = "",
    **entry: Any,
) -> Path:
    """A source tree with one feature; ``source`` is put before its class."""
    descriptor = full("pkg_acme", "feature", "acme", label="Acme", **entry)
    source = source + FEATURE.format(name="acme")
    folder = write_package(root / "src", "pkg_acme", descriptor=descriptor, source=source)
    (folder / "py.typed").touch()
    text = pyproject.format(dependencies=dependencies, package=package, extra=extra)
    (root / "pyproject.toml").write_text(text)
    return root


def findings(target: Path | str, *options: str, **where: Any) -> tuple[int, dict[str, list[str]]]:
    done = run_host("plugins", "validate", str(target), "--json", *options, **where)
    document = done.json
    assert document["valid"] is (done.code == 0)
    return done.code, {
        area: [finding["message"] for finding in found]
        for area, found in document["checks"].items()
    }


def test_nothing_is_wrong_with_a_sound_package(tmp_path: Path) -> None:
    code, found = findings(project(tmp_path), "--strict")
    assert (code, found) == (
        0,
        {"descriptor and contract": [], "imports": [], "packaging": [], "tier": []},
    )


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("print('hello')", "prints: hello"),
        ("open('made', 'w').close()", "opens a file: made"),
        ("import socket; socket.socket().bind(('127.0.0.1', 0))", "opens a server socket"),
        ("import subprocess; subprocess.run(['true'])", "starts a process"),
        ("import threading; threading.Thread(target=int).start()", "starts a thread"),
        ("import agent_host", "a plugin depends on agent_hookspecs alone"),
        ("raise RuntimeError('no')", "cannot be imported: RuntimeError: no"),
        ("import os; os._exit(3)", "ends the process"),
    ],
)
def test_importing_has_no_effects(tmp_path: Path, source: str, wanted: str) -> None:
    root = project(tmp_path / "tree", source)
    code, found = findings(root, cwd=tmp_path)
    assert code == 1
    assert any(wanted in message for message in found["imports"])


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"package": "pkg_other"}, "names pkg_other, which has no agent_plugin.json"),
        ({"dependencies": '"httpx"'}, "does not depend on agent-hookspecs"),
        (
            {"dependencies": '"agent_hookspecs", "Agent_Host.Core>=1"'},
            "it depends on agent-host-core;",
        ),
        (
            {"dependencies": '"agent_hookspecs", "agent-host>=1"'},
            "it names agent-host as a requirement, which on the public index is somebody else's",
        ),
        (
            {"extra": "test = [\"agent_host[new] >= 1; python_version > '3'\"]"},
            "it names agent-host as a requirement, which on the public index is somebody else's",
        ),
        ({"dependencies": '"agent-hookspecs"'}, "say the oldest that will do"),
        ({"pyproject": "[project]\nname = 'acme'\n"}, "so the host cannot find it"),
        ({"pyproject": "[tool]\n"}, "has no [project] table"),
        ({"pyproject": "[["}, "pyproject.toml cannot be read"),
    ],
)
def test_packaging_lets_the_host_find_it(
    tmp_path: Path, change: dict[str, str], wanted: str
) -> None:
    code, found = findings(project(tmp_path, **change), "--strict")
    assert code == 1
    assert any(wanted in message for message in found["packaging"]), found


def test_a_folder_without_a_project_cannot_be_installed(tmp_path: Path) -> None:
    (project(tmp_path) / "pyproject.toml").unlink()
    code, found = findings(tmp_path)
    assert code == 1
    assert "so nobody can install it" in found["packaging"][0]


def test_what_the_descriptor_says_is_compared_with_the_code(tmp_path: Path) -> None:
    code, found = findings(project(tmp_path, dynamic=["get_tags"]))
    assert code == 1
    assert found["descriptor and contract"] == [
        "'dynamic' names get_tags, but the class does not have it"
    ]


def test_settings_in_the_descriptor_are_compared_with_the_code(tmp_path: Path) -> None:
    root = project(tmp_path, config_schema={"key": {"type": "string"}})
    plugin = root / "src" / "pkg_acme" / "plugin.py"
    schema = "    def get_config_schema(self):\n        return {'key': {'type': 'integer'}}\n"
    plugin.write_text(plugin.read_text() + "\n" + schema)
    _, found = findings(root)
    assert found["descriptor and contract"] == ["config_schema and get_config_schema differ in key"]


def test_a_broken_descriptor_leaves_nothing_to_import(tmp_path: Path) -> None:
    (project(tmp_path) / "src" / "pkg_acme" / "agent_plugin.json").write_text("{")
    code, found = findings(tmp_path)
    assert code == 1
    assert found["imports"] == ["not looked at: it cannot be loaded"]


def test_a_wheel_is_checked_as_it_would_be_installed(tmp_path: Path) -> None:
    root = project(tmp_path / "tree")
    wheel = tmp_path / "acme-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted((root / "src").rglob("*.*")):
            archive.write(file, file.relative_to(root / "src"))
    assert findings(wheel)[0] == 0


def test_an_installed_distribution_is_checked_by_its_name(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "acme", "feature", label="Acme")
    code, found = findings("dist_acme", trees=[site])
    assert code == 1
    assert found["packaging"] == [
        "it does not depend on agent-hookspecs, whose names it imports",
        "its metadata has no summary",
    ]


def test_an_unknown_target_names_what_is_installed() -> None:
    done = run_host("plugins", "validate", "nothing-of-the-kind")
    assert done.code == 1
    assert "neither a folder, nor a file, nor a wheel" in done.err
    assert "agent-host-echo" in done.err


def test_people_see_a_line_for_each_area(tmp_path: Path) -> None:
    done = run_host("plugins", "validate", str(project(tmp_path, "print('x')")))
    assert done.out.splitlines()[0] == "descriptor and contract: sound"
    assert "imports: 1 to look at" in done.out
    assert done.out.splitlines()[-1] == "1 problem, 0 warnings."
