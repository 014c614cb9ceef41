"""Ready-made streaming hooks for plugins whose answer is the sum of its chunks.

Owns the two mixins that drive ``extract_delta`` and ``process_delta`` over the shared accumulator
``state["partial"]``, and the reducers for tool calls and reasoning. It must not know the host, a
transport or any one server; wire shapes are the business of `agent_hookspecs.authoring.merging`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from agent_hookspecs.authoring.merging import (
    ToolCalls,
    choice_delta,
    content_fragment,
    finish_reasoning_details,
    finish_tool_calls,
    first_choice,
    merge_reasoning_details,
    reasoning_fragment,
    tool_call_deltas,
)
from agent_hookspecs.authoring.natives import taken_call_ids
from agent_hookspecs.authoring.partial import Partial, plain
from agent_hookspecs.errors import ContractError

__all__ = [
    "AccumulatorExtensionMixin",
    "AccumulatorStreamingMixin",
    "accumulate_reasoning",
    "accumulate_tool_calls",
]

_Message: TypeAlias = dict[str, Any]
_Messages: TypeAlias = list[dict[str, Any]]
_State: TypeAlias = dict[str, Any]

#: Reads a key that is only ever set, never appended to, without asking for text to be joined.
_stored = dict.get

#: Keys of the accumulator that say something about the message and are not part of it.
_ABOUT = ("usage", "finish_reason")


class AccumulatorStreamingMixin:
    """``process_chunk`` and ``finalize`` for a provider, made of two smaller steps.

    As it stands it reads OpenAI-like chunks. A provider with another wire format overrides
    `extract_delta`, `process_delta` or both; what they return may be plain dicts. Cost stays
    linear if `process_delta` appends with `Partial.append_text` to the accumulator it is given.
    """

    #: Whether the class reads chunks as they are read here, so that one look at a chunk will do.
    _reads_choices: ClassVar[bool] = True
    _reads_usage: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._reads_choices = cls.extract_delta is AccumulatorStreamingMixin.extract_delta
        cls._reads_usage = cls.extract_usage is AccumulatorStreamingMixin.extract_usage

    def extract_delta(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """The part of a chunk that `process_delta` works on; ``{}`` if there is nothing in it."""
        return first_choice(chunk)

    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any] | None
    ) -> tuple[_Message | None, dict[str, Any]]:
        """Merge ``delta`` and return ``(fragment, accumulator)``; the fragment goes to the UI.

        Keys of the accumulator that this method does not know belong to extensions: keep them.
        The role seen first wins. ``accumulated`` is None at the first delta.
        """
        message = accumulated if type(accumulated) is Partial else Partial.of(accumulated)
        body = delta.get("delta")
        if not body or type(body) is not dict:
            body = choice_delta(delta)
            if not body:
                return None, message
        role = _stored(message, "role")
        if not role:
            role = body.get("role")
            if not isinstance(role, str) or not role:
                role = "assistant"
            message["role"] = role
        text = body.get("content")
        if type(text) is not str:
            text = content_fragment(body)
        if text or "content" not in message:
            message.append_text("content", text)
        fragment = {"role": role, "content": text}
        refusal = body.get("refusal")
        if refusal and isinstance(refusal, str):
            message.append_text("refusal", refusal)
            fragment["refusal"] = refusal
        return fragment, message

    def extract_usage(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """The token counts that a chunk reports. The last report of a stream is the one kept."""
        usage = chunk.get("usage") or first_choice(chunk).get("usage")
        return usage if isinstance(usage, dict) and usage else None

    def process_chunk(
        self, native_chunk: object, native_messages: _Messages, state: _State
    ) -> tuple[_Messages, _Messages, _Messages, _State]:
        """Merge one decoded chunk into ``state["partial"]``; history is passed on untouched.

        A chunk that is not an object is ignored. A fragment that says nothing, such as a role
        alone, is a partial message too: extensions patch what they find in the chunk into it. The
        host shows nobody what is still empty then.
        """
        partials: _Messages = []
        if not isinstance(native_chunk, dict):
            return partials, [], native_messages, state
        before = state.get("partial")
        accumulated = before if type(before) is Partial else _accumulator(before)
        choice = first_choice(native_chunk)
        delta = choice if self._reads_choices else self.extract_delta(native_chunk)
        if delta:
            fragment, merged = self.process_delta(delta, accumulated or None)
            accumulated = merged if type(merged) is Partial else _merged(merged, accumulated)
            if fragment:
                if fragment.get("content") and "role" in fragment:
                    partials.append(fragment)
                else:
                    partials.append(_as_partial_message(fragment))
        if self._reads_usage:
            usage = native_chunk.get("usage") or choice.get("usage")
        else:
            usage = self.extract_usage(native_chunk)
        if usage and isinstance(usage, dict):
            accumulated["usage"] = usage
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            accumulated["finish_reason"] = reason
        if accumulated is not before and accumulated:
            state["partial"] = accumulated
        return partials, [], native_messages, state

    def stream_complete(self, state: _State) -> bool | None:
        """True once a finish reason was seen; without one, tool calls may be half built."""
        accumulated = state.get("partial")
        if not isinstance(accumulated, Mapping):
            return None
        if accumulated.get("finish_reason"):
            return True
        return False if accumulated.get("tool_calls") else None

    def finalize(
        self, native_messages: _Messages, state: _State
    ) -> tuple[_Messages, _Messages, _State]:
        """Turn ``state["partial"]`` into the final message and append it to a new history list.

        The final is deeply plain. It is one object in three places (the finals, the history and
        ``state["partial"]``) so that an extension that repairs it later repairs all of them.
        Usage and finish reason go under ``_metadata``, which is never sent.
        """
        accumulated = state.get("partial")
        if not isinstance(accumulated, dict) or not accumulated:
            return [], native_messages, state
        # The ids of a long history matter only to calls that have to be told apart from it.
        calls = accumulated.get("tool_calls")
        taken = taken_call_ids(native_messages, state) if calls else ()
        final = _final_message(accumulated, taken)
        state["partial"] = final
        return [final], [*native_messages, final], state


class AccumulatorExtensionMixin:
    """``process_chunk`` for a provider extension, made of two smaller steps.

    A subclass writes `process_delta`; without one it is refused when the class is made, with a
    `ContractError` that names it. `extract_delta` reads OpenAI-like chunks unless overridden.
    """

    if TYPE_CHECKING:

        def process_delta(
            self, delta: dict[str, Any], accumulated: dict[str, Any]
        ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
            """Merge ``delta`` and return ``(patch, accumulator)``.

            The patch, if any, is what a UI should see of this chunk. Keys of the accumulator that
            this method does not know belong to others: keep them.
            """

    #: Whether the class takes the delta from where it is taken here.
    _reads_choices: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._reads_choices = cls.extract_delta is AccumulatorExtensionMixin.extract_delta
        if not callable(getattr(cls, "process_delta", None)):
            raise ContractError(
                f"{cls.__module__}.{cls.__qualname__} uses AccumulatorExtensionMixin "
                "but has no process_delta",
                plugin=_plugin_id(cls),
                hook="process_delta",
                hint="define process_delta(self, delta, accumulated) -> (patch or None, "
                "accumulator) on it or on one of its bases",
            )

    def extract_delta(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """The part of a chunk that `process_delta` works on; ``{}`` if there is nothing in it."""
        return first_choice(chunk)

    def process_chunk(
        self,
        native_chunk: object,
        partial_messages: _Messages,
        final_messages: _Messages,
        native_messages: _Messages,
        state: _State,
    ) -> tuple[_Messages, _Messages, _Messages, _State]:
        """Merge one decoded chunk into ``state["partial"]`` and show the patch.

        The patch goes on the last partial message of this chunk. If the provider made none, the
        patch becomes one: a chunk with only reasoning or calls would otherwise never be seen.
        """
        if self._reads_choices:
            delta = first_choice(native_chunk)
        else:
            delta = self.extract_delta(native_chunk) if isinstance(native_chunk, dict) else {}
        if not delta:
            return partial_messages, final_messages, native_messages, state
        before = state.get("partial")
        accumulated = before if type(before) is Partial else _accumulator(before)
        patch, merged = self.process_delta(delta, accumulated)
        if merged is not before:
            accumulated = _merged(merged, accumulated)
            if accumulated:
                state["partial"] = accumulated
        if patch and isinstance(patch, dict):
            if partial_messages:
                partial_messages[-1] = {**partial_messages[-1], **patch}
            else:
                partial_messages.append(_as_partial_message(patch))
        return partial_messages, final_messages, native_messages, state


def accumulate_tool_calls(
    delta: dict[str, Any], accumulated: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, Partial]:
    """Merge the tool calls of a choice, or of its delta or message, into the accumulator.

    The patch has this chunk's fragments, not the calls so far: ``{"tool_calls": [{"index", "id",
    "name", "arguments"}]}``, where ``index`` is the position among the merged calls, ``id`` and
    ``name`` are what is known by now ("" if nothing), and ``arguments`` is the new text.
    """
    message = accumulated if type(accumulated) is Partial else Partial.of(accumulated)
    body = delta.get("delta")
    if not body or type(body) is not dict:
        body = _body(delta)
    if "tool_calls" not in body and "function_call" not in body:
        return None, message
    deltas = body.get("tool_calls")
    if not deltas or type(deltas) is not list:
        deltas = tool_call_deltas(body)
    known = _stored(message, "tool_calls")
    calls = known if type(known) is ToolCalls else ToolCalls.of(known)
    fragments = calls.merge(deltas)
    if not fragments:
        return None, message
    if calls is not known:
        message["tool_calls"] = calls
    return {"tool_calls": fragments}, message


def accumulate_reasoning(
    delta: dict[str, Any], accumulated: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, Partial]:
    """Merge the reasoning of a choice, or of its delta or message, into the accumulator.

    Text goes to ``reasoning``, and is the patch; blocks go to ``reasoning_details``.
    """
    message = accumulated if type(accumulated) is Partial else Partial.of(accumulated)
    body = delta.get("delta")
    if not body or type(body) is not dict:
        body = _body(delta)
    if details := body.get("reasoning_details"):
        merged = merge_reasoning_details(message.get("reasoning_details"), details)
        if merged:
            message["reasoning_details"] = merged
    fragment = body.get("reasoning") or body.get("reasoning_content")
    if type(fragment) is not str and (fragment or type(body.get("content")) is list):
        fragment = reasoning_fragment(body)
    if not fragment:
        return None, message
    message.append_text("reasoning", fragment)
    return {"reasoning": fragment}, message


def _body(delta: dict[str, Any]) -> dict[str, Any]:
    return choice_delta(delta) if "delta" in delta or "message" in delta else delta


def _accumulator(current: object) -> Partial:
    return Partial.of(current if isinstance(current, dict) else None)


def _merged(result: object, before: Partial) -> Partial:
    """What a plugin's `process_delta` returned as accumulator; the one before if it gave none."""
    return Partial.of(result) if isinstance(result, Mapping) else before


def _as_partial_message(fragment: _Message) -> _Message:
    message = {"role": "assistant", "content": "", **fragment}
    if message["content"] is None:
        message["content"] = ""
    return message


def _final_message(accumulated: dict[str, Any], taken: Collection[str]) -> _Message:
    final: _Message = {"role": "assistant", "content": "", **plain(accumulated)}
    final["role"] = final["role"] or "assistant"
    if final["content"] is None:
        final["content"] = ""
    if calls := finish_tool_calls(final.pop("tool_calls", None), taken=taken):
        final["tool_calls"] = calls
    if details := finish_reasoning_details(final.pop("reasoning_details", None)):
        final["reasoning_details"] = details
    about = {key: final.pop(key) for key in _ABOUT if key in final}
    if about:
        known = final.get("_metadata")
        final["_metadata"] = {**(known if isinstance(known, dict) else {}), **about}
    return final


def _plugin_id(cls: type) -> str | None:
    name = getattr(cls, "name", None)
    return name if isinstance(name, str) else None
