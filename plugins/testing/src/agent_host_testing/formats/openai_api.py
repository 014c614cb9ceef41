"""What OpenAI's two APIs share: errors, models, keys, and how tools are declared.

Knows neither messages nor items; those belong to the one or the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from agent_host_testing.formats.checks import Check, Node, Refused, one_of, text
from agent_host_testing.formats.encoding import compact
from agent_host_testing.formats.notation import Rules
from agent_host_testing.script import Failure, FailureKind
from agent_host_testing.wire import Operation, Problem, Refusal, Request, WireFormat

if TYPE_CHECKING:
    from agent_host_testing.batches import BatchDesk

__all__ = [
    "API_FUNCTIONS",
    "API_RULES",
    "CREATED",
    "OpenAIFormat",
    "bearer",
    "error_object",
    "error_status",
    "padding",
    "request_fields",
    "spoken_text",
    "strict_schema",
    "wants_obfuscation",
]

#: When everything that the fake API makes was made.
CREATED = 1_750_000_000

#: Status, ``type`` and ``code`` of each failure.
_ERRORS: dict[FailureKind, tuple[int, str, str | None]] = {
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "permission": (403, "request_forbidden", "unsupported_country_region_territory"),
    "invalid_request": (400, "invalid_request_error", None),
    "model_not_found": (404, "invalid_request_error", "model_not_found"),
    "context_length": (400, "invalid_request_error", "context_length_exceeded"),
    "rate_limit": (429, "requests", "rate_limit_exceeded"),
    "overloaded": (503, "service_unavailable_error", "server_is_overloaded"),
    "server": (500, "server_error", None),
}


def error_object(failure: Failure) -> dict[str, str | None]:
    """What stands under ``error``, in answers and in streams."""
    _, kind, code = _ERRORS[failure.kind]
    return {"message": failure.message, "type": kind, "param": None, "code": code}


def bearer(request: Request) -> str | None:
    """The key in the ``Authorization`` header; other vendors have it there as well."""
    scheme, _, key = request.header("authorization").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def error_status(failure: Failure) -> int:
    return _ERRORS[failure.kind][0]


def request_fields(request: Request) -> Mapping[str, Any]:
    """The fields of the request; none if it is no object, which only a lenient server lets pass."""
    return request.body if isinstance(request.body, dict) else {}


def wants_obfuscation(request: Request) -> bool:
    """Whether deltas carry padding, as they do unless the request says no."""
    return (request_fields(request).get("stream_options") or {}).get(
        "include_obfuscation"
    ) is not False


def spoken_text(content: Any) -> str:
    """The words of a message's content, be it a string, parts or null."""
    if not isinstance(content, list):
        return content or ""
    return "".join(part.get("text", part.get("refusal", "")) for part in content)


def padding(words: str) -> str:
    """What hides how long the words of a delta are."""
    return "aB3dE6gH9jK2mN5p"[len(words) % 16 :]


def _few_strings(node: Node) -> None:
    """An object of at most 16 strings, such as ``metadata``."""
    API_RULES["strings"](node)
    if len(node.fields()) > 16:
        node.refuse(f"{len(node.fields())} pairs are too many", "there are at most 16 pairs")


def _function_schema(node: Node) -> None:
    """The JSON Schema of a function's parameters."""
    schema = node.fields()
    if schema.get("type") != "object":
        rule = "the schema of a function's parameters has type 'object'"
        node.refuse(f"the schema has type {schema.get('type')!r}", rule)
    _complete(node)


def _complete(node: Node) -> None:
    """Arrays say what is in them, as deep as the schema goes."""
    if not isinstance(node.value, dict):
        return
    if node.value.get("type") == "array" and "items" not in node.value:
        node.refuse("array schema missing items", "the schema of an array has 'items'")
    for inner in _schemas_within(node):
        _complete(inner)


def _schemas_within(node: Node) -> Iterator[Node]:
    """The schemas that stand directly in a schema."""
    schema = node.value if isinstance(node.value, dict) else {}
    for key in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            yield from (node.child(key).child(name) for name in schema[key])
    for key in ("anyOf", "prefixItems"):
        if isinstance(schema.get(key), list):
            yield from node.child(key).items()
    if isinstance(schema.get("items"), dict):
        yield node.child("items")


