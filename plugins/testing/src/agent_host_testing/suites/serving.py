"""A fake server that remembers what it answered, so that a failed check can show it."""

from __future__ import annotations

import threading

from agent_host_testing.faults import Delivery
from agent_host_testing.server import FakeServer
from agent_host_testing.violations import Exchange
from agent_host_testing.wire import Request

__all__ = ["WatchedServer"]


class WatchedServer(FakeServer):
    """A `FakeServer` with the ``exchanges`` of every request but those about models."""

    @property
    def deliveries(self) -> list[tuple[Request, Delivery]]:
        """Every request to generate and how it was answered, in order."""
        with self._noting:
            return list(self._noted)

    @property
    def exchanges(self) -> list[Exchange]:
        return [
            Exchange(
                f"{request.method} {request.path}", request.raw, sent.status, sent.body[: sent.cut]
            )
            for request, sent in self.deliveries
        ]

    def start(self) -> FakeServer:
        self._noted: list[tuple[Request, Delivery]] = []
        self._noting = threading.Lock()
        return super().start()

    def _delivery(self, request: Request) -> Delivery:
        delivery = super()._delivery(request)
        if self.format.operation(request) not in ("models", "detail"):
            with self._noting:
                self._noted.append((request, delivery))
        return delivery
