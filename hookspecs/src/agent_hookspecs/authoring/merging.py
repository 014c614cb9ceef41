"""How the fragments of an OpenAI-like stream become one message.

Owns the reading of a chunk's choice and the merging of its text, tool calls and reasoning blocks,
for every shape that servers are known to send. The cost of a merge depends on the fragment, never
on what was merged before, and what is kept is counted. It must not know state, hooks or any one
server; broken arguments are told apart here but repaired elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, SupportsIndex, TypedDict

from agent_hookspecs.authoring.calls import unique_call_id
from agent_hookspecs.authoring.partial import Allowance, Partial, plain
from agent_hookspecs.tool_interop.arguments import arguments_problem

__all__ = ["finish_tool_calls", "first_choice"]

#: An ``index`` beyond this is noise, not a position, and is ignored.
MAX_TOOL_INDEX = 1024

#: What a fragment of a call has as a rule; what else it brings is counted, see `Partial.keep`.
_CALL_KEYS = frozenset({"index", "id", "type", "function", "custom"})
_FUNCTION_KEYS = frozenset({"name", "arguments", "input"})
#: As what a call counts when it begins.
_NEW_CALL = {"id": "", "type": "", "function": {"name": "", "arguments": ""}}

#: The parts of a call that hold a name and a payload, and the key of that payload.
_PAYLOADS = {"function": "arguments", "custom": "input"}

#: How often all that has come of a payload is parsed to find out whether it has ended. Within JSON
#: there is hardly a place that looks like another's beginning, but a server can make them up.
_MAX_LOOKS = 8

#: Fields of a reasoning block that arrive in pieces. A signature arrives whole.
_DETAIL_TEXTS = ("text", "summary", "data")


# Reading a chunk.


def first_choice(chunk: object) -> dict[str, Any]:
    """The chunk's first choice; ``{}`` when ``choices`` is missing, null, empty or holds nulls.

    With several choices asked for, each chunk carries one of them; those of the alternatives are
    not part of this message.
    """
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    if choices and isinstance(choices, list):
        choice = choices[0]
        if type(choice) is dict and not choice.get("index"):
            # Nearly every chunk, read without a loop.
            return choice
        for choice in choices:
            if isinstance(choice, dict):
                index = choice.get("index")
                if type(index) is not int or index <= 0:
                    return choice
    return {}


def choice_delta(choice: object) -> dict[str, Any]:
    """The choice's ``delta``, or its ``message`` when the answer was not streamed, or ``{}``.

    Of both the one that says something counts: some servers send each beside an empty other.
    """
    if not isinstance(choice, dict):
        return {}
    delta, message = choice.get("delta"), choice.get("message")
    if not message or not isinstance(message, dict):
        return delta if delta and isinstance(delta, dict) else {}
    return delta if isinstance(delta, dict) and _says_something(delta) else message


def _says_something(body: dict[str, Any]) -> bool:
    """Whether a delta or message has anything in it but a role."""
    return any(value for key, value in body.items() if key != "role")


def content_fragment(delta: object) -> str:
    """The text of ``content``, given as a string or as a list of parts; "" when there is none."""
    content = delta.get("content") if isinstance(delta, dict) else None
    return content if isinstance(content, str) else _text_of_parts(content, "text")


def reasoning_fragment(delta: object) -> str:
    """The reasoning text of a delta or message; "" when there is none.

    Servers call it ``reasoning`` or ``reasoning_content``, some send both with the same text, and
    some put it among the parts of ``content``.
    """
    if not isinstance(delta, dict):
        return ""
    for key in ("reasoning", "reasoning_content"):
        text = delta.get(key)
        if text and isinstance(text, str):
            return text
    return _text_of_parts(delta.get("content"), "thinking")


def _text_of_parts(parts: object, kind: str) -> str:
    if not isinstance(parts, list):
        return ""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, dict) and part.get("type") == kind:
            text = part.get(kind)
            texts.append(text if isinstance(text, str) else _text_of_parts(text, "text"))
    return "".join(texts)


def tool_call_deltas(source: object) -> list[dict[str, Any]]:
    """The call fragments of a delta or message, in whichever form they were sent.

    Accepts a list, a single object, and the legacy ``function_call``; anything else gives ``[]``.
    """
    if not isinstance(source, dict):
        return []
    calls = source.get("tool_calls")
    deltas = _entries(calls) if calls else []
    legacy = None if deltas else source.get("function_call")
    if legacy and isinstance(legacy, dict):
        # There is only ever one of these in a message.
        return [{"index": 0, "type": "function", "function": legacy}]
    return deltas


# Tool calls.


class CallFragment(TypedDict):
    """What one delta added to a call: its new text, with what is known of the call by now.

    ``index`` is the call's position in the message; ``id`` and ``name`` are "" until known.
    """

    index: int
    id: str
    name: str
    arguments: str


class ToolCalls(list[dict[str, Any]]):
    """The calls of one message, in order of first appearance, and where their fragments belong.

    A list like any other under ``==``, JSON and copying (copies are plain lists). The ``index`` of
    the wire is remembered here and never stored on a call: it may have gaps, repeat or be missing.
    """

    __slots__ = (
        "_allowance",
        "_by_id",
        "_by_index",
        "_last",
        "_looks",
        "_named_again",
        "_routed",
        "_tail",
    )

    #: What the answer may keep.
    _allowance: Allowance
    _by_id: dict[str, int]
    _by_index: dict[int, int]
    #: How often the payload of the call at a position was parsed.
    _looks: dict[int, int]
    #: The position that was merged into last, or -1, and the latest text that its payload got.
    _last: int
    _tail: str
    #: A complete call whose name and id came again without a payload, or -1: what begins an object
    #: now begins another call.
    _named_again: int
    #: The length that the positions were learnt for.
    _routed: int

    def __init__(self, calls: Iterable[object] = (), allowance: Allowance | None = None) -> None:
        """Adopt the calls of a plain list; those are taken to stand at their wire index."""
        super().__init__({**call} for call in calls if isinstance(call, dict))
        self._allowance = allowance or Allowance()
        self._learn()

    @classmethod
    def of(cls, value: object, allowance: Allowance | None = None) -> ToolCalls:
        """``value`` itself if it is a `ToolCalls`; a list is adopted; anything else is no calls."""
        if isinstance(value, ToolCalls):
            return value
        return cls(value if isinstance(value, list) else (), allowance)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return list, (), None, iter(self)

    def merge(self, deltas: object) -> list[CallFragment]:
        """Merge the call fragments of one chunk, or a single one: what each added to which call.

        - An integer ``index`` says which call; the same index with another id is another call.
        - Without a usable index: the call of that id, else the last one that was merged into. Only
          a new id, another name, or a second fragment of the same chunk starts a new call.
        - Some servers give all calls the same id: a name that comes again once the call of that id
          is complete starts another call.
        - Null and "" never erase anything; a repeated name is not doubled; the first id stays.
        """
        if len(self) != self._routed:
            # Another plugin added or removed calls: what was known of positions is void.
            self[:] = _entries(self)
            self._learn()
        if type(deltas) is list and len(deltas) == 1:
            fragment = self._continue_call(deltas[0])
            if fragment is not None:
                return [fragment]
        merged: list[CallFragment] = []
        touched: set[int] = set()
        for delta in _entries(deltas):
            if _is_unusual(delta):
                self._allowance.take(delta)
            position = self._route(delta, touched)
            touched.add(position)
            call = self[position]
            text = _merge_call(call, delta)
            if position != self._last or text.strip():
                self._last, self._tail = position, text
            if call_id := _id(call):
                self._by_id[call_id] = position
            merged.append(
                {"index": position, "id": call_id, "name": call_name(call), "arguments": text}
            )
        return merged

    def _continue_call(self, delta: object) -> CallFragment | None:
        """Merge a delta that is nothing but an index and a text for a known call, else None.

        It does what routing and merging would do, for the form that nearly every fragment has.
        """
        if type(delta) is not dict or len(delta) != 2:
            return None
        index, function = delta.get("index"), delta.get("function")
        if type(index) is not int or type(function) is not dict or len(function) != 1:
            return None
        position, text = self._by_index.get(index), function.get("arguments")
        if position is None or type(text) is not str:
            return None
        call = self[position]
        target = call.get("function")
        if type(target) is not Partial:
            return None
        target.append_text("arguments", text)
        if position != self._last or text.strip():
            self._last, self._tail = position, text
        # Written out, since this runs for every fragment: the name is only ever set, as text.
        call_id = call.get("id")
        return {
            "index": position,
            "id": call_id if type(call_id) is str else "",
            "name": dict.get(target, "name", ""),
            "arguments": text,
        }

    def _learn(self) -> None:
        self._by_index = {position: position for position in range(len(self))}
        self._by_id, self._looks = {}, {}
        self._routed = len(self)
        for position, call in enumerate(self):
            if call_id := _id(call):
                self._by_id[call_id] = position
        self._last, self._named_again = self._routed - 1, -1
        self._tail = _payload_text(_payload(self[-1], "function")) if self else ""

    def _open_call(self, call_id: str = "", name: str = "") -> int:
        self._allowance.take(_NEW_CALL)
        self.append({"id": call_id, "function": {"name": name}} if name else {})
        self._routed = len(self)
        return len(self) - 1

    def _route(self, delta: dict[str, Any], touched: Collection[int]) -> int:
        index = _position(delta.get("index"))
        if index is None or index > MAX_TOOL_INDEX:
            return self._route_without_index(delta, touched)
        position = self._by_index.get(index)
        if position is None:
            position = self._find_unindexed(delta)
        elif self._is_another(delta, position):
            position = self._by_id.get(_id(delta))
        elif position in touched and self._shares_id(delta, position, touched):
            # Whole calls of an answer that was not streamed, whose index says nothing.
            position = None
        if position is None:
            position = self._open_call()
        self._by_index[index] = position
        return position

    def _find_unindexed(self, delta: dict[str, Any]) -> int | None:
        """The call that a first-seen index continues: one that has had no index so far."""
        if call_id := _id(delta):
            position = self._by_id.get(call_id)
        else:
            position = None if call_name(delta) or self._last < 0 else self._last
        return None if position in self._by_index.values() else position

    def _is_another(self, delta: dict[str, Any], position: int) -> bool:
        """Whether the delta is not of the call at ``position``, by its id or, without ids, name.

        Some servers make up a fresh id for every fragment; those bear a payload and no name, while
        a call that really starts has its name or, at the least, no payload yet.
        """
        call_id, known_id = _id(delta), _id(self[position])
        name, known_name = call_name(delta), call_name(self[position])
        if not call_id and not known_id:
            return bool(name and known_name) and name != known_name
        if not call_id or not known_id or call_id == known_id:
            return False
        if call_id in self._by_id or name or not known_name:
            return True
        return not any(_payload(delta, part) for part in _PAYLOADS)

    def _route_without_index(self, delta: dict[str, Any], touched: Collection[int]) -> int:
        call_id, name, last = _id(delta), call_name(delta), self._last
        if last >= 0 and last == self._named_again and self._starts_over(delta, last):
            self._named_again = -1
            return self._open_call(_id(self[last]), call_name(self[last]))
        if call_id in self._by_id:
            position = self._by_id[call_id]
            if self._shares_id(delta, position, touched):
                return self._open_call()
            if name and name == call_name(self[position]) and not _payload(delta, "function"):
                self._named_again = position
            return position
        if last < 0 or _is_foreign(delta):
            return self._open_call()
        known_name = call_name(self[last])
        if call_id and _id(self[last]):
            another = self._is_another(delta, last)
        elif not name or not known_name:
            another = False
        elif call_id or name != known_name or last in touched:
            another = True
        else:
            another = self._starts_over(delta, last)
        return self._open_call() if another else last

    def _shares_id(self, delta: dict[str, Any], position: int, touched: Collection[int]) -> bool:
        """Whether the delta starts a call of its own under the id of the call at ``position``."""
        call = self[position]
        if not _id(delta) or _id(delta) != _id(call):
            return False
        if _is_foreign(delta):
            # Of such a shape each is whole; one that comes again replaces what was known of it.
            return position in touched or delta["name"] != call.get("name")
        name, known_name = call_name(delta), call_name(call)
        if not name or not known_name:
            return False
        if name != known_name:
            return True
        if position not in touched:
            return self._starts_over(delta, position)
        if "custom" in delta:
            return True
        text = _payload_text(_payload(delta, "function")).lstrip()
        return (not text or text.startswith("{")) and self._has_ended(position, if_blank=True)

    def _starts_over(self, delta: dict[str, Any], position: int) -> bool:
        """Whether a repeated name comes with a new object after one that is complete."""
        if not _payload_text(_payload(delta, "function")).lstrip().startswith("{"):
            return False
        # Within one object no brace opens right after another closed, unless it is in a text.
        return self._tail.rstrip().endswith("}") and self._has_ended(position, if_blank=False)

    def _has_ended(self, position: int, *, if_blank: bool) -> bool:
        """Whether the payload of a call is a whole object by now; ``if_blank`` if there is none.

        To find out takes as long as the payload is, so that one that was looked at too often is
        taken to go on.
        """
        looks = self._looks.get(position, 0)
        if looks == _MAX_LOOKS:
            return False
        self._looks[position] = looks + 1
        payload = _payload_text(_payload(self[position], "function"))
        return arguments_problem(payload) is None if payload.strip() else if_blank


def _is_unusual(delta: dict[str, Any]) -> bool:
    """Whether a fragment of a call has keys that are kept, whatever they are."""
    if not delta.keys() <= _CALL_KEYS:
        return True
    parts = (delta.get(part) for part in _PAYLOADS)
    return any(isinstance(part, dict) and not part.keys() <= _FUNCTION_KEYS for part in parts)


def _merge_call(call: dict[str, Any], delta: dict[str, Any]) -> str:
    """Merge one fragment and give the payload text that it added."""
    added = ""
    for key, value in delta.items():
        if key in _PAYLOADS:
            if isinstance(value, dict):
                added += _merge_payload(call, key, value)
        elif key == "id":
            if not _id(call) and _id(delta):
                call["id"] = value
        elif key != "index" and value is not None and value != "":
            call[key] = value
    return added


def _merge_payload(call: dict[str, Any], part: str, delta: dict[str, Any]) -> str:
    payload = _PAYLOADS[part]
    target = call.get(part)
    if not isinstance(target, Partial):
        target = call[part] = Partial.of(target if isinstance(target, dict) else None)
        target.setdefault("name", "")
        target[payload] = _payload_text(target.get(payload))
    for key, value in delta.items():
        if key == "name" and not isinstance(value, str):
            continue
        if key != payload and value is not None and value != "":
            target[key] = value
    text = _payload_text(delta.get(payload))
    if isinstance(delta.get(payload), str):
        target.append_text(payload, text)
    elif text:
        target[payload] = text
    return text


def _payload_text(value: object) -> str:
    """A payload as text. Servers that send objects send each whole; an empty one says nothing."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""


