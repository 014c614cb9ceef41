"""What a run may be told, by name and type: for `run`, `stream`, their async forms, and `resume`.

Types for readers and type checkers; what is done with the options is the run maker's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

from agent_hookspecs.session import Session as AnySession
from agent_host.agent.limits import Limits, LimitSettings
from agent_host.agent.policy import Approve
from agent_host.agent.questions import Ask

__all__ = ["Decisions", "ResumeOptions", "RunOptions", "Selected"]

#: Answers of people by the ids of the questions.
Decisions: TypeAlias = Mapping[str, "str | bool"]


class ResumeOptions(TypedDict, total=False):
    """What a run may be told that goes on; what it was told before need not be said again.

    - ``approve`` and ``ask`` are asked in place of the application's, ``park`` lets it wait.
    - ``limits`` are where it stops by itself: `Limits`, or some of them by their keys in a config.
    - ``context`` are further keys in the context of plugins.
    - ``tools`` are the program's own, for this run alone; ``deps`` is what its tools are given.
    - ``output_retries`` is how often an answer is asked for again that does not fit its type.
    """

    approve: Approve | None
    ask: Ask | None
    park: bool | None
    limits: Limits | LimitSettings | None
    context: Mapping[str, Any] | None
    tools: Iterable[object]
    deps: object
    output_retries: int | None


class Selected(TypedDict, total=False):
    """Whom to ask, and with what.

    - ``agent``, ``provider`` and ``model`` say whom to ask, ``settings`` are those of the request.
    - ``use_tools`` are patterns of the names of tools that may be used.
    """

    agent: str | None
    provider: str | None
    model: str | None
    settings: Mapping[str, Any] | None
    use_tools: Iterable[str] | None


class RunOptions(ResumeOptions, Selected, total=False):
    """What a run may be told: what `Selected` and `ResumeOptions` have, and this.

    - ``session`` is the one to go on with, or the id or name of a stored one; ``session_name`` is
      what a new one is called, ``system`` its system prompt.
    - ``parent`` is the id of the run that this one is a part of.
    """

    session: AnySession | str | None
    session_name: str | None
    system: str | None
    parent: str | None
