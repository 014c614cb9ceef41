"""What one process takes on at once: turns at an upstream, requests, their time, and its store."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from gateway_process import DOORS, ask, minimal_body, opened_store, running_gateway

from agent_hookspecs.store import SessionStore, StoreUnavailableError
from agent_host_gateway import keys
from agent_host_gateway.keys import Keys
from agent_host_gateway.queueing import Turns
from agent_host_gateway.refusals import Refused


def test_callers_take_turns_however_many_requests_each_has() -> None:
    served: list[str] = []

    async def work(turns: Turns, caller: str, name: str) -> None:
        async with turns.take(caller, 10):
            served.append(name)
            await asyncio.sleep(0)

    async def ask_all() -> None:
        turns = Turns(1)
        wanted = [("greedy", "g1"), ("greedy", "g2"), ("greedy", "g3"), ("modest", "m1")]
        await asyncio.gather(*(work(turns, caller, name) for caller, name in wanted))

    asyncio.run(ask_all())
    assert served == ["g1", "g2", "m1", "g3"]


def test_who_waits_too_long_is_refused_and_who_leaves_takes_no_turn() -> None:
    async def wait() -> None:
        turns = Turns(1)
        async with turns.take("first", 10):
            with pytest.raises(Refused, match="nobody had time") as caught:
                async with turns.take("second", 0.01):
                    raise AssertionError("the only turn was taken")
            assert caught.value.status == 503
            leaving = asyncio.create_task(turns.take("third", 10).__aenter__())
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.wait({leaving})
        # What they did not take is there for the next.
        async with turns.take("fourth", 0.01):
            pass

    asyncio.run(wait())


class Unsteady:
    """A store that can be away."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        if self.is_away and name != "close":
            raise StoreUnavailableError("db.example is away", hint="wait")
        return getattr(self.store, name)


def test_without_its_store_a_gateway_is_not_ready_and_lets_nobody_in(tmp_path: Path) -> None:
    config = {"store": f"sqlite:///{tmp_path}/store.db"}
    with opened_store(config) as opened:
        _, secret = Keys(opened).add("team", requests_per_minute=1000)
        store: Any = Unsteady(opened)
        with running_gateway(config, store=store) as address:
            body = minimal_body("chat")
            assert ask(address, "/readyz").status == 200
            assert ask(address, DOORS["chat"], body, key=secret).status == 200
            store.is_away = True
            assert ask(address, "/readyz").status == 503
            assert ask(address, "/healthz").status == 200
            for door in DOORS:
                refused = ask(address, DOORS[door], minimal_body(door), key=secret)
                assert refused.status == 503
                assert "db.example" not in refused.text
            assert ask(address, "/v1/models", key="agh_unknown").status == 503
            store.is_away = False
            assert ask(address, "/readyz").status == 200
            assert ask(address, DOORS["chat"], body, key=secret).status == 200


def test_a_store_that_says_nothing_holds_nobody_up_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_STORE_SECONDS", 0.3)
    config = {"store": f"sqlite:///{tmp_path}/store.db"}
    answers = threading.Event()
    with opened_store(config) as opened:
        _, secret = Keys(opened).add("team", requests_per_minute=1000)

        class Mute(Unsteady):
            def add_counts(self, amounts: Any) -> Any:
                answers.wait(20)
                return opened.add_counts(amounts)

        store: Any = Mute(opened)
        with running_gateway(config, store=store) as address:
            refused = ask(address, DOORS["chat"], minimal_body("chat"), key=secret)
            assert refused.status == 503
            answers.set()
            assert ask(address, DOORS["chat"], minimal_body("chat"), key=secret).status == 200
