"""The application's config: found, read, checked, and substituted.

One JSON or TOML file. Its JSON Schema is its model. A config that merely lies in the working folder
is somebody else's until the user trusts that folder: it may not name plugins, loosen the policy,
set the environment or send keys anywhere. It must not know what plugins there are.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_hookspecs.schema import find_problem

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact, remember_secrets
from agent_hookspecs.values import dataclass
from agent_host.plugins.catalog import LoaderSettings
from agent_host.plugins.settings import likely_secrets
from agent_host.private import config_home
from agent_host.trust import is_trusted

__all__ = [
    "CONFIG_SCHEMA",
    "AppConfig",
    "find_config",
    "load_config",
    "masked",
    "parse_config",
    "placeholders",
    "substitute",
]

_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}}
_DECISION = {"enum": ["allow", "ask", "deny"]}
_EFFECT = {"enum": ["read", "write", "execute", "network"]}
_COUNT = {"type": "integer", "minimum": 1}

CONFIG_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "agent-host config",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string"},
        "plugins": {
            **_NAMES,
            "description": "Plugin sources besides what is installed: path:, pkg: and git+.",
        },
        "plugin_cache_dir": {"type": "string", "description": "Where git+ sources are kept."},
        "allowed_plugins": {**_NAMES, "description": "Use only these bundles."},
        "denied_plugins": {**_NAMES, "description": "Never use these bundles."},
        "enabled_plugins": {**_NAMES, "description": "Plugins that are off by default."},
        "force_enabled_plugins": {**_NAMES, "description": "Take part whatever the tags say."},
        "prefer_plugins": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "From role:name to the distribution that wins a collision.",
        },
        "providers": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["provider"],
                "properties": {
                    "provider": {"type": "string", "minLength": 1},
                    "model": {"type": "string"},
                    "api_key": {"type": "string"},
                    "base_url": {"type": "string"},
                    "add_tags": {**_NAMES, "description": "What the model can do besides."},
                    "remove_tags": {**_NAMES, "description": "What the model cannot do after all."},
                },
            },
            "description": "Aliases: a provider plugin with its settings. One alone is used by "
            "agents that name none.",
        },
        "agents": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "provider": {"type": "string", "description": "An alias, or a plugin id."},
                    "model": {"type": "string"},
                    "system": {"type": "string", "description": "The system prompt."},
                    "tools": {**_NAMES, "description": "Patterns of the tools it may use."},
                },
            },
            "description": "Agents by name; 'default' is used when none is named.",
        },
        "tools": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "effects": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": dict.fromkeys(_EFFECT["enum"], _DECISION),
                    "description": "What to do with calls of each effect.",
                },
                "rules": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["decision"],
                        "additionalProperties": False,
                        "properties": {
                            "tool": {"type": "string", "minLength": 1},
                            "effect": _EFFECT,
                            "decision": _DECISION,
                        },
                    },
                    "description": "By name pattern and effect; the first that fits counts.",
                },
                "approved_distributions": {
                    **_NAMES,
                    "description": "Whose claim that a tool only reads is believed.",
                },
                "max_turns": _COUNT,
                "max_tool_calls": _COUNT,
                "max_tool_calls_per_turn": _COUNT,
                "max_tokens": _COUNT,
                "max_seconds": {"type": "number", "minimum": 0},
                "max_argument_bytes": _COUNT,
                "max_result_bytes": _COUNT,
                "parallel": {"type": "boolean"},
            },
            "description": "Policy and limits of tool use.",
        },
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Values for ${env:NAME}, put into the environment for plugins too.",
        },
        "request_defaults": {
            "type": "object",
            "description": "Settings of every request that nothing else sets.",
        },
        "http": {"enum": ["httpx", "httpx2"], "description": "The HTTP library."},
        "store": {"type": "string", "description": "The URL of the session store."},
    },
}

#: All that a config of a folder that is not trusted may set: nothing here can run code, loosen the
#: policy, or tell anybody a secret.
_HARMLESS = ("$schema", "denied_plugins", "providers", "agents")
_HARMLESS_OF_PROVIDERS = ("provider", "model")
_HARMLESS_OF_AGENTS = ("provider", "model", "system", "tools")
#: What an agent has besides settings of its requests.
_NOT_SETTINGS = ("provider", "system", "tools")
#: Where people keep keys: what stands there is never repeated in a message.
_CONFIDENTIAL = re.compile(r"(env|providers|agents|request_defaults)\b")
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie|signature")
_IN_URL = re.compile(r"(?<=//)[^/@\s]+(?=@)")
_MASK = "[redacted]"
_NAMES_IN_FOLDER = ("agent-host.json", "agent-host.toml")
_NAMES_AT_HOME = ("config.json", "config.toml")
_PLACEHOLDER = re.compile(r"\$\{env:(?P<name>[^}:]*)(?P<default>:-[^}]*)?\}")


@dataclass(frozen=True, slots=True)
class AppConfig:
    """A checked config and the file it came from (None: nothing is configured).

    ``base`` is where its relative paths start, if that is not beside the file.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None
    base: Path | None = None

    @property
    def folder(self) -> Path:
        """Where relative sources start."""
        return self.base or (self.file.parent if self.file else Path.cwd())

    @property
    def env(self) -> Mapping[str, str]:
        return {**os.environ, **self.values.get("env", {})}

    def loader_settings(self) -> LoaderSettings:
        values = self.values
        allowed = values.get("allowed_plugins")
        return LoaderSettings(
            sources=tuple(self._filled("plugins", values.get("plugins", []))),
            allow=None if allowed is None else frozenset(allowed),
            deny=frozenset(values.get("denied_plugins", ())),
            enabled=frozenset(values.get("enabled_plugins", ())),
            forced=frozenset(values.get("force_enabled_plugins", ())),
            prefer=values.get("prefer_plugins", {}),
        )

    def clones(self) -> Path | None:
        """Where ``git+`` sources are kept, if the config says so."""
        named = self.values.get("plugin_cache_dir")
        if named is None:
            return None
        return Path(self.folder, os.path.expanduser(self._filled("plugin_cache_dir", named)))

    def request_config(
        self, agent: str | None = None, provider: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """The effective settings: defaults, then the provider alias, then agent, then caller."""
        described = self._agent(agent)
        aliases: Mapping[str, Any] = self.values.get("providers", {})
        # Whoever describes one provider and no more means that one.
        usual = described.get("provider") or (next(iter(aliases)) if len(aliases) == 1 else None)
        named = provider or usual
        own = {key: value for key, value in described.items() if key not in _NOT_SETTINGS}
        if named != usual:
            # The agent's model is one of the agent's provider.
            own.pop("model", None)
        settings: dict[str, Any] = self._filled(
            "request_defaults", self.values.get("request_defaults", {})
        )
        if named is not None and named in aliases:
            settings |= self._filled(f"providers.{named}", aliases[named])
        elif named is not None:
            settings["provider"] = named
        settings |= self._filled(f"agents.{agent or 'default'}", own)
        if model is not None:
            settings["model"] = model
        remember_secrets(likely_secrets(settings))
        return settings

    def system_prompt(self, agent: str | None = None) -> str | None:
        prompt = self._agent(agent).get("system")
        where = f"agents.{agent or 'default'}.system"
        return None if prompt is None else str(self._filled(where, prompt))

    def tool_patterns(self, agent: str | None = None) -> list[str] | None:
        """The tools an agent may use; None: all that take part."""
        patterns = self._agent(agent).get("tools")
        return None if patterns is None else list(patterns)

    def unknown(self, what: str, name: str, known: Iterable[str], key: str) -> ConfigError:
        """The error for a name that is not there."""
        names = sorted(known)
        import difflib

        near = difflib.get_close_matches(name, names, 1)
        listed = f"there are: {', '.join(names) or 'none'}"
        return ConfigError(
            _located(f"there is no {what} {name!r}", self._file()),
            key=key,
            file=self._file(),
            hint=f"did you mean {near[0]!r}? {listed}" if near else listed,
        )

    def _agent(self, name: str | None) -> Mapping[str, Any]:
        agents: Mapping[str, Mapping[str, Any]] = self.values.get("agents", {})
        if name is None:
            return agents.get("default", {})
        if name not in agents:
            raise self.unknown("agent", name, agents, f"agents.{name}")
        return agents[name]

    def _filled(self, where: str, value: Any) -> Any:
        return substitute(value, self.env, where, self._file())

    def _file(self) -> str | None:
        return str(self.file) if self.file else None


def find_config(folder: Path | None = None) -> Path | None:
    """The working folder's config if there is one, else the user's own, else None."""
    return _first(folder or Path.cwd(), _NAMES_IN_FOLDER) or _own_config()


def _own_config() -> Path | None:
    return _first(config_home(), _NAMES_AT_HOME)


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    return next((file for name in names if (file := folder / name).is_file()), None)


def load_config(file: Path | None = None, *, folder: Path | None = None) -> AppConfig:
    """The config in ``file``, or whichever `find_config` finds.

    A file the caller names is theirs. One that was found in a folder that is not trusted is
    refused as soon as it says something that needs trust; otherwise it adds to the user's own,
    whose policy stays in force.
    """
    found = file or find_config(folder)
    if found is None:
        return AppConfig()
    config = parse_config(_read(found), found)
    own = _own_config()
    if file is not None or found == own or is_trusted(found.parent):
        return config
    _refuse_untrusted(config, found)
    return _joined(parse_config(_read(own), own) if own else AppConfig(), config)


def _joined(own: AppConfig, other: AppConfig) -> AppConfig:
    """The user's own config with the agents and aliases of another."""
    values = dict(own.values)
    for key in ("providers", "agents"):
        if key in other.values:
            values[key] = {**values.get(key, {}), **other.values[key]}
    if "denied_plugins" in other.values:
        values["denied_plugins"] = [
            *values.get("denied_plugins", ()),
            *other.values["denied_plugins"],
        ]
    return AppConfig(values, other.file, own.folder)


def parse_config(values: object, file: Path | None = None) -> AppConfig:
    """Check decoded values; a `ConfigError` names file, key and what would be right."""
    problem = find_problem(values, CONFIG_SCHEMA)
    if problem is not None:
        wrong_value = problem.remedy.startswith("it must be")
        hidden = wrong_value and _CONFIDENTIAL.match(problem.where)
        what = f"{problem.where} has a value of the wrong kind" if hidden else redact(problem.what)
        place = str(file) if file else None
        raise ConfigError(
            _located(what, place), key=problem.where or None, file=place, hint=problem.remedy
        )
    assert isinstance(values, dict)
    remember_secrets(likely_secrets(values))
    return AppConfig(values, file)


def _located(what: str, file: str | None) -> str:
    return f"{file}: {what}" if file else what


def _read(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror or error}", file=str(file), hint="check it"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: {error}", file=str(file)) from error
    try:
        return _loads_toml(text) if file.suffix == ".toml" else json.loads(text)
    except RecursionError:
        raise ConfigError(f"{file} is nested too deeply", file=str(file)) from None
    except ValueError as error:
        kind = "TOML" if file.suffix == ".toml" else "JSON"
        raise ConfigError(
            f"{file} is not {kind}: {error}", file=str(file), hint="correct it"
        ) from error


