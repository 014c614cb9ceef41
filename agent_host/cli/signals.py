"""How a command ends when it is told to: by Ctrl-C, by SIGTERM, or because its terminal is gone.

Each becomes an exception in the main thread, so that connections, stores and processes are closed
as at any other end. Whoever does not come to an end by that is left after a while: the process ends
anyhow, and says what it has left. It must not know what the command does.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

__all__ = ["Terminated", "end_on_signals", "exit_code_of"]

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


def _raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


@contextmanager
def end_on_signals(last_words: Callable[[], None]) -> Iterator[None]:
    """Turn signals into exceptions; ``last_words`` are printed if nothing comes of that in time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    # What was set otherwise, such as by nohup, stays.
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _raise_terminated)
    ended = threading.Event()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        # A thread of its own: what keeps the main one from noticing a signal keeps it for ever.
        ending = {*ours, signal.SIGINT}
        with receiver:
            while received := receiver.recv(1):
                if received[0] in ending and not ended.wait(_SECONDS):
                    last_words()
                    sys.stdout.flush()
                    os._exit(128 + received[0])

    threading.Thread(target=watch, name="signals", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        sender.close()
