"""A model behind a server that says exactly what a test tells it to, when it tells it to.

The provider in front of it is a package on disk, so that a process of its own can use it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import loopback
from making import write_package
from scripted import Chunk, call_delta, delta, end

__all__ = ["ModelServer", "model_server"]

_SOURCE = Path(__file__).with_name("openai_like.py")


class ModelServer:
    """Give it chunks; each request is answered with those up to the next end."""

    def __init__(self, url: str, requests: list[loopback.Request]) -> None:
        self.url = url
        self._requests = requests
        self.chunks: SimpleQueue[Chunk | None] = SimpleQueue()

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The bodies of the requests so far."""
        return [json.loads(request.body) for request in self._requests if request.body]

    def say(self, text: str, *, reasoning: str = "") -> None:
        """Say a piece of an answer."""
        if reasoning:
            self.chunks.put(delta(reasoning=reasoning))
        if text:
            self.chunks.put(delta(content=text))

    def finish(self, reason: str = "stop", **usage: int) -> None:
        """End the answer."""
        self.chunks.put(end(reason, **usage))
        self.chunks.put(None)

    def answer(self, text: str, *, reasoning: str = "", **usage: int) -> None:
        """A whole answer."""
        self.say(text, reasoning=reasoning)
        self.finish("stop", **usage)

    def call(self, name: str, arguments: Any, call_id: str = "c1") -> None:
        """An answer that calls a tool."""
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"index": 0, "id": call_id, "type": "function", "function": function}
        self.chunks.put(call_delta(made))
        self.finish("tool_calls")

    def describe_in(self, folder: Path, **more: Any) -> None:
        """Write the provider's package and a config that names it."""
        names = {
            "openai_like": (
                "provider",
                "OpenAiLike",
                {"tags": ["supports_tools"]},
            ),
            "openai_like_tools": ("extension", "OpenAiLikeTools", {}),
            "openai_like_reasoning": ("extension", "OpenAiLikeReasoning", {}),
        }
        entries = [
            {"entry": f"like_pkg.plugin:{of}", "role": role, "name": name, **extra}
            for name, (role, of, extra) in names.items()
        ]
        write_package(
            folder / "like",
            "like_pkg",
            descriptor={"api": ">=1,<2", "entries": entries},
            source=_SOURCE.read_text("utf-8"),
        )
        alias = {
            "provider": "openai_like",
            "base_url": self.url,
            "model": "small",
            **more.pop("settings", {}),
        }
        config = {
            "plugins": ["path:like", *more.pop("plugins", ())],
            "providers": {"main": alias},
            **more,
        }
        (folder / "c.json").write_text(json.dumps(config), encoding="utf-8")


@contextmanager
def model_server() -> Iterator[ModelServer]:
    made: list[ModelServer] = []

    def play(peer: loopback.Peer, request: loopback.Request) -> None:
        peer.begin("Content-Type: text/event-stream\r\n")
        while (chunk := made[0].chunks.get()) is not None:
            peer.chunk(f"data: {json.dumps(chunk)}\n\n".encode())
        peer.chunk(b"data: [DONE]\n\n")
        peer.send(b"0\r\n\r\n")

    with loopback.serve(play) as server:
        made.append(ModelServer(server.url, server.requests))
        try:
            yield made[0]
        finally:
            # Whoever still waits for a chunk must end with the test.
            for _ in range(8):
                made[0].chunks.put(None)
