"""A turn of the host made by hand, step by step, for checks that look between its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_host.core import AgentCore
from agent_host.drivers.blocking import complete
from agent_host.plugins.stack import Stack
from agent_host.sessions.session import Session
from agent_host.turn.prepare import begin_state, prepare_turn
from agent_host.turn.read import Reading
from agent_host.turn.turn import Turn

__all__ = ["prepare_by_hand", "stack_of"]


def stack_of(core: AgentCore, config: Mapping[str, Any]) -> Stack:
    """The plugins that take part in requests with this config."""
    return complete(core.stacks.stack(dict(config)), core.wire)


def prepare_by_hand(core: AgentCore, session: Session, config: Mapping[str, Any]) -> Turn:
    """A turn that is ready to be sent, with a reading that has read nothing yet."""
    stack = stack_of(core, config)
    turn = Turn(stack, session, dict(config), core=core, stream=True)
    complete(begin_state(turn), core.wire)
    complete(prepare_turn(turn), core.wire)
    turn.reading = Reading(stack.managers, turn.natives, turn.state, limits=turn.limits)
    return turn
