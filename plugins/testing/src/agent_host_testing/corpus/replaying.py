"""Plays recorded sessions against a provider: its host, a real socket, the recorded bytes.

Owns how a recorded session becomes one of ours, turn by turn. It must not know any protocol, nor
what the result should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_hookspecs import ToolPlugin
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.tool_interop import CallView
from agent_host import AgentCore, Session
from agent_host_testing.corpus.entries import Entry, Turn, core_messages, tool_name
from agent_host_testing.corpus.playback import Playback, Way
from agent_host_testing.corpus.protocols import translate_recording
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.shapes.checking import ShapeSubject
from agent_host_testing.shapes.seen import (
    Ask,
    Asking,
    Seen,
    calls_in,
    conduct_steps,
    conduct_steps_async,
)
from agent_host_testing.wire import Request

__all__ = [
    "FurtherTurn",
    "PlayedSession",
    "ProviderFor",
    "Replayed",
    "continues",
    "play_session",
    "replay",
]

#: Which provider, with which settings, plays the one that was recorded.
ProviderFor = Callable[[Recording], ShapeSubject]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of one recording.

    ``player`` is the provider that took the recorded one's place, ``request`` what it sent, None if
    it sent nothing. ``continued`` says whether it went on from the session that the recording
    before had led to; otherwise the history was made from the recorded request, and has no
    signatures.
    """

    recording: Recording
    player: str
    seen: Seen
    calls: tuple[CallView, ...]
    request: Request | None
    continued: bool = False

    @property
    def body(self) -> Mapping[str, Any]:
        """The body that was sent; empty if none was."""
        return self.request.body if self.request is not None else {}

    @property
    def natives(self) -> Sequence[Any]:
        """The native history, as the session retained it."""
        found: Sequence[Any] = self.seen.session.to_dict()["metadata"].get("native_messages") or ()
        return found


@dataclass(frozen=True, slots=True)
class FurtherTurn:
    """The requests of one turn more than was recorded: straight on, and from a stored session."""

    straight: Request | None
    loaded: Request | None


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """A recorded session as it was played; ``further`` is None if its last answer failed."""

    way: Way
    turns: list[Replayed] = field(default_factory=list)
    further: FurtherTurn | None = None


def replay(recording: Recording, provider: ShapeSubject, way: Way | None = None) -> Replayed:
    """One recording by itself."""
    return play_session([recording], lambda _: provider, way).turns[0]


def play_session(
    group: Sequence[Recording], provider_for: ProviderFor, way: Way | None = None
) -> PlayedSession:
    """The recordings of a session, all of one protocol, one after the other; then a turn more.

    One that goes on where the one before ended does so in our session as well, so that whatever was
    signed is sent back by us; any other begins anew.
    """
    way = way or Way()
    played: list[Replayed] = []
    # One server for all of them: signatures go back to the address they came from.
    with Playback(group, way) as playback:
        for recording in group:
            before = played[-1] if played else None
            playback.play(recording)
            played.append(_play_turn(recording, provider_for(recording), playback, way, before))
        last = played[-1]
        further = None
        if last.seen.error is None:
            further = _play_further(last, provider_for(last.recording), playback, way)
    return PlayedSession(way, played, further)


def _play_turn(
    recording: Recording,
    provider: ShapeSubject,
    playback: Playback,
    way: Way,
    before: Replayed | None,
) -> Replayed:
    turn = translate_recording(recording)
    goes_on = before is not None and continues(before, recording)
    if before is not None and goes_on:
        session = before.seen.session.with_added(*_new_messages(before, turn))
    else:
        session = Session().with_added(*core_messages(turn.entries, turn.family))
    seen, calls, request = _ask(recording, session, provider, playback, way)
    player = str(provider.config(playback.server.url).get("provider"))
    return Replayed(recording, player, seen, calls, request, goes_on)


def _play_further(
    last: Replayed, provider: ShapeSubject, playback: Playback, way: Way
) -> FurtherTurn:
    """Answer the open calls, or say something: in the session, and in what is stored of it."""
    results = [_result_message(view) for view in last.calls]
    said: CoreMessage = {"role": "user", "content": "And then?", "metadata": {}}
    session = last.seen.session.with_added(*(results or [said]))
    stored = Session.from_dict(json.loads(json.dumps(session.to_dict())))
    straight, loaded = (
        _ask(last.recording, each, provider, playback, way)[2] for each in (session, stored)
    )
    return FurtherTurn(straight, loaded)


