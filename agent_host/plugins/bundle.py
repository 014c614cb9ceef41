"""What discovery finds: one announced package each, as plain data that an index can keep.

It must not know how packages are found, or what becomes of them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_hookspecs.values import dataclass

__all__ = ["Bundle", "Origin", "bundle_from_list", "bundle_to_list", "canonical_name"]

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


def canonical_name(distribution: str) -> str:
    """The name of a distribution in the one spelling by which package indexes compare names."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def bundle_to_list(bundle: Bundle) -> list[Any]:
    """As JSON: the values of the fields in their order."""
    values = _field_values(bundle)
    if bundle.descriptor is not None:
        entries = [_entry_to_list(entry) for entry in bundle.descriptor.entries]
        values[_DESCRIPTOR] = [entries, *_field_values(bundle.descriptor)[1:]]
    return values


_DESCRIPTOR = Bundle.__match_args__.index("descriptor")


def _field_values(value: Bundle | Descriptor) -> list[Any]:
    return [getattr(value, name) for name in value.__match_args__]


def _entry_to_list(entry: Entry) -> list[Any]:
    """The class, its role and its name, and of the many other keys those that say something."""
    usual = Entry.of_class(entry.entry)
    others = {name: getattr(entry, name) for name in Entry.__match_args__[3:]}
    said = {name: value for name, value in others.items() if value != getattr(usual, name)}
    return [entry.entry, entry.role, entry.name, said]


def bundle_from_list(stored: list[Any]) -> Bundle:
    """The inverse of `bundle_to_list`."""
    values = list(stored)
    if values[_DESCRIPTOR] is not None:
        entries, api, subdirectory, unknown, *about = values[_DESCRIPTOR]
        entries = tuple([_entry_from_list(entry) for entry in entries])
        values[_DESCRIPTOR] = Descriptor(entries, api, subdirectory, tuple(unknown), *about)
    return Bundle(*values)


def _entry_from_list(stored: list[Any]) -> Entry:
    entry, role, name, said = stored
    for key, value in said.items():
        if isinstance(value, list):
            said[key] = tuple(value)
    return Entry(entry, role, name, **said)
