"""Makes of a descriptor what its classes say: settings, tags, effects, order, flags.

What only a person can say (the class's path, what a plugin is good for, its options) is left as it
stands, in its order. What differs is decided by `agreement`, for everybody alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_hookspecs._version import API_VERSION
from agent_hookspecs.descriptor import DESCRIPTOR_NAME, Entry
from agent_hookspecs.errors import DescriptorError, IncompatibleError, LoadError
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.inspect.agreement import differences, settings_of

__all__ = ["Description", "describe", "render_descriptor"]

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Description:
    """A descriptor as its classes would have it, and where the file says otherwise."""

    file: Path
    document: Mapping[str, Any]
    differences: tuple[str, ...]

    def write(self) -> None:
        """Put it into the file."""
        self.file.write_text(render_descriptor(self.document) + "\n", encoding="utf-8")


def describe(catalog: Catalog) -> Iterator[Description]:
    """A description of each descriptor in the catalog; imports its classes.

    Raises a `PluginError` for a package that cannot be loaded.
    """
    activator = Activator()
    records = {id(record.entry): record for record in catalog}
    for bundle in {id(record.bundle): record.bundle for record in catalog}.values():
        if bundle.descriptor is None:
            raise LoadError(bundle.problem, plugin=bundle.name)
        if not bundle.file:
            entries = json.dumps([entry.entry for entry in bundle.descriptor.entries])
            raise DescriptorError(
                f"{bundle.owner} has no {DESCRIPTOR_NAME} that could be compared with its classes",
                plugin=bundle.name,
                hint=f'add one with {{"entries": {entries}}} to its package, and let the entry '
                "point name that package",
            )
        if not bundle.descriptor.supports(API_VERSION):
            # Its classes were written for other rules, so that comparing them would mislead.
            reason = records[id(bundle.descriptor.entries[0])].reason
            raise IncompatibleError(reason, plugin=bundle.name)
        plugins = [activator.load(records[id(entry)]) for entry in bundle.descriptor.entries]
        yield _describe_bundle(bundle, plugins)


def _describe_bundle(bundle: Bundle, plugins: list[LoadedPlugin]) -> Description:
    document = _read_document(bundle)
    entries, said = [], []
    for stated, plugin in zip(document["entries"], plugins, strict=True):
        made, words = _describe_entry(stated, plugin)
        entries.append(made)
        said += [f"{plugin.key}: {each}" for each in words]
    return Description(Path(bundle.file), {**document, "entries": entries}, tuple(said))


def _read_document(bundle: Bundle) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(Path(bundle.file).read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DescriptorError(
            f"{bundle.file} cannot be read: {error}", file=bundle.file, hint="check the file"
        ) from error
    return document


def _describe_entry(stated: Any, plugin: LoadedPlugin) -> tuple[dict[str, Any], list[str]]:
    """The entry as the class would have it, and each thing it says otherwise."""
    if isinstance(stated, str):
        return _full_form(stated, plugin), ["it is in the short form"]
    made: dict[str, Any] = dict(stated)
    words: list[str] = []
    for difference in differences(plugin):
        made = _set_key(made, difference.key, difference.value)
        words += difference.messages
    return made, words


def _full_form(path: str, plugin: LoadedPlugin) -> dict[str, Any]:
    """The entry of a class that was named alone: all that differs from the defaults."""
    usual = Entry.of_class(path)
    made: dict[str, Any] = {"entry": path}
    for key in Entry.__match_args__[1:]:
        value = getattr(plugin.entry, key)
        if key == "config_schema":
            value = settings_of(plugin) or {}
        if value != getattr(usual, key):
            made[key] = list(value) if isinstance(value, tuple) else value
    return made


def _set_key(entry: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The entry with a key set where it stands, or else where the contract has it."""
    if key in entry:
        return {**entry, key: value}
    order = Entry.__match_args__
    before = {*order[: order.index(key)]}
    place = max((n for n, known in enumerate(entry, 1) if known in before), default=0)
    pairs = list(entry.items())
    return dict([*pairs[:place], (key, value), *pairs[place:]])


def render_descriptor(document: Mapping[str, Any]) -> str:
    """As JSON for people: one line for what fits in one, unless it is an object of objects."""
    return _render_value(document, 0, 0)


def _render_value(value: Any, indent: int, taken: int) -> str:
    """``taken`` is how much of the first line is used, besides the indentation."""
    line = json.dumps(value, ensure_ascii=False)
    fits = indent + taken + len(line) <= _WIDTH
    if not isinstance(value, (Mapping, list)) or not value or (fits and not _has_objects(value)):
        return line
    inner, margin = " " * (indent + 2), " " * indent
    if isinstance(value, Mapping):
        names = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        items = [
            f"{inner}{name}{_render_value(item, indent + 2, len(name) + 1)}"
            for name, item in zip(names, value.values(), strict=True)
        ]
        return "{\n" + ",\n".join(items) + f"\n{margin}}}"
    items = [f"{inner}{_render_value(item, indent + 2, 1)}" for item in value]
    return "[\n" + ",\n".join(items) + f"\n{margin}]"


def _has_objects(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, Mapping) for item in value.values())
