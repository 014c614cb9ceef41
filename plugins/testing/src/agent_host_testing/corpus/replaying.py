"""Plays recorded sessions against a provider: its host, a real socket, the recorded bytes.

Owns how a recorded session becomes one of ours, turn by turn. It must not know any protocol, nor
what the result should be.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_hookspecs import ToolPlugin
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.tool_interop import CallView
from agent_host_testing.corpus.entries import Entry, Turn, core_messages, tool_name
from agent_host_testing.corpus.protocols import PROTOCOLS, translate_recording
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.script import Raw
from agent_host_testing.server import FakeServer
from agent_host_testing.shapes.checking import ShapeSubject
from agent_host_testing.shapes.seen import Ask, Seen, ask_core, calls_in

__all__ = ["ProviderFor", "Replayed", "continues", "replay", "replay_group"]

#: Which provider, with which settings, plays the one that was recorded.
ProviderFor = Callable[[Recording], ShapeSubject]

#: Streams are cut so many times.
_CUTS = 24
_NOT_SENT = ("content-length", "content-encoding", "transfer-encoding", "connection")


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of one recording.

    ``request`` is the body that the provider sent, None if it sent none. ``continued`` says whether
    it went on from the session that the recording before had led to; otherwise the history was made
    from the recorded request, and has no signatures.
    """

    recording: Recording
    seen: Seen
    calls: tuple[CallView, ...]
    request: Mapping[str, Any] | None
    continued: bool = False

    @property
    def natives(self) -> Sequence[Any]:
        """The native history, as the session retained it."""
        found: Sequence[Any] = self.seen.session.to_dict()["metadata"].get("native_messages") or ()
        return found


def replay(recording: Recording, provider: ShapeSubject, *, seed: int = 0) -> Replayed:
    """One recording by itself."""
    [replayed] = replay_group([recording], lambda _: provider, seed=seed)
    return replayed


def replay_group(
    group: Sequence[Recording], provider_for: ProviderFor, *, seed: int = 0
) -> list[Replayed]:
    """The recordings of a session, all of one protocol, one after the other.

    One that goes on where the one before ended does so in our session as well, so that whatever was
    signed is sent back by us; any other begins anew. Streams are cut where ``seed`` says.
    """
    format = PROTOCOLS[group[0].protocol].format
    played: list[Replayed] = []
    answers: list[Raw] = []
    # One server for all of them: signatures go back to the address they came from.
    server = FakeServer(
        format, strict=False, models=_models(group), rest=lambda request: answers[-1]
    )
    with server:
        for recording in group:
            before = played[-1] if played else None
            answers.append(_answer(recording, seed))
            played.append(_play_turn(recording, provider_for(recording), server, before))
    return played


def _models(group: Sequence[Recording]) -> tuple[str, ...]:
    names = (translate_recording(recording).settings.get("model") for recording in group)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _play_turn(
    recording: Recording,
    provider: ShapeSubject,
    server: FakeServer,
    before: Replayed | None,
) -> Replayed:
    turn = translate_recording(recording)
    goes_on = before is not None and continues(before, recording)
    with provider.core() as core:
        if turn.tools:
            core.register_tool(_tools(turn.tools))
        given = provider.config(server.base_url)
        known = {"timeout": 20, "model": "recorded"}
        config = {**known, **_settings(turn.settings, given), "retries": 0}
        # Other tools that happen to be installed were not on offer.
        config["use_tools"] = list(map(tool_name, turn.tools))
        if before is not None and goes_on:
            session = before.seen.session.with_added(*_new_messages(before, turn))
        else:
            session = core.create_session().with_added(*core_messages(turn.entries, turn.family))
        sent = len(server.requests)
        seen = ask_core(core, Ask(session, config, recording.stream))
        calls = tuple(calls_in(core, config, seen))
    operation = server.format.operation
    generated = [each for each in server.requests[sent:] if operation(each) == "generate"]
    body = generated[-1].body if generated else None
    return Replayed(recording, seen, calls, body, goes_on)


def _settings(recorded: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded settings below those of the one who replays; bodies to add are both added."""
    extra = {**(recorded.get("extra_body") or {}), **(given.get("extra_body") or {})}
    return {**recorded, **given, **({"extra_body": extra} if extra else {})}


def _answer(recording: Recording, seed: int) -> Raw:
    headers = {
        name: value
        for name, value in recording.headers.items()
        if name.lower() not in _NOT_SENT and value.isascii()
    }
    return Raw(_pieces(recording, seed), recording.status, headers)


def _pieces(recording: Recording, seed: int) -> tuple[bytes, ...]:
    """The body, a stream's in pieces of any length."""
    body = recording.body
    if not recording.stream or len(body) < 2:
        return (body,)
    chance = random.Random(f"{seed} {recording.name}")
    places = sorted(chance.sample(range(1, len(body)), min(_CUTS, len(body) - 1)))
    edges = zip([0, *places], [*places, len(body)], strict=True)
    return tuple(body[start:end] for start, end in edges)


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
