"""Finding the package under test the way the host finds it, and nothing else that is installed.

Owns the catalog of a check, and the probe that imports a package in a process of its own. It must
not know what a check is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agent_hookspecs.descriptor import split_entry
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog, LoaderSettings, PluginRecord, build_catalog
from agent_host.plugins.discover import discover
from agent_host.plugins.inspect.imports import import_effects
from agent_host.plugins.sources import bundles_of_sources

__all__ = ["catalog_of", "find_record", "has_types", "side_effects", "why_missing"]


@cache
def _installed_bundles() -> tuple[Bundle, ...]:
    return tuple(discover())


@cache
def _bundles(package: str, folder: str) -> tuple[Bundle, ...]:
    """The bundles of a package: from ``folder`` if there is one, as installed, or as importable."""
    if folder:
        found = bundles_of_sources([f"path:{folder}"], base=Path.cwd(), cache=None)
        return tuple(bundle for bundle in found if bundle.name == package or bundle.problem)
    installed = [
        b for b in _installed_bundles() if b.source.partition(":")[0].split(".")[0] == package
    ]
    if installed:
        return tuple(installed)
    return tuple(bundles_of_sources([f"pkg:{package}"], base=Path.cwd(), cache=None))


def catalog_of(
    packages: Iterable[str], *, folder: str = "", enabled: Iterable[str] = ()
) -> Catalog:
    """A catalog of these packages alone; the first may be in a ``folder`` and not installed."""
    first, *others = packages
    bundles = [*_bundles(first, folder), *(b for name in others for b in _bundles(name, ""))]
    return build_catalog(bundles, LoaderSettings(enabled=frozenset(enabled)))


def find_record(catalog: Catalog, package: str, role: str, plugin: str) -> PluginRecord:
    """The plugin under test; a LookupError says why it is not there."""
    for record in catalog:
        if record.role == role and record.name == plugin:
            if record.usable:
                return record
            raise LookupError(f"{role} {plugin!r} of {package} is {record.state}: {record.reason}")
    raise LookupError(_not_there(catalog, package, role, plugin))


def why_missing(package: str, folder: str, role: str, plugin: str) -> str:
    """What is wrong if whoever asks has the wrong name; empty if anything else may be wrong."""
    catalog = catalog_of((package,), folder=folder)
    described = any(record.bundle.file for record in catalog)
    if described and not all(record.usable and record.role for record in catalog):
        # It is there, and broken; or only its import tells what it is.
        return ""
    if any(record.role == role and record.name == plugin for record in catalog):
        return ""
    return _not_there(catalog, package, role, plugin)


def _not_there(catalog: Catalog, package: str, role: str, plugin: str) -> str:
    reasons = [record.reason for record in catalog if record.reason]
    there = ", ".join(record.key for record in catalog if record.entry) or "nothing"
    return f"package {package!r} has no {role} {plugin!r}; there is {there}" + (
        f" ({'; '.join(reasons)})" if reasons else ""
    )


@cache
def has_types(package: str, folder: str) -> bool | None:
    """Whether the package has a ``py.typed``; None if nobody knows where it is."""
    if folder:
        return Path(folder, package, "py.typed").exists()
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        # Nothing is lost: a package that cannot be found is told of by every check.
        return None
    places = found.submodule_search_locations if found else None
    return any(Path(place, "py.typed").exists() for place in places) if places else None


#: What no package may import merely because it is imported itself.
_STRANGERS = (
    "aiohttp",
    "anthropic",
    "boto3",
    "cohere",
    "google.genai",
    "httpx",
    "httpx2",
    "litellm",
    "mistralai",
    "ollama",
    "openai",
    "requests",
)


def side_effects(records: Sequence[PluginRecord]) -> tuple[str, ...]:
    """What importing the modules of these plugins does besides defining things."""
    entries = [record.entry.entry for record in records if record.entry]
    modules = list(dict.fromkeys(split_entry(entry)[0] for entry in entries))
    return import_effects(modules, [records[0].bundle.import_root], _STRANGERS).effects
