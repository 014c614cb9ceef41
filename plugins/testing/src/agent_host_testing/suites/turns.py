"""A turn of the host made by hand, step by step, for checks that look between its steps."""

from __future__ import annotations

from agent_host.drivers.blocking import complete
from agent_host.plugins.stack import Stack
from agent_host.turn.prepare import begin_state, prepare_turn
from agent_host.turn.read import Reading
from agent_host.turn.turn import Turn
from agent_host_testing.suites.talking import Talk

__all__ = ["prepare_by_hand", "stack_of"]


def stack_of(talk: Talk) -> Stack:
    """The plugins that take part in the talk."""
    return complete(talk.host.core.stacks.stack(talk.config), talk.host.core.wire)


def prepare_by_hand(talk: Talk) -> Turn:
    """A turn that is ready to be sent, with a reading that has read nothing yet."""
    stack = stack_of(talk)
    turn = Turn(stack, talk.session, talk.config, core=talk.host.core, stream=True)
    complete(begin_state(turn), talk.host.core.wire)
    prepare_turn(turn)
    turn.reading = Reading(stack.managers, turn.natives, turn.state, limits=turn.limits)
    return turn
