"""OpenAI's chat completions, and the dialects of it that show the model's reasoning.

Renders answers and judges what it handed out when it comes back; the shape of requests is checked
in `openai_chat_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

from agent_host_testing.formats import openai_api
from agent_host_testing.formats.checks import Node, calls_unchanged, first_problem
from agent_host_testing.formats.encoding import arguments_text, compact, sse
from agent_host_testing.formats.openai_chat_rules import body_rules, call_ids, calls_of
from agent_host_testing.formats.tool_search import refuse_search
from agent_host_testing.script import (
    Call,
    Failure,
    Picture,
    Reply,
    Search,
    Text,
    Thought,
    Tokens,
)
from agent_host_testing.wire import Ledger, Problem, Request, pieces

__all__ = ["OpenAIChat", "ReasoningField"]

ReasoningField = Literal["reasoning", "reasoning_content", "reasoning_details"]

_REASONING: dict[ReasoningField, dict[str, Any]] = {
    "reasoning": {"reasoning?": "text"},
    "reasoning_content": {"reasoning_content?": "text"},
    "reasoning_details": {
        "reasoning?": "text",
        "reasoning_details?": ["object"],
        "images?": ["object"],
    },
}
#: What routers and servers of open models take besides; each has its own meaning for them.
_DIALECT_FIELDS = (
    "chat_template_kwargs",
    "include_reasoning",
    "min_p",
    "models",
    "plugins",
    "provider",
    "reasoning",
    "repetition_penalty",
    "route",
    "thinking",
    "top_a",
    "top_k",
    "transforms",
    "usage",
)
_FINISH = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "blocked": "content_filter",
    "refusal": "stop",
}
_DONE = b"data: [DONE]\n\n"


class OpenAIChat(openai_api.OpenAIFormat):
    """``reasoning`` names the field in which a dialect shows thoughts; the API itself has none.

    With ``demands_reasoning`` the text of a thought that led to calls has to come back with them.
    """

    name: ClassVar[str] = "openai.chat"
    endpoint: ClassVar[str] = "/chat/completions"

    def __init__(
        self, reasoning: ReasoningField | None = None, *, demands_reasoning: bool = False
    ) -> None:
        self._reasoning = reasoning
        self._demands_reasoning = demands_reasoning
        fields = {} if reasoning is None else _REASONING[reasoning]
        self._rules = body_rules(fields, () if reasoning is None else _DIALECT_FIELDS)

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        def check(body: Node) -> None:
            messages = self._rules(body)
            calls_unchanged(request, map(calls_of, messages), ledger)
            for message in messages:
                if message.value["role"] == "assistant":
                    self._check_signed(message, ledger)
            for message in _since_last_user(messages):
                self._check_complete(message, ledger)

        return first_problem(check, Node(request.body))

    def _check_signed(self, message: Node, ledger: Ledger) -> None:
        """Signed details come back as they were, and on the message they were on."""
        if self._reasoning != "reasoning_details" or not message.has("reasoning_details"):
            return
        details = message.child("reasoning_details")
        for detail in details.items():
            signature = _signature(detail.value)
            if signature is None:
                continue
            turn = ledger.signatures.get(signature)
            if turn is None:
                detail.refuse("the signature was not made here", "signatures come back unchanged")
            if not _is_of(message, turn, ledger):
                detail.refuse(
                    "the signature is of another message", "details stay on their message"
                )
            if details.value != turn["details"]:
                detail.refuse(
                    f"the details were {compact(turn['details'])}",
                    "the details of a message come back complete, in order and unchanged",
                )

    def _check_complete(self, message: Node, ledger: Ledger) -> None:
        """What led to calls is still there while they are being answered."""
        for made in call_ids(message):
            turn = ledger.kept.get(made.value)
            if turn is None:
                continue
            signed = any(_signature(detail) for detail in turn["details"])
            if signed and not message.value.get("reasoning_details"):
                message.child("reasoning_details").refuse(
                    "the signed details of this message are missing",
                    "signed reasoning comes back with the calls it led to",
                )
            if self._demands_reasoning and turn["thought"]:
                field = message.child(self._thought_field)
                if field.value != turn["thought"]:
                    field.refuse(
                        "the reasoning of this message is missing or changed",
                        "reasoning comes back with the calls it led to",
                    )

    # Answers

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        reply = _with_call_ids(reply, ledger)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": _join_text(reply),
            "refusal": None,
        }
        if reply.ending == "refusal":
            message["content"], message["refusal"] = None, message["content"]
        if self._reasoning is None:
            message["annotations"] = []
        else:
            message.update(self._shown_thoughts(reply))
        calls = [part for part in reply.parts if isinstance(part, Call)]
        if calls:
            message["tool_calls"] = [_whole_call(call) for call in calls]
        if pictures := self._pictures(reply):
            message["images"] = pictures
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish(reply),
        }
        body = {**_frame(request, ledger, "chat.completion"), "choices": [choice]}
        if reply.tokens is not None:
            body["usage"] = _usage(reply)
        self._enter(reply, request, ledger)
        return compact(body).encode()

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        reply = _with_call_ids(reply, ledger)
        options = openai_api.request_fields(request).get("stream_options") or {}
        with_usage = options.get("include_usage") is True
        padded = self._reasoning is None and openai_api.wants_obfuscation(request)
        frame = compact(_frame(request, ledger, "chat.completion.chunk"))[:-1]
        no_usage = ',"usage":null' if with_usage else ""

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = compact(
                {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            )
            padding = f',"obfuscation":"{openai_api.padding(choice)}"' if padded else ""
            return f'data: {frame},"choices":[{choice}]{no_usage}{padding}}}\n\n'.encode()

        opening = [b": OPENROUTER PROCESSING\n\n"] if self._reasoning == "reasoning_details" else []
        events = [*opening, *(chunk(delta) for delta in self._deltas(reply))]
        self._enter(reply, request, ledger)
        if reply.failure is not None:
            return [*events, *self._broken_off(reply.failure, frame)]
        events.append(chunk({}, _finish(reply)))
        if with_usage and reply.tokens is not None:
            events.append(
                f'data: {frame},"choices":[],"usage":{compact(_usage(reply))}}}\n\n'.encode()
            )
        return [*events, _DONE]

    def _broken_off(self, failure: Failure, frame: str) -> list[bytes]:
        """How a stream tells of a failure: the API in an event of its own, a router in a chunk."""
        error = openai_api.error_object(failure)
        if self._reasoning != "reasoning_details":
            return [sse({"error": error})]
        details = compact({"code": openai_api.error_status(failure), "message": error["message"]})
        choice = '{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"error"}'
        return [f'data: {frame},"error":{details},"choices":[{choice}]}}\n\n'.encode(), _DONE]

    def _deltas(self, reply: Reply) -> Iterator[dict[str, Any]]:
        said = "refusal" if reply.ending == "refusal" else "content"
        calls = [part for part in reply.parts if isinstance(part, Call)]
        opening = None if calls and not _join_text(reply) else ""
        yield {"role": "assistant", "content": opening, "refusal": None}
        if self._reasoning is not None:
            yield from self._thought_deltas(reply)
        for part in reply.parts:
            if isinstance(part, Text):
                yield from ({said: piece} for piece in pieces(part.text, reply.fragments))
        for picture in self._pictures(reply):
            yield {"images": [picture]}
        for index, call in enumerate(calls):
            yield from _call_deltas(index, call, reply.fragments)

    def _thought_deltas(self, reply: Reply) -> Iterator[dict[str, Any]]:
        if self._reasoning != "reasoning_details":
            for part in reply.parts:
                if isinstance(part, Thought) and not part.redacted:
                    for piece in pieces(part.text, reply.fragments):
                        yield {self._thought_field: piece}
            return
        for detail in _details(reply):
            words = pieces(detail["text"], reply.fragments) if "text" in detail else ()
            rest = {
                name: value for name, value in detail.items() if name not in ("text", "signature")
            }
            for piece in words:
                yield {"reasoning": piece, "reasoning_details": [{**rest, "text": piece}]}
            if "signature" in detail:
                yield {"reasoning_details": [{**rest, "signature": detail["signature"]}]}
            elif not words:
                yield {"reasoning_details": [rest]}

    @property
    def _thought_field(self) -> str:
        return "reasoning" if self._reasoning == "reasoning_details" else str(self._reasoning)

    def _shown_thoughts(self, reply: Reply) -> dict[str, Any]:
        """What a dialect shows of the thoughts in a whole message."""
        shown: dict[str, Any] = {self._thought_field: _join_thoughts(reply) or None}
        if self._reasoning == "reasoning_details":
            shown["reasoning_details"] = _details(reply)
        return shown

    def _pictures(self, reply: Reply) -> list[dict[str, Any]]:
        if any(isinstance(part, Search) for part in reply.parts):
            refuse_search()
        pictures = [part for part in reply.parts if isinstance(part, Picture)]
        if pictures and self._reasoning != "reasoning_details":
            raise ValueError("chat completions make no images, except in the router's dialect")
        return [
            {
                "type": "image_url",
                "image_url": {"url": f"data:{picture.media_type};base64,{picture.data}"},
            }
            for picture in pictures
        ]

    def _enter(self, reply: Reply, request: Request, ledger: Ledger) -> None:
        calls = [part for part in reply.parts if isinstance(part, Call)]
        details = _details(reply) if self._reasoning == "reasoning_details" else []
        turn = {
            "details": details,
            "calls": [call.id for call in calls],
            "text": (_join_text(reply) or "") if reply.ending != "refusal" else "",
            "thought": _join_thoughts(reply) if self._reasoning is not None else "",
        }
        ledger.hand_out(request, calls)
        for call in calls:
            ledger.kept[str(call.id)] = turn
        for signature in filter(None, map(_signature, details)):
            ledger.signatures[signature] = turn


def _with_call_ids(reply: Reply, ledger: Ledger) -> Reply:
    """The reply with an id on every call."""
    parts = tuple(
        replace(part, id=ledger.new_id("call_"))
        if isinstance(part, Call) and part.id is None
        else part
        for part in reply.parts
    )
    return replace(reply, parts=parts)


def _is_of(message: Node, turn: dict[str, Any], ledger: Ledger) -> bool:
    """Whether the message is what was answered in that turn.

    An id that was never handed out is one that a client changed because it had another like it.
    """
    ids = [node.value for node in call_ids(message)]
    words = openai_api.spoken_text(message.value.get("content"))
    return (len(ids), words) == (len(turn["calls"]), turn["text"]) and all(
        each in turn["calls"] or each not in ledger.kept for each in ids
    )


def _since_last_user(messages: list[Node]) -> list[Node]:
    last = max((n for n, node in enumerate(messages) if node.value["role"] == "user"), default=-1)
    return [node for node in messages[last + 1 :] if node.value["role"] == "assistant"]


def _frame(request: Request, ledger: Ledger, kind: str) -> dict[str, Any]:
    """What is the same in every chunk of an answer."""
    return {
        "id": ledger.new_id("chatcmpl-"),
        "object": kind,
        "created": openai_api.CREATED,
        "model": openai_api.request_fields(request).get("model", ""),
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def _finish(reply: Reply) -> str:
    if reply.ending not in _FINISH:
        raise ValueError(f"chat completions have no way to finish as {reply.ending!r}")
    return _FINISH[reply.ending]


def _join_text(reply: Reply) -> str | None:
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    return "".join(texts) if texts else None


def _join_thoughts(reply: Reply) -> str:
    thoughts = [part for part in reply.parts if isinstance(part, Thought)]
    return "".join(part.text for part in thoughts if not part.redacted)


def _details(reply: Reply) -> list[dict[str, Any]]:
    """The thoughts as a router tells them, and the signatures of calls in the same list."""
    details: list[dict[str, Any]] = []
    for part in reply.parts:
        entry: dict[str, Any] | None = None
        if isinstance(part, Thought) and not part.redacted:
            entry = {"type": "reasoning.text", "text": part.text}
            if part.signature is not None:
                entry["signature"] = part.signature
            entry["format"] = "anthropic-claude-v1"
        elif isinstance(part, Thought):
            entry = {"type": "reasoning.encrypted", "data": part.signature or ""}
            entry["format"] = "anthropic-claude-v1"
        elif isinstance(part, Call) and part.signature is not None:
            entry = {"type": "reasoning.encrypted", "data": part.signature, "id": part.id}
            entry["format"] = "google-gemini-v1"
        if entry is not None:
            details.append({**entry, "index": len(details)})
    return details


def _signature(detail: dict[str, Any]) -> str | None:
    return detail.get("signature") or detail.get("data")


def _whole_call(call: Call) -> dict[str, Any]:
    if call.freeform:
        custom = {"name": call.name, "input": arguments_text(call)}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def _call_deltas(index: int, call: Call, fragments: int) -> Iterator[dict[str, Any]]:
    kind, words = ("custom", "input") if call.freeform else ("function", "arguments")
    opening = {"index": index, "id": call.id, "type": kind, kind: {"name": call.name, words: ""}}
    yield {"tool_calls": [opening]}
    for piece in pieces(arguments_text(call), fragments):
        yield {"tool_calls": [{"index": index, kind: {words: piece}}]}


def _usage(reply: Reply) -> dict[str, Any]:
    tokens = reply.tokens or Tokens()
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached_input, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
