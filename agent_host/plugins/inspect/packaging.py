"""Whether a package can be built, installed and found, as far as its metadata tells.

Reads ``pyproject.toml`` of a source tree, or what the installer wrote down of a distribution;
builds and imports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.discover import GROUP
from agent_host.plugins.project import announced_plugins, read_project_file

__all__ = ["installed_problems", "tree_problems"]

_CONTRACT = "agent-hookspecs"
_HOST = "agent-host-core"
#: On the public index this name is not ours: installing it would run a stranger's code.
_STRANGER = "agent-host"
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^]]*\])?\s*([^;]*)")
_RECOMMENDED = ("description", "readme", "license", "requires-python")


def tree_problems(root: Path, packages: Iterable[Path]) -> Iterator[tuple[bool, str]]:
    """What is wrong with the project in ``root``; whether it is serious, and a sentence.

    ``packages`` are the folders with the descriptors.
    """
    file = root / "pyproject.toml"
    if not file.is_file():
        yield True, f"there is no pyproject.toml in {root}, so nobody can install it"
        return
    try:
        document = read_project_file(root)
    except (OSError, ValueError) as error:
        yield True, f"pyproject.toml cannot be read: {error}"
        return
    project = document.get("project")
    if not isinstance(project, dict):
        yield True, "pyproject.toml has no [project] table"
        return
    folders = list(packages)
    yield from _check_entry_points({*announced_plugins(document).values()}, folders, root)
    extras = project.get("optional-dependencies")
    optional = extras.values() if isinstance(extras, dict) else ()
    yield from _check_requirements(
        [str(each) for each in project.get("dependencies", ())],
        [str(each) for extra in optional for each in extra],
    )
    for key in _RECOMMENDED:
        if key not in project and key not in project.get("dynamic", ()):
            yield False, f"[project] says nothing of {key!r}"
    for folder in folders:
        if not (folder / "py.typed").is_file():
            yield False, f"{folder.name} has no py.typed, so its types are not seen"
    if "build-system" not in document:
        yield False, "pyproject.toml names no build system"


def _check_entry_points(
    named: set[str], folders: list[Path], root: Path
) -> Iterator[tuple[bool, str]]:
    if not named:
        table = f'[project.entry-points."{GROUP}"]'
        yield True, f"pyproject.toml has no {table}, so the host cannot find it once installed"
        return
    packages = {_package_name(folder, root) for folder in folders}
    for package in sorted(packages - named):
        yield True, f"no entry point of {GROUP} names {package}, which has a descriptor"
    for value in sorted(named - packages):
        if ":" not in value:
            yield True, f"an entry point names {value}, which has no {DESCRIPTOR_NAME}"


def _package_name(folder: Path, root: Path) -> str:
    parts = folder.relative_to(root).parts
    return ".".join(parts[1:] if parts[:1] == ("src",) else parts)


def _check_requirements(
    dependencies: Iterable[str], optional: Iterable[str]
) -> Iterator[tuple[bool, str]]:
    """What is wrong with what it always needs, and with what its extras need."""
    always = dict(map(_read_requirement, dependencies))
    if _CONTRACT not in always:
        yield True, f"it does not depend on {_CONTRACT}, whose names it imports"
    elif not always[_CONTRACT]:
        yield False, f"it takes any version of {_CONTRACT}; say the oldest that will do"
    if _HOST in always:
        yield True, f"it depends on {_HOST}; a plugin depends on {_CONTRACT} alone"
    if _STRANGER in {**always, **dict(map(_read_requirement, optional))}:
        yield (
            True,
            f"it names {_STRANGER} as a requirement, which on the public index is somebody else's"
            f" project; the host is {_HOST}, and only tests may need it",
        )


def _read_requirement(requirement: str) -> tuple[str, str]:
    """The project that a requirement names, as indexes compare names, and the versions it takes."""
    found = _REQUIREMENT.match(requirement)
    return (canonical_name(found[1]), found[3].strip()) if found else ("", "")


def installed_problems(name: str) -> Iterator[tuple[bool, str]]:
    """What is wrong with the metadata of an installed distribution."""
    from importlib_metadata import distribution

    found = distribution(name)
    points = [point for point in found.entry_points if point.group == GROUP]
    if not points:
        yield True, f"it has no entry point of {GROUP}"
    requirements = found.requires or ()
    yield from _check_requirements(
        [each for each in requirements if "extra ==" not in each],
        [each for each in requirements if "extra ==" in each],
    )
    if not found.metadata.get("Summary"):
        yield False, "its metadata has no summary"
    files = {str(file).replace("\\", "/") for file in found.files or ()}
    editable = any(file.endswith((".pth", "direct_url.json")) for file in files)
    for point in points:
        folder = point.module.replace(".", "/")
        if not editable and files and f"{folder}/py.typed" not in files:
            yield False, f"{point.module} has no py.typed, so its types are not seen"
