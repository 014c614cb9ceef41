"""What a plugin implements to make its tool formats known, and how it hands them over.

Owns the protocols of accessors and adapters and the contribution that bundles them. It must not
know any concrete format, nor how a registry chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from agent_hookspecs.errors import ContractError
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaView,
    Warn,
)
from agent_hookspecs.values import dataclass

__all__ = [
    "ToolCallAccessor",
    "ToolCallAdapter",
    "ToolInteropContribution",
    "ToolResultAccessor",
    "ToolResultAdapter",
    "ToolSchemaAccessor",
    "ToolSchemaAdapter",
]


class _Format(Protocol):
    @property
    def format(self) -> str:
        """The dotted name of the format, beginning with its family: ``openai.responses.custom``."""


class ToolSchemaAccessor(_Format, Protocol):
    """Explains tool declarations of one format."""

    def matches_schema(self, schema: JsonObject) -> bool:
        """Whether the declaration is of this format; must be cheap and never raise."""

    def inspect_schema(self, schema: JsonObject) -> SchemaView:
        """What a declaration that matches says."""


class ToolCallAccessor(_Format, Protocol):
    """Explains tool calls of one format."""

    def matches_call(self, call: JsonObject) -> bool:
        """Whether the call is of this format; must be cheap and never raise."""

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        """What a call that matches asks for; a payload beyond ``limit`` bytes is a problem."""

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        """The call as history may keep it: the same object if it is valid, else a repaired copy."""


class ToolResultAccessor(_Format, Protocol):
    """Explains tool results of one format."""

    def matches_result(self, result: object) -> bool:
        """Whether the result is of this format; must be cheap and never raise."""

    def inspect_result(self, result: Any) -> ResultView:
        """What a result that matches says."""


class Adapter(_Format, Protocol):
    """Makes objects of ``format``.

    With ``source_format`` None it is a builder, which works from any view. Otherwise it serves that
    pair of formats alone, is preferred to the builder, and finds the original in ``view.source``.
    A true attribute ``by_name_only`` keeps it out of a family's choice unless the accepted formats
    or the target name it.
    """

    @property
    def source_format(self) -> str | None: ...

    @property
    def payload_kind(self) -> PayloadKind:
        """What the format's tools take. A builder is only given views of this kind."""


class ToolSchemaAdapter(Adapter, Protocol):
    """Makes tool declarations; `adapt_schema` helps where an API knows less than JSON Schema."""

    def build_schema(self, view: SchemaView, warn: Warn) -> JsonObject:
        """A new declaration that shares nothing mutable with the source."""


class ToolCallAdapter(Adapter, Protocol):
    """Makes tool calls."""

    def build_call(self, view: CallView) -> JsonObject:
        """A new call; text that came from the wire is kept as it was."""


class ToolResultAdapter(Adapter, Protocol):
    """Makes tool results."""

    def build_result(self, view: ResultView, warn: Warn) -> JsonObject:
        """A new result, without its call's id when the view has none."""


_ACCESSOR = ("format",)
_ADAPTER = ("format", "source_format", "payload_kind")
_MEMBERS: dict[str, tuple[str, ...]] = {
    "schema_accessors": (*_ACCESSOR, "matches_schema", "inspect_schema"),
    "call_accessors": (*_ACCESSOR, "matches_call", "inspect_call", "sanitize_call"),
    "result_accessors": (*_ACCESSOR, "matches_result", "inspect_result"),
    "schema_adapters": (*_ADAPTER, "build_schema"),
    "call_adapters": (*_ADAPTER, "build_call"),
    "result_adapters": (*_ADAPTER, "build_result"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInteropContribution:
    """What ``get_tool_interop_contribution`` returns; in each list the earlier one wins."""

    schema_accessors: tuple[ToolSchemaAccessor, ...] = ()
    call_accessors: tuple[ToolCallAccessor, ...] = ()
    result_accessors: tuple[ToolResultAccessor, ...] = ()
    schema_adapters: tuple[ToolSchemaAdapter, ...] = ()
    call_adapters: tuple[ToolCallAdapter, ...] = ()
    result_adapters: tuple[ToolResultAdapter, ...] = ()

    def __post_init__(self) -> None:
        for name, members in _MEMBERS.items():
            object.__setattr__(self, name, _check_members(name, members, getattr(self, name)))

    @classmethod
    def of(cls, value: object, *, plugin: str | None = None) -> ToolInteropContribution:
        """``value`` as a contribution: one already, a dict with its keys, or None for nothing.

        Raises ContractError naming ``plugin`` when it is something else, or a member is incomplete.
        """
        if isinstance(value, cls):
            return value
        if value is None:
            return cls()
        try:
            if not isinstance(value, Mapping):
                raise ContractError(f"a tool interop contribution is {type(value).__name__}")
            if unknown := sorted(str(key) for key in value if key not in _MEMBERS):
                raise ContractError(f"a tool interop contribution has {', '.join(unknown)}")
            return cls(**value)
        except ContractError as error:
            by = f"{plugin}: " if plugin else ""
            raise ContractError(
                f"{by}{error.message}",
                plugin=plugin,
                hook="get_tool_interop_contribution",
                hint=error.hint
                or f"return a ToolInteropContribution or a dict with {', '.join(_MEMBERS)}",
            ) from None

    @classmethod
    def join(cls, *ranked: ToolInteropContribution) -> ToolInteropContribution:
        """One contribution of several, of which the earlier ones win."""
        lists: dict[str, Any] = {
            name: tuple(entry for each in ranked for entry in getattr(each, name))
            for name in _MEMBERS
        }
        return cls(**lists)

    @classmethod
    def of_formats(cls, *formats: object) -> ToolInteropContribution:
        """A contribution of objects that each implement several of the protocols.

        Each goes into every list whose members it has, so one class can hold a whole format.
        """
        lists: dict[str, Any] = {
            name: tuple(each for each in formats if not _missing_members(each, members))
            for name, members in _MEMBERS.items()
        }
        return cls(**lists)


def _check_members(name: str, members: tuple[str, ...], value: object) -> tuple[Any, ...]:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        raise ContractError(f"{name} of a tool interop contribution is not a list")
    entries = tuple(value)
    for entry in entries:
        if missing := _missing_members(entry, members):
            made = entry.__name__ if isinstance(entry, type) else type(entry).__name__
            raise ContractError(
                f"{made} in {name} of a tool interop contribution has no {', '.join(missing)}",
                hint=f"contribute instances with {', '.join(members)}",
            )
    return entries


def _missing_members(entry: object, members: tuple[str, ...]) -> list[str]:
    if isinstance(entry, type):
        return ["instance"]
    return [member for member in members if not hasattr(entry, member)]
