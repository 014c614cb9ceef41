"""What the answers to the template's questions may be: every rule, and nothing else.

Cookiecutter runs this file before it writes anything; ``agent-host plugins new`` loads it and asks
it first. So it needs the standard library only, and looks at the host only if there is one.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import keyword
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

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
LICENCES = ("MIT", "Apache-2.0", "BSD-3-Clause", "Proprietary")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
#: Questions that are answered in words, and the most characters of an answer.
TEXTS = {"name": 60, "description": 200, "author": 80}

_ID = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]+([-_.][A-Za-z0-9]+)*")
_PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
_MOST = {"plugin_id": 24, "distribution": 40, "package": 40}
#: What cookiecutter would take for an instruction of its own.
_MARKS = ("{" + "{", "{" + "%", "{" + "#")
#: The host's own packages; they may be there where the plugin is used, if not here.
_OURS = ("agent_host", "agent_hookspecs", "agent_host_testing", "agent_host_echo")
#: Modules beside the package's tests, which would be imported in its place.
_BESIDE_TESTS = ("conftest", "fake_api", "tests", "try_offline")
#: The URL scheme of the host's own store; one that is made here has its id for a scheme.
_OWN_SCHEME = "sqlite"
#: What is put behind the id to name the other plugins of a kind, and its tools.
_ENDINGS = {
    "custom-format": ("tools", "reasoning"),
    "tool": ("convert", "units"),
    "feature-tool": ("notes", "remember", "forget"),
    "mix": ("citations", "convert", "units"),
}


def problems(
    answers: Mapping[str, Any], taken: Collection[str] = (), only: Collection[str] = ()
) -> list[str]:
    """A sentence for each thing that is wrong; ``taken`` are the names that installed plugins have.

    With ``only`` the answers to those questions alone are looked at.
    """
    kind = str(answers.get("kind", ""))
    found = {
        **{key: _text(key, str(answers.get(key, ""))) for key in TEXTS},
        "kind": _choice("kind", answers.get("kind"), KINDS),
        "plugin_id": _plugin_id(str(answers.get("plugin_id", "")), kind, taken),
        "distribution": _distribution(str(answers.get("distribution", ""))),
        "package": _package(str(answers.get("package", ""))),
        "email": _email(str(answers.get("email", ""))),
        "licence": _choice("licence", answers.get("licence"), LICENCES),
        "python": _choice("python", answers.get("python"), PYTHONS),
    }
    derived = f"agent-host-{answers.get('plugin_id')}"
    if found["plugin_id"] and answers.get("distribution") == derived:
        # Made of the id, and so no fault of their own.
        found["distribution"] = found["package"] = ""
    return [told for key, told in found.items() if told and (not only or key in only)]


def names_of(kind: str, plugin_id: str) -> list[str]:
    """The names that a package of the kind gives to its plugins and tools, its id first."""
    snake = plugin_id.replace("-", "_")
    return [plugin_id, *(f"{snake}_{ending}" for ending in _ENDINGS.get(kind, ()))]


def _text(key: str, value: str) -> str:
    if not value.strip():
        return f"{key} is empty; say something."
    if not value.isprintable():
        return f"{key} {value!r} has a line break or another character that cannot be shown."
    if any(mark in value for mark in _MARKS):
        return f"{key} {value!r} has two characters that begin an instruction of the template."
    if len(value) > TEXTS[key]:
        return f"{key} has {len(value)} characters; at most {TEXTS[key]} will do."
    return ""


def _choice(key: str, value: object, choices: Collection[str]) -> str:
    if value in choices:
        return ""
    given = f"{key} is {value!r}" if value else f"{key} is missing"
    return f"{given}; choose one of {', '.join(choices)}."


def _too_long(key: str, value: str) -> str:
    if len(value) <= _MOST[key]:
        return ""
    return f"{key} {value!r} has {len(value)} characters; at most {_MOST[key]} will do."


def _plugin_id(value: str, kind: str, taken: Collection[str]) -> str:
    if not _ID.fullmatch(value):
        return (
            f"plugin_id {value!r} is not lower-case words of letters and digits, joined by - or _, "
            "that begin with a letter."
        )
    if kind == "store" and value == _OWN_SCHEME:
        return f"plugin_id {value!r} would be a URL scheme that is the host's own; choose another."
    known = {name.replace("-", "_") for name in taken}
    for name in names_of(kind, value):
        if name.replace("-", "_") in known:
            which = "is" if name == value else f"makes a {name!r}, which is"
            return f"plugin_id {value!r} {which} taken by an installed plugin; choose another."
    return _too_long("plugin_id", value)


def _distribution(value: str) -> str:
    if not _DISTRIBUTION.fullmatch(value):
        return f"distribution {value!r} is no name that pip knows: letters and digits, - between."
    try:
        importlib.metadata.version(value)
    except importlib.metadata.PackageNotFoundError:
        return _too_long("distribution", value)
    return f"distribution {value!r} is installed here already; choose another name."


def _package(value: str) -> str:
    if not _PACKAGE.fullmatch(value) or keyword.iskeyword(value):
        return f"package {value!r} is no lower-case name that Python can import."
    if value in sys.stdlib_module_names:
        return f"package {value!r} would shadow a module of the standard library."
    if value in _BESIDE_TESTS or value.startswith("test_"):
        return f"package {value!r} has the name of a module of its own tests."
    if value in _OURS or _importable(value):
        return f"package {value!r} would shadow a package of that name."
    return _too_long("package", value)


def _importable(name: str) -> bool:
    """Whether there is such a module; a mere folder, which Python takes for one, does not count."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None


def _email(value: str) -> str:
    if not value or _EMAIL.fullmatch(value):
        return ""
    return f"email {value!r} is no address; leave it empty if you have none to give."


def taken_names() -> set[str]:
    """What plugins, bundles, tools and stores are called that the host here finds."""
    try:
        from agent_host.plugins.load import load_catalog
    except ImportError:
        return set()
    found: set[str] = set()
    for record in load_catalog():
        found.update((record.name, record.bundle.name))
        if record.entry:
            found.update(record.entry.tools, record.entry.stores)
    return found


if __name__ == "__main__":
    # Cookiecutter runs a copy in a folder for anything temporary; what lies there is not installed.
    sys.path[:] = [each for each in sys.path if each != str(Path(__file__).resolve().parent)]
    # Cookiecutter puts the answers here as JSON, in which it leaves no quote of this kind.
    answers = json.loads(r'''{{ cookiecutter | tojson }}''')  # fmt: skip
    wrong = problems(answers, taken_names())
    for sentence in wrong:
        sys.stderr.write(f"error: {sentence}\n")
    sys.exit(1 if wrong else 0)
