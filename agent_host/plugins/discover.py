"""Finds installed plugin packages by their metadata alone.

Asks importlib-metadata for the distributions that have entry points of group ``agent_host.plugins``
and reads the descriptors they point at. Nothing of a plugin is imported: a package is located in
its distribution, then by its import spec, then by the project folder an editable install points at.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from importlib_metadata import Distribution, DistributionFinder, distributions

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, Descriptor, Entry, split_entry
from agent_hookspecs.errors import DescriptorError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import Bundle, canonical_name
from agent_host.plugins.descriptor import MAX_BYTES, decode_descriptor, read_descriptor
from agent_host.redaction import describe_error

__all__ = ["CLASS_PATH", "GROUP", "discover", "top_level_spec"]

log = get_logger(__name__)

GROUP = "agent_host.plugins"

#: An entry point's value that names a class and not a package.
CLASS_PATH = re.compile(r"[\w.]+:\w+")
_PACKAGE = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True, slots=True)
class _Announcing:
    """A distribution that says something in our group, and how it is called.

    One that does not say its name ``is_nameless``: nobody else can be asked for by it.
    """

    distribution: Distribution
    name: str
    version: str
    root: str
    is_nameless: bool = False


def discover(search_path: Sequence[str] | None = None) -> list[Bundle]:
    """Every announced package on the search path, broken ones included.

    Of a distribution's several versions the first one counts, even if it announces nothing.
    """
    path = sys.path if search_path is None else search_path
    # No folder is called so, and the finder of folders would give up all others for it.
    path = [each for each in path if "\0" not in each]
    # Finders believe what they saw last as long as a folder looks the same to them.
    importlib.invalidate_caches()
    problems: list[Bundle] = []
    announcing: dict[str, list[_Announcing]] = {}
    places: dict[str, int] = {}
    for distribution in _find_distributions(path, problems):
        if _announces_plugins(distribution):
            found = _identify_distribution(distribution)
            places.setdefault(found.root, len(places))
            announcing.setdefault(canonical_name(found.name), []).append(found)
    counting = [_select_first(name, found, path) for name, found in announcing.items()]
    # Within a folder the order of files is not the same everywhere.
    first = sorted(
        (each for each in counting if each is not None),
        key=lambda each: (places.get(each.root, len(places)), canonical_name(each.name)),
    )
    return [*(bundle for each in first for bundle in _read_bundles(each)), *problems]


def _find_distributions(
    path: list[str], problems: list[Bundle], **named: str
) -> list[Distribution]:
    """All that the finders know; of one that fails, its failure joins the problems."""
    find: Any = distributions
    try:
        return [*find(path=path, **named)]
    except Exception:
        # Nothing is lost: each finder is asked by itself, and one that fails is told of.
        return [
            found
            for finder in sys.meta_path
            for found in _ask_finder(finder, path, problems, **named)
        ]


def _ask_finder(
    finder: object, path: list[str], problems: list[Bundle], **named: str
) -> list[Distribution]:
    find: Any = getattr(finder, "find_distributions", None)
    make_context: Any = DistributionFinder.Context
    try:
        return [*find(make_context(path=path, **named))] if find is not None else []
    except Exception as error:
        name = f"{type(finder).__name__} in sys.meta_path"
        problem = f"the finder raised {describe_error(error)} (report it to its author)"
        problems.append(Bundle(name, "installed", name, problem=problem))
        return []


def _announces_plugins(distribution: Distribution) -> bool:
    """Whether our group comes up; without parsing what most distributions say of other groups."""
    try:
        text = distribution.read_text("entry_points.txt")
        return GROUP in text if text else any(p.group == GROUP for p in distribution.entry_points)
    except UnicodeDecodeError as error:
        return GROUP.encode() in error.object
    except Exception as error:
        log.warning("distribution_ignored", place=_root(distribution), error=describe_error(error))
        return False


def _identify_distribution(distribution: Distribution) -> _Announcing:
    """Name and version; one without a header is called as its first bundle is."""
    known: dict[str, str] = {}
    with suppress(Exception):
        # Nothing is lost: metadata without a header costs a distribution its name and no more.
        metadata = distribution.metadata
        known = {key: metadata[key] for key in ("Name", "Version") if key in metadata}
    is_nameless = not known.get("Name")
    if is_nameless:
        with suppress(Exception):
            # Nothing is lost: entry points that cannot be read are told of as the bundle's problem.
            points = distribution.entry_points
            known["Name"] = next(point.name for point in points if point.group == GROUP)
    name, version = known.get("Name") or "", known.get("Version") or ""
    return _Announcing(distribution, name, version, _root(distribution), is_nameless)


def _select_first(name: str, found: Sequence[_Announcing], path: list[str]) -> _Announcing | None:
    """The distribution that counts of those called so, unless it is one that announces nothing.

    None also for what an uninstall that was cut short left behind, which has no such name.
    """
    if found[0].is_nameless:
        return found[0]
    # One that stands later on the path than those that announce comes too late to count.
    root = found[0].root
    nearer = path[: path.index(root) + 1] if root in path else path
    # What fails here has failed before, when all were asked for.
    for distribution in _find_distributions(nearer, [], name=name):
        announces = _announces_plugins(distribution)
        if announces and len(found) == 1 and _root(distribution) == found[0].root:
            # It is the one that was found, whose metadata need not be read again.
            return found[0]
        # Not every finder heeds the name.
        if canonical_name((other := _identify_distribution(distribution)).name) == name:
            return other if announces else None
    return None


def _root(distribution: Distribution) -> str:
    try:
        return str(distribution.locate_file(""))
    except Exception:
        # Nothing is lost: a distribution without files is found by its package.
        return ""


def _read_bundles(found: _Announcing) -> list[Bundle]:
    name = found.name
    try:
        points = [point for point in found.distribution.entry_points if point.group == GROUP]
        return [_read_bundle(found, point.name, point.value) for point in points]
    except Exception as error:
        # Metadata is foreign input; whatever is wrong with it concerns this distribution alone.
        said = ": ".join(map(str, error.args))
        problem = f"the entry points of {name} cannot be read: {said} (reinstall it)"
        return [Bundle(name, "installed", name, distribution=name, problem=problem)]


def _read_bundle(found: _Announcing, name: str, value: str) -> Bundle:
    bundle = Bundle(name, "installed", value, found.name, found.version)
    if CLASS_PATH.fullmatch(value):
        descriptor = Descriptor((Entry.of_class(value),))
    else:
        try:
            file, descriptor = _locate_descriptor(found.distribution, value)
        except DescriptorError as error:
            return replace(bundle, file=error.file or "", problem=error.explain())
        bundle = replace(bundle, file=file)
    problem = _foreign_entry(found, descriptor)
    if problem:
        return replace(bundle, problem=problem)
    return replace(bundle, descriptor=descriptor)


def _foreign_entry(found: _Announcing, descriptor: Descriptor) -> str:
    """What is wrong with an entry that names what is not of its distribution, such as Python's."""
    packages = _own_packages(found.distribution)
    for entry in descriptor.entries:
        package = split_entry(entry.entry)[0].partition(".")[0]
        if package in sys.stdlib_module_names or (packages and package not in packages):
            return (
                f"the entry {entry.entry!r} is in {package!r}, which is no part of {found.name} "
                "(let it name a class of the package itself)"
            )
    return ""


