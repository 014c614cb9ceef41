"""How a failed check is told: what the contract asks, where it is written, and the bytes.

Owns the words and the trimming. It must not know pytest, a host or a wire format.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_hookspecs.errors import (
    AgentError,
    AuthenticationError,
    ContractError,
    HookError,
    HookResultError,
    InvalidRequestError,
    LoadError,
    ProtocolError,
)
from agent_hookspecs.logs import redact

__all__ = ["Contract", "Exchange", "Violation", "explain_violation", "require"]

_MAX_TEXT = 160
_MAX_LINE = 400
_MAX_LINES = 24
_MAX_PLACES = 3
_SHOWN_AT_ENDS = (2, 4)
#: Errors of requests that the fake server does not take.
_REFUSED = (AuthenticationError, InvalidRequestError)


class Violation(AssertionError):
    """A plugin does not do what the contract asks; ``change`` is where to mend it, if known."""

    # As people import it; a test runner's summary has little room.
    __module__ = "agent_host_testing"
    change: str = ""


@dataclass(frozen=True, slots=True)
class Contract:
    """What one check holds a plugin to.

    ``sentence`` is what the contract asks, ``where`` the page and heading that say more.
    ``capability`` is the row of the report the check belongs to; ``claim`` the tag by which a
    plugin says that it can do it, empty for what every plugin has to do. ``change`` says where a
    plugin that fails is usually mended. A ``slow`` check is left out of quick runs.
    """

    capability: str
    sentence: str
    where: str
    claim: str = ""
    change: str = ""
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as it arrived and what was answered, as far as that was sent."""

    request: str
    body: bytes
    status: int
    answer: bytes


def require(condition: object, happened: str, change: str = "") -> None:
    """Refuse what the contract does not allow; ``happened`` says what was seen instead.

    ``change`` says what to change, if that is not what the check's row is about.
    """
    if not condition:
        violation = Violation(happened)
        violation.change = change
        raise violation


def explain_violation(
    contract: Contract,
    plugin: str,
    error: BaseException,
    exchanges: Sequence[Exchange] = (),
    package: str = "",
) -> Violation:
    """The failure with everything its reader needs to mend the plugin.

    Of the calls that led to it only those of ``package`` are shown: nobody has to know the insides
    of the host or of the kit.
    """
    words = _describe_error(error)
    summary = words.partition("\n")[0]
    lines = [
        # For those who are shown no more than the first line.
        f"plugin {plugin!r}: {summary}",
        f"  the contract asks: {contract.sentence}",
        f"  written in:        {contract.where}",
        f"  what happened:     {_indent(words, 21)}",
    ]
    change = _what_to_change(contract, error)
    if change:
        lines.append(f"  what to change:    {_indent(change, 21)}")
    places = list(_places_in(package, error))
    if places:
        lines.append(f"  raised in:         {_indent(chr(10).join(places), 21)}")
    if exchanges:
        last = exchanges[-1]
        lines += [f"  request {len(exchanges)}: {last.request}", *_quote_body(last.body)]
        lines += [f"  answer {len(exchanges)}: HTTP {last.status}", *_quote_body(last.answer)]
    return Violation(redact("\n".join(lines)))


def _describe_error(error: BaseException) -> str:
    if isinstance(error, Violation):
        return str(error)
    if isinstance(error, AgentError):
        return f"{type(error).__name__}: {error.explain()}"
    return f"{type(error).__name__}: {error}"


def _what_to_change(contract: Contract, error: BaseException) -> str:
    """Where to mend: what the row is about says it only if the check has got that far."""
    if isinstance(error, Violation):
        return error.change or contract.change
    if isinstance(error, HookResultError):
        return (
            f"return from {error.hook} what docs/hooks.md says of it, also where the hook has "
            "nothing to add: a hook without a return statement returns None"
        )
    if isinstance(error, HookError):
        return f"mend {error.hook}, which raised {_kind_of(error.__cause__)} where it is told below"
    if isinstance(error, LoadError):
        return (
            "mend what keeps the class from being made, in the package or in its descriptor; "
            "`agent-host plugins validate` shows it by itself"
        )
    if isinstance(error, ContractError):
        return "give the class what its role asks for, as the message says; docs/hooks.md has all"
    if isinstance(error, _REFUSED):
        return "send what the API takes: the request below is refused for the reason given above"
    if isinstance(error, ProtocolError):
        return (
            "let framing and build_request say how the answer below is to be read, and whether it "
            "is streamed although nobody asked for that"
        )
    if isinstance(error, AgentError):
        return contract.change
    return (
        "mend the line that raised it, told below; if none is, no code of the package had a part "
        "in it"
    )


def _kind_of(error: BaseException | None) -> str:
    return "an error" if error is None else type(error).__name__


def _places_in(package: str, error: BaseException) -> Iterator[str]:
    """The calls in the package that led to the error or to what caused it, the last one last."""
    if not package:
        return
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        found = [
            f"{frame.f_globals['__name__']}, line {line}, in {frame.f_code.co_name}"
            for frame, line in traceback.walk_tb(at.__traceback__)
            if str(frame.f_globals.get("__name__")).split(".")[0] == package
        ]
        if found:
            yield from found[-_MAX_PLACES:]
            return
        at = at.__cause__ or at.__context__


def _indent(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def _quote_body(data: bytes) -> Iterator[str]:
    """The body in few lines: JSON by keys and entries, anything else as it stands."""
    try:
        document = json.loads(data)
    except ValueError:
        # Nothing is lost: what is no JSON is shown line by line.
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line]
    else:
        lines = list(_outline(document))
    cut = [line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…" for line in lines]
    for line in _ends(cut, _MAX_LINES // 2, _MAX_LINES // 2, "lines"):
        yield f"    | {line}"


def _outline(document: Any) -> Iterator[str]:
    """One line for each key, and one for each entry of the lists beneath."""
    if not isinstance(document, dict):
        yield _compact(document)
        return
    for key, value in document.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield f"{key}:"
            yield from _ends([f"  {_compact(item)}" for item in value], *_SHOWN_AT_ENDS, "entries")
        else:
            yield f"{key}: {_compact(value)}"


def _ends(lines: Sequence[str], first: int, last: int, what: str) -> Iterable[str]:
    if len(lines) <= first + last + 1:
        return lines
    left_out = len(lines) - first - last
    return [*lines[:first], f"  … {left_out} {what} left out …", *lines[-last:]]


def _compact(value: Any) -> str:
    return json.dumps(_shorten(value), ensure_ascii=False, separators=(", ", ": "))


def _shorten(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        return f"{value[: _MAX_TEXT // 2]}…{value[-_MAX_TEXT // 4 :]}"
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    return value
