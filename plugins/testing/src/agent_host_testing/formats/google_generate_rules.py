"""Which requests Gemini's generateContent refuses: turns, ids, signatures and options.

Reads a request and the ledger, and renders nothing. Some rules are stricter than the API, because
what they forbid works only by luck or only with some models: a key in the URL, which ends up in
logs; a call's id that this server never gave; a signature or an id that is gone from what had one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_host_testing.formats.checks import (
    Node,
    calls_unchanged,
    first_problem,
    results_match,
    text,
)
from agent_host_testing.formats.google_generate_fields import (
    PART_DATA,
    check_body,
    declared_names,
    field,
)
from agent_host_testing.script import Call
from agent_host_testing.wire import Ledger, Problem, Request

__all__ = ["SignedPart", "first_refusal", "remember", "signs_calls"]

#: What the API's documentation offers for calls that no model of this API has made.
_PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


@dataclass(frozen=True, slots=True)
class SignedPart:
    """What a signature was handed out on: which data, and its value."""

    kind: str
    value: Any


def signs_calls(model: str) -> bool:
    """Whether the model signs its calls and insists on it."""
    return model.startswith("gemini-3")


def remember(parts: Sequence[Mapping[str, Any]], request: Request, ledger: Ledger) -> None:
    """Enter the parts of an answer into the ledger."""
    said = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    made = [part["functionCall"] for part in parts if "functionCall" in part]
    ledger.hand_out(request, map(_made_call, made))
    for part in parts:
        kind = next(name for name in PART_DATA if name in part)
        if "thoughtSignature" in part:
            # In a stream the signature of a text comes apart from it.
            value = said if kind == "text" else part[kind]
            ledger.signatures[_plain(part["thoughtSignature"])] = SignedPart(kind, value)


def _made_call(call: Mapping[str, Any]) -> Call:
    return Call(call["name"], call.get("args") or {}, call.get("id"))


def first_refusal(request: Request, model: str, ledger: Ledger) -> Problem | None:
    """The first thing for which the API would refuse the request, or None."""

    def check(body: Node) -> None:
        _key(request)
        check_body(body)
        _options(body, model)
        contents = [_Content(node) for node in body.child("contents").items()]
        _turns(contents)
        for content in contents:
            for part in content.parts:
                _signature_in_place(part, ledger)
        calls = [[(call, _made_call(call.value)) for call in each.calls] for each in contents]
        calls_unchanged(request, calls, ledger)
        _nothing_lost(contents, ledger)
        if signs_calls(model):
            _signed_calls(contents)

    return first_problem(check, Node(request.body))


def _key(request: Request) -> None:
    if "key" in request.query:
        Node(None, "query.key").refuse(
            "the API key is in the URL", "the key is sent in x-goog-api-key, for URLs are logged"
        )
    if not request.header("x-goog-api-key"):
        Node(None, "headers.x-goog-api-key").refuse(
            "Method doesn't allow unregistered callers", "the key is sent in x-goog-api-key", 403
        )


class _Content:
    """A content of the request, with what its parts are for."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.role = node.child("role").value or "user"
        self.parts = node.child("parts").items()
        self.calls = self._having("functionCall")
        self.responses = self._having("functionResponse")

    def _having(self, name: str) -> list[Node]:
        found = (field(part, name) for part in self.parts)
        return [node for node in found if node.value is not None]


def _options(body: Node, model: str) -> None:
    generation = field(body, "generationConfig")
    if generation.value is not None:
        _schema_options(generation)
        thinking = field(generation, "thinkingConfig")
        if thinking.value is not None:
            _thinking_options(thinking, model)
    tool_config = field(body, "toolConfig")
    if tool_config.value is not None:
        calling = field(tool_config, "functionCallingConfig")
        if calling.value is not None:
            _calling_options(calling, declared_names(body))


def _schema_options(generation: Node) -> None:
    schemas = [field(generation, name) for name in ("responseSchema", "responseJsonSchema")]
    given = [schema for schema in schemas if schema.value is not None]
    if len(given) > 1:
        given[1].refuse(
            "response_schema and response_json_schema are mutually exclusive",
            "an answer has one schema",
        )
    if given and field(generation, "responseMimeType").value in (None, "text/plain"):
        given[0].refuse(
            "a response schema needs another response_mime_type",
            "answers with a schema are application/json or text/x.enum",
        )


