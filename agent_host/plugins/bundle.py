"""What discovery finds: one announced package each, as plain data that an index can keep."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_hookspecs.values import dataclass

__all__ = ["Bundle", "Origin", "bundle_from_list", "bundle_to_list"]

#: The class, the role and the name have no defaults.
_ALWAYS_STATED = 3

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
    """As JSON: the values of the fields in their order, of an entry without the last defaults."""
    described, descriptor = None, bundle.descriptor
    if descriptor is not None:
        entries = [_entry_to_list(entry) for entry in descriptor.entries]
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


def _entry_to_list(entry: Entry) -> list[Any]:
    usual = _usual_values()
    values = [getattr(entry, name) for name in Entry.__match_args__]
    while len(values) > _ALWAYS_STATED and values[-1] == usual[len(values) - 1]:
        values.pop()
    return values


@cache
def _usual_values() -> list[Any]:
    usual = Entry.of_class("")
    return [getattr(usual, name) for name in Entry.__match_args__]


def bundle_from_list(stored: list[Any]) -> Bundle:
    """The inverse of `bundle_to_list`."""
    name, origin, source, distribution, version, file, import_root, described, problem = stored
    descriptor = None
    if described is not None:
        entries, api, subdirectory, unknown_keys = described
        descriptor = Descriptor(
            tuple([_entry_from_list(entry) for entry in entries]),
            api,
            subdirectory,
            tuple(unknown_keys),
        )
    return Bundle(
        name, origin, source, distribution, version, file, import_root, descriptor, problem
    )


def _entry_from_list(stored: list[Any]) -> Entry:
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in stored]
    return Entry(*values)
