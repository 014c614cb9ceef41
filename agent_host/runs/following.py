"""Hands the events of a run to those who follow it in the same process, as they are delivered.

Who follows from another process reads what is stored. It must not know the store.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue

from agent_hookspecs.events import Event
from agent_hookspecs.values import dataclass

__all__ = ["Broadcast", "Delivery"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Events that were delivered at once; ``number`` is that of the last that is stored, or 0.

    ``is_last`` says that no more will follow.
    """

    events: Sequence[Event]
    number: int = 0
    is_last: bool = False


class Broadcast:
    """The followers of one run; each gets everything from the moment it came."""

    def __init__(self) -> None:
        self._queues: tuple[SimpleQueue[Delivery], ...] = ()
        self._is_over = False
        self._lock = threading.Lock()

    @property
    def has_followers(self) -> bool:
        return bool(self._queues)

    def add_follower(self) -> SimpleQueue[Delivery]:
        queue: SimpleQueue[Delivery] = SimpleQueue()
        with self._lock:
            if self._is_over:
                queue.put(Delivery((), is_last=True))
            else:
                self._queues += (queue,)
        return queue

    def remove_follower(self, queue: SimpleQueue[Delivery]) -> None:
        with self._lock:
            self._queues = tuple(each for each in self._queues if each is not queue)

    def publish(self, delivery: Delivery) -> None:
        for queue in self._queues:
            queue.put(delivery)

    def end(self) -> None:
        """Tell everybody that there will be no more."""
        with self._lock:
            self._is_over = True
            queues, self._queues = self._queues, ()
        for queue in queues:
            queue.put(Delivery((), is_last=True))
