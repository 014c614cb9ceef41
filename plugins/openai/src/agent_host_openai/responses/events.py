"""The events of a Responses stream, and whole bodies, as one answer.

Owns what is gathered while an answer comes in: its text in ``state["partial"]``, its items and its
end in ``state["answer"]``. Items are kept as the API finished them, the calls among them as the
model wrote them. Showing calls while they grow is the tools extension's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from agent_hookspecs import NativeMessage, State, Usage
from agent_hookspecs.authoring import Partial
from agent_host_openai.responses.answers import call_of, text_of
from agent_host_openai.responses.errors import failed_response
from agent_host_openai.responses.usage import usage_of
from agent_host_openai_compatible.errors import error_in

__all__ = ["begin", "is_complete", "read_event", "usage_told"]

_Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]
_Partials = list[dict[str, Any]]
_Handler = Callable[[dict[str, Any], State], _Partials]


def begin(state: State) -> None:
    """Make room for a new answer."""
    state["partial"] = Partial.of_answer(state["config"])
    # items: those that are finished, by place; heard: whether the text of one came in pieces.
    state["answer"] = {"items": {}, "heard": False, "about": None, "failed": {}}


def is_complete(state: State) -> bool:
    """Whether the event that ends an answer has come."""
    return state["answer"]["about"] is not None


def read_event(
    chunk: Any, native_messages: list[NativeMessage], state: State, name: str | None = None
) -> _Answer:
    """Take one event, or a whole body, and give what it adds for a reader to see.

    ``name`` is that of the server-sent event, for the data that do not repeat it.
    """
    if type(chunk) is not dict:
        return [], [], native_messages, state
    kind = chunk.get("type")
    if kind == "response.output_text.delta":
        text = chunk.get("delta")
        if text and type(text) is str:
            state["partial"].append_text("content", text)
            state["answer"]["heard"] = True
            return [{"role": "assistant", "content": text}], [], native_messages, state
        return [], [], native_messages, state
    handler = _HANDLERS.get(kind or name or "") if type(kind) in (str, NoneType) else None
    if handler is not None:
        partials = handler(chunk, state)
    else:
        partials = _untyped(chunk, state) if not kind or chunk.get("error") else []
    return partials, [], native_messages, state


def _text_delta(event: dict[str, Any], state: State) -> _Partials:
    text = event.get("delta")
    state["answer"]["heard"] = True
    return _said(text if isinstance(text, str) else "", state)


def _item_done(event: dict[str, Any], state: State) -> _Partials:
    answer, item, place = state["answer"], event.get("item"), event.get("output_index")
    if not isinstance(item, dict):
        return []
    items = answer["items"]
    items[place if type(place) is int else len(items)] = state["partial"].keep(item)
    heard, answer["heard"] = answer["heard"], False
    # Some servers finish a message without having sent its text in pieces.
    return [] if heard else _said(text_of(item), state)


def _said(text: str, state: State) -> _Partials:
    if not text:
        return []
    state["partial"].append_text("content", text)
    return [{"role": "assistant", "content": text}]


def _said_beside(key: str) -> _Handler:
    """What is shown and gathered beside the text, under a key of its own."""

    def taken(event: dict[str, Any], state: State) -> _Partials:
        text = event.get("delta")
        if not isinstance(text, str) or not text:
            return []
        state["partial"].append_text(key, text)
        return [{"role": "assistant", "content": "", key: text}]

    return taken


def _ended(event: dict[str, Any], state: State) -> _Partials:
    if is_complete(state):
        # An answer ends once, though a server may say so again and again.
        return []
    response = event.get("response")
    _end(response if isinstance(response, dict) else {}, state)
    if "content" in state["partial"]:
        return []
    return _said("".join(map(text_of, state["answer"]["items"].values())), state)


def _failed(event: dict[str, Any], state: State) -> _Partials:
    response = event.get("response")
    state["answer"]["failed"] = response if isinstance(response, dict) else event
    raise failed_response(event)


def usage_told(state: State) -> Usage | None:
    """What the closing event says of an answer that came to no good end."""
    answer = state["answer"]
    return usage_of(answer["failed"].get("usage")) or (answer["about"] or {}).get("usage")


_HANDLERS: dict[str, _Handler] = {
    # Only for data that leave their type to the event's name; all others never come here.
    "response.output_text.delta": _text_delta,
    "response.output_item.done": _item_done,
    "response.refusal.delta": _said_beside("refusal"),
    "response.reasoning_summary_text.delta": _said_beside("reasoning"),
    "response.reasoning_text.delta": _said_beside("reasoning"),
    "response.completed": _ended,
    "response.incomplete": _ended,
    "response.cancelled": _ended,
    "response.failed": _failed,
    "error": _failed,
}


def _untyped(chunk: dict[str, Any], state: State) -> _Partials:
    output = chunk.get("output")
    # Before an error ends everything: what was said until then is kept.
    partials = _said("".join(map(text_of, output)), state) if isinstance(output, list) else []
    if chunk.get("status") == "failed" or error_in(chunk) is not None:
        _failed(chunk, state)
    if isinstance(output, list) and not is_complete(state):
        _end(chunk, state)
    return partials


def _end(response: dict[str, Any], state: State) -> None:
    answer, partial = state["answer"], state["partial"]
    output = response.get("output")
    listed = output if isinstance(output, list) else []
    items = _whole(answer["items"], partial.keep(listed))
    text = partial.get("content") or ""
    if text and not any(map(text_of, items)):
        # Cut off before the message was finished, and in no list: what was heard is what there is.
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        cut = {"type": "message", "role": "assistant", "status": "incomplete", "content": [part]}
        items.append(cut)
    answer["items"] = dict(enumerate(items))
    answer["about"] = _about(response)
    if calls := [call for item in items if (call := call_of(item))]:
        # As the model wrote them; the host looks here for what must not be run.
        partial["tool_calls"] = calls


def _whole(done: Mapping[int, dict[str, Any]], listed: list[Any]) -> list[dict[str, Any]]:
    """The items in order: each as it was finished, or as the closing event lists it.

    Reasoning is encrypted anew for the closing event; both forms are good for the next turn.
    """
    if len(done) >= len(listed):
        return [done[place] for place in sorted(done)]
    items = [item for item in listed if isinstance(item, dict)]
    return [
        done[place] if place in done and done[place].get("type") == item.get("type") else item
        for place, item in enumerate(items)
    ]


def _about(response: Mapping[str, Any]) -> dict[str, Any]:
    """What a response says of itself, in the words of core metadata."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    told = {
        "response_id": response.get("id"),
        "model": response.get("model"),
        "service_tier": response.get("service_tier"),
        "finish_reason": reason or response.get("status"),
    }
    about: dict[str, Any] = {key: value for key, value in told.items() if isinstance(value, str)}
    if usage := usage_of(response.get("usage")):
        about["usage"] = usage
    return about
