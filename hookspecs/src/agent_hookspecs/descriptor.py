"""The keys of ``agent_plugin.json`` as values: what a package offers, known without an import.

The fields of `Entry` are the one statement of an entry's keys; the host checks files against them,
and the JSON Schema that is shipped is made of them. Reading files, and what becomes of the entries,
is the host's concern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from agent_hookspecs.roles import Effect, PluginRole
from agent_hookspecs.values import dataclass
from agent_hookspecs.versions import contains

__all__ = ["DESCRIPTOR_NAME", "Descriptor", "Entry", "InFile", "split_entry"]

DESCRIPTOR_NAME = "agent_plugin.json"


class InFile:
    """What a value must be where it stands in a file: a type, and constraints of pydantic's own.

    pydantic asks it when a file is checked, so that stating a constraint imports nothing.
    """

    __slots__ = ("_constraints", "_kind")

    def __init__(self, kind: Any, **constraints: Any) -> None:
        self._kind = kind
        self._constraints = constraints

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {**handler(self._kind), **self._constraints}


#: What a plugin may be called.
PLUGIN_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"
_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_CLASS_PATH = rf"^{_WORD}(\.{_WORD})*(:{_WORD}|\.{_WORD})$"
_VARIABLE = rf"^{_WORD}$"
_COMMAND_NAME = "^[a-z][a-z0-9-]*$"
_SCHEME = "^[a-z][a-z0-9+.-]*$"
_WEB_ADDRESS = r"^https?://[^\s<>\"]+$"
#: What the patterns ask, for people.
PATTERN_WORDS: Mapping[str, str] = {
    PLUGIN_NAME: "a name of at most 128 letters, digits and any of _ . : - that begins with a "
    "letter or digit",
    _CLASS_PATH: "a module and a class in it, as package.module:Class",
    _VARIABLE: "a name as variables of the environment have it",
    _COMMAND_NAME: "a name of small letters, digits and dashes that begins with a letter",
    _SCHEME: "the scheme of a URL: small letters, digits and any of + . - after a letter",
    _WEB_ADDRESS: "an address that begins with https:// or http://",
}

ClassPath = Annotated[str, InFile(str, strict=True, pattern=_CLASS_PATH)]
PluginName = Annotated[str, InFile(str, strict=True, pattern=PLUGIN_NAME)]
Text = Annotated[str, InFile(str, strict=True)]
FilledText = Annotated[str, InFile(str, strict=True, min_length=1)]
Variable = Annotated[str, InFile(str, strict=True, pattern=_VARIABLE)]
CommandName = Annotated[str, InFile(str, strict=True, pattern=_COMMAND_NAME)]
Scheme = Annotated[str, InFile(str, strict=True, pattern=_SCHEME)]
WebAddress = Annotated[str, InFile(str, strict=True, pattern=_WEB_ADDRESS)]
Whole = Annotated[int, InFile(int, strict=True)]
Flag = Annotated[bool, InFile(bool, strict=True)]
#: How well a package is tried out, from the least to the most.
QualityTier = Literal["bronze", "silver", "gold"]
#: The hooks whose answers a descriptor may leave to the class.
AskedHook = Literal["get_config_schema", "get_models", "get_tags", "get_tool_schemas", "is_enabled"]


def _key(description: str, **default: Any) -> Any:
    return field(metadata={"description": description}, **default)


@dataclass(frozen=True, slots=True)
class Entry:
    """One plugin class. In short form only ``entry`` is known until the class is imported."""

    entry: ClassPath = _key("The class, as package.module:Class or package.module.Class.")
    role: Annotated[PluginRole | None, InFile(PluginRole)] = _key("The role of the class.")
    name: Annotated[str | None, InFile(PluginName)] = _key("The plugin id, unique per role.")
    label: Text = _key("The name people see.", default="")
    description: Text = _key("What it is good for, in one sentence.", default="")
    provides_tags: tuple[FilledText, ...] = _key("Tags it adds when it takes part.", default=())
    required_tags: tuple[FilledText, ...] = _key("Tags that must all be present.", default=())
    forbidden_tags: tuple[FilledText, ...] = _key("Tags of which none may be present.", default=())
    required_plugins: tuple[PluginName, ...] = _key(
        "Plugins that must take part as well, each by its name or as role:name.", default=()
    )
    dynamic: tuple[AskedHook, ...] = _key(
        "Hooks whose answer the descriptor cannot give and that must be asked.", default=()
    )
    before: tuple[PluginName, ...] = _key("Plugins of the same role that run after it.", default=())
    after: tuple[PluginName, ...] = _key("Plugins of the same role that run before it.", default=())
    priority: Whole = _key("Higher runs earlier; 0 by default.", default=0)
    default_enabled: Flag = _key(
        "False: takes part only when named in enabled_plugins.", default=True
    )
    fallback: Flag = _key("The provider that is used when none is configured.", default=False)
    requires_api_key: Flag = _key("It cannot work without a key.", default=False)
    optional_api_key: Flag = _key("It sends a key if it has one.", default=False)
    requires_base_url: Flag = _key("It needs to be told a URL.", default=False)
    key_variable: Annotated[str | None, InFile(Variable)] = _key(
        "The environment variable that customarily holds the key.", default=None
    )
    address_variable: Annotated[str | None, InFile(Variable)] = _key(
        "The environment variable that customarily holds the server's address.", default=None
    )
    local_server: Flag = _key(
        "A server of its own that answers on this machine is enough to use it.", default=False
    )
    default_model: Text = _key("The model to ask if nothing names one.", default="")
    config_schema: Mapping[str, Any] = _key(
        "As get_config_schema returns it.", default_factory=dict
    )
    options: Mapping[str, Any] = _key(
        "Keyword arguments for the constructor.", default_factory=dict
    )
    tools: Mapping[str, Effect] = _key(
        "For role tool: the wire name of every tool, and its effect.", default_factory=dict
    )
    commands: tuple[CommandName, ...] = _key("Commands it adds to agent-host.", default=())
    stores: tuple[Scheme, ...] = _key("URL schemes of the session stores it opens.", default=())
    engines: tuple[CommandName, ...] = _key("Names of the batch engines it opens.", default=())
    resolves_secrets: Flag = _key("It is asked for keys: it has resolve_secret.", default=False)
    knows_prices: Flag = _key("It is asked what models cost: it has model_prices.", default=False)

    @classmethod
    def of_class(cls, entry: str) -> Entry:
        """The short form: the class alone."""
        return cls(entry, None, None)

    @property
    def short(self) -> bool:
        """Whether role and name are unknown until the class is imported."""
        return self.role is None


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A whole descriptor; ``unknown_keys`` are paths of keys this version does not know.

    What it says of the package, from ``homepage`` to ``license``, counts where the metadata of the
    distribution are silent. ``tier`` is a claim, which a ``conformance.json`` may prove.
    """

    entries: tuple[Entry, ...]
    api: str | None = None
    subdirectory: str = "."
    unknown_keys: tuple[str, ...] = ()
    homepage: str = ""
    documentation: str = ""
    issues: str = ""
    license: str = ""
    tier: QualityTier | None = None

    def supports(self, api_version: str) -> bool:
        return self.api is None or contains(self.api, api_version)


def split_entry(entry: str) -> tuple[str, str]:
    """Module and class name of ``pkg.mod:Class`` or ``pkg.mod.Class``."""
    module, _, name = entry.partition(":") if ":" in entry else entry.rpartition(".")
    return module, name
