"""The settings of a request: what the active plugins ask for, checked key by key.

Plugins describe their settings as a flat map of keys or as a JSON Schema object; both become one
table. The check covers what a person gets wrong: a missing key, a value of the wrong type or not
among the choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_hookspecs.authoring.knobs import KNOBS
from agent_hookspecs.errors import ConfigError, ContractError
from agent_hookspecs.logs import get_logger, names_secret, remember_secrets
from agent_hookspecs.messages import ModelInfo
from agent_hookspecs.tool_interop import ToolInteropContribution
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest
from agent_host.plugins.access import KEY_SETTINGS
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.implementation import log_failure
from agent_host.redaction import (
    holds_secrets,
    is_secret,
    marked_secrets,
    named_secrets,
    without_secrets,
)
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.plugins.activate import LoadedPlugin
    from agent_host.plugins.stack import PlainWarning

__all__ = [
    "HOST_SETTINGS",
    "ConfigSchema",
    "Setting",
    "describe_unused",
    "is_common",
    "merge_schemas",
    "read_settings",
    "read_texts",
    "value_objection",
    "wants_tool",
]

log = get_logger(__name__)

#: The settings of a request that the host itself reads, or that any provider may be given.
HOST_SETTINGS = frozenset(
    {
        "add_tags",
        "api_key",
        "api_key_command",
        "api_key_file",
        "api_key_name",
        "api_key_seconds",
        "base_url",
        "debug_stream",
        "enabled_plugins",
        "force_enabled_plugins",
        "max_answer_bytes",
        "max_answer_calls",
        "max_answer_values",
        "max_event_bytes",
        "max_hook_seconds",
        "model",
        "on_plugin_error",
        "provider",
        "remove_tags",
        "request_defaults",
        "retries",
        "slow_hook_seconds",
        "timeout",
        "tool_interop",
        "tools",
        "use_tools",
    }
)

#: More models than this are no help to who has to choose one.
_MAX_NAMES = 8

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
#: What these are called among people.
_TYPE_WORDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key and the plugin that asks for it; ``schema`` is as the plugin wrote it.

    ``owner`` is the plugin's key, by which plugins of one name and different roles are told apart.
    """

    key: str
    owner: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.owner.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class ConfigSchema:
    """The settings of a stack by key; where two plugins know a key, the first one's word counts.

    But what any of them marks as secret is: ``marked`` has the settings, of whichever plugin, that
    are marked or have something in them that is.
    """

    settings: Mapping[str, Setting] = field(default_factory=dict)
    marked: tuple[Setting, ...] = ()

    def secrets(self, config: Mapping[str, Any]) -> Iterator[str]:
        """The values in ``config`` that are marked as secrets, or stand under such a name."""
        yield from named_secrets(config)
        for setting in self.marked:
            yield from marked_secrets(setting.schema, config.get(setting.key))

    def remember_new_secrets(
        self, known: Mapping[str, Any], state: object, *, with_tools: bool = False
    ) -> None:
        """Remember the secrets that plugins have put into the config of a state since ``known``.

        Tools are many and seldom what an ``init`` changes: they are looked at if asked for.
        """
        config = state.get("config") if isinstance(state, dict) else None
        if not isinstance(config, dict):
            return
        if (with_tools or "tools" not in known) and config == known:
            return
        new = {
            key: value
            for key, value in config.items()
            if value is not (was := known.get(key))
            and (with_tools or key != "tools")
            and not (isinstance(value, (dict, list)) and value == was)
        }
        if new:
            remember_secrets(self.secrets(new))

    def watch_config(self, state: object) -> Callable[[object], None]:
        """What remembers the secrets that plugins put into the config of a state from now on."""
        config = state.get("config") if isinstance(state, dict) else None
        given = config if isinstance(config, dict) else {}
        # A copy, because plugins change what is nested in place. Tools are not looked at.
        known = {key: plain_copy(value) for key, value in given.items() if key != "tools"}
        return partial(self.remember_new_secrets, known)

    def for_tool(self, tool: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the config as the tool of that key may see it: of secrets, only its own.

        What says with which key a provider is asked is no tool's, whatever it calls its own.
        """
        own = {key for key, s in self.settings.items() if s.owner == tool} - {*KEY_SETTINGS}
        hidden = {setting.key for setting in self.marked if setting.owner != tool} - own
        hidden.update(KEY_SETTINGS)
        return {
            key: plain_copy(value) if key in own else without_secrets(value)
            for key, value in config.items()
            if key not in hidden and (key in own or not names_secret(key))
        }

    def with_defaults(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The config with the defaults of keys that are not set, or set to None."""
        defaults = {
            key: setting.schema["default"]
            for key, setting in self.settings.items()
            if "default" in setting.schema and config.get(key) is None
        }
        return {**config, **defaults}

    def check_values(self, config: Mapping[str, Any]) -> None:
        """Refuse values of the wrong kind; keys that neither plugins nor we know are left alone."""
        _check_tool_settings(config)
        for key, setting in self.settings.items():
            objection = value_objection(setting, config.get(key))
            if objection is not None:
                what, hint = objection
                raise ConfigError(f"setting {key!r} {what}", key=key, hint=hint)

    def check_required(self, config: Mapping[str, Any], models: Sequence[ModelInfo]) -> None:
        """Refuse a config in which a required key is missing or empty.

        ``models`` are those on offer, for who has not chosen one.
        """
        for key, setting in self.settings.items():
            if setting.required and config.get(key) in (None, ""):
                described = setting.schema.get("description")
                hint = f"set {key!r} in the config" + (f": {described}" if described else "")
                raise ConfigError(
                    f"plugin {setting.plugin!r} needs the setting {key!r}",
                    key=key,
                    hint=_model_hint(models) if key == "model" else hint,
                )

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """As a flat map, each key with the plugin that asks for it."""
        return {
            key: {**setting.schema, "required": setting.required, "plugin": setting.plugin}
            for key, setting in self.settings.items()
        }


def merge_schemas(schemas: Iterable[tuple[str, object]]) -> ConfigSchema:
    """One table from what each plugin, given by its key, said; what is no schema is left out."""
    settings: dict[str, Setting] = {}
    marked: list[Setting] = []
    for owner, schema in schemas:
        for key, described, required in _read_keys(schema):
            setting = Setting(key, owner, described, required)
            first = settings.setdefault(key, setting)
            if holds_secrets(described):
                marked.append(setting)
            if is_secret(described) and not is_secret(first.schema):
                settings[key] = replace(first, schema={**first.schema, "secret": True})
    return ConfigSchema(settings, tuple(marked))


def read_settings(plugins: Iterable[LoadedPlugin], warnings: list[PlainWarning]) -> ConfigSchema:
    """The settings that plugins ask for; one that cannot say is told in ``warnings``."""
    described: list[tuple[str, object]] = []
    for plugin in plugins:
        schema: object = plugin.entry.config_schema
        if "get_config_schema" in plugin.implementations:
            try:
                schema = plugin.ask("get_config_schema")
            except Exception as error:
                why = log_failure(log, "settings_unknown", error, plugin=plugin.name)
                text = f"plugin {plugin.name!r} could not give its settings: {why}"
                warnings.append((text, plugin.name))
                continue
        described.append((plugin.key, schema))
    return merge_schemas(described)


def _read_keys(schema: object) -> Iterable[tuple[str, Mapping[str, Any], bool]]:
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and all(isinstance(p, Mapping) for p in properties.values()):
        required = schema.get("required")
        names = required if isinstance(required, (list, tuple)) else ()
        for key, described in properties.items():
            yield key, described, key in names
        return
    for key, described in schema.items():
        if isinstance(described, Mapping):
            yield key, described, described.get("required") is True


def read_texts(config: Mapping[str, Any], key: str, what: str, hint: str) -> frozenset[str]:
    """The texts that a config lists under a key; ``what`` they are is said if they are none."""
    texts = config.get(key)
    if texts is None:
        return frozenset()
    if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) for each in texts):
        raise ConfigError(f"{key} is not a list of {what}", key=key, hint=hint)
    return frozenset(texts)


