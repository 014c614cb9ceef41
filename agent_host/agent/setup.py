"""What a run of an agent is given, and does not change while it goes on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_hookspecs.values import dataclass
from agent_host.agent.limits import Limits
from agent_host.agent.policy import Approve, Policy
from agent_host.agent.questions import Ask

if TYPE_CHECKING:
    from agent_host.agent.costs import RunCosts
    from agent_host.plugins.stack import PlainWarning
    from agent_host.plugins.stacks import Stacks

__all__ = ["RunSetup"]


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Where a run has its stack from, who decides about its calls, and where it ends.

    A run that may ``park`` waits for people who are not there, and one that does not ``stream``
    asks for whole answers. ``costs`` knows what answers cost; without it only what providers tell
    is known. ``context`` are the keys that the caller adds to the plugins' context. ``tools`` are
    on offer in this run alone, and ``deps`` is what the program has for all tools.
    ``first_warnings`` are said before anything else, and ``defaults`` are the keys of the config
    that are for whoever has a use for them.
    """

    stacks: Stacks
    core: object
    policy: Policy
    limits: Limits = Limits()
    costs: RunCosts | None = None
    approve: Approve | None = None
    ask: Ask | None = None
    park: bool = False
    parallel: bool = False
    stream: bool = True
    asynchronous: bool = False
    context: Mapping[str, Any] | None = None
    tools: Sequence[object] = ()
    deps: object = None
    first_warnings: Sequence[PlainWarning] = ()
    defaults: Collection[str] = ()