def _result_message(view: CallView) -> CoreMessage:
    named = {"tool_call_id": view.call_id or "", "tool_name": view.tool_name or ""}
    return {"role": "tool", "content": "Nothing new.", "metadata": named}


def _ask(
    recording: Recording,
    session: Session,
    provider: ShapeSubject,
    playback: Playback,
    way: Way,
) -> tuple[Seen, tuple[CallView, ...], Request | None]:
    """Send the session as the recorded request was sent."""
    turn = translate_recording(recording)
    sent = len(playback.server.requests)
    core = provider.core()
    try:
        if turn.tools:
            core.register_tool(_tools(turn.tools))
        given = provider.config(playback.base_url(recording))
        known = {"timeout": 20, "model": "recorded"}
        config = {**known, **_settings(turn.settings, given), "retries": 0}
        # Other tools that happen to be installed were not on offer.
        config["use_tools"] = list(map(tool_name, turn.tools))
        conduct = conduct_steps_async if way.awaited else conduct_steps
        seen, calls = conduct(_steps(core, Ask(session, config, recording.stream)), core)
    finally:
        core.close()
    return seen, calls, playback.last_request(sent)


def _steps(core: AgentCore, ask: Ask) -> Asking[tuple[Seen, tuple[CallView, ...]]]:
    seen: Seen = yield ask
    return seen, tuple(calls_in(core, ask.config, seen))


def _settings(recorded: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded settings below those of the one who replays; bodies to add are both added."""
    extra = {**(recorded.get("extra_body") or {}), **(given.get("extra_body") or {})}
    return {**recorded, **given, **({"extra_body": extra} if extra else {})}


def continues(before: Replayed, recording: Recording) -> bool:
    """Whether the recording goes on from the answer of the one before, as that was recorded."""
    earlier, turn = translate_recording(before.recording), translate_recording(recording)
    expected = before.recording.expected
    if expected.get("error") or before.seen.error is not None:
        return False
    length = len(earlier.entries)
    if turn.entries[:length] != earlier.entries or len(turn.entries) <= length:
        return False
    said = _join_blocks(turn.entries[length:], "assistant")
    names = [block.value["name"] for block in said if block.kind == "call"]
    text = "".join(block.value["text"] for block in said if block.kind == "text")
    wanted = [call["name"] for call in expected.get("tool_calls") or ()]
    return names == wanted and _same_words(text, expected.get("text") or "")


def _same_words(text: str, other: str) -> bool:
    """Whether the texts differ in nothing but signs and spaces, which recorders change."""
    return re.findall(r"\w+", text) == re.findall(r"\w+", other)


def _join_blocks(entries: Sequence[Entry], role: str) -> list[Any]:
    """The blocks of the entries at the beginning that are of one role."""
    blocks: list[Any] = []
    for entry in entries:
        if entry.role != role:
            break
        blocks += entry.blocks
    return blocks


def _new_messages(before: Replayed, turn: Turn) -> list[CoreMessage]:
    """What was said since the answer; results are given the ids that our calls have."""
    length = len(translate_recording(before.recording).entries)
    rest = turn.entries[length:]
    while rest and rest[0].role == "assistant":
        rest = rest[1:]
    open_calls = [(view.call_id or "", view.tool_name) for view in before.calls]
    entries = [
        replace(entry, blocks=tuple(_address_result(block, open_calls) for block in entry.blocks))
        if entry.role == "tool"
        else entry
        for entry in rest
    ]
    answers = {view.call_id: view.tool_name for view in before.calls}
    messages = core_messages(entries, turn.family)
    for message in messages:
        if message["role"] == "tool":
            call_id = message["metadata"]["tool_call_id"]
            message["metadata"]["tool_name"] = answers.get(call_id) or ""
    return messages


def _address_result(block: Any, open_calls: list[tuple[str, str | None]]) -> Any:
    wanted, name = block.value["id"], block.value["name"]
    for place, (call_id, called) in enumerate(open_calls):
        if call_id == wanted or (wanted not in dict(open_calls) and name in (None, called)):
            del open_calls[place]
            return replace(block, value={**block.value, "id": call_id})
    return block


def _tools(schemas: Sequence[Mapping[str, Any]]) -> type[ToolPlugin]:
    """The recorded tools, declared and never run."""

    class RecordedTools(ToolPlugin):
        name = "recorded_tools"
        effect = "read"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [dict(schema) for schema in schemas]

        def execute_tool(self, tool_name: str, payload: Any) -> str:
            raise AssertionError(f"{tool_name} was run while a recording was replayed")

    return RecordedTools