def finish_tool_calls(calls: object, *, taken: Collection[str] = ()) -> list[dict[str, Any]]:
    """The calls as the finished message holds them: plain dicts, named, with unique ids.

    A blank id becomes ``tc_<n>`` and a repeated one gets ``__2``, ``__3``, also where ``taken``
    (the ids used earlier in the conversation) has it. No arguments become ``"{}"``; all other
    arguments stay as they were sent, broken ones too. Calls of a shape that is not merged here
    (their name stands beside their payload) are kept as they are.
    """
    named = [call for call in _entries(calls) if call_name(call).strip() or _is_foreign(call)]
    # Beside the ids of the conversation and not among them: those may be many.
    used: set[str] = set()
    reserved = {_id(call) for call in named}
    finished: list[dict[str, Any]] = []
    for call in named:
        if _is_foreign(call):
            finished.append(plain(call))
            continue
        call_id = _id(call)
        if not call_id.strip() or call_id in used or call_id in taken:
            call_id = unique_call_id(call_id, taken, reserved)
        used.add(call_id)
        reserved.add(call_id)
        finished.append(_finish_call(call, call_id))
    return finished


def _is_foreign(call: dict[str, Any]) -> bool:
    shaped = any(isinstance(call.get(part), dict) for part in _PAYLOADS)
    return not shaped and bool(_text(call, "name").strip())


