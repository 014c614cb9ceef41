"""A floor: httpx with ``iter_bytes``, split at line ends by hand, ``json.loads``."""

from __future__ import annotations

import json

import httpx

from benchmarks.cases import WIRES, Case, body_of
from benchmarks.drivers.splitting import Lines


class Driver:
    speaks = tuple(WIRES)

    def __init__(self, server: str) -> None:
        self.server = server
        self.client, self.aclient = httpx.Client(), httpx.AsyncClient(timeout=60.0)

    def stream(self, case: Case) -> int:
        seen, lines = 0, Lines(WIRES[case.wire].framing)
        with self.client.stream("POST", case.url(self.server), json=body_of(case)) as response:
            for data in response.iter_bytes():
                for value in lines.feed(data):
                    json.loads(value)
                    seen += 1
        return seen

    async def astream(self, case: Case) -> int:
        seen, lines = 0, Lines(WIRES[case.wire].framing)
        asked = self.aclient.stream("POST", case.url(self.server), json=body_of(case))
        async with asked as response:
            async for data in response.aiter_bytes():
                for value in lines.feed(data):
                    json.loads(value)
                    seen += 1
        return seen
