"""Where each value that is in force comes from: a file, the environment, the caller, or nobody.

For people who wonder. It reads the files that count once more, and never gives out a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from agent_hookspecs.logs import MASK
from agent_hookspecs.values import dataclass
from agent_host.config.candidates import find_candidates
from agent_host.config.document import ConfigDocument
from agent_host.config.placeholders import placeholders
from agent_host.config.selection import MODEL_VARIABLE, Selection
from agent_host.config.values import LoadedConfig
from agent_host.plugins.access import KEY_STORE
from agent_host.redaction import mask_config

__all__ = ["Origin", "SourcedValue", "config_origins", "request_origins"]

Origin = Literal[
    "default", "own file", "project file", "named file", "environment", "key store", "caller"
]


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value by its dotted key, masked if it is secret, and where it comes from."""

    key: str
    value: Any
    origin: Origin
    detail: str = ""


def config_origins(config: LoadedConfig, named: Path | None = None) -> Iterator[SourcedValue]:
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
    config: LoadedConfig,
    request: Mapping[str, Any],
    chosen: Selection,
    asked: Mapping[str, str | None],
    key_from: str,
) -> Iterator[SourcedValue]:
    """Whom a run would ask: provider, model, address and key, of which only its place is told.

    ``asked`` is what the caller names; ``key_from`` is where the key is, as `Access` has it.
    """
    known = {each.key: each for each in config_origins(config)}
    places = {
        key: where
        for where, layer in config.request_layers(asked["agent"], chosen.provider, chosen.model)
        for key in layer
    }
    for key in ("provider", "model", "base_url"):
        if request.get(key):
            place = places.get(key)
            found = known.get(f"{place}.{key}") if place else None
            if found is not None:
                yield SourcedValue(key, request[key], found.origin, str(place))
            elif asked.get(key) or (asked.get("model") and key == "provider"):
                yield SourcedValue(key, request[key], "caller")
            elif MODEL_VARIABLE in chosen.why:
                yield SourcedValue(key, request[key], "environment", MODEL_VARIABLE)
            else:
                yield SourcedValue(key, request[key], "default", chosen.why)
    if key_from:
        held = next((known[each] for each in known if each.startswith(f"{key_from}.")), None)
        kind: Origin = "key store" if key_from == KEY_STORE else "environment"
        yield SourcedValue("api_key", MASK, held.origin if held else kind, key_from)


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