def _loads_toml(text: str) -> object:
    module = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    document: object = module.loads(text)
    return document


def _refuse_untrusted(config: AppConfig, file: Path) -> None:
    wanted = [key for key in config.values if key not in _HARMLESS]
    for section, harmless in (
        ("providers", _HARMLESS_OF_PROVIDERS),
        ("agents", _HARMLESS_OF_AGENTS),
    ):
        for name, described in config.values.get(section, {}).items():
            # A placeholder would send whatever the environment has under any name.
            wanted += [
                f"{section}.{name}.{key}"
                for key, value in described.items()
                if key not in harmless or _has_placeholder(value)
            ]
    if wanted:
        raise ConfigError(
            f"{file} sets {', '.join(wanted)}, and its folder is not trusted",
            key=wanted[0],
            file=str(file),
            hint="read the file, then run: agent-host config trust",
        )


def _has_placeholder(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_placeholder, value))
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def masked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Config values as they may be shown; the names of environment variables are no secrets."""
    return {
        key: _masked(value, key == "env" or _names_secret(key)) for key, value in values.items()
    }


def _masked(value: Any, secret: bool) -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(item, secret or _names_secret(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, secret) for item in value]
    if isinstance(value, str):
        return _masked_text(value) if secret else _IN_URL.sub(_MASK, redact(value))
    return _MASK if secret and not isinstance(value, (bool, type(None))) else value


def _masked_text(text: str) -> str:
    match = _PLACEHOLDER.fullmatch(text)
    if match is None:
        return _MASK
    return f"${{env:{match['name']}:-{_MASK}}}" if match["default"] else text


def _names_secret(key: str) -> bool:
    return not key.startswith("max_") and _SECRET_NAME.search(key) is not None


def substitute(value: Any, env: Mapping[str, str], where: str, file: str | None = None) -> Any:
    """``value`` with every ``${env:NAME}`` or ``${env:NAME:-default}`` in it replaced."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _looked_up(match, env, where, file), value)
    if isinstance(value, Mapping):
        return {k: substitute(v, env, f"{where}.{k}", file) for k, v in value.items()}
    if isinstance(value, list):
        return [substitute(v, env, f"{where}[{n}]", file) for n, v in enumerate(value)]
    return value


def _looked_up(match: re.Match[str], env: Mapping[str, str], where: str, file: str | None) -> str:
    name, default = match["name"], match["default"]
    if name in env:
        return env[name]
    if default is not None:
        return default[2:]
    raise ConfigError(
        _located(f"{where} needs the environment variable {name}, which is not set", file),
        key=where,
        file=file,
        hint=f"export {name}=…, or write ${{env:{name}:-default}}",
    )


def placeholders(value: Any) -> Iterator[str]:
    """The names of the environment variables a value asks for without a default."""
    if isinstance(value, str):
        yield from (m["name"] for m in _PLACEHOLDER.finditer(value) if m["default"] is None)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from placeholders(item)
    elif isinstance(value, list):
        for item in value:
            yield from placeholders(item)