def wants_tool(config: Mapping[str, Any], tool: str) -> bool:
    """Whether the config's ``use_tools`` patterns, if there are any, name the tool."""
    patterns = _tool_patterns(config)
    return config.get("use_tools") is None or any(fnmatchcase(tool, each) for each in patterns)


def _tool_patterns(config: Mapping[str, Any]) -> frozenset[str]:
    hint = "give a list of strings, such as the names of tools"
    return read_texts(config, "use_tools", "patterns", hint)


def _check_tool_settings(config: Mapping[str, Any]) -> None:
    """Refuse what the host itself could not read."""
    _tool_patterns(config)
    tools = config.get("tools")
    if tools is not None and not isinstance(tools, (list, tuple)):
        raise ConfigError(
            f"tools is {type(tools).__name__}", key="tools", hint="give a list of declarations"
        )
    try:
        ToolInteropContribution.of(config.get("tool_interop"))
    except ContractError as error:
        raise ConfigError(
            f"tool_interop cannot be used: {error.message}",
            key="tool_interop",
            hint="give what get_tool_interop_contribution may return",
        ) from error


def is_common(key: str) -> bool:
    """Whether a setting needs no plugin to be known: the host reads it, or it is a knob."""
    return key in HOST_SETTINGS or key in KNOBS


