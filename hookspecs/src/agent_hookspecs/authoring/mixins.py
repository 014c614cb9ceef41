"""Ready-made streaming hooks for plugins whose answer is the sum of its chunks.

Owns the two mixins that drive ``extract_delta`` and ``process_delta`` over the shared accumulator
``state["partial"]``, and the reducers for tool calls and reasoning. It must not know the host, a
transport or any one server; wire shapes are the business of `agent_hookspecs.authoring.merging`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from agent_hookspecs.authoring.merging import (
    CallFragment,
    ToolCalls,
    call_name,
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
from agent_hookspecs.messages import Finish, Usage

__all__ = [
    "AccumulatorExtensionMixin",
    "AccumulatorStreamingMixin",
    "accumulate_reasoning",
    "accumulate_tool_calls",
    "show_patch",
]

_Message: TypeAlias = dict[str, Any]
_Messages: TypeAlias = list[dict[str, Any]]
_State: TypeAlias = dict[str, Any]

#: Reads a key that is only ever set, never appended to, without asking for text to be joined.
_stored = dict.get

#: Keys of a delta that alone make it plain text.
_TEXT_KEYS = frozenset({"content", "role"})

#: Keys of the accumulator that are the answer itself.
_SAID = ("content", "refusal", "tool_calls", "reasoning", "reasoning_details")

#: Keys of the accumulator that say something about the message and are not part of it.
_ABOUT = ("usage", "finish_reason")


class AccumulatorStreamingMixin:
    """``process_chunk`` and ``finalize`` for a provider whose format is like OpenAI's.

    As it stands it reads OpenAI-like chunks. What a server does otherwise is said as data
    (`accumulates`, `waiting_keys`) or in one of the small steps (`check_chunk`, `read_content`,
    `merge_more`, `note_chunk`). A provider with another wire format overrides `extract_delta`,
    `process_delta` or both; what they return may be plain dicts. Cost stays linear if
    `process_delta` appends with `Partial.append_text` to the accumulator it is given.
    """

    #: What the provider itself merges of a delta besides its text: ``"tool_calls"``,
    #: ``"reasoning"``. What is not named here is left to extensions.
    accumulates: ClassVar[Collection[str]] = ()
    #: Keys of a fragment that an extension shows and not the provider, each with the key of the
    #: state under which it waits for that.
    waiting_keys: ClassVar[Mapping[str, str]] = {}

    #: The words of the format that are not ours; a provider may name more.
    finish_reasons: Mapping[str, Finish] = {
        "function_call": "tool_calls",
        "content_filter": "blocked",
    }

    #: The role of every answer; where it is empty, the role that comes first in a stream.
    answer_role: ClassVar[str] = ""

    #: Whether the class reads chunks as they are read here, so that one look at a chunk will do.
    _reads_choices: ClassVar[bool] = True
    _reads_usage: ClassVar[bool] = True
    _merges_choices: ClassVar[bool] = True
    #: Whether chunks of text alone, or of pieces of calls alone, need none of the steps.
    _reads_text: ClassVar[bool] = True
    #: Whether the class has these steps; an empty call for every chunk would be dear.
    _checks_chunks: ClassVar[bool] = False
    _notes_chunks: ClassVar[bool] = False
    _merges_more: ClassVar[bool] = False
    _merges_calls: ClassVar[bool] = False
    _merges_reasoning: ClassVar[bool] = False
    _calls_wait_as: ClassVar[str | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        base = AccumulatorStreamingMixin
        cls._reads_choices = cls.extract_delta is base.extract_delta
        cls._reads_usage = cls.extract_usage is base.extract_usage
        cls._merges_choices = cls.process_delta is base.process_delta
        cls._reads_text = cls._reads_choices and cls._reads_usage and cls._merges_choices
        cls._notes_chunks = cls.note_chunk is not base.note_chunk
        cls._checks_chunks = cls.check_chunk is not base.check_chunk
        cls._merges_more = cls.merge_more is not base.merge_more or bool(cls.accumulates)
        cls._merges_calls = "tool_calls" in cls.accumulates
        cls._calls_wait_as = cls.waiting_keys.get("tool_calls")
        cls._merges_reasoning = "reasoning" in cls.accumulates

    def check_chunk(self, chunk: dict[str, Any], choice: dict[str, Any], event: str | None) -> None:
        """Raise if the chunk reports an error.

        It is asked about chunks that have an ``error``, come with the event ``error``, end the
        answer or have no choice.
        """

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
        if not body or type(body) is not dict or "message" in delta:
            body = choice_delta(delta)
            if not body or (body is not delta.get("delta") and _has_begun(message)):
                # Some servers repeat the whole message after the deltas; it counts without them.
                return None, message
        role = _stored(message, "role")
        if not role:
            role = self.answer_role or body.get("role")
            if not isinstance(role, str) or not role:
                role = "assistant"
            message["role"] = role
        text = body.get("content")
        if text is None:
            text = ""
        elif type(text) is not str or "parts" in message:
            text = self.read_content(text, message)
        if text or "content" not in message:
            message.append_text("content", text)
        fragment = {"role": role, "content": text}
        refusal = body.get("refusal")
        if refusal and isinstance(refusal, str):
            message.append_text("refusal", refusal)
            fragment["refusal"] = refusal
        if self._merges_more:
            if self._merges_calls and ("tool_calls" in body or "function_call" in body):
                fragments = _merge_calls(body.get("tool_calls") or tool_call_deltas(body), message)
                if fragments:
                    fragment["tool_calls"] = fragments
            if self._merges_reasoning and (thought := _merge_reasoning(body, message)):
                fragment["reasoning"] = thought
            self.merge_more(body, message, fragment)
        return fragment, message

    def read_content(self, content: object, accumulated: Partial) -> str:
        """The text of a ``content`` that is not simply text.

        An override that keeps the parts of a content puts them under ``parts`` of the accumulator;
        from then on it is asked for every content, text too.
        """
        return content_fragment({"content": content})

    def merge_more(
        self, delta: dict[str, Any], accumulated: Partial, fragment: dict[str, Any]
    ) -> None:
        """Merge what else a delta or message has; what a UI should see is put into ``fragment``."""

    def extract_usage(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """The token counts that a chunk reports. The last report of a stream is the one kept."""
        usage = chunk.get("usage") or first_choice(chunk).get("usage")
        return usage if isinstance(usage, dict) and usage else None

    def note_chunk(
        self, chunk: dict[str, Any], choice: dict[str, Any], accumulated: Partial
    ) -> None:
        """Keep what else the chunk says about the answer than its usage and finish reason.

        It is asked about chunks that begin or end an answer, report usage or log probabilities, or
        have no delta.
        """

    def process_chunk(
        self,
        native_chunk: object,
        native_messages: _Messages,
        state: _State,
        event: str | None = None,
    ) -> tuple[_Messages, _Messages, _Messages, _State]:
        """Merge one decoded chunk into ``state["partial"]``; history is passed on untouched.

        A chunk that is not an object is ignored. A fragment that says nothing, such as a role
        alone, is a partial message too unless `waiting_keys` are named: extensions patch what they
        find in the chunk into it. The host shows nobody what is still empty then.
        """
        if type(native_chunk) is not dict and not isinstance(native_chunk, dict):
            return [], [], native_messages, state
        before = state.get("partial")
        choices = native_chunk.get("choices")
        choice = choices[0] if type(choices) is list and choices else None
        if type(choice) is not dict or choice.get("index"):
            choice = first_choice(native_chunk)
        elif type(before) is Partial and self._reads_text and "parts" not in before:
            # Nearly every chunk of a long answer: text and nothing else, or arguments and nothing
            # else. It is written out, since every call would cost as much as what it does.
            delta, role = choice.get("delta"), _stored(before, "role")
            if role and type(delta) is dict:
                text = delta.get("content")
                if (text or (self._merges_calls and len(delta) == 1)) and not (
                    choice.get("finish_reason")
                    or native_chunk.get("usage")
                    or native_chunk.get("error")
                    or choice.get("logprobs")
                    or choice.get("usage")
                    or event == "error"
                ):
                    if type(text) is str and text:
                        if len(delta) == 1 or _has_text_alone(delta):
                            before.append_text("content", text)
                            return [{"role": role, "content": text}], [], native_messages, state
                    elif "tool_calls" in delta:
                        calls = _stored(before, "tool_calls")
                        if type(calls) is ToolCalls and (new := calls.merge(delta["tool_calls"])):
                            if self._calls_wait_as:
                                state[self._calls_wait_as] = new
                                return [], [], native_messages, state
                            partial = {"role": role, "content": "", "tool_calls": new}
                            return [partial], [], native_messages, state
        return self._merge_chunk(native_chunk, choice, event, state), [], native_messages, state

    def _merge_chunk(
        self, chunk: dict[str, Any], choice: dict[str, Any], event: str | None, state: _State
    ) -> _Messages:
        """Merge a chunk of any kind, step by step, and give the partial messages for it."""
        before = state.get("partial")
        accumulated = before if type(before) is Partial else _accumulator(before, state)
        partials: _Messages = []
        begins, reason = not _stored(accumulated, "role"), choice.get("finish_reason")
        if self._checks_chunks and (reason or not choice or chunk.get("error") or event == "error"):
            if self._reads_usage and (spent := chunk.get("usage")) and isinstance(spent, dict):
                # What was spent is worth knowing of an answer that fails, too.
                accumulated["usage"] = spent
                state["partial"] = accumulated
            self.check_chunk(chunk, choice, event)
        delta = choice if self._reads_choices else self.extract_delta(chunk)
        if delta:
            if not self._merges_calls and any(map(call_name, tool_call_deltas(_body(delta)))):
                # Whoever merges them, somebody must: the host warns if in the end nobody has.
                state["answer_has_calls"] = True
            # Ours takes an empty one as well, with what the request says of it.
            given = accumulated if accumulated or self._merges_choices else None
            fragment, merged = self.process_delta(delta, given)
            accumulated = merged if type(merged) is Partial else _adopt_result(merged, accumulated)
            if fragment:
                if self.waiting_keys:
                    fragment = self._without_waiting(fragment, state)
                if fragment.get("content") and "role" in fragment:
                    partials.append(fragment)
                elif fragment:
                    partials.append(_as_partial_message(fragment))
        if self._reads_usage:
            usage = chunk.get("usage") or choice.get("usage")
        else:
            usage = self.extract_usage(chunk)
        if usage and isinstance(usage, dict):
            accumulated["usage"] = usage
        if reason and isinstance(reason, str):
            accumulated["finish_reason"] = reason
        if self._notes_chunks and (
            begins or reason or usage or not choice.get("delta") or choice.get("logprobs")
        ):
            self.note_chunk(chunk, choice, accumulated)
        if accumulated is not before and accumulated:
            state["partial"] = accumulated
        return partials

    def _without_waiting(self, fragment: _Message, state: _State) -> _Message:
        """The fragment without what waits for extensions; ``{}`` if it says nothing then."""
        for key, waits_as in self.waiting_keys.items():
            if key in fragment:
                state[waits_as] = fragment.pop(key)
        empty = len(fragment) == 2 and fragment.get("content") == "" and "role" in fragment
        return {} if empty else fragment

    def stream_complete(self, state: _State) -> bool | None:
        """True once a finish reason was seen; without one, tool calls may be half built."""
        accumulated = state.get("partial")
        if not isinstance(accumulated, Mapping):
            return None
        if accumulated.get("finish_reason"):
            return True
        return False if accumulated.get("tool_calls") else None

    def usage_so_far(self, state: _State) -> Usage | None:
        """The last report of token counts, as `extract_usage` gave it."""
        accumulated = state.get("partial")
        if not isinstance(accumulated, Mapping):
            return None
        # In the final message it stands with what is never sent.
        usage = accumulated.get("usage") or (accumulated.get("_metadata") or {}).get("usage")
        return cast("Usage | None", plain(usage)) if usage else None

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
                plugin=getattr(cls, "name", None),
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
        accumulated = before if type(before) is Partial else _accumulator(before, state)
        patch, merged = self.process_delta(delta, accumulated)
        if merged is not before:
            accumulated = _adopt_result(merged, accumulated)
            if accumulated:
                state["partial"] = accumulated
        if patch and isinstance(patch, dict):
            show_patch(partial_messages, patch)
        return partial_messages, final_messages, native_messages, state


def show_patch(partial_messages: _Messages, patch: _Message) -> None:
    """Put what is new on the chunk's last partial message, or make one for it."""
    if partial_messages:
        partial_messages[-1] = {**partial_messages[-1], **patch}
    else:
        partial_messages.append(_as_partial_message(patch))


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
    fragments = _merge_calls(deltas, message)
    return ({"tool_calls": fragments} if fragments else None), message


