"""The model of ``agent_plugin.json``: what it may say, and how it is read.

The JSON Schema in `DESCRIPTOR_SCHEMA` is the model. It is what `parse_descriptor` checks against
and what is shipped as ``agent_plugin.schema.json``, so the two cannot drift apart. Reading files,
and what becomes of the entries, is the host's concern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import DescriptorError
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.schema import find_problem
from agent_hookspecs.values import dataclass
from agent_hookspecs.versions import contains

if TYPE_CHECKING:
    from agent_hookspecs.messages import Effect

__all__ = [
    "DESCRIPTOR_NAME",
    "DESCRIPTOR_SCHEMA",
    "Descriptor",
    "Entry",
    "parse_descriptor",
    "split_entry",
]

DESCRIPTOR_NAME = "agent_plugin.json"

_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_TAGS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_NAME = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"}
_NAMES = {"type": "array", "items": _NAME}
_ENTRY_POINT = {
    "type": "string",
    "pattern": rf"^{_IDENTIFIER}(\.{_IDENTIFIER})*(:{_IDENTIFIER}|\.{_IDENTIFIER})$",
}

_ENTRY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["entry", "role", "name"],
    "properties": {
        "entry": {
            **_ENTRY_POINT,
            "description": "The class, as package.module:Class or package.module.Class.",
        },
        "role": {"enum": list(PLUGIN_ROLES), "description": "The role of the class."},
        "name": {**_NAME, "description": "The plugin id, unique per role."},
        "label": {"type": "string", "description": "The name people see."},
        "description": {"type": "string", "description": "What it is good for, in one sentence."},
        "provides_tags": {**_TAGS, "description": "Tags it adds when it takes part."},
        "required_tags": {**_TAGS, "description": "Tags that must all be present."},
        "forbidden_tags": {**_TAGS, "description": "Tags of which none may be present."},
        "dynamic": {
            "type": "array",
            "items": {
                "enum": [
                    "get_config_schema",
                    "get_models",
                    "get_tags",
                    "get_tool_schemas",
                    "is_enabled",
                ]
            },
            "description": "Hooks whose answer the descriptor cannot give and that must be asked.",
        },
        "before": {**_NAMES, "description": "Plugins of the same role that run after it."},
        "after": {**_NAMES, "description": "Plugins of the same role that run before it."},
        "priority": {"type": "integer", "description": "Higher runs earlier; 0 by default."},
        "default_enabled": {
            "type": "boolean",
            "description": "False: takes part only when named in enabled_plugins.",
        },
        "fallback": {
            "type": "boolean",
            "description": "The provider that is used when none is configured.",
        },
        "requires_api_key": {"type": "boolean", "description": "It cannot work without a key."},
        "optional_api_key": {"type": "boolean", "description": "It sends a key if it has one."},
        "requires_base_url": {"type": "boolean", "description": "It needs to be told a URL."},
        "key_variable": {
            "type": "string",
            "pattern": rf"^{_IDENTIFIER}$",
            "description": "The environment variable that customarily holds the key.",
        },
        "config_schema": {"type": "object", "description": "As get_config_schema returns it."},
        "options": {"type": "object", "description": "Keyword arguments for the constructor."},
        "tools": {
            "type": "object",
            "additionalProperties": {"enum": ["read", "write", "execute", "network"]},
            "description": "For role tool: each tool's wire name and its effect.",
        },
        "commands": {
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
            "description": "Commands it adds to agent-host.",
        },
    },
}

DESCRIPTOR_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": DESCRIPTOR_NAME,
    "description": "What a package offers to Agent Host, readable without importing it.",
    "type": "object",
    "required": ["entries"],
    "properties": {
        "$schema": {"type": "string"},
        "api": {
            "type": "string",
            "minLength": 1,
            "description": "The contract versions it works with, such as >=1,<2.",
        },
        "subdirectory": {
            "type": "string",
            "minLength": 1,
            "description": "Where the packages are, relative to the descriptor's folder.",
        },
        "entries": {
            "type": "array",
            "minItems": 1,
            "items": {
                "anyOf": [
                    {**_ENTRY_POINT, "description": "Short form: the class alone."},
                    _ENTRY_SCHEMA,
                ]
            },
            "description": "The plugin classes of the package.",
        },
    },
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One plugin class. In short form only ``entry`` is known until the class is imported."""

    entry: str
    role: PluginRole | None = None
    name: str | None = None
    label: str = ""
    description: str = ""
    provides_tags: tuple[str, ...] = ()
    required_tags: tuple[str, ...] = ()
    forbidden_tags: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    priority: int = 0
    default_enabled: bool = True
    fallback: bool = False
    requires_api_key: bool = False
    optional_api_key: bool = False
    requires_base_url: bool = False
    key_variable: str | None = None
    config_schema: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, Effect] = field(default_factory=dict)
    commands: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Entry:
        """An entry from checked JSON values; lists become tuples."""
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(**known)

    @property
    def short(self) -> bool:
        """Whether role and name are unknown until the class is imported."""
        return self.role is None


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A whole descriptor; ``unknown_keys`` are paths of keys this version does not know."""

    entries: tuple[Entry, ...]
    api: str | None = None
    subdirectory: str = "."
    unknown_keys: tuple[str, ...] = ()

    def supports(self, api_version: str) -> bool:
        return self.api is None or contains(self.api, api_version)


def split_entry(entry: str) -> tuple[str, str]:
    """Module and class name of ``pkg.mod:Class`` or ``pkg.mod.Class``."""
    module, _, name = entry.partition(":") if ":" in entry else entry.rpartition(".")
    return module, name


def parse_descriptor(data: object) -> Descriptor:
    """Check decoded JSON against the model; a `DescriptorError` names the key and what is right.

    Keys the model does not know are kept as ``unknown_keys`` rather than refused, so that a package
    written for a newer contract can still be read.
    """
    problem = find_problem(data, DESCRIPTOR_SCHEMA)
    if problem is not None:
        raise DescriptorError(problem.what, key=problem.where or None, hint=problem.remedy)
    document = cast(dict[str, Any], data)
    api = document.get("api")
    if api is not None:
        try:
            contains(api, "0")
        except ValueError:
            raise DescriptorError(
                f"api is {api!r:.60}", key="api", hint="it must be a version range such as '>=1,<2'"
            ) from None
    unknown = [key for key in document if key not in DESCRIPTOR_SCHEMA["properties"]]
    entries = []
    for number, value in enumerate(document["entries"]):
        where = f"entries[{number}]"
        if isinstance(value, str):
            entries.append(Entry(value))
            continue
        unknown += [f"{where}.{key}" for key in value if key not in _ENTRY_SCHEMA["properties"]]
        entries.append(_entry(value, where))
    return Descriptor(
        entries=tuple(entries),
        api=api,
        subdirectory=document.get("subdirectory", "."),
        unknown_keys=tuple(unknown),
    )


def _entry(value: dict[str, Any], where: str) -> Entry:
    known = {key: value[key] for key in value if key in _ENTRY_SCHEMA["properties"]}
    for side in ("before", "after"):
        if known["name"] in known.get(side, ()):
            raise DescriptorError(
                f"{where}.{side} names the plugin itself, {known['name']!r}",
                key=f"{where}.{side}",
                hint="remove it",
            )
    for key, role in (("tools", "tool"), ("fallback", "provider")):
        if known.get(key) and known["role"] != role:
            raise DescriptorError(
                f"{where}.{key} is for role {role!r}, but the entry has role {known['role']!r}",
                key=f"{where}.{key}",
                hint="remove it, or correct the role",
            )
    return Entry.of(known)
