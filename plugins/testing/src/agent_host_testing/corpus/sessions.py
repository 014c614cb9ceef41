"""What is wrong with a recorded session that was played: answer by answer, request by request."""

from __future__ import annotations

from agent_host_testing.corpus.comparing import differences
from agent_host_testing.corpus.playback import address_differences
from agent_host_testing.corpus.replaying import PlayedSession
from agent_host_testing.corpus.requests import history_differences, request_differences

__all__ = ["further_turn_differences", "session_differences", "turn_differences"]


def session_differences(played: PlayedSession) -> list[str]:
    """All that differs, each with the name of its recording; nothing if the session is right."""
    found = [
        f"{turn.recording.name}: {each}"
        for number, turn in enumerate(played.turns)
        for each in (
            *differences(turn.recording, turn),
            *turn_differences(played, number),
        )
    ]
    return [*found, *further_turn_differences(played)]


def turn_differences(played: PlayedSession, number: int) -> list[str]:
    """How the request of a turn differs from the recorded one, and from what came before it."""
    turn = played.turns[number]
    if turn.request is None:
        return [f"no request was sent: {turn.seen.error!r}"]
    before = played.turns[:number] if turn.continued else []
    recorded = [each.recording for each in before]
    return [
        *address_differences(turn.recording, turn.request),
        *request_differences(
            turn.recording, turn.request.body, recorded, from_scratch=not turn.continued
        ),
        *(history_differences(before[-1], turn.request.body) if before else ()),
    ]


def further_turn_differences(played: PlayedSession) -> list[str]:
    """What is wrong with a turn after the last recorded one, straight and from a stored session."""
    last, further = played.turns[-1], played.further
    if further is None:
        return []
    straight, loaded = further.straight, further.loaded
    if straight is None or loaded is None:
        return ["no request was sent in one more turn"]
    found = [f"in one more turn {each}" for each in history_differences(last, straight.body)]
    if loaded.raw != straight.raw:
        found.append("in one more turn a session that was stored and loaded sends another request")
    return [f"{last.recording.name}: {each}" for each in found]
