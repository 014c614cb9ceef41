"""Reads one answer chunk by chunk: provider, then extensions, then events out.

This is the hot path. It costs the same for the last chunk of a stream as for the first, goes
through neither pluggy nor pydantic, and copies nothing that grows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import NativeMessage, State
from agent_hookspecs.partial import Partial
from agent_host.request.stack import Calls, answered

__all__ = ["Reading", "decoded_item"]

log = get_logger(__name__)

_ANSWER = ("partials", "finals", "native_messages", "state")
_FOLDED = ("partial_messages", "final_messages", "native_messages", "state")


class Reading:
    """What has been read of one answer.

    ``has_output`` says whether the model has said anything; ``whole`` whether the finals came with
    the answer, so that nothing is left for the provider to finalize.
    """

    __slots__ = (
        "_calls_seen",
        "_debug",
        "_extensions",
        "_provider",
        "_text",
        "finals",
        "has_output",
        "natives",
        "state",
        "whole",
    )

    def __init__(
        self, calls: Calls, natives: list[NativeMessage], state: State, *, debug: bool = False
    ) -> None:
        self._provider = next(iter(calls.implementations("provider", "process_chunk")), None)
        self._extensions = [
            (extension, extension.call)
            for extension in calls.implementations("extension", "process_chunk")
        ]
        self._debug = debug
        self._text = Partial()
        self._calls_seen: dict[int, int] = {}
        self.natives = natives
        self.state = state
        self.finals: list[NativeMessage] = []
        self.has_output = False
        self.whole = False

    def feed(self, decoded: Iterable[tuple[Any, str | None]]) -> Iterator[Event]:
        """Take decoded chunks, each with the name of its event; gives the events they make.

        A chunk is taken only when those before it have been looked at, so ask for all events.
        """
        return self._shown(decoded, None)

    def take(self, chunk: Any, answer: tuple[Any, ...]) -> list[Event]:
        """Take a whole answer that the provider has read by itself; ``chunk`` may be None."""
        events = list(self._shown([(chunk, None)], answer))
        self.whole = bool(self.finals)
        return events

    def _shown(
        self, decoded: Iterable[tuple[Any, str | None]], answer: tuple[Any, ...] | None
    ) -> Iterator[Event]:
        """The events of every partial message: what is new, under a type of its own if there is."""
        for chunk, name in decoded:
            for partial in self._fold(chunk, name, answer):
                content = partial.get("content")
                reasoning = partial.get("reasoning")
                calls = partial.get("tool_calls")
                if content or reasoning or calls:
                    self.has_output = True
                    if content and "content" not in (self.state.get("partial") or ()):
                        # Whoever accumulates keeps the text there; nobody else does.
                        self._text.append_text("content", content)
                elif not _says_something(partial):
                    continue
                yield {"type": "partial", "message": partial}
                if reasoning:
                    yield {"type": "reasoning", "text": reasoning}
                if calls:
                    yield from self._shown_calls(calls)

    def _fold(
        self, chunk: Any, name: str | None, answer: tuple[Any, ...] | None
    ) -> Sequence[dict[str, Any]]:
        """Provider, unless it has answered, then extensions; gives the partial messages."""
        if self._debug:
            log.info("chunk", chunk=chunk)
        hook = self._provider
        try:
            if answer is not None:
                partials, finals, natives, state = answer
            elif hook is None:
                partials, finals, natives, state = [], [], self.natives, self.state
            else:
                given = hook.call(chunk, self.natives, self.state, name)
                if type(given) is not tuple or len(given) != 4:
                    given = answered(hook.plugin, hook.hook, given, *_ANSWER)
                partials, finals, natives, state = given
            for hook, call in self._extensions:
                given = call(chunk, partials, finals, natives, state)
                if type(given) is not tuple or len(given) != 4:
                    if given is None:
                        continue
                    given = answered(hook.plugin, hook.hook, given, *_FOLDED)
                partials, finals, natives, state = given
        except Exception as error:
            failure = error if hook is None else hook.failed(error)
            if failure is error:
                raise
            raise failure from error
        self.natives = natives
        self.state = state
        if finals:
            self.finals += finals
            self.has_output = True
        return partials or ()

    def _shown_calls(self, calls: list[dict[str, Any]]) -> Iterable[Event]:
        """Events of call fragments, or of whole calls as some plugins patch them in."""
        events: list[Event] = []
        for place, call in enumerate(calls):
            function = call.get("function")
            if isinstance(function, dict):
                name, arguments = function.get("name"), function.get("arguments")
                known = self._calls_seen.get(place, 0)
                fragment = arguments[known:] if isinstance(arguments, str) else ""
            else:
                place, name = call.get("index", place), call.get("name")
                fragment = call.get("arguments") or ""
            if place not in self._calls_seen:
                self._calls_seen[place] = 0
                events.append(
                    {
                        "type": "tool_call_started",
                        "index": place,
                        "id": call.get("id") or call.get("call_id") or None,
                        "name": name or None,
                    }
                )
            if fragment:
                self._calls_seen[place] += len(fragment)
                events.append({"type": "tool_call_delta", "index": place, "arguments": fragment})
        return events

    def text(self) -> str:
        """What the model has said so far."""
        partial = self.state.get("partial") if isinstance(self.state, dict) else None
        content = partial.get("content") if isinstance(partial, dict) else None
        return content if isinstance(content, str) else str(self._text.get("content", ""))


def _says_something(partial: dict[str, Any]) -> bool:
    """Whether anybody has put anything but a role into a partial message."""
    for key, value in partial.items():
        # Not merely what is true: 0 and False say something.
        if key != "role" and value is not None and value != "" and value != [] and value != {}:
            return True
    return False


def decoded_item(item: Any) -> Any:
    """A chunk from a provider's own stream: a dict as it is, a line decoded; None: nothing in it.

    Raises `EOFError` at the end marker of server-sent events.
    """
    if not isinstance(item, (str, bytes)):
        return item or None
    line = (item.decode("utf-8", "replace") if isinstance(item, bytes) else item).strip()
    if line.startswith("data:"):
        line = line[len("data:") :].strip()
    if line == "[DONE]":
        raise EOFError
    try:
        return json.loads(line) if line else None
    except ValueError:
        return None
