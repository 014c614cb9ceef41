"""How a command ends when it is told to: by Ctrl-C, by SIGTERM, or because its terminal is gone.

Each becomes an exception in the main thread, so that connections, stores and processes are closed
as at any other end. Whoever does not come to an end by that is left after a while: the process ends
anyhow, and says what it has left. It must not know what the command does.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

__all__ = ["Interruptions", "Terminated", "end_on_signals", "exit_code_of"]

#: How long what runs may take to end, before the process ends without it.
_SECONDS: Final = 5.0


class Terminated(KeyboardInterrupt):
    """Somebody has asked the process to end, by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code_of(interruption: BaseException | None) -> int:
    """What a shell expects of a process that was interrupted so."""
    number = interruption.number if isinstance(interruption, Terminated) else signal.SIGINT
    return 128 + number


class Interruptions:
    """The signals that end a command, each an exception where the command is then.

    As a context manager it holds the first of them back until the end of what must not be broken
    off, such as a line; a second one is not held back.
    """

    def __init__(self) -> None:
        self._is_holding = False
        self._held: int | None = None

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        if self._is_holding and self._held is None:
            self._held = number
            return
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    def __enter__(self) -> None:
        self._is_holding = True

    def __exit__(self, *error: object) -> None:
        self._is_holding = False
        held, self._held = self._held, None
        if held is not None:
            self.receive(held)


@contextmanager
def end_on_signals(
    interruptions: Interruptions,
    last_words: Callable[[], None],
    *,
    names: Sequence[str] = ("SIGINT", "SIGTERM", "SIGHUP"),
) -> Iterator[None]:
    """Turn signals into exceptions; ``last_words`` are printed if nothing comes of that in time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What was set otherwise, such as by nohup, stays.
    before = {
        number: handler
        for name in names
        if (number := getattr(signal, name, None)) is not None
        if (handler := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler)
    }
    ended = threading.Event()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)

    def watch() -> None:
        # A thread of its own: what keeps the main one from noticing a signal keeps it for ever.
        with receiver:
            while received := receiver.recv(1):
                if received[0] in before and not ended.wait(_SECONDS):
                    _end_now(last_words, received[0])

    threading.Thread(target=watch, name="signals", daemon=True).start()
    wake_up_before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    try:
        for number in before:
            signal.signal(number, interruptions.receive)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        ended.set()
        signal.set_wakeup_fd(wake_up_before)
        sender.close()


def _end_now(last_words: Callable[[], None], number: int) -> NoReturn:
    """End the process, after the last words if anybody reads them."""
    speaking = threading.Thread(target=last_words, daemon=True)
    speaking.start()
    speaking.join(1.0)
    os._exit(128 + number)
