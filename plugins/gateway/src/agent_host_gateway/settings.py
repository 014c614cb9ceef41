"""What a gateway can be told in the config, under ``gateway`` in ``request_defaults``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agent_hookspecs import ConfigError

__all__ = ["CONFIG_SCHEMA", "Settings", "read_settings"]


def _number(default: float, description: str) -> dict[str, Any]:
    kind = "integer" if isinstance(default, int) else "number"
    return {"type": kind, "default": default, "description": description}


CONFIG_SCHEMA: dict[str, dict[str, Any]] = {
    "gateway": {
        "type": "object",
        "required": False,
        "description": "What 'agent-host serve' offers, and where its limits are.",
        "properties": {
            "models": {
                "type": "object",
                "description": "Further names of models, each with the 'provider/model' it means.",
            },
            "fallbacks": {
                "type": "object",
                "description": "For a model, those to ask when it fails before it says anything.",
            },
            "max_body_bytes": _number(32 << 20, "The largest request that is read."),
            "body_seconds": _number(30, "How long a client may take to send a request."),
            "request_seconds": _number(600, "How long a request may take in all."),
            "write_seconds": _number(60, "How long a client may take nothing of its answer."),
            "max_requests": _number(1000, "How many requests are carried out at once."),
            "upstream_requests": _number(500, "How many of them one provider is asked at once."),
            "queue_seconds": _number(30, "How long a request waits for its turn at a provider."),
            "breaker_failures": _number(
                5, "After how many failures in a row a provider is left alone."
            ),
            "breaker_seconds": _number(15, "For how long it is left alone."),
        },
    }
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one gateway; the schema says what each means."""

    models: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_body_bytes: int = 32 << 20
    body_seconds: float = 30
    request_seconds: float = 600
    write_seconds: float = 60
    max_requests: int = 1000
    upstream_requests: int = 500
    queue_seconds: float = 30
    breaker_failures: int = 5
    breaker_seconds: float = 15


def read_settings(config: Mapping[str, Any]) -> Settings:
    """The settings of a config, or a `ConfigError` that says which is wrong."""
    given = config.get("gateway") or {}
    if not isinstance(given, Mapping):
        raise _wrong("gateway", "is not an object")
    known = {each.name for each in fields(Settings)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise _wrong(f"gateway.{name}", "is not known")
        values[name] = _read_value(name, value)
    return Settings(**values)


def _read_value(name: str, value: Any) -> Any:
    key = f"gateway.{name}"
    if name == "models":
        if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
            raise _wrong(key, "is not an object of names and models")
        return dict(value)
    if name == "fallbacks":
        if not isinstance(value, Mapping):
            raise _wrong(key, "is not an object of models and lists of models")
        return {
            str(model): _read_names(f"{key}.{model}", others) for model, others in value.items()
        }
    kind = CONFIG_SCHEMA["gateway"]["properties"][name]["type"]
    is_number = isinstance(value, int if kind == "integer" else (int, float))
    if not is_number or isinstance(value, bool) or value <= 0:
        raise _wrong(key, f"is {value!r}, and not a number above 0")
    return value


def _read_names(key: str, names: Any) -> tuple[str, ...]:
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, str) for each in listed):
        raise _wrong(key, "is not a list of models")
    return tuple(listed)


def _wrong(key: str, what: str) -> ConfigError:
    known = ", ".join(each.name for each in fields(Settings))
    return ConfigError(f"{key} {what}", key=key, hint=f"gateway takes: {known}")
