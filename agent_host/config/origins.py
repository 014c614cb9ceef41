"""Where each value that is in force comes from: a file, the environment, the caller, or nobody.

For people who wonder. It reads the files that count once more, and never gives out a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from agent_hookspecs.values import dataclass
from agent_host.config.candidates import find_candidates
from agent_host.config.document import ConfigDocument
from agent_host.config.placeholders import placeholders
from agent_host.config.selection import MODEL_VARIABLE, Selection
from agent_host.config.values import AppConfig
from agent_host.redaction import mask_config

__all__ = ["Origin", "SourcedValue", "config_origins", "request_origins"]

Origin = Literal["default", "own file", "project file", "named file", "environment", "caller"]


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value by its dotted key, masked if it is secret, and where it comes from."""

    key: str
    value: Any
    origin: Origin
    detail: str = ""


def config_origins(config: AppConfig, named: Path | None = None) -> Iterator[SourcedValue]:
    """Every value of the config in force; ``named`` is the file that the caller has named."""
    files = _read_files(named)
    for steps, value in _leaves(mask_config(config.values)):
        key = ".".join(_quote(step) for step in steps)
        asked = tuple(placeholders(_find(config.values, steps)))
        origin, file = next(
            ((kind, file) for kind, file, values in files if _has(values, steps)),
            ("default", ""),
        )
        detail = file + "".join(f", from {name} in the environment" for name in asked)
        yield SourcedValue(key, value, origin, detail)


def request_origins(
    config: AppConfig,
    request: Mapping[str, Any],
    chosen: Selection,
    asked: Mapping[str, str | None],
    key_from: str,
) -> Iterator[SourcedValue]:
    """Whom a run would ask: provider, model, address and key, of which only its place is told."""
    places = {
        key: where
        for where, layer in config.request_layers(asked["agent"], chosen.provider, chosen.model)
        for key in layer
    }
    for key in ("provider", "model", "base_url"):
        if request.get(key):
            origin, detail = _origin_of(key, places, chosen, asked)
            yield SourcedValue(key, request[key], origin, detail)
    if key_from:
        kind: Origin = "own file" if "." in key_from else "environment"
        yield SourcedValue("api_key", "[redacted]", kind, key_from)


def _origin_of(
    key: str, places: Mapping[str, str], chosen: Selection, asked: Mapping[str, str | None]
) -> tuple[Origin, str]:
    if asked.get(key) or (key != "base_url" and asked.get("model") and not places.get(key)):
        return "caller", ""
    if places.get(key):
        return "own file", places[key]
    if MODEL_VARIABLE in chosen.why:
        return "environment", MODEL_VARIABLE
    return "default", chosen.why


def _read_files(named: Path | None) -> list[tuple[Origin, str, Mapping[str, Any]]]:
    if named is not None:
        return [("named file", str(named), ConfigDocument.read(named).values)]
    return [
        (
            "own file" if each.kind == "own" else "project file",
            each.file,
            ConfigDocument.read(Path(each.file)).values,
        )
        for each in find_candidates()
        if each.counts
    ]


def _leaves(value: Any, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*steps, str(key)))
    elif steps:
        yield steps, value


def _has(values: Mapping[str, Any], steps: tuple[str, ...]) -> bool:
    return _find(values, steps) is not None


def _find(values: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        if not isinstance(values, Mapping) or step not in values:
            return None
        values = values[step]
    return values


def _quote(step: str) -> str:
    return step if step.replace("-", "").replace("_", "").isalnum() else f'"{step}"'