#: Keywords that a strict schema must not have.
_NOT_STRICT = frozenset(
    {
        *("allOf", "oneOf", "not", "if", "then", "else", "default"),
        *("dependentRequired", "dependentSchemas", "patternProperties", "propertyNames"),
        *("minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems"),
        *("prefixItems", "contains", "minContains", "maxContains", "uniqueItems"),
    }
)


def _strictness(node: Node) -> None:
    """What a schema has to be for ``strict``: closed, with every property required."""
    schema = node.value
    if not isinstance(schema, dict):
        return
    for key in sorted(_NOT_STRICT & {*schema}):
        node.refuse(f"{key!r} is not permitted", "with strict, some keywords are not understood")
    if "$ref" in schema and not schema.keys() <= {"$ref", "$defs", "definitions"}:
        node.refuse("'$ref' cannot have keywords beside it", "with strict, '$ref' stands alone")
    if not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        node.refuse("schema must have a 'type' key", "with strict, everything has a type")
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            rule = "with strict, every object is closed"
            node.refuse("'additionalProperties' is not false", rule)
        if set(schema.get("required", ())) != set(schema.get("properties", {})):
            node.refuse("'required' lacks a property", "with strict, every property is required")
    for inner in _schemas_within(node):
        _strictness(inner)


def strict_schema(node: Node) -> None:
    """A declaration (``parameters``) or a format (``schema``) that is true to its ``strict``."""
    if node.fields().get("strict") is True:
        for name in ("parameters", "schema"):
            if node.has(name):
                _strictness(node.child(name))


def _custom_format(node: Node) -> None:
    """The format of a custom tool's input: any text, or what a grammar allows."""
    one_of("text", "grammar")(node.need("type"))
    if node.value["type"] == "grammar":
        grammar = node.child("grammar") if node.has("grammar") else node
        one_of("lark", "regex")(grammar.need("syntax"))
        text(grammar.need("definition"))


#: What the tables of both APIs name that no table can say.
API_FUNCTIONS: dict[str, Check] = {
    "few strings": _few_strings,
    "function schema": _function_schema,
    "custom format": _custom_format,
}
#: What is the same in both APIs.
API_RULES = Rules("openai_api", API_FUNCTIONS)


class OpenAIFormat(WireFormat):
    """What is the same at both addresses."""

    base_path: ClassVar[str] = "/v1"
    stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    #: Where answers are asked for, below the base path.
    endpoint: ClassVar[str]

    def operation(self, request: Request) -> Operation | None:
        if (request.method, request.path) == ("POST", self.base_path + self.endpoint):
            return "generate"
        if request.method != "GET":
            return None
        if request.path == f"{self.base_path}/models":
            return "models"
        return "detail" if request.path.startswith(f"{self.base_path}/models/") else None

    def wants_stream(self, request: Request) -> bool:
        return request_fields(request).get("stream") is True

    def credential(self, request: Request) -> str | None:
        return bearer(request)

    def refusal(self, failure: Failure) -> Refusal:
        return Refusal(error_status(failure), _body(error_object(failure)), failure.headers)

    def rejection(self, problem: Problem) -> Refusal:
        """``param`` says where the problem is."""
        codes = {401: "invalid_api_key", 404: "not_found", 500: None}
        error = {
            "message": str(problem),
            "type": "invalid_request_error" if problem.status < 500 else "server_error",
            "param": problem.place or None,
            "code": codes.get(problem.status, "invalid_value"),
        }
        return Refusal(problem.status, _body(error))

    def open_desk(self) -> BatchDesk:
        from agent_host_testing.formats.openai_batches import OpenAIBatchDesk

        return OpenAIBatchDesk()

    def models(self, names: Sequence[str], request: Request) -> bytes:
        """All the models, or the one that the path names. Raises Refused if there is none such."""
        entries = {
            name: {"id": name, "object": "model", "created": CREATED, "owned_by": "system"}
            for name in names
        }
        if self.operation(request) == "models":
            return compact({"object": "list", "data": list(entries.values())}).encode()
        wanted = request.path.removeprefix(f"{self.base_path}/models/")
        if wanted not in entries:
            message = f"the model {wanted!r} does not exist"
            raise Refused(Problem(message, f"the models are {', '.join(names)}", "model", 404))
        return compact(entries[wanted]).encode()


def _body(error: dict[str, str | None]) -> bytes:
    return compact({"error": error}).encode()