def _merge_calls(deltas: object, message: Partial) -> list[CallFragment]:
    known = _stored(message, "tool_calls")
    calls = known if type(known) is ToolCalls else ToolCalls.of(known, message.allowance)
    fragments = calls.merge(deltas)
    if fragments and calls is not known:
        message["tool_calls"] = calls
    return fragments


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
    fragment = _merge_reasoning(body, message)
    return ({"reasoning": fragment} if fragment else None), message


def _merge_reasoning(body: dict[str, Any], message: Partial) -> str:
    if details := body.get("reasoning_details"):
        known = message.get("reasoning_details")
        merged = merge_reasoning_details(known, details, message.allowance)
        if merged:
            message["reasoning_details"] = merged
    fragment = body.get("reasoning") or body.get("reasoning_content")
    if type(fragment) is not str:
        if not fragment and type(body.get("content")) is not list:
            return ""
        fragment = reasoning_fragment(body)
    if fragment:
        message.append_text("reasoning", fragment)
    return fragment


def _has_begun(message: Partial) -> bool:
    """Whether anything of the answer has come before."""
    return any(map(message.has_anything, _SAID))


def _has_text_alone(delta: dict[str, Any]) -> bool:
    # A loop and not `all`: a generator would cost more than everything else here.
    for key, value in delta.items():  # noqa: SIM110
        if key not in _TEXT_KEYS and value:
            return False
    return True


def _body(delta: dict[str, Any]) -> dict[str, Any]:
    return choice_delta(delta) if "delta" in delta or "message" in delta else delta


def _accumulator(current: object, state: _State) -> Partial:
    config = state.get("config")
    known = current if isinstance(current, dict) else None
    return Partial.of_answer(config if isinstance(config, Mapping) else {}, known)


def _adopt_result(result: object, before: Partial) -> Partial:
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
