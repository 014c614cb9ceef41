"""A floor: the standard library's ``http.client``, line by line, ``json.loads``."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

from benchmarks.cases import WIRES, Case, body_of
from benchmarks.drivers.splitting import Lines

_READ = 65536


class Driver:
    speaks = tuple(WIRES)

    def __init__(self, server: str) -> None:
        self.server = server
        self.connection = http.client.HTTPConnection(urlsplit(server).netloc)

    def _answer(self, case: Case) -> http.client.HTTPResponse:
        path = case.url("")
        body = json.dumps(body_of(case)).encode()
        self.connection.request("POST", path, body, {"content-type": "application/json"})
        return self.connection.getresponse()

    def stream(self, case: Case) -> int:
        seen, lines, response = 0, Lines(WIRES[case.wire].framing), self._answer(case)
        while data := response.read1(_READ):
            for value in lines.feed(data):
                json.loads(value)
                seen += 1
        response.read()
        return seen

    def request(self, case: Case) -> int:
        body = self._answer(case).read()
        json.loads(body)
        return len(body)