def describe_unused(config: Iterable[str], schema: ConfigSchema, catalog: Catalog) -> Iterator[str]:
    """Words for the settings that nobody reads: neither the host nor a plugin of ``schema``."""
    unknown = [key for key in config if key not in schema.settings and not is_common(key)]
    if not unknown:
        return
    elsewhere = {
        key: record.name
        for record in catalog
        if record.entry is not None
        for key in record.entry.config_schema
    }
    for key in unknown:
        if key in elsewhere:
            why = f"plugin {elsewhere[key]!r}, which knows it, takes no part in this request"
        else:
            near = suggest(key, [*HOST_SETTINGS, *KNOBS, *schema.settings])
            why = f"no plugin knows it; {near}".removesuffix("; ")
        yield f"the setting {key!r} is ignored: {why}"


def _model_hint(models: Sequence[ModelInfo]) -> str:
    hint = "choose one with --model, or set 'model' in the config"
    names = [model["id"] for model in models]
    if not names:
        return hint
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{hint}; there are: {', '.join(names[:_MAX_NAMES])}{more}"


def value_objection(setting: Setting, value: object) -> tuple[str, str] | None:
    """What is wrong with the value of a setting, and what would be right; None if nothing is."""
    if value is None:
        return None
    who = f"plugin {setting.plugin!r}" if setting.plugin else "this knob"
    wanted = setting.schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    kinds = tuple(kind for name in names for kind in _TYPES.get(name, ()))
    # True is a whole number to Python, but to nobody else.
    fits = bool in kinds if isinstance(value, bool) else isinstance(value, kinds)
    if kinds and not fits:
        # Not the value itself, which may be a key.
        given = next((name for name, types in _TYPES.items() if type(value) in types), "")
        words = " or ".join(_TYPE_WORDS.get(name, name) for name in names)
        return f"is {_TYPE_WORDS.get(given, type(value).__name__)}", f"{who} wants {words}"
    choices = setting.schema.get("enum")
    if isinstance(choices, (list, tuple)) and value not in choices:
        return (
            "is none of the choices",
            f"{who} wants one of {', '.join(map(str, choices))}",
        )
    return None
