"""Compares the requests that a provider sends with the recorded ones, and with what was answered.

Owns what is compared and the words for what differs. What does not matter is for `harmless` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_host_testing.corpus.comparing import has_again
from agent_host_testing.corpus.declarations import declaration_differences
from agent_host_testing.corpus.entries import Block, Entry, merge_neighbours
from agent_host_testing.corpus.harmless import (
    ASK_FOR_REASONING,
    HARMLESS,
    Entries,
    rebuilt,
    sent_back,
)
from agent_host_testing.corpus.protocols import protocol_of, spoken_blocks, translate_recording
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.corpus.replaying import Replayed

__all__ = ["history_differences", "request_differences"]

#: Statuses by which an API says that it cannot take a request as it is.
_REFUSED = (400, 413, 422)


def request_differences(
    recording: Recording,
    body: Mapping[str, Any],
    before: Sequence[Recording] = (),
    *,
    from_scratch: bool = False,
) -> list[str]:
    """How a request's conversation and tools differ from the recorded ones.

    ``before`` are the recordings of the turns that led to it. One that was made ``from_scratch``,
    of the recorded request alone, lacks what only the answers themselves could have brought.
    """
    if recording.status in _REFUSED:
        return []
    protocol = protocol_of(recording)
    theirs, ours = translate_recording(recording), protocol.turn(body, recording.url)
    mine, wanted = list(ours.entries), list(theirs.entries)
    for harmless in HARMLESS:
        if harmless.change is not None:
            mine, wanted = harmless.change(mine, wanted, before)
    if from_scratch:
        mine, wanted = rebuilt(mine), rebuilt(wanted)
    answers = b"".join(each.body for each in before)
    hosted, known = ours.settings.get("builtin_tools"), theirs.settings.get("builtin_tools")
    found = [
        *_entry_differences(merge_neighbours(mine), merge_neighbours(wanted), answers),
        *declaration_differences(ours.tools, theirs.tools),
    ]
    if hosted != known:
        found.append(f"the provider's own tools are {hosted} instead of {known}")
    return found


def _entry_differences(ours: Entries, theirs: Entries, answers: bytes) -> Iterator[str]:
    roles, wanted = [entry.role for entry in ours], [entry.role for entry in theirs]
    if roles != wanted:
        yield f"the roles are {roles} instead of {wanted}"
        return
    for number, (mine, recorded) in enumerate(zip(ours, theirs, strict=True)):
        place = f"{mine.role} message {number}"
        kinds = [block.kind for block in mine.blocks]
        expected = [block.kind for block in recorded.blocks]
        if kinds != expected:
            yield f"{place} has {kinds} instead of {expected}"
            continue
        for block, other in zip(mine.blocks, recorded.blocks, strict=True):
            if not _same(block, other, answers, of_model=mine.role == "assistant"):
                yield f"{place}: {block} instead of {other}"


#: What of a block stands there as the API wrote it, with keys that clients drop and add.
_AS_WRITTEN = ("part", "citations")


def _same(ours: Block, theirs: Block, answers: bytes, *, of_model: bool) -> bool:
    """Whether the blocks say the same; of what the model said we may know more than they."""
    if not of_model:
        return bool(ours.value == theirs.value)
    return all(
        key in ours.value
        and (
            _says_again(ours.value[key], value, answers)
            if key in _AS_WRITTEN
            else ours.value[key] == value
        )
        for key, value in theirs.value.items()
    )


def _says_again(ours: Any, theirs: Any, answers: bytes) -> bool:
    """Whether ours has all that theirs has of the answers; keys that are null say nothing."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        return all(
            _says_again(ours[key], value, answers)
            if key in ours
            else value is None or f'"{key}"'.encode() not in answers
            for key, value in theirs.items()
        )
    if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(_says_again(*pair, answers) for pair in pairs)
    return bool(ours == theirs)


def history_differences(before: Replayed, body: Mapping[str, Any]) -> list[str]:
    """How a request carries on from the turn before: what was sent then, and what was answered.

    No recorded client is asked: the history is sent again as it was, and then the answer as it was.
    """
    recording = before.recording
    read = protocol_of(recording).turn
    earlier = read(before.body, recording.url).entries
    entries = read(body, recording.url).entries
    if earlier[-1].role == "assistant":
        # The answer goes on with what was begun for it, and is sent back as one with it.
        return []
    since = _since(earlier, entries)
    if since is None:
        return ["what was sent before is not sent again as it was"]
    return list(_answer_differences(before, since))


def _since(earlier: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry] | None:
    """What comes after the earlier entries, the last of which may go on; None without them."""
    *first, last = earlier
    if [*entries[: len(first)]] != first or len(entries) < len(earlier):
        return None
    again, length = entries[len(first)], len(last.blocks)
    if again.role != last.role or again.blocks[:length] != last.blocks:
        return None
    more = again.blocks[length:]
    return [*([Entry(last.role, more)] if more else []), *entries[len(earlier) :]]


def _answer_differences(before: Replayed, entries: Sequence[Entry]) -> Iterator[str]:
    said: list[Block] = []
    for entry in entries:
        if entry.role != "assistant":
            break
        said += entry.blocks
    asked = before.player in ASK_FOR_REASONING and bool(before.calls)
    wanted = sent_back(spoken_blocks(before.recording), with_reasoning=asked)
    ours = sent_back(said, with_reasoning=asked)
    kinds, expected = [block.kind for block in ours], [block.kind for block in wanted]
    if kinds != expected:
        yield f"the answer comes back as {kinds} instead of {expected}"
        return
    broken = before.seen.metadata.get("tool_call_errors") or {}
    for block, other in zip(ours, wanted, strict=True):
        if other.kind == "call" and block.value["id"] in broken:
            continue
        if not _unchanged(block, other):
            yield f"of the answer comes back {block} instead of {other}"


def _unchanged(ours: Block, answered: Block) -> bool:
    """Whether a block is sent back as it came; what had no id may have been given one."""
    return all(
        has_again(ours.value.get(key), value) for key, value in answered.value.items() if value
    )
