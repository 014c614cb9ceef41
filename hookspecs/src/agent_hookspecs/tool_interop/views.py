"""What a tool's declaration, call and result mean, whichever format they are written in.

Owns the views, the hub of every conversion, and the values that travel with them. It must not know
any format: accessors make views, adapters read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from agent_hookspecs.messages import MultipartContent
from agent_hookspecs.values import dataclass

__all__ = [
    "CallView",
    "JsonObject",
    "ResultView",
    "SchemaView",
    "ToolDescriptor",
    "ToolInteropTarget",
    "Warn",
]

#: A JSON object, such as a declaration or a call on the wire.
JsonObject: TypeAlias = dict[str, Any]

#: Told, in one sentence, what a conversion could not carry over.
Warn: TypeAlias = Callable[[str], None]

#: Whether a tool takes a JSON object or raw text.
PayloadKind: TypeAlias = Literal["object", "text"]

#: Why a call must not be executed. ``"no_input"``: a text tool was called with an object that has
#: no string ``input``; it only arises where the tool's schema was given.
CallProblem: TypeAlias = Literal["invalid_json", "not_object", "too_large", "no_input"]


@dataclass(frozen=True, slots=True)
class ToolDescriptor:
    """A tool as its plugin authored it; ``schema`` is never rewritten.

    ``deferred`` is what ``select_tools`` says of it: the provider has the schema, and shows it to
    the model once its own search has found the tool.
    """

    plugin_name: str
    tool_name: str
    schema: JsonObject
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ToolInteropTarget:
    """Where a conversion should arrive: one format, or a family such as a provider's API.

    A family is a dotted prefix: ``"openai.responses"`` has the formats that begin with it.
    """

    name: str

    def includes(self, format: str) -> bool:
        """Whether ``format`` is the target itself or of its family."""
        return format == self.name or format.startswith(f"{self.name}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaView:
    """What a tool declaration says.

    ``parameters`` is the JSON Schema of an ``"object"`` payload, ``payload_format`` what a
    ``"text"`` payload must look like, for example
    ``{"type": "grammar", "syntax": "lark", "definition": …}``; None means no constraint.
    ``metadata`` has what else the source says; ``source`` is the declaration itself.
    """

    name: str
    description: str = ""
    payload_kind: PayloadKind = "object"
    parameters: JsonObject | None = None
    payload_format: JsonObject | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    format: str = ""
    source: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """What a tool call asks for.

    ``payload`` is a dict or a string as ``payload_kind`` says; with a ``problem`` it is None and
    the call must not be executed. ``text`` is the payload as it stood on the wire, where that was
    text, so that a conversion can keep it byte for byte.
    """

    tool_name: str | None = None
    call_id: str | None = None
    payload: Any = None
    payload_kind: PayloadKind = "object"
    payload_format: JsonObject | None = None
    problem: CallProblem | None = None
    text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    format: str = ""
    source: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """What a tool gave back.

    ``text`` is all of its text. ``parts`` are its contents in the neutral form of core messages.
    ``content`` is the same as the API family ``content_format`` writes it, for that family to use
    unchanged; None where there is no such form.
    """

    text: str = ""
    parts: tuple[MultipartContent, ...] = ()
    content: Any = None
    content_format: str = ""
    call_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    format: str = ""
    source: Any = field(default=None, compare=False, repr=False)
