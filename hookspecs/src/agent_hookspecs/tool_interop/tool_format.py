"""What the formats of all APIs do alike, as a base for their classes.

Owns the making of views and of a result's contents once a format has said where its things stand.
It must not know any format.
"""

from __future__ import annotations

import copy
from typing import Any

from agent_hookspecs.authoring.calls import tool_call_id
from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.tool_interop.arguments import (
    compact_json,
    is_too_large,
    parse_tool_arguments,
    sanitize_arguments,
)
from agent_hookspecs.tool_interop.contents import (
    NATIVE_ENVELOPE,
    content_part,
    read_contents,
    text_of_parts,
)
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    PayloadKind,
    ResultView,
    SchemaView,
    ToolInteropTarget,
    Warn,
)

__all__ = ["ToolFormat"]


class ToolFormat:
    """A base for a format that explains and makes declarations, calls and results.

    A subclass names its ``format`` and its ``family``, the dotted prefix that it shares with the
    other formats of its API, and has those methods of the accessors and adapters that it needs;
    what stands here helps to write them. ``known`` names the keys of an object that need not be
    repeated in the metadata of its view.
    """

    format: str = ""
    family: str = ""
    source_format: str | None = None
    payload_kind: PayloadKind = "object"
    #: The key under which a call has its payload.
    payload_key: str = "arguments"
    #: Whether the arguments of a call may be an object; else they are its text.
    carries_objects: bool = False

    def view_schema(
        self,
        schema: JsonObject,
        declared: JsonObject,
        *,
        parameters: object = None,
        payload_format: JsonObject | None = None,
        known: tuple[str, ...] = (),
    ) -> SchemaView:
        """The view of a declaration, whose name and description stand in ``declared``."""
        outer = {} if declared is schema else _without(schema, known)
        return SchemaView(
            name=declared["name"],
            description=_text_or_none(declared.get("description")) or "",
            payload_kind=self.payload_kind,
            parameters=parameters if isinstance(parameters, dict) else None,
            payload_format=payload_format,
            metadata={**outer, **_without(declared, ("name", "description", *known))},
            format=self.format,
            source=schema,
        )

    def view_call(
        self,
        call: JsonObject,
        limit: int,
        *,
        name: object,
        call_id: object,
        payload: object,
        known: tuple[str, ...] = (),
    ) -> CallView:
        """The view of a call; a payload beyond ``limit`` bytes is a problem."""
        given: Any
        if self.payload_kind == "object":
            given, problem = parse_tool_arguments(payload, limit)
            text = payload if isinstance(payload, str) and payload.strip() else None
        else:
            text = payload if isinstance(payload, str) else _payload_text(payload)
            large = is_too_large(text, limit)
            given, problem = (None, "too_large") if large else (text, None)
        return CallView(
            tool_name=_text_or_none(name),
            call_id=_text_or_none(call_id),
            payload=given,
            payload_kind=self.payload_kind,
            problem=problem,
            text=text,
            metadata=_without(call, ("id", "call_id", "type", "name", *known)),
            format=self.format,
            source=call,
        )

    def view_result(
        self,
        result: JsonObject,
        content: object,
        *,
        call_id: object = None,
        known: tuple[str, ...] = (),
        keeps_content: bool = True,
    ) -> ResultView:
        """The view of a result whose contents are written as this family does.

        Without ``keeps_content`` the family has to write them anew even for itself.
        """
        inner = self._envelope_content(result)
        content = content if inner is None else inner
        parts = read_contents(content, self.family, self.read_part)
        keeps_content = keeps_content or inner is not None
        return ResultView(
            text=text_of_parts(parts),
            parts=parts,
            content=content if keeps_content else None,
            content_format=self.family if keeps_content else "",
            call_id=_text_or_none(call_id),
            metadata=_without(result, ("type", "format", *known)),
            format=self.format if inner is None else NATIVE_ENVELOPE,
            source=result,
        )

    def schema_head(self, view: SchemaView) -> JsonObject:
        """The name of a tool and, if it has one, its description."""
        described = {"description": view.description} if view.description else {}
        return {"name": view.name, **described}

    def arguments_text(self, view: CallView) -> str:
        """The payload of a call as text; text that came from a wire is unchanged."""
        if self.payload_kind == "text" or view.text is not None:
            return view.text or ""
        return compact_json(view.payload or {}) or "{}"

    def inspect_call(self, call: JsonObject, limit: int) -> CallView:
        """What a call asks for that has its name, id and payload side by side."""
        return self.view_call(
            call,
            limit,
            name=call.get("name"),
            call_id=tool_call_id(call),
            payload=call.get(self.payload_key),
            known=(self.payload_key,),
        )

    def sanitize_call(self, call: JsonObject) -> JsonObject:
        """Such a call as history may keep it."""
        payload = call.get(self.payload_key)
        sanitized = self.sanitize_arguments(payload)
        return call if sanitized is payload else {**call, self.payload_key: sanitized}

    def sanitize_arguments(self, arguments: object) -> Any:
        """Arguments as history may keep them: the same object if they are one JSON object.

        Freeform text is always fit to keep.
        """
        if self.payload_kind == "text":
            return arguments
        return sanitize_arguments(arguments, keep_object=self.carries_objects)

    def is_envelope(self, result: object) -> bool:
        """Whether a tool has marked the result as contents of this family."""
        return self._envelope_content(result) is not None

    def _envelope_content(self, result: object) -> Any:
        if isinstance(result, dict) and result.get("type") == NATIVE_ENVELOPE:
            format = result.get("format")
            if isinstance(format, str) and ToolInteropTarget(self.family).includes(format):
                return result.get("content")
        return None

    def read_part(self, part: JsonObject) -> MultipartContent | None:
        """A part of a result's contents in neutral form; None if it cannot be explained."""
        return None

    def build_part(self, part: MultipartContent) -> JsonObject | None:
        """A neutral part as this family writes it; None if it has no form for it."""
        return None

    def build_contents(self, view: ResultView, warn: Warn) -> Any:
        """A result's contents: text alone as a string, else a list of parts.

        What already is of the family is used unchanged; what it has no form for becomes a text
        that says so, and ``warn`` is told.
        """
        if view.content is not None and view.content_format == self.family:
            return copy.deepcopy(view.content)
        if all(part.get("type") == "text" for part in view.parts):
            return view.text
        return [self._build_content(part, warn) for part in view.parts]

    def _build_content(self, part: MultipartContent, warn: Warn) -> Any:
        # The parts of core messages may lack keys.
        content, metadata = part.get("content", {}), part.get("metadata", {})
        kind: object = part.get("type")
        if kind != "native":
            complete: MultipartContent = {"type": "", "content": {}, "metadata": {}, **part}
            made = self.build_part(complete)
        elif metadata.get("format") == self.family:
            return copy.deepcopy(content["part"])
        else:
            original, made = content.get("part"), None
            kind = original.get("type") if isinstance(original, dict) else None
        if made is None:
            kind = kind if isinstance(kind, str) else "unknown"
            warn(
                f"a part of type {kind!r} in its result is left out: {self.family} has no such part"
            )
            made = self.build_part(content_part("text", {"text": f"[{kind} omitted]"}))
        return made

    def warn_of_dropped(self, view: SchemaView, warn: Warn, *known_keys: str) -> None:
        """Say which other keys of a declaration this format has no place for."""
        # What is None or False says no more than its absence.
        if dropped := [
            key for key, value in view.metadata.items() if key not in known_keys and value
        ]:
            warn(f"{', '.join(sorted(dropped))} of its declaration is dropped")


def is_named(declared: object) -> bool:
    """Whether it is a declaration with a name."""
    return isinstance(declared, dict) and _text_or_none(declared.get("name")) is not None


def _payload_text(payload: object) -> str:
    return "" if payload is None else compact_json(payload) or ""


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _without(source: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in source.items() if key not in keys}