def _finish_call(call: dict[str, Any], call_id: str) -> dict[str, Any]:
    rest = {key: plain(value) for key, value in call.items() if key not in ("id", "type", "index")}
    function = rest.get("function")
    if isinstance(function, dict):
        arguments = _payload_text(function.get("arguments"))
        function["arguments"] = arguments if arguments.strip() else "{}"
    kind = call.get("type")
    if not isinstance(kind, str) or not kind:
        kind = "function" if "function" in rest else "custom"
    return {"id": call_id, "type": kind, **rest}


# Reasoning blocks.


class ReasoningDetails(list[Partial]):
    """The reasoning blocks of one message, in order of first appearance, and their routing.

    A list like any other under ``==``, JSON and copying (copies are plain lists).
    """

    __slots__ = ("_allowance", "_by_id", "_by_place", "_routed")

    #: What the answer may keep.
    _allowance: Allowance
    _by_id: dict[tuple[str, str], int]
    _by_place: dict[tuple[str, int | None], int]
    #: The length that the positions were learnt for.
    _routed: int

    def __init__(self, details: Iterable[object] = (), allowance: Allowance | None = None) -> None:
        super().__init__(Partial(detail) for detail in details if isinstance(detail, dict))
        self._allowance = allowance or Allowance()
        self._learn()

    @classmethod
    def of(cls, value: object, allowance: Allowance | None = None) -> ReasoningDetails:
        """``value`` itself if it is one; a list is adopted; anything else is no blocks."""
        if isinstance(value, ReasoningDetails):
            return value
        return cls(value if isinstance(value, list) else (), allowance)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return list, (), None, iter(self)

    def merge(self, deltas: object) -> None:
        """Merge the block fragments of one chunk."""
        if len(self) != self._routed:
            self[:] = [Partial.of(detail) for detail in _entries(self)]
            self._learn()
        touched: set[int] = set()
        for delta in _entries(deltas):
            position = self._route(delta, touched)
            if position is None:
                self.append(Partial())
                position = len(self) - 1
                self._routed = len(self)
            touched.add(position)
            detail = self[position]
            for key, value in delta.items():
                if key not in detail:
                    self._allowance.take(value)
            _merge_detail(detail, delta)
            self._remember(position)

    def _learn(self) -> None:
        self._by_id = {}
        self._by_place = {}
        for position in range(len(self)):
            self._remember(position)
        self._routed = len(self)

    def _remember(self, position: int) -> None:
        detail = self[position]
        kind = _text(detail, "type")
        place = kind, _position(detail.get("index"))
        if place not in self._by_place:
            self._allowance.take(None)
        self._by_place[place] = position
        if detail_id := _id(detail):
            # One id may name a readable and an encrypted block; without a type it means the latest.
            self._by_id[detail_id, kind] = self._by_id[detail_id, ""] = position

    def _route(self, delta: dict[str, Any], touched: Collection[int]) -> int | None:
        kind, index = _text(delta, "type"), _position(delta.get("index"))
        position = self._by_place.get((kind, index))
        if detail_id := _id(delta):
            if (detail_id, kind) in self._by_id:
                return self._by_id[detail_id, kind]
            return None if position is None or _id(self[position]) else position
        if position is None or (index is None and position in touched):
            return None
        # A signature closes its block; what follows at the same place is the next one.
        closed = _text(self[position], "signature")
        return None if closed and any(_text(delta, key) for key in _DETAIL_TEXTS) else position


