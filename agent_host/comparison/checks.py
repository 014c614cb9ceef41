"""Whether an answer is what a check asks for, and why not. It asks nobody: judges are elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_hookspecs.values import dataclass
from agent_host.json_schemas import compile_schema

if TYPE_CHECKING:
    from agent_host.batch import BatchResult
    from agent_host.comparison.cases import Check

__all__ = ["Finding", "look_at"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a check; ``reason`` says why it did not pass, or what a judge said."""

    check: str
    passed: bool
    reason: str = ""


def look_at(check: Check, result: BatchResult) -> Finding:
    """What comes of a check that needs no judge."""
    reason = _find_fault(check, result)
    return Finding(check.describe(), not reason, reason)


def _find_fault(check: Check, result: BatchResult) -> str:
    text = result.get("text", "")
    if check.tool is not None:
        return _find_call_fault(check, result.get("tool_calls", []))
    if check.output_schema is not None:
        return _find_schema_fault(check.output_schema, text)
    if check.regex is not None:
        flags = re.IGNORECASE if check.ignore_case else 0
        return "" if re.search(check.regex, text, flags) else "the pattern does not match"
    # By its letters, and not by what surrounds it.
    said = text.strip().casefold() if check.ignore_case else text.strip()

    def fold_case(given: str) -> str:
        return given.casefold() if check.ignore_case else given

    if check.contains is not None:
        return "" if fold_case(check.contains) in said else "it is not in the text"
    if check.lacks is not None:
        return "it is in the text" if fold_case(check.lacks) in said else ""
    return "" if fold_case(check.equals or "").strip() == said else "the text is another"


def _find_schema_fault(schema: Mapping[str, Any], text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"the text is no JSON: {error}"
    return compile_schema(json.dumps(schema))(value) or ""


def _find_call_fault(check: Check, calls: Sequence[Mapping[str, Any]]) -> str:
    functions = [call.get("function") or {} for call in calls]
    made = [function for function in functions if function.get("name") == check.tool]
    if not made:
        names = ", ".join(str(function.get("name")) for function in functions)
        return f"it called {names}" if names else "it called no tool"
    wanted = check.arguments or {}
    if any(_has_arguments(function.get("arguments"), wanted) for function in made):
        return ""
    return f"it was called with {made[0].get('arguments')}"


def _has_arguments(given: Any, wanted: Mapping[str, Any]) -> bool:
    try:
        arguments = json.loads(given or "{}") if isinstance(given, str) else given
    except ValueError:
        # Nothing is lost: what cannot be read is shown as it is.
        return not wanted
    return isinstance(arguments, Mapping) and all(
        key in arguments and arguments[key] == value for key, value in wanted.items()
    )
