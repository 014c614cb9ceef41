"""Compares the requests that a provider sends with the recorded ones.

Owns what is compared and the words for what differs. What does not matter is for `harmless` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_host_testing.corpus.entries import Block, merge_neighbours, tool_name
from agent_host_testing.corpus.harmless import HARMLESS, Entries
from agent_host_testing.corpus.protocols import PROTOCOLS, translate_recording
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.corpus.replaying import ProviderFor, Replayed, replay_group

__all__ = ["compare_requests", "next_request_differences", "request_differences"]

#: Statuses by which an API says that it cannot take a request as it is.
_REFUSED = (400, 413, 422)


def request_differences(
    recording: Recording, body: Mapping[str, Any], before: Sequence[Recording] = ()
) -> list[str]:
    """How a request's conversation and tools differ from the recorded ones.

    ``before`` are the recordings of the turns that led to it.
    """
    if recording.status in _REFUSED:
        return []
    protocol = PROTOCOLS[recording.protocol]
    theirs, ours = translate_recording(recording), protocol.turn(body, recording.url)
    mine, wanted = list(ours.entries), list(theirs.entries)
    for harmless in HARMLESS:
        if harmless.change is not None:
            mine, wanted = harmless.change(mine, wanted, before)
    names, declared = list(map(tool_name, ours.tools)), list(map(tool_name, theirs.tools))
    answers = b"".join(each.body for each in before)
    found = list(_entry_differences(merge_neighbours(mine), merge_neighbours(wanted), answers))
    if names != declared:
        found.append(f"the tools are {names} instead of {declared}")
    hosted, known = ours.settings.get("builtin_tools"), theirs.settings.get("builtin_tools")
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


def next_request_differences(
    group: Sequence[Recording], provider_for: ProviderFor, *, seed: int = 0
) -> list[str]:
    """How the requests by which we go on in a session differ from the recorded ones."""
    return compare_requests(replay_group(group, provider_for, seed=seed))


def compare_requests(played: Sequence[Replayed]) -> list[str]:
    """`next_request_differences` of a session that has been played."""
    found: list[str] = []
    for number, replayed in enumerate(played):
        if not replayed.continued:
            continue
        name = replayed.recording.name
        if replayed.request is None:
            found.append(f"{name}: no request was sent: {replayed.seen.error!r}")
            continue
        before = [each.recording for each in played[:number]]
        differing = request_differences(replayed.recording, replayed.request, before)
        found += [f"{name}: {each}" for each in differing]
    return found
