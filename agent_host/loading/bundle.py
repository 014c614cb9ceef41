"""What discovery finds: one announced package each, as plain data that an index can keep."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, Literal

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_hookspecs.values import dataclass

__all__ = ["Bundle", "Origin", "bundle_from_list", "bundle_to_list"]

Origin = Literal["installed", "path", "pkg", "git", "registered"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """An announced package. ``name`` is what allow and deny lists name.

    ``source`` is the entry point's value or the source string, ``file`` the descriptor's path, and
    ``import_root`` the folder that must be on ``sys.path`` before its classes can be imported.
    Without a descriptor there is a ``problem`` that says why.
    """

    name: str
    origin: Origin
    source: str
    distribution: str = ""
    version: str = ""
    file: str = ""
    import_root: str = ""
    descriptor: Descriptor | None = None
    problem: str = ""

    @property
    def owner(self) -> str:
        """How messages call it: the distribution if there is one, else the source."""
        return self.distribution or self.source


def bundle_to_list(bundle: Bundle) -> list[Any]:
    """As JSON: the fields in their order; an entry keeps only what differs from the defaults."""
    described, descriptor = None, bundle.descriptor
    if descriptor is not None:
        entries = [_entry_to_dict(entry) for entry in descriptor.entries]
        described = [entries, descriptor.api, descriptor.subdirectory, descriptor.unknown_keys]
    return [
        bundle.name,
        bundle.origin,
        bundle.source,
        bundle.distribution,
        bundle.version,
        bundle.file,
        bundle.import_root,
        described,
        bundle.problem,
    ]


def _entry_to_dict(entry: Entry) -> dict[str, Any]:
    return {
        name: value
        for name, default in _entry_defaults().items()
        if (value := getattr(entry, name)) != default
    }


@cache
def _entry_defaults() -> dict[str, Any]:
    return {field.name: getattr(Entry(""), field.name) for field in fields(Entry)}


def bundle_from_list(stored: list[Any]) -> Bundle:
    """The inverse of `bundle_to_list`."""
    name, origin, source, distribution, version, file, import_root, described, problem = stored
    descriptor = None
    if described is not None:
        entries, api, subdirectory, unknown_keys = described
        descriptor = Descriptor(
            tuple([Entry.of(entry) for entry in entries]), api, subdirectory, tuple(unknown_keys)
        )
    return Bundle(
        name, origin, source, distribution, version, file, import_root, descriptor, problem
    )