def _own_packages(distribution: Distribution) -> set[str]:
    """The top-level packages and modules in a distribution's list of files; none: no such list.

    An editable install lists what leads to its packages, and not those.
    """
    try:
        names = {str(file).split("/")[0] for file in distribution.files or ()}
    except Exception:
        # Nothing is lost: without a list nothing is known to be missing from it.
        names = set()
    code = {n for n in names if not n.endswith((".dist-info", ".egg-info", ".pth", ".egg-link"))}
    if len(code) < len(names) and any(n.startswith("__editable__") for n in code):
        return set()
    return {name.partition(".")[0] for name in code if name != ".."}


def _locate_descriptor(distribution: Distribution, package: str) -> tuple[str, Descriptor]:
    if not _PACKAGE.fullmatch(package):
        raise DescriptorError(
            f"the entry point's value {package!r} is no package",
            hint="let it name the package with the descriptor, or a class as package.module:Class",
        )
    parts = package.split(".")
    expected = ""
    try:
        # On disk, or in an archive.
        in_place: Any = distribution.locate_file("/".join([*parts, DESCRIPTOR_NAME]))
        expected = str(in_place)
        if in_place.is_file():
            return expected, read_descriptor(in_place)
    except DescriptorError:
        raise
    except Exception:
        # Nothing is lost: the places that follow are looked at, and the last resort is an error.
        pass
    spec = top_level_spec(parts[0])
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder, *parts[1:], DESCRIPTOR_NAME)
        if file.is_file():
            return str(file), read_descriptor(file)
        archived = _read_archived(spec, str(file))
        if archived is not None:
            return str(file), decode_descriptor(archived, str(file))
        expected = str(file)
    for project in _project_folders(distribution):
        file = project.joinpath(*parts, DESCRIPTOR_NAME)
        if file.is_file():
            return str(file), read_descriptor(file)
    raise DescriptorError(
        f"package {package!r} has no {DESCRIPTOR_NAME}",
        file=expected,
        hint="include it as package data, or let the entry point name a class",
    )


def top_level_spec(package: str) -> ModuleSpec | None:
    """Where a top-level package would be imported from; imports nothing."""
    try:
        return find_spec(package)
    except Exception:
        # Nothing is lost: an import hook that fails has found nothing, which the caller tells.
        return None


def _read_archived(spec: ModuleSpec | None, file: str) -> bytes | None:
    """A file of a package inside an archive, through the archive's own loader."""
    get_data = getattr(spec.loader if spec else None, "get_data", None)
    if get_data is None:
        return None
    try:
        data: bytes = get_data(file)
    except OSError:
        # Nothing is lost: an archive without the file is one place less to look at.
        return None
    return data[: MAX_BYTES + 1]


def _project_folders(distribution: Distribution) -> Iterable[Path]:
    try:
        url = urlsplit(json.loads(distribution.read_text("direct_url.json") or "{}")["url"])
    except (ValueError, KeyError, TypeError):
        # Nothing is lost: a distribution that was not installed from a folder has none.
        return
    if url.scheme == "file":
        root = Path(unquote(url.path))
        yield root
        yield root / "src"
