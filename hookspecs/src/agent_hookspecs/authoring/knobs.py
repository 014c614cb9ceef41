"""Settings that mean the same whatever provider is behind them.

Owns their names, their schema and how a plugin says that it has made use of one. What a knob
becomes on the wire is the business of the plugin that takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agent_hookspecs.messages import Config, ModelInfo, State

__all__ = [
    "EFFORTS",
    "knob_elements",
    "knob_schema",
    "model_element",
    "requested_knobs",
    "take_effort",
    "take_knob",
]

#: How hard a model should think, from not at all to as hard as it can.
EFFORTS: tuple[str, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _knob(kind: str, label: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, "label": label, "description": description}


#: Every knob as a setting. A knob that nobody set is never sent.
KNOBS: dict[str, dict[str, Any]] = {
    "effort": _knob(
        "string", "Effort", "How hard the model should think before it answers.", enum=list(EFFORTS)
    ),
    "max_output_tokens": _knob(
        "integer", "Longest answer", "The most tokens an answer may have, reasoning included."
    ),
    "temperature": _knob("number", "Temperature", "Randomness of the answer; 0 is the least."),
    "stop": _knob("array", "Stop at", "Texts at which the model stops."),
    "seed": _knob("integer", "Seed", "Equal requests with equal seeds should give equal answers."),
    "response_schema": _knob(
        "object", "Answer schema", "A JSON Schema that the answer has to follow."
    ),
    "tool_choice": _knob(
        "string",
        "Tool choice",
        "auto, none, required, or the name of the tool that must be called.",
    ),
    "parallel_tool_calls": _knob(
        "boolean", "Parallel tool calls", "Whether the model may call several tools in one turn."
    ),
}


def knob_schema(*names: str) -> dict[str, dict[str, Any]]:
    """The part of ``get_config_schema`` that describes these knobs."""
    return {
        name: {
            **{key: value for key, value in KNOBS[name].items() if key != "label"},
            "required": False,
        }
        for name in names
    }


def knob_elements(*names: str, efforts: Sequence[str] = EFFORTS) -> list[dict[str, Any]]:
    """The part of ``get_ui_elements`` that shows these knobs; ``efforts`` are those on offer."""
    return [_element(name, efforts) for name in names]


def model_element(models: Sequence[ModelInfo]) -> dict[str, Any]:
    """The part of ``get_ui_elements`` that chooses the model: from the list, else by its id."""
    options = [
        {"value": model["id"], "label": model.get("name") or model["id"]}
        for model in models
        if isinstance(model.get("id"), str)
    ]
    if not options:
        return {"type": "text", "key": "model", "label": "Model id"}
    return {"type": "select", "key": "model", "label": "Model", "options": options}


def _element(name: str, efforts: Sequence[str]) -> dict[str, Any]:
    knob = KNOBS[name]
    shown = {"key": name, "label": knob["label"]}
    if name == "effort":
        options = [{"value": effort, "label": effort} for effort in efforts]
        return {"type": "select", **shown, "options": options}
    kinds = {"boolean": "checkbox", "integer": "number", "number": "number"}
    return {"type": kinds.get(knob["type"], "text"), **shown}


def requested_knobs(config: Config) -> dict[str, Any]:
    """The knobs that are set. A provider's ``init`` puts them into ``state["knobs"]``.

    Whoever makes use of one takes it out with `take_knob`. What is left when the request is ready
    was asked for in vain, and the host says so with a warning.
    """
    return {name: config[name] for name in KNOBS if config.get(name) is not None}


def take_knob(state: State, name: str) -> Any:
    """The value of a knob that the caller now takes care of; None if it is not set."""
    knobs = state.get("knobs")
    return knobs.pop(name, None) if isinstance(knobs, dict) else None


def take_effort(state: State, offered: Sequence[str], warn: Callable[[str], None]) -> str | None:
    """The effort to ask for, taken from the knobs; None where none is set or none will do.

    One that is not on offer becomes the nearest that is, which ``warn`` is told. One that nothing
    comes near to stays among the knobs, so that the host says that it was asked for in vain.
    """
    wanted = (state.get("knobs") or {}).get("effort")
    effort = nearest_effort(wanted, offered) if isinstance(wanted, str) else None
    if effort is None:
        return None
    take_knob(state, "effort")
    if effort != wanted:
        warn(f"effort {wanted!r} is sent as {effort!r}: the model knows {', '.join(offered)}")
    return effort


def nearest_effort(effort: str, offered: Sequence[str]) -> str | None:
    """The effort on offer that comes nearest, the lower of two; None if nothing is on offer.

    ``none`` is never rounded up: who asks for no thinking gets None unless it is on offer.
    """
    if effort in offered:
        return effort
    known = [each for each in offered if each in EFFORTS and each != "none"]
    if effort == "none" or effort not in EFFORTS or not known:
        return None
    wanted = EFFORTS.index(effort)
    return min(known, key=lambda each: (abs(EFFORTS.index(each) - wanted), EFFORTS.index(each)))
