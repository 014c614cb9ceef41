"""Reads one answer chunk by chunk: provider, then extensions, then events out.

This is the hot path. It costs the same for the last chunk of a stream as for the first, goes
through neither pluggy nor pydantic, and copies nothing that grows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_hookspecs.authoring.partial import Partial
from agent_hookspecs.errors import HookResultError
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import NativeMessage, State
from agent_host.plugins.implementation import Implementation, check_result
from agent_host.redaction import describe_error
from agent_host.turn.size import SizeLimits

if TYPE_CHECKING:
    from agent_host.plugins.stack import Managers

__all__ = ["Reading", "decode_item"]

log = get_logger(__name__)

#: A whole answer, and the hook that gave it.
_Answer: TypeAlias = tuple[Implementation, tuple[Any, ...]]


class Reading:
    """What has been read of one answer.

    ``has_output`` says whether the model has said anything; ``is_whole`` whether the finals came
    with the answer, so that nothing is left for the provider to finalize.
    """

    __slots__ = (
        "_call_lengths",
        "_debug",
        "_extensions",
        "_limits",
        "_maker",
        "_provider",
        "_text",
        "finals",
        "has_output",
        "is_whole",
        "natives",
        "state",
    )

    def __init__(
        self,
        managers: Managers,
        natives: list[NativeMessage],
        state: State,
        *,
        limits: SizeLimits,
        debug: bool = False,
    ) -> None:
        # Called directly, because they run for every chunk.
        self._provider = next(iter(managers.provider.implementations("process_chunk")), None)
        self._extensions = [
            (extension, extension.call)
            for extension in managers.extension.implementations("process_chunk")
        ]
        self._debug = debug
        self._limits = limits
        self._text = Partial()
        #: Who made the partial messages of which chunk, if it was not the provider.
        self._maker: tuple[Any, Implementation | None] = (None, None)
        #: How much of the arguments of each call was shown.
        self._call_lengths: dict[int, int] = {}
        self.natives = natives
        self.state = state
        self.finals: list[NativeMessage] = []
        self.has_output = False
        self.is_whole = False

    def feed(self, decoded: Iterable[tuple[Any, str | None]], events: list[Event]) -> None:
        """Take decoded chunks, each with the name of its event; adds the events they make."""
        for chunk, name in decoded:
            self._add_events(chunk, self._fold(chunk, name, None), events)

    def take_answer(
        self, chunk: Any, own: Implementation, answer: Any, events: list[Event]
    ) -> None:
        """Take a whole answer, as a hook of the provider has given it; ``chunk`` may be None."""
        checked = own, check_result(own, answer)
        self._add_events(chunk, self._fold(chunk, None, checked), events)
        self.is_whole = bool(self.finals)

    def _add_events(
        self, chunk: Any, partials: Sequence[dict[str, Any]], events: list[Event]
    ) -> None:
        """Add the events of partial messages: what is new, under a type of its own if there is."""
        try:
            for partial in partials:
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
                events.append({"type": "partial", "message": partial})
                if reasoning:
                    events.append({"type": "reasoning", "text": reasoning})
                if calls:
                    self._add_call_events(calls, events)
        except (AttributeError, TypeError) as error:
            raise self._wrong_partials(chunk, error) from error

    def _fold(
        self, chunk: Any, name: str | None, answer: _Answer | None
    ) -> Sequence[dict[str, Any]]:
        """Provider, unless it has answered, then extensions; gives the partial messages.

        What a plugin hands on as it got it is not looked at: most do so with most chunks.
        """
        if self._debug:
            log.info("chunk", chunk=chunk)
        hook = self._provider
        natives, state = self.natives, self.state
        try:
            if answer is not None:
                hook, (partials, finals, natives, state) = answer
                self._maker = chunk, hook
            elif hook is None:
                partials, finals = [], []
            else:
                given = hook.call(chunk, natives, state, name)
                try:
                    partials, finals, history, kept = given
                except (TypeError, ValueError):
                    check_result(hook, given)
                    raise
                if finals or history is not natives or kept is not state:
                    _check_parts(hook, given)
                    natives, state = history, kept
                elif partials and type(partials[0]) is not dict:
                    check_result(hook, given)
            for hook, call in self._extensions:
                given = call(chunk, partials, finals, natives, state)
                try:
                    shown, ended, history, kept = given
                except (TypeError, ValueError):
                    check_result(hook, given)
                    raise
                if (
                    shown is not partials
                    or ended is not finals
                    or history is not natives
                    or kept is not state
                ):
                    _check_parts(hook, given)
                    if shown is not partials:
                        self._maker = chunk, hook
                    partials, finals, natives, state = given
                elif shown and type(shown[0]) is not dict:
                    # Nearly always there is only one. Whoever made it did not spoil it.
                    check_result(hook, given)
        except (Exception, SystemExit) as error:
            if hook is None:
                raise
            hook.raise_failure(error)
        self.natives = natives
        self.state = state
        if finals:
            self.finals += finals
            self.has_output = True
        return partials or ()

    def _wrong_partials(self, chunk: Any, error: Exception) -> HookResultError:
        """Names who made the partial messages; it could only be seen when they were shown."""
        latest, other = self._maker
        maker = other if latest is chunk and other is not None else self._provider
        assert maker is not None, "without anybody there are no partial messages"
        others = [hook.plugin for hook, _ in self._extensions if hook is not maker]
        return HookResultError(
            f"plugin {maker.plugin!r}: hook {maker.hook.name!r} must return partial messages that "
            "are dicts, with text as content and a list of dicts as tool_calls: "
            f"{describe_error(error)}",
            plugin=maker.plugin,
            hook=maker.hook.name,
            hint=f"unless it was spoilt on its way by {' or '.join(others)}" if others else "",
        )

    def _add_call_events(self, calls: list[dict[str, Any]], events: list[Event]) -> None:
        """Add events of call fragments, or of whole calls as some plugins patch them in."""
        for place, call in enumerate(calls):
            function = call.get("function")
            if isinstance(function, dict):
                name, arguments = function.get("name"), function.get("arguments")
                known = self._call_lengths.get(place, 0)
                fragment = arguments[known:] if isinstance(arguments, str) else ""
            else:
                place, name = call.get("index", place), call.get("name")
                fragment = call.get("arguments") or ""
            if place not in self._call_lengths:
                self._call_lengths[place] = 0
                self._limits.check_calls(len(self._call_lengths))
                events.append(
                    {
                        "type": "tool_call_started",
                        "index": place,
                        "id": call.get("id") or call.get("call_id") or None,
                        "name": name or None,
                    }
                )
            if fragment:
                self._call_lengths[place] += len(fragment)
                events.append({"type": "tool_call_delta", "index": place, "arguments": fragment})

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


def _check_parts(hook: Implementation, given: tuple[Any, ...]) -> None:
    """Refuse an answer of a wrong kind, which would only fail in somebody else's code."""
    if type(given) is tuple:
        partials, finals, natives, state = given
        if (
            type(natives) is list
            and type(state) is dict
            and _are_dicts(partials)
            and _are_dicts(finals)
        ):
            return
        # Nothing is as good as an empty list.
        given = (partials or [], finals or [], natives, state)
    check_result(hook, given)


def _are_dicts(messages: Any) -> bool:
    if messages:
        if type(messages) is not list:
            return False
        for message in messages:
            if type(message) is not dict:
                return False
    return True


def decode_item(item: Any) -> Any:
    """A chunk from a provider's own stream: a dict as it is, a line decoded; None: nothing in it.

    Raises `EOFError` at the end marker of server-sent events, and `ValueError` at broken data.
    """
    if not isinstance(item, (str, bytes)):
        return item or None
    line = (item.decode("utf-8", "replace") if isinstance(item, bytes) else item).strip()
    is_data = line.startswith(("data:", "{"))
    if line.startswith("data:"):
        line = line[len("data:") :].strip()
    if line == "[DONE]":
        raise EOFError
    try:
        return json.loads(line) if line else None
    except ValueError:
        if is_data:
            raise
        # Nothing is lost: other lines of server-sent events are fields and comments.
        return None
