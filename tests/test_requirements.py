"""What installers are told to fetch: names that are ours, and files that are for whom they say.

The name ``agent-host`` belongs to somebody else on the public index, so whoever installs it gets a
stranger's code. No place that names a requirement may say it, and every name there that looks like
one of ours must be a distribution of this repository.
"""

from __future__ import annotations

import ast
import configparser
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.template import Template

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

ROOT = Path(__file__).resolve().parent.parent
KINDS = (
    "openai-compatible",
    "custom-format",
    "extension",
    "feature",
    "tool",
    "feature-tool",
    "store",
    "mix",
)
HOST, KIT, STRANGER = "agent-host-core", "agent-host-testing", "agent-host"
#: Plugins that bring much with them, or need a server or a program of the system: who wants one
#: installs it by name.
HEAVY = (
    "agent-host-postgres",
    "agent-host-prices",
    "agent-host-otel",
    "agent-host-ray",
    "agent-host-context",
    "agent-host-mcp",
    "agent-host-skills",
    "agent-host-shell",
    "agent-host-web",
    "agent-host-gateway",
)

PROJECTS = sorted(
    (
        ROOT / "pyproject.toml",
        *ROOT.glob("*/pyproject.toml"),
        *ROOT.glob("plugins/*/pyproject.toml"),
    )
)
FOLDERS = (
    ".ci",
    ".github",
    "agent_host",
    "benchmarks",
    "docs",
    "hookspecs",
    "plugins",
    "template-python-provider",
    "tests",
)
#: Tests of what is refused have to say it.
REFUSING = {"test_requirements.py", "test_validation.py"}
TEXTS = {".cfg", ".ini", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml", ""}

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_WITH_EXTRA_OR_VERSION = re.compile(
    rf"(?<![\w./@-])({_NAME})(?:\[[a-z0-9, -]+\]|\s*(?:[<>!~=]=|[<>])\s*\d)"
)
_PIP_INSTALL = re.compile(r"\bpip3? install\b(?P<what>[^\n`;|#]*)")
_WORDS_OF_ADVICE = re.compile(
    rf"\b(?:install|reinstall|upgrade|depends? on|requires?|needs?)[ \"'`]+({_NAME})", re.IGNORECASE
)


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named_by(requirement: str) -> str:
    """The project that a requirement asks for, or nothing if it is a path or an option."""
    found = re.match(rf"\s*({_NAME})\s*(?![\w./\\-])", requirement)
    return normalized(found[1]) if found and not requirement.strip().startswith((".", "-")) else ""


def in_project(text: str) -> Iterator[str]:
    """What a ``pyproject.toml`` requires, whatever for."""
    document = tomllib.loads(text)
    project = document.get("project", {})
    groups = [
        document.get("build-system", {}).get("requires", []),
        project.get("dependencies", []),
        *project.get("optional-dependencies", {}).values(),
        *document.get("dependency-groups", {}).values(),
    ]
    return (named_by(each) for group in groups for each in group if isinstance(each, str))


def in_requirements(text: str) -> Iterator[str]:
    return (named_by(line) for line in text.splitlines() if not line.startswith("#"))


def in_tox(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    for section in parser.sections():
        for key in ("deps", "requires"):
            lines = parser.get(section, key, fallback="").splitlines()
            yield from (named_by(line.partition(":")[2] or line) for line in lines)


def in_prose(text: str) -> Iterator[str]:
    """What commands, hints and requirements in any text name."""
    yield from (normalized(found[1]) for found in _WITH_EXTRA_OR_VERSION.finditer(text))
    yield from (normalized(found[1]) for found in _WORDS_OF_ADVICE.finditer(text))
    for command in _PIP_INSTALL.finditer(text):
        for word in re.split(r"[\s\"'()]+", command["what"].partition("&&")[0]):
            yield named_by(word)


def in_code(text: str) -> Iterator[str]:
    """What a program that calls an installer names: the words that stand beside ``install``."""
    for node in ast.walk(ast.parse(text)):
        parts = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
        words = [
            part.value
            for part in parts
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        if "install" in words:
            yield from map(named_by, words)


def required_by(file: Path) -> set[str]:
    """The projects that a file names as requirements, in whatever way its kind has of doing so."""
    text = file.read_text("utf-8")
    found = list(in_prose(text))
    # Those of the template are no TOML, Python or INI before something is made of them.
    if "{{cookiecutter" not in str(file):
        found += in_project(text) if file.name == "pyproject.toml" else ()
        found += in_tox(text) if file.name == "tox.ini" else ()
        found += in_code(text) if file.suffix == ".py" else ()
    if file.suffix == ".txt" and "requirements" in file.name:
        found += in_requirements(text)
    return {name for name in found if name}


def strangers(file: Path, own: str = "") -> list[str]:
    """Names that look like ours and are not; ``own`` is a distribution that the file makes."""
    ours = {*names(), normalized(own)}
    return sorted(
        name
        for name in required_by(file)
        if re.match(r"agent-(host|hookspecs)(-|$)", name) and name not in ours
    )


@cache
def names() -> dict[str, Path]:
    """Our distributions by name, and the folder of each."""
    return {
        normalized(tomllib.loads(file.read_text("utf-8"))["project"]["name"]): file.parent
        for file in PROJECTS
    }


def files() -> list[Path]:
    found = [file for file in ROOT.iterdir() if file.is_file()]
    for folder in FOLDERS:
        found += [file for file in (ROOT / folder).rglob("*") if file.is_file()]
    return sorted(
        file
        for file in found
        if file.suffix in TEXTS
        and file.name not in REFUSING
        and not {"__pycache__", ".tox", ".pytest_cache", ".mypy_cache"} & set(file.parts)
        and not (file.name.startswith(".") and file.suffix == "" and file.parent == ROOT)
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (in_project, '[project]\ndependencies = ["agent_host>=0.1"]'),
        (in_project, '[project.optional-dependencies]\ntest = ["pytest", "Agent.Host"]'),
        (in_project, "[dependency-groups]\ndev = [\"agent-host; python_version > '3'\"]"),
        (in_project, '[build-system]\nrequires = ["agent-host"]'),
        (in_requirements, "pytest\nagent-host\n"),
        (in_requirements, "agent-host[new] >= 1  # the host"),
        (in_tox, "[testenv]\ndeps =\n    pytest\n    agent-host"),
        (in_tox, "[testenv:a]\ndeps = py310: agent-host>=1"),
        (in_prose, "hint='python -m pip install \"agent-host[new]\"'"),
        (in_prose, "run `pip install --upgrade agent-host` first"),
        (in_prose, "$ pip install pytest agent-host && agent-host demo"),
        (in_prose, '+  "agent-host>=0.1",'),
        (in_prose, "install agent-host again: its wheel has the template"),
        (in_prose, "upgrade `agent-host`"),
        (in_code, 'pip("install", "--quiet", "agent-host")'),
        (in_code, 'run([python, "-m", "pip", "install", "agent-host"])'),
    ],
)
def test_the_strangers_name_is_seen_wherever_a_requirement_can_stand(kind: Any, text: str) -> None:
    assert STRANGER in set(kind(text))


@pytest.mark.parametrize(
    "text",
    [
        "agent-host run Hello",
        "pip install -r requirements.txt && agent-host demo --yes",
        "pip install -e ./plugins/agent-host",
        "`agent-host.json` in the working folder",
        'keywords = ["agent-host", "agents"]',
        'pip install "agent-host-core[new]>=0.1"',
        "install agent-host-core again",
    ],
)
def test_the_command_of_the_same_name_is_no_requirement(text: str) -> None:
    assert STRANGER not in set(in_prose(text))


def test_requirements_name_our_distributions_as_they_are_called() -> None:
    walked = files()
    assert ROOT / "README.md" in walked
    found = {str(file.relative_to(ROOT)): strangers(file) for file in walked}
    assert {file: named for file, named in found.items() if named} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_of_the_template_requires_what_is_ours(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("cookiecutter")
    template = Template()
    answers: dict[str, Any] = {}
    given = {"plugin_name": "Acme AI", "kind": kind}
    for question in template.questions:
        answers[question.key] = given.get(question.key, template.default(question, answers))
    folder = template.bake(answers, tmp_path)
    own = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    made = [file for file in folder.rglob("*") if file.is_file()]
    assert {str(file): strangers(file, own) for file in made if strangers(file, own)} == {}
    assert HOST in required_by(folder / "pyproject.toml")


def test_the_host_has_a_name_of_its_own() -> None:
    assert names()[HOST] == ROOT
    assert STRANGER not in names()


# Files that pip reads.


def installed(file: str) -> list[str]:
    """The lines of a requirements file that say something."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def folders(file: str) -> list[Path]:
    """The folders of this tree that a requirements file installs, in its order."""
    lines = [re.sub(r"\[.*\]$", "", line) for line in installed(file) if line.startswith("-e ")]
    return [(ROOT / line.removeprefix("-e ")).resolve() for line in lines]


def test_users_get_the_host_and_its_plugins_and_nothing_else() -> None:
    assert len(folders("requirements.txt")) == len(installed("requirements.txt"))
    assert sorted(folders("requirements.txt")) == sorted(
        folder for name, folder in names().items() if name not in (KIT, *HEAVY)
    )


def test_contributors_get_the_kit_and_what_tests_and_checks_need_as_well() -> None:
    lines = installed("requirements-dev.txt")
    assert lines[0] == "-r requirements.txt"
    assert folders("requirements-dev.txt") == [names()[name] for name in (KIT, *HEAVY)]
    assert {"-r .ci/requirements-test.txt", "-r .ci/requirements-checks.txt"} <= set(lines)
    assert "httpx2" in set(map(named_by, lines))


def test_what_others_need_is_installed_before_them() -> None:
    """Else pip looks an index up for it, where the name may be somebody else's."""
    ours, seen = names(), list[Path]()
    for folder in [*folders("requirements.txt"), *folders("requirements-dev.txt")]:
        seen.append(folder)
        document = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        needed = map(named_by, document["project"]["dependencies"])
        assert {ours[name] for name in needed if name in ours} <= set(seen), folder
