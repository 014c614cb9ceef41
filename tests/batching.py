"""A model behind a real socket that repeats what it is asked, for tests of batches."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import loopback
from agent_host import AgentApplication
from model_server import ModelServer
from openai_like import OpenAiLike, OpenAiLikeTools

__all__ = ["RepeatingServer", "read_results", "repeating_server", "write_lines"]

#: Given the prompt and how often it was asked, the status and headers of a refusal, or None.
Refuse = Callable[[str, int], "tuple[str, str] | None"]


class RepeatingServer:
    """``asked`` counts the prompts, ``most`` is how many were answered at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: Counter[str] = Counter()
        self.most = 0
        self.changed = threading.Condition()

    def wait_until(self, count: int) -> None:
        """Wait until so many different prompts were asked."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, timeout=120)

    def open_application(self) -> AgentApplication:
        """An application in this process that asks this server."""
        alias = {"provider": "openai_like", "base_url": self.url, "model": "small"}
        app = AgentApplication({"providers": {"main": alias}}, store=False)
        app.core.register_provider(OpenAiLike, [OpenAiLikeTools])
        return app

    def describe_in(self, folder: Path, **more: Any) -> None:
        """Write the provider's package and a config that names it."""
        ModelServer(self.url, []).describe_in(folder, **more)


@contextmanager
def repeating_server(refuse: Refuse = lambda prompt, times: None) -> Iterator[RepeatingServer]:
    made: list[RepeatingServer] = []
    open_now = [0]

    def play(peer: loopback.Peer, request: loopback.Request) -> None:
        prompt = json.loads(request.body)["messages"][-1]["content"]
        server = made[0]
        with server.changed:
            server.asked[prompt] += 1
            server.changed.notify_all()
            open_now[0] += 1
            server.most = max(server.most, open_now[0])
            refusal = refuse(prompt, server.asked[prompt])
        try:
            if refusal is not None:
                peer.answer(b'{"error": "no"}', status=refusal[0], headers=refusal[1])
                return
            chunks = [
                {"choices": [{"delta": {"content": f"You said {prompt}."}}]},
                {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            ]
            body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
            content = "Content-Type: text/event-stream\r\n"
            peer.answer(f"{body}data: [DONE]\n\n".encode(), headers=content)
        finally:
            with server.changed:
                open_now[0] -= 1

    with loopback.serve(play) as server:
        made.append(RepeatingServer(server.url))
        yield made[0]


def write_lines(file: Path, *lines: Any) -> Path:
    """A file with these lines; texts are written as they are."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def read_results(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
