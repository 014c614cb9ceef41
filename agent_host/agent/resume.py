"""A run that is looked up when its steps begin, and the answers that people give it with that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agent_hookspecs.store.errors import DecisionError
from agent_hookspecs.store.values import RunState, StoredRun
from agent_host.agent.loop import AgentRun
from agent_host.drivers.effects import Call, Emit, Steps
from agent_host.sessions.session import Session
from agent_host.turn.steps import error_event

__all__ = ["LaterRun", "stored_decisions"]


class LaterRun:
    """A run that ``make`` finds in the store, which may take time."""

    def __init__(self, make: Callable[[], AgentRun], session: Session) -> None:
        self._make = make
        self._session = session
        self._state: RunState = "pending"
        self._made: AgentRun | None = None

    @property
    def made(self) -> AgentRun:
        assert self._made is not None, "its steps were carried out"
        return self._made

    @property
    def session(self) -> Session:
        return self._made.session if self._made is not None else self._session

    @property
    def state(self) -> RunState:
        return self._made.state if self._made is not None else self._state

    @state.setter
    def state(self, state: RunState) -> None:
        if self._made is not None:
            self._made.state = state
        self._state = state

    @property
    def partial(self) -> Any:
        return self._made.partial if self._made is not None else None

    @property
    def run_id(self) -> str | None:
        return self._made.run_id if self._made is not None else None

    def cancel(self) -> None:
        if self._made is not None:
            self._made.cancel()

    def steps(self) -> Steps[None]:
        try:
            self._made = yield Call(self._make)
        except Exception as error:
            self._state = "failed"
            yield Emit([error_event(error)])
            raise
        yield from self.made.steps()


def stored_decisions(run: StoredRun, decisions: Mapping[str, str | bool]) -> StoredRun:
    """The run with these answers to what it waits for; refuses one that is over."""
    if run.state == "succeeded":
        raise DecisionError(
            f"run {run.id} is over: it has succeeded",
            hint=f"go on with its session: agent-host run --session {run.session} …",
        )
    unknown = decisions.keys() - {question.id for question in run.questions}
    if unknown:
        waits = ", ".join(question.id for question in run.questions) or "nothing"
        raise DecisionError(
            f"run {run.id} does not wait for {sorted(unknown)[0]!r}", hint=f"it waits for: {waits}"
        )
    questions = [
        replace(question, answer=_as_answer(decisions[question.id]))
        if question.id in decisions
        else question
        for question in run.questions
    ]
    return replace(run, questions=questions)


def _as_answer(decision: str | bool) -> str:
    if isinstance(decision, bool):
        return "once" if decision else "deny"
    return decision
