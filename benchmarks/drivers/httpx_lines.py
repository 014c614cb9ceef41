"""The base of all ratios: the shortest loop one would write by hand, which keeps nothing."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from benchmarks.cases import WIRES, Case, body_of


class Driver:
    speaks = tuple(WIRES)

    def __init__(self, server: str) -> None:
        self.server = server
        self.client = httpx.Client()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        self.aclient = httpx.AsyncClient(limits=limits, timeout=60.0)

    def stream(self, case: Case) -> int:
        seen = 0
        is_sse = WIRES[case.wire].framing == "sse"
        with self.client.stream("POST", case.url(self.server), json=body_of(case)) as response:
            if is_sse:
                for line in response.iter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        json.loads(line[6:])
                        seen += 1
            else:
                for line in response.iter_lines():
                    json.loads(line)
                    seen += 1
        return seen

    async def astream(self, case: Case) -> int:
        seen = 0
        is_sse = WIRES[case.wire].framing == "sse"
        asked = self.aclient.stream("POST", case.url(self.server), json=body_of(case))
        async with asked as response:
            if is_sse:
                async for line in response.aiter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        json.loads(line[6:])
                        seen += 1
            else:
                async for line in response.aiter_lines():
                    json.loads(line)
                    seen += 1
        return seen

    def request(self, case: Case) -> int:
        answer = self.client.post(case.url(self.server), json=body_of(case)).content
        return _answer_length(json.loads(answer), answer)

    async def arequest(self, case: Case) -> int:
        answer = (await self.aclient.post(case.url(self.server), json=body_of(case))).content
        return _answer_length(json.loads(answer), answer)

    async def hold(self, case: Case) -> Callable[[], Awaitable[Any]]:
        request = self.aclient.build_request("POST", case.url(self.server), json=body_of(case))
        response = await self.aclient.send(request, stream=True)
        lines = response.aiter_lines()
        async for line in lines:
            if line:
                break

        async def close() -> None:
            await lines.aclose()  # type: ignore[attr-defined]
            await response.aclose()

        return close


def _answer_length(answer: Any, body: bytes) -> int:
    """How much was said; where in the answer it stands differs from format to format."""
    if not isinstance(answer, dict) or answer.get("error"):
        raise RuntimeError(f"this is no answer: {body[:200]!r}")
    return len(body)
