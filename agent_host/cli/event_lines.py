"""A run as lines of JSON: one event each, and the last of them says how it ended, always."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import click

__all__ = ["EventLines", "fault_error", "interruption_error", "print_event"]

#: After one of these no other event comes.
_ENDS = ("done", "error")


class EventLines:
    """Prints events, and an error at the end unless that has been told.

    Each is printed within ``whole``, which keeps an interruption from breaking a line off.
    """

    def __init__(self, whole: AbstractContextManager[None]) -> None:
        self._whole = whole
        self._has_ended = False

    def print(self, event: Mapping[str, Any]) -> None:
        with self._whole:
            print_event(event)
            self._has_ended = event["type"] in _ENDS

    def end(self, error: Mapping[str, Any]) -> None:
        """Print the error that ended everything."""
        if not self._has_ended:
            self.print({"type": "error", "error": error})


def print_event(event: Mapping[str, Any]) -> None:
    """Print an event as a line of JSON."""
    # Everything but ASCII is escaped, because JSON lets through what a terminal obeys.
    click.echo(json.dumps(event, default=_to_json))


def _to_json(value: object) -> Any:
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else str(value)


def interruption_error(message: str = "the run was interrupted") -> dict[str, str]:
    """What ends a command that was told to end."""
    hint = "if the run is stored: agent-host runs list, then runs resume RUN"
    return {"type": "Interrupted", "message": message, "hint": hint}


def fault_error(fault: Exception) -> dict[str, str]:
    """What ends a run, or any command, by a fault of our own."""
    return {
        "type": "InternalError",
        "message": f"agent-host itself failed: {type(fault).__name__}: {fault}",
        "hint": "set AGENT_HOST_DEBUG=1 for the traceback and report it",
    }
