"""What a request costs that is answered in one piece, over a connection that is kept.

The base is ``client.post`` of httpx and ``json.loads`` of the answer; ours finds a stack, makes
natives and a request, and leaves a session with the answer and its native history.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.measure import Table, interleaved, show
from benchmarks.streaming import Contestants, contestants

REQUESTS = 100
ROUNDS = 9


def run(quick: bool) -> list[Table]:
    with contestants() as runners:
        return [per_request(runners, quick)]


def per_request(runners: Contestants, quick: bool) -> Table:
    count = 20 if quick else REQUESTS
    table = Table(
        f"CPU per request answered in one piece, {count} over one connection (µs)",
        ("request", "ours", "httpx", "ratio", "of medians"),
    )
    config = runners.config("whole", 50, "length")
    url = f"{config['base_url']}/chat/completions"
    body = {"model": "m", "messages": [{"role": "user", "content": "Go on."}]}

    def plain() -> None:
        for _ in range(count):
            _check(json.loads(runners.client.post(url, json=body).content))

    def ours() -> None:
        for _ in range(count):
            _, finals = runners.core.send_request(runners.session, config)
            if not finals[0]["content"]:
                raise RuntimeError("the answer is empty")

    async def aplain() -> None:
        for _ in range(count):
            _check(json.loads((await runners.aclient.post(url, json=body)).content))

    async def aours() -> None:
        for _ in range(count):
            _, finals = await runners.core.asend_request(runners.session, config)
            if not finals[0]["content"]:
                raise RuntimeError("the answer is empty")

    found = interleaved(
        {
            "ours": ours,
            "plain": plain,
            "aours": lambda: runners.loop.run_until_complete(aours()),
            "aplain": lambda: runners.loop.run_until_complete(aplain()),
        },
        2 if quick else ROUNDS,
    )
    table.compare("sync", found["ours"], found["plain"], each=count)
    table.compare("async", found["aours"], found["aplain"], each=count)
    return table


def _check(answer: Any) -> None:
    if not answer["choices"][0]["message"]["content"]:
        raise RuntimeError("the answer is empty")


if __name__ == "__main__":
    show(run(quick=False))
