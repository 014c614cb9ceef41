"""The arguments of a function call, as models really send them.

Owns the tolerant reading for execution and the strict repair for history. It must not know in which
part of a call the arguments stand.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Literal, NoReturn

__all__ = ["compact_json", "parse_tool_arguments"]

#: Arguments beyond this many bytes of UTF-8 are not parsed.
MAX_ARGUMENT_BYTES = 200_000

_FENCE = "```"

ArgumentsProblem = Literal["invalid_json", "not_object", "too_large"]


def parse_tool_arguments(
    arguments: object, limit: int = MAX_ARGUMENT_BYTES
) -> tuple[dict[str, Any] | None, ArgumentsProblem | None]:
    """``(payload, None)``, or ``(None, problem)`` when the arguments are not one JSON object.

    None and blank text mean no arguments, ``{}``; a dict is kept as it is. Text may stand in a
    Markdown code fence and may be encoded as a JSON string once more; NaN and Infinity are not
    JSON.
    """
    if arguments is None:
        return {}, None
    if isinstance(arguments, dict):
        problem = arguments_problem(arguments, limit)
        return (None, problem) if problem else (arguments, None)
    if not isinstance(arguments, str):
        return None, "not_object"
    if is_too_large(arguments, limit):
        return None, "too_large"
    if not arguments.strip():
        return {}, None
    try:
        value = _load(arguments)
        if isinstance(value, str):
            value = _load(value)
    except (ValueError, RecursionError):
        # Nothing is lost: the problem is returned by its name.
        return None, "invalid_json"
    return (value, None) if isinstance(value, dict) else (None, "not_object")


def arguments_problem(
    arguments: object, limit: int = MAX_ARGUMENT_BYTES
) -> ArgumentsProblem | None:
    """What keeps the arguments of a function call from being one JSON object, or None.

    ``"too_large"`` (more than ``limit`` bytes), ``"invalid_json"`` or ``"not_object"``. Strict: no
    fences, no double encoding, no NaN or Infinity.
    """
    text = compact_json(arguments) if isinstance(arguments, dict) else arguments
    if text is None and arguments is not None:
        return "invalid_json"
    if not isinstance(text, str):
        return "not_object"
    if is_too_large(text, limit):
        return "too_large"
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # Nothing is lost: the problem is returned by its name.
        return "invalid_json"
    return None if isinstance(value, dict) else "not_object"


def is_too_large(text: str, limit: int) -> bool:
    """Whether a payload has more than ``limit`` bytes of UTF-8."""
    return len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit


def sanitize_arguments(arguments: object, *, keep_object: bool = False) -> Any:
    """Arguments that any provider accepts in history: the same object if they already are.

    Text must be one JSON object and nothing else, of any size. What `parse_tool_arguments` can
    make an object of becomes that object's text, everything else ``"{}"``. A dict becomes text
    unless ``keep_object`` says that the format carries objects.
    """
    if isinstance(arguments, dict):
        text = compact_json(arguments)
        if text is None:
            return {} if keep_object else "{}"
        return arguments if keep_object else text
    if isinstance(arguments, str) and arguments_problem(arguments, sys.maxsize) is None:
        return arguments
    meant, _ = parse_tool_arguments(arguments, sys.maxsize)
    return compact_json(meant) or "{}" if meant else "{}"


def compact_json(value: object) -> str | None:
    """``value`` as JSON without needless spaces or escapes; None when JSON cannot hold it."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # Nothing is lost: what is no JSON is none, and the caller says so.
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        # Nothing is lost: a lone surrogate is written as its JSON escape.
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text


def _load(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        inner = _text_in_fence(text)
        if inner is None:
            raise
        return json.loads(inner, parse_constant=_refuse_constant)


def _text_in_fence(text: str) -> str | None:
    text = text.strip()
    if len(text) < 2 * len(_FENCE) or not text.startswith(_FENCE) or not text.endswith(_FENCE):
        return None
    inner = text[len(_FENCE) : -len(_FENCE)]
    return inner[4:] if inner[:4].lower() == "json" else inner


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