def _thinking_options(thinking: Node, model: str) -> None:
    budget, level = field(thinking, "thinkingBudget"), field(thinking, "thinkingLevel")
    if budget.value is not None and level.value is not None:
        thinking.refuse(
            "You can only set only one of thinking budget and thinking level",
            "Gemini 3 has levels, Gemini 2.5 has budgets",
        )
    if level.value is not None and model.startswith(("gemini-1", "gemini-2")):
        level.refuse(
            "Thinking level is not supported for this model", "Gemini 2.5 has budgets, not levels"
        )
    if model.startswith(("gemini-1", "gemini-2.0")):
        thinking.refuse("Thinking is not supported for this model", "Gemini thinks since 2.5")
    if budget.value is not None and float(budget.value) == 0 and model.startswith("gemini-2.5-pro"):
        budget.refuse(
            "Budget 0 is invalid. This model only works in thinking mode",
            "this model's thinking cannot be turned off",
        )


def _calling_options(calling: Node, declared: Sequence[str]) -> None:
    allowed = field(calling, "allowedFunctionNames")
    if not allowed.value:
        return
    if str(calling.child("mode").value).upper() not in ("ANY", "VALIDATED"):
        allowed.refuse(
            "allowed_function_names should be set only when the mode is ANY or VALIDATED",
            "names are allowed where calls are asked for",
        )
    for name in allowed.items():
        if text(name) not in declared:
            name.refuse(f"there is no function {name.value!r}", "allowed functions are declared")


# Turns


def _turns(contents: Sequence[_Content]) -> None:
    before: Iterable[_Content | None] = [None, *contents]
    after: Iterable[_Content | None] = [*contents[1:], None]
    for previous, content, following in zip(before, contents, after, strict=False):
        _right_role(content)
        if content.calls:
            if previous is None or previous.role == "model":
                content.node.refuse(
                    "Please ensure that function call turn comes immediately after a user turn or "
                    "after a function response turn",
                    "a model calls after the user spoke or functions answered",
                )
            _check_answers(content, following)
        if content.responses and (previous is None or not previous.calls):
            content.node.refuse(
                "Please ensure that function response turn comes immediately after a function "
                "call turn",
                "functions answer what was just called",
            )
    if contents[-1].role == "model":
        contents[-1].node.refuse(
            "Please ensure that multiturn requests end with a user role or a function response",
            "the user, or a function, has the last word",
        )


def _right_role(content: _Content) -> None:
    if content.calls and content.role != "model":
        content.node.child("role").refuse("a function call is not the user's", "models make calls")
    if content.responses and content.role == "model":
        content.node.child("role").refuse(
            "a function response is not the model's", "functions answer in the role user"
        )


def _check_answers(content: _Content, following: _Content | None) -> None:
    responses = [] if following is None else following.responses
    if len(responses) != len(content.calls):
        (content if following is None else following).node.refuse(
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn",
            "each call has one response, and all are in the next content",
        )
    asked = [call.child("name").value for call in content.calls]
    for response in responses:
        name = response.child("name")
        if name.value not in asked:
            name.refuse(f"nothing called {name.value!r} just before", "a response names its call")
        asked.remove(name.value)
    results_match(_ids(content.calls), _ids(responses))


def _ids(nodes: Iterable[Node]) -> list[Node]:
    return [node.child("id") for node in nodes if node.has("id")]


# What was handed out


def _plain(signature: str) -> str:
    """Signatures are bytes: either alphabet of base64 says the same, with or without its end."""
    return signature.replace("-", "+").replace("_", "/").rstrip("=")


def _signature(part: Node) -> str:
    return _plain(field(part, "thoughtSignature").value or "")


def _data(part: Node) -> SignedPart:
    found = {name: field(part, name).value for name in PART_DATA}
    return next(SignedPart(name, value) for name, value in found.items() if value is not None)


def _signature_in_place(part: Node, ledger: Ledger) -> None:
    node = field(part, "thoughtSignature")
    if node.value is None:
        return
    if node.value in _PLACEHOLDERS and field(part, "functionCall").value is not None:
        return
    known = ledger.signatures.get(_signature(part))
    if not isinstance(known, SignedPart):
        node.refuse(
            "Thought signature is not valid", "a signature comes from this API and from no other"
        )
    if not _same(known, _data(part)):
        node.refuse(
            "the thought signature is on another part than it came with",
            "a signature goes back on the same part, and on no other",
        )