def merge_reasoning_details(
    existing: object, deltas: object, allowance: Allowance | None = None
) -> ReasoningDetails:
    """Merge the ``reasoning_details`` of one chunk into ``existing`` and return it.

    A `ReasoningDetails` is changed in place, a plain list is adopted into a new one. Blocks are
    told apart by ``id`` (and type), else by ``(type, index)``. ``text``, ``summary`` and ``data``
    are concatenated; any other key takes the latest value that says something.
    """
    details = ReasoningDetails.of(existing, allowance)
    details.merge(deltas)
    return details


def _merge_detail(detail: Partial, delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key not in _DETAIL_TEXTS or not isinstance(value, str):
            # What says nothing only makes the key exist.
            if key not in detail or (value is not None and value != ""):
                detail[key] = value
            continue
        try:
            detail.append_text(key, value)
        except TypeError:
            # Nothing is lost: a server that changes from parts to text means the latest form.
            detail[key] = value


def finish_reasoning_details(details: object) -> list[dict[str, Any]]:
    """The blocks as the finished message holds them: plain dicts, in order."""
    return [plain(detail) for detail in _entries(details)]


# Fields of the wire.


def _entries(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value] if value else []
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _position(value: object) -> int | None:
    """A non-negative integer, or None; True and False are not numbers on the wire."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _id(entry: dict[str, Any]) -> str:
    return _text(entry, "id")


def call_name(call: dict[str, Any]) -> str:
    """The tool that a call or a fragment of one names; "" if it does not."""
    for part in _PAYLOADS:
        section = call.get(part)
        if section and isinstance(section, dict) and (name := _text(section, "name")):
            return name
    return ""


def _payload(call: dict[str, Any], part: str) -> Any:
    section = call.get(part)
    return section.get(_PAYLOADS[part]) if isinstance(section, dict) else None
