"""How the cost of one turn grows with the conversation before it.

A turn has to send the whole history, so the time to write it as JSON is measured on its own and
taken off; what remains should not depend on how long the conversation is.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import bare_messages
from agent_host.sessions.native import ORIGIN, Origin, retained
from agent_host.sessions.session import Session
from agent_host.wire.sending import content_of
from benchmarks.measure import Samples, Table, interleaved, show
from benchmarks.streaming import Contestants, contestants

ROUNDS = 9
TURNS = 5
SHORT, LONG = 100, 10_000


def run(quick: bool) -> list[Table]:
    with contestants() as runners:
        return [per_turn(runners, quick)]


def conversation(runners: Contestants, config: dict[str, Any], count: int) -> Session:
    """A session of ``count`` messages whose last turn went through the core."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[n % 2], "content": f"Message {n} of a long conversation."}
        for n in range(count - 2)
    ]
    session = Session([*messages, {"role": "user", "content": "Go on."}])
    session, _ = runners.core.send_request(session, config)
    return runners.core.add_message(session, "user", "And now?")


def per_turn(runners: Contestants, quick: bool) -> Table:
    sizes = (SHORT, SHORT * 10) if quick else (SHORT, LONG)
    config = runners.config("whole", 50, "length")
    sessions = {size: conversation(runners, config, size) for size in sizes}
    found = interleaved(
        {
            f"{kind} {size}": case
            for size, session in sessions.items()
            for kind, case in (
                ("turn", _turns(runners, session, config)),
                ("body", _bodies(session)),
            )
        },
        2 if quick else ROUNDS,
    )
    table = Table(
        "CPU of one turn by the length of the history (µs)",
        ("messages", "turn", "body as JSON", "the rest", "times the shortest"),
    )
    shortest = 0.0
    for size in sizes:
        turn, body = _each(found[f"turn {size}"]), _each(found[f"body {size}"])
        shortest = shortest or turn - body
        table.add(str(size), turn=turn, body=body, rest=turn - body, times=(turn - body) / shortest)
    return table


def _each(samples: Samples) -> float:
    return samples.least / TURNS * 1e6


def _turns(runners: Contestants, session: Session, config: dict[str, Any]) -> Any:
    def run_turns() -> None:
        for _ in range(TURNS):
            runners.core.send_request(session, config)

    return run_turns


def _bodies(session: Session) -> Any:
    known = retained(session, Origin(*session.metadata[ORIGIN]))
    natives = [*known.natives, {"role": "user", "content": "And now?"}]
    body = {"model": "m", "messages": bare_messages(natives, {"retained": known})}

    def write() -> None:
        for _ in range(TURNS):
            content_of(body)

    return write


if __name__ == "__main__":
    show(run(quick=False))