def _same(known: SignedPart, found: SignedPart) -> bool:
    if known.kind != found.kind:
        return False
    if known.kind == "text":
        # A client may put the fragments of a text together or leave them apart.
        return found.value in known.value
    if known.kind == "functionCall":
        return _call(found.value) == _call(known.value)
    # The rest is of the API's own tools, whose messages may come back in the other spelling.
    return True


def _call(value: Mapping[str, Any]) -> tuple[Any, Any]:
    return value.get("name"), value.get("args") or {}


def _nothing_lost(contents: Sequence[_Content], ledger: Ledger) -> None:
    """Calls and texts that were signed or had an id have it still.

    What stands before the first that has it may lack it, unless the model said it last: clients
    that had been elsewhere in between made it anew from its words.
    """
    signatures = {_signature(part) for content in contents for part in content.parts}
    ids = {call.child("id").value for content in contents for call in content.calls}
    as_made = (n for n, content in enumerate(contents) if _is_as_made(content))
    last = max((n for n, content in enumerate(contents) if content.role == "model"), default=0)
    start = min(next(as_made, last), _current_turn(contents), last)
    unsigned = [
        known
        for signature, known in ledger.signatures.items()
        if isinstance(known, SignedPart) and signature not in signatures
    ]
    nameless = [known for known in ledger.calls.values() if known.id not in ids]
    for content in contents[start:]:
        _no_text_unsigned(content, unsigned)
        for part in content.parts:
            call = field(part, "functionCall")
            if call.value is not None:
                _no_call_unsigned(part, call, unsigned)
                _right_id(call, nameless, ledger)


def _is_as_made(content: _Content) -> bool:
    # A placeholder is nobody's signature.
    signatures = {_signature(part) for part in content.parts} - {"", *map(_plain, _PLACEHOLDERS)}
    return bool(_ids(content.calls) or signatures)


def _no_text_unsigned(content: _Content, unsigned: Iterable[SignedPart]) -> None:
    if content.role != "model":
        return
    said = "".join(_spoken_texts(content.parts))
    for known in unsigned:
        if known.kind == "text" and said and said == known.value:
            content.node.refuse(
                "the text has lost its thought signature",
                "a text that came with a signature goes back with it",
            )


def _spoken_texts(parts: Iterable[Node]) -> Iterator[str]:
    for part in parts:
        if part.has("text") and not part.child("thought").value:
            yield part.child("text").value


def _no_call_unsigned(part: Node, call: Node, unsigned: Iterable[SignedPart]) -> None:
    if field(part, "thoughtSignature").value is not None:
        return
    for known in unsigned:
        if known.kind == "functionCall" and _call(known.value) == _call(call.value):
            _missing_signature(call)


def _right_id(call: Node, nameless: Iterable[Call], ledger: Ledger) -> None:
    identity = call.child("id")
    if identity.value is not None:
        if identity.value not in ledger.calls:
            identity.refuse(
                f"no call of this server has the id {identity.value!r}",
                "an id is echoed where the answer had one, and never made up",
            )
        return
    for known in nameless:
        if (known.name, known.arguments) == _call(call.value):
            identity.refuse(f"the call has lost its id {known.id!r}", "the id of a call is echoed")


def _signed_calls(contents: Sequence[_Content]) -> None:
    """In the current turn, the first call of each step is signed."""
    for content in contents[_current_turn(contents) :]:
        for part in content.parts:
            call = field(part, "functionCall")
            if call.value is None:
                continue
            if field(part, "thoughtSignature").value is None:
                _missing_signature(call)
            break


def _current_turn(contents: Sequence[_Content]) -> int:
    """Where the user last spoke."""
    asked = [n for n, content in enumerate(contents) if content.role == "user"]
    return max((n for n in asked if not contents[n].responses), default=0)


def _missing_signature(call: Node) -> None:
    call.refuse(
        "Function call is missing a thought_signature in functionCall parts",
        f"the call of {call.child('name').value!r} goes back with the signature it came with",
    )
