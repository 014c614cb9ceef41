"""What discovery finds: one announced package each, as plain data that an index can keep."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_hookspecs.values import dataclass

__all__ = ["Bundle", "Origin", "bundle_from_dict", "bundle_to_dict"]

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


_ENTRY_DEFAULTS = {f.name: getattr(Entry(""), f.name) for f in fields(Entry)}


def bundle_to_dict(bundle: Bundle) -> dict[str, Any]:
    """As JSON; an entry keeps only what differs from the defaults."""
    document: dict[str, Any] = {
        f.name: value
        for f in fields(Bundle)
        if f.name != "descriptor" and (value := getattr(bundle, f.name)) != ""
    }
    if bundle.descriptor is not None:
        document["descriptor"] = {
            "api": bundle.descriptor.api,
            "subdirectory": bundle.descriptor.subdirectory,
            "unknown_keys": list(bundle.descriptor.unknown_keys),
            "entries": [_entry_to_dict(entry) for entry in bundle.descriptor.entries],
        }
    return document


def _entry_to_dict(entry: Entry) -> dict[str, Any]:
    return {
        name: value
        for name, default in _ENTRY_DEFAULTS.items()
        if (value := getattr(entry, name)) != default
    }


def bundle_from_dict(document: dict[str, Any]) -> Bundle:
    """The inverse of `bundle_to_dict`."""
    stored = document.get("descriptor")
    if stored is None:
        return Bundle(**document)
    descriptor = Descriptor(
        entries=tuple(Entry.of(entry) for entry in stored["entries"]),
        api=stored["api"],
        subdirectory=stored["subdirectory"],
        unknown_keys=tuple(stored["unknown_keys"]),
    )
    return Bundle(**{**document, "descriptor": descriptor})
