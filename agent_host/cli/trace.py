"""pluggy's own trace of the hook calls of a run, made fit to be shown.

It must not know what any hook is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from agent_hookspecs.logs import redact
from agent_host.cli.outside import clean_text

if TYPE_CHECKING:
    from agent_host.plugins.manager import RoleManager

__all__ = ["HookTrace"]

_MAX_LINE = 200


class HookTrace:
    """Writes down what the watched managers call, and prints it to standard error when asked to.

    It does not print earlier, because the secrets that a plugin brings are known once it has had
    its turn.
    ``before_lines`` is called before anything is printed.
    """

    def __init__(
        self, is_wanted: bool = True, before_lines: Callable[[], None] | None = None
    ) -> None:
        self._is_wanted = is_wanted
        self._waiting: deque[tuple[str, str]] = deque()
        self._before_lines = before_lines

    def watch(self, manager: RoleManager) -> None:
        """Write down every call of a manager's hooks from now on, if anybody wants to see them."""
        if not self._is_wanted:
            return
        role = manager.role
        manager.trace.root.setwriter(lambda text: self._waiting.append((role, text)))
        manager.enable_tracing()

    def print_calls(self) -> None:
        """Print what was written down since the last time."""
        if self._waiting and self._before_lines is not None:
            self._before_lines()
        while self._waiting:
            role, text = self._waiting.popleft()
            for line in _lines(f"{role}: {text.lstrip()}"):
                click.echo(line, err=True)


def _lines(text: str) -> Iterator[str]:
    # Secrets go first, because one that was cut or escaped would not be found.
    for line in redact(text).splitlines():
        shown = clean_text(line)
        more = len(shown) - _MAX_LINE
        yield f"{shown[:_MAX_LINE]}… ({more} more characters)" if more > 0 else shown
