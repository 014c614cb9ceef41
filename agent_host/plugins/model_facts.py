"""What a listing says of a model, under the names that listings customarily have for it.

Facts are read, never guessed: what a listing does not say is not known. It knows the habits that
listings share, not who has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from agent_hookspecs.values import dataclass

__all__ = ["ModelFacts", "read_facts"]

_WINDOWS = (
    "context_window",
    "context_length",
    "max_context_length",
    "max_model_len",
    "max_input_tokens",
    "inputTokenLimit",
)
#: What abilities are called, and what we call them.
_ABILITIES = {
    "tools": "tools",
    "tool_use": "tools",
    "function_calling": "tools",
    "supports_tools": "tools",
    "tool_calls": "tools",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "supports_reasoning": "reasoning",
    "vision": "images",
    "image": "images",
    "image_input": "images",
    "supports_vision": "images",
    "audio": "audio",
    "file": "files",
    "structured_output": "structured",
    "structured_outputs": "structured",
    "supports_structured_output": "structured",
    "json_schema": "structured",
}
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The tokens that fit, what it can do, and the price of a million tokens in US dollars."""

    window: int | None = None
    abilities: tuple[str, ...] = ()
    input_price: Decimal | None = None
    output_price: Decimal | None = None


def read_facts(model: Mapping[str, Any]) -> ModelFacts:
    """What a listing says of one model."""
    pricing = model.get("pricing")
    prices = pricing if isinstance(pricing, Mapping) else {}
    return ModelFacts(
        window=next((size for name in _WINDOWS if (size := _read_count(model.get(name)))), None),
        abilities=tuple(sorted({*_read_abilities(model)})),
        input_price=_read_price(prices.get("prompt", prices.get("input"))),
        output_price=_read_price(prices.get("completion", prices.get("output"))),
    )


def _read_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _read_abilities(model: Mapping[str, Any]) -> Iterable[str]:
    architecture = model.get("architecture")
    modalities = architecture if isinstance(architecture, Mapping) else model
    for said in (
        model.get("capabilities"),
        model.get("supported_parameters"),
        model.get("features"),
        modalities.get("input_modalities"),
    ):
        for name in _names(said):
            if name in _ABILITIES:
                yield _ABILITIES[name]


def _names(said: object) -> list[str]:
    """The names in a list, or those in a map that are not said to be false."""
    if isinstance(said, Mapping):
        return [str(name) for name, value in said.items() if value and _is_supported(value)]
    return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []


def _is_supported(value: object) -> bool:
    return not isinstance(value, Mapping) or value.get("supported") is not False


def _read_price(value: object) -> Decimal | None:
    """Dollars for a million tokens; listings that have texts give the price of one."""
    if not isinstance(value, str):
        # Whether a number is for one, a thousand or a million tokens is not told.
        return None
    try:
        price = Decimal(value) * _MILLION
    except InvalidOperation:
        # Nothing is lost: a price in other words is not known.
        return None
    return price if price.is_finite() and price >= 0 else None
