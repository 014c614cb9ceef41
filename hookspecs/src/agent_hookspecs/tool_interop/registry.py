"""The registry of tool formats that one request works with.

Owns the precedence among contributions and the choice of accessor and adapter. It must not know any
format but the list of the built-in ones, nor who made a contribution.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from agent_hookspecs.errors import ContractError
from agent_hookspecs.tool_interop.arguments import MAX_ARGUMENT_BYTES
from agent_hookspecs.tool_interop.dialect import without_empty_required
from agent_hookspecs.tool_interop.formats import (
    Adapter,
    ToolCallAccessor,
    ToolInteropContribution,
    ToolResultAccessor,
    ToolSchemaAccessor,
)
from agent_hookspecs.tool_interop.freeform import call_as_kind, call_for_schema, schema_as_kind
from agent_hookspecs.tool_interop.generic import GenericFunctionFormat
from agent_hookspecs.tool_interop.openai_chat import (
    OpenAIChatCustomFormat,
    OpenAIChatFunctionFormat,
)
from agent_hookspecs.tool_interop.openai_responses import (
    OpenAIResponsesCustomFormat,
    OpenAIResponsesFunctionFormat,
)
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaView,
    ToolDescriptor,
    ToolInteropTarget,
    Warn,
)

__all__ = ["DEFAULT_TOOL_INTEROP_REGISTRY", "ToolInteropRegistry"]

_log = logging.getLogger(__name__)

_BUILT_IN = ToolInteropContribution.of_formats(
    OpenAIChatFunctionFormat(),
    OpenAIChatCustomFormat(),
    OpenAIResponsesFunctionFormat(),
    OpenAIResponsesCustomFormat(),
    GenericFunctionFormat(),
)


_AdapterT = TypeVar("_AdapterT", bound=Adapter)


class _Route(Generic[_AdapterT]):
    """From any format to the target, as far as the accepted formats narrow it down."""

    __slots__ = ("_accepted", "_adapters", "_arrivals", "_target")

    def __init__(
        self,
        adapters: Sequence[_AdapterT],
        target: ToolInteropTarget,
        target_formats: Sequence[str] | None,
    ) -> None:
        self._adapters = adapters
        self._target = target
        self._accepted = [ToolInteropTarget(name) for name in target_formats or ()]
        # An accepted format that nobody makes only lets its own objects pass.
        self._arrivals = [
            each
            for each in self._accepted
            if target.includes(each.name) and any(each.includes(one.format) for one in adapters)
        ] or [target]

    def passes(self, format: str) -> bool:
        """Whether objects of ``format`` need no conversion."""
        return any(each.includes(format) for each in (*self._accepted, *self._arrivals))

    def adapter(self, source: str, kind: PayloadKind) -> _AdapterT:
        """The adapter for objects of ``source``: to a format of their kind if there is one.

        Among formats the order of the accepted ones counts, then that of the registry; for one
        format a direct adapter comes before the builder.
        """
        candidates = [
            each
            for arrival in self._arrivals
            for each in self._adapters
            if each.source_format in (None, source)
            and arrival.includes(each.format)
            and (each.format == arrival.name or not getattr(each, "by_name_only", False))
        ]
        if not candidates:
            raise ContractError(
                f"nothing makes {self._target.name!r} tools of {source!r} ones",
                hint="enable the plugin that contributes the format, or correct the target's name",
            )
        chosen = next((each for each in candidates if each.payload_kind == kind), candidates[0])
        alike = [each for each in candidates if each.format == chosen.format]
        return next((each for each in alike if each.source_format), chosen)


class ToolInteropRegistry:
    """Explains and converts tool declarations, calls and results; immutable.

    Contributions are given by falling precedence (config, provider, extension, tool) as
    `ToolInteropContribution`, as a dict with its keys, or as None; the built-in formats rank last.

    Objects of the target's formats are returned as they are, the very same object. So are objects
    of a format that nobody explains; ``warn`` is told of those, and of everything that a conversion
    cannot carry over. Without ``warn`` it is logged.
    """

    __slots__ = ("_contributions", "_formats")

    def __init__(self, *contributions: object) -> None:
        self._contributions = tuple(ToolInteropContribution.of(each) for each in contributions)
        self._formats = ToolInteropContribution.join(*self._contributions, _BUILT_IN)

    def with_contributions(self, *contributions: object) -> ToolInteropRegistry:
        """A new registry in which ``contributions`` rank above what this one has."""
        return ToolInteropRegistry(*contributions, *self._contributions)

    # What is it?

    def format_of_schema(self, schema: object) -> str | None:
        """The format of a declaration, or None when nobody explains it."""
        accessor = self._schema_accessor(schema)
        return accessor.format if accessor else None

    def format_of_call(self, call: object) -> str | None:
        """The format of a call, or None when nobody explains it."""
        accessor = self._call_accessor(call)
        return accessor.format if accessor else None

    def format_of_result(self, result: object) -> str | None:
        """The format of a result, or None when nobody explains it."""
        view = self.inspect_result(result)
        return view.format if view else None

    def inspect_schema(self, schema: object) -> SchemaView | None:
        """What a declaration says, or None when nobody explains it."""
        accessor = self._schema_accessor(schema)
        return accessor.inspect_schema(schema) if accessor and isinstance(schema, dict) else None

    def inspect_call(
        self,
        call: object,
        schema: SchemaView | ToolDescriptor | JsonObject | None = None,
        *,
        limit: int = MAX_ARGUMENT_BYTES,
    ) -> CallView | None:
        """What a call asks for, or None when nobody explains it.

        With the tool's authored ``schema`` the payload is of the kind that the tool wants, also
        when the provider was offered the tool in a converted form. A call with a ``problem`` must
        not be executed.
        """
        accessor = self._call_accessor(call)
        if accessor is None or not isinstance(call, dict):
            return None
        view = accessor.inspect_call(call, limit)
        known = self._authored_view(schema)
        return call_for_schema(view, known, limit) if known else view

    def inspect_result(self, result: object) -> ResultView | None:
        """What a result says, or None when nobody explains it."""
        accessor = self._result_accessor(result)
        return accessor.inspect_result(result) if accessor else None

    # In another format.

    def convert_schemas(
        self,
        schemas: Iterable[object],
        *,
        target: ToolInteropTarget,
        target_formats: Sequence[str] | None = None,
        warn: Warn | None = None,
    ) -> list[JsonObject]:
        """The declarations as ``target`` takes them; the sources stay untouched.

        ``target_formats`` are the formats that the active stack accepts, best first. Those of the
        target's family narrow it down; without any, all of the family will do. Entries that are not
        dicts are left out.
        """
        tell = warn or _log.warning
        route = _Route(self._formats.schema_adapters, target, target_formats)
        converted: list[JsonObject] = []
        for schema in schemas:
            if not isinstance(schema, dict):
                tell(f"a tool declaration of type {type(schema).__name__} is left out")
                continue
            view = self.inspect_schema(schema)
            if view is None:
                tell(
                    f"tool {_label(schema)!r} is sent as it is: no active plugin explains the "
                    f"format of its declaration"
                )
            if view is None:
                converted.append(schema)
                continue
            if route.passes(view.format):
                converted.append(without_empty_required(schema))
                continue
            about = _about(f"tool {view.name!r}", tell)
            adapter = route.adapter(view.format, view.payload_kind)
            if adapter.source_format is None:
                view = schema_as_kind(view, adapter.payload_kind, about)
            converted.append(adapter.build_schema(view, about))
        return converted

    def convert_tool_calls(
        self,
        calls: Iterable[Any],
        *,
        target: ToolInteropTarget,
        target_formats: Sequence[str] | None = None,
        schemas: Iterable[ToolDescriptor | JsonObject] = (),
        warn: Warn | None = None,
    ) -> list[Any]:
        """The calls as ``target`` takes them; arguments keep their text.

        With the tools' authored ``schemas``, a call that was made in a converted form goes back to
        its tool's own kind where the target has a format for it.
        """
        tell = warn or _log.warning
        route = _Route(self._formats.call_adapters, target, target_formats)
        authored = [self._authored_view(each) for each in schemas]
        known = {schema.name: schema for schema in authored if schema}
        converted: list[Any] = []
        for call in calls:
            # Size forbids execution, not history.
            view = self.inspect_call(call, limit=sys.maxsize)
            if view is None:
                tell(f"a call is kept as it is: no active plugin explains {_label(call)!r}")
            if view is None or route.passes(view.format):
                converted.append(call)
                continue
            schema = known.get(view.tool_name or "")
            if schema is not None:
                restated = call_for_schema(view, schema, sys.maxsize)
                view = view if restated.problem else restated
            adapter = route.adapter(view.format, view.payload_kind)
            if adapter.source_format is None:
                view = call_as_kind(view, adapter.payload_kind, schema)
            converted.append(adapter.build_call(view))
        return converted

    def convert_tool_results(
        self,
        results: Iterable[Any],
        *,
        target: ToolInteropTarget,
        target_formats: Sequence[str] | None = None,
        calls: Sequence[object] | None = None,
        warn: Warn | None = None,
    ) -> list[Any]:
        """The results as ``target`` takes them: ``toolResult`` payloads, strings or native items.

        ``calls``, one for each result and as they stand in the target's history, give the results
        their ids and say which of them answer freeform calls. Without, a result whose id is not
        known has none and the caller adds it.
        """
        tell = warn or _log.warning
        route = _Route(self._formats.result_adapters, target, target_formats)
        given = list(results)
        answered = [None] * len(given) if calls is None else list(calls)
        if len(answered) != len(given):
            raise ContractError(
                f"{len(given)} tool results were to be converted for {len(answered)} calls",
                hint="pass one call for each result, in the same order, or no calls",
            )
        converted: list[Any] = []
        for result, call in zip(given, answered, strict=True):
            view = self.inspect_result(result)
            if view is None:
                tell(f"a result is kept as it is: no active plugin explains {_label(result)!r}")
            if view is None or route.passes(view.format):
                converted.append(result)
                continue
            asked = self.inspect_call(call)
            kind: PayloadKind = asked.payload_kind if asked else "object"
            if asked and asked.call_id:
                view = replace(view, call_id=asked.call_id)
            named = asked and asked.tool_name
            about = _about(f"tool {named!r}" if named else "a tool result", tell)
            adapter = route.adapter(view.format, kind)
            converted.append(adapter.build_result(view, about))
        return converted

    # Fit for history.

    def sanitize_tool_call(self, call: Any) -> Any:
        """The call as history may keep it: the same object if it is valid or of unknown format.

        A function call whose arguments are not a JSON object comes back as a copy with ``"{}"``.
        Such a call must not be executed: inspect it before it is sanitised.
        """
        accessor = self._call_accessor(call)
        return accessor.sanitize_call(call) if accessor else call

    # Who explains it?

    def _schema_accessor(self, schema: object) -> ToolSchemaAccessor | None:
        if not isinstance(schema, dict):
            return None
        accessors = self._formats.schema_accessors
        return next((each for each in accessors if each.matches_schema(schema)), None)

    def _call_accessor(self, call: object) -> ToolCallAccessor | None:
        if not isinstance(call, dict):
            return None
        accessors = self._formats.call_accessors
        return next((each for each in accessors if each.matches_call(call)), None)

    def _result_accessor(self, result: object) -> ToolResultAccessor | None:
        accessors = self._formats.result_accessors
        return next((each for each in accessors if each.matches_result(result)), None)

    def _authored_view(
        self, schema: SchemaView | ToolDescriptor | JsonObject | None
    ) -> SchemaView | None:
        if isinstance(schema, SchemaView):
            return schema
        return self.inspect_schema(schema.schema if isinstance(schema, ToolDescriptor) else schema)


def _about(what: str, warn: Warn) -> Warn:
    return lambda message: warn(f"{what}: {message}")


def _label(value: object) -> str:
    """How to call an object that nobody explains."""
    if isinstance(value, dict):
        for key in ("name", "type"):
            if isinstance(found := value.get(key), str):
                return found
    return type(value).__name__


#: For code that is bound to no request; within one, use `get_registry_from_context`.
DEFAULT_TOOL_INTEROP_REGISTRY = ToolInteropRegistry()
