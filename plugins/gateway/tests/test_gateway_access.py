"""Who is let in, to what, how often and how much."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from gateway_process import DOORS, ask, minimal_body, opened_store, running_gateway

from agent_hookspecs.store import SessionStore, StoreUnavailableError
from agent_host import ConfigError
from agent_host.cli import main
from agent_host_gateway.access import Caller
from agent_host_gateway.keys import KEPT_SECONDS, Keys
from agent_host_gateway.refusals import Refused
from agent_host_gateway.serving import is_open_to_all
from agent_host_gateway.spending import Spending


@pytest.fixture
def keys() -> Iterator[Keys]:
    with opened_store() as store:
        yield Keys(store)


def test_keys_are_added_listed_and_revoked_at_the_command_line(
    capsys: pytest.CaptureFixture[str], keys: Keys
) -> None:
    assert main(["serve", "keys", "add", "laptop", "--models", "echo/*", "--expires", "30d"]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("agh_")
    assert main(["serve", "keys", "add", "laptop"]) == 1
    assert "already" in capsys.readouterr().err
    assert main(["serve", "keys", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["models"]) == ("laptop", ["echo/*"])
    assert "hash" not in listed
    assert main(["serve", "keys", "list"]) == 0
    assert "laptop  echo/*; until" in capsys.readouterr().out
    assert main(["serve", "keys", "revoke", "laptop"]) == 0
    assert keys.find(secret) is None


def test_only_the_hash_of_a_key_is_kept(keys: Keys, own_places: Path) -> None:
    key, secret = keys.add("laptop")
    stored = b"".join(file.read_bytes() for file in own_places.rglob("sessions.db*"))
    assert key.hash.encode() in stored
    assert secret.encode() not in stored


def test_keys_are_not_added_to_a_store_that_ends_with_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "agent-host.json"
    config.write_text('{"store": ":memory:"}')
    assert main(["serve", "keys", "add", "laptop", "--config", str(config)]) == 1
    assert "memory" in capsys.readouterr().err


@pytest.mark.parametrize("door", DOORS)
def test_with_keys_nobody_else_is_let_in(door: str, keys: Keys) -> None:
    _, secret = keys.add("laptop")
    with running_gateway() as address:
        path, body = DOORS[door], minimal_body(door)
        assert ask(address, path, body).status == 401
        wrong = ask(address, path, body, key="agh_wrong")
        assert wrong.status == 401
        assert wrong.body["error"]["type"] == "authentication_error"
        assert ask(address, path, body, key=secret).status == 200
        named = ask(address, path, body, headers={"x-api-key": secret})
        assert named.status == 200
        assert ask(address, "/v1/models").status == 401
        assert ask(address, "/metrics").status == 401
        assert ask(address, "/healthz").status == 200


def test_a_key_that_is_revoked_or_expired_ends(keys: Keys) -> None:
    _, expired = keys.add("old", expires=1.0)
    _, revoked = keys.add("gone")
    with running_gateway() as address:
        body = minimal_body("chat")
        assert "expired" in ask(address, DOORS["chat"], body, key=expired).told
        assert ask(address, DOORS["chat"], body, key=revoked).status == 200
        keys.revoke("gone")
        end = time.monotonic() + KEPT_SECONDS
        while ask(address, DOORS["chat"], body, key=revoked).status == 200:
            assert time.monotonic() < end + 1
        assert ask(address, DOORS["chat"], body, key=revoked).status == 401
        # One that was made since opens at once.
        _, new = keys.add("new")
        assert ask(address, DOORS["chat"], body, key=new).status == 200


def test_revoking_the_last_key_lets_nobody_in(keys: Keys) -> None:
    _, secret = keys.add("only")
    with running_gateway() as address:
        assert ask(address, "/v1/models", key=secret).status == 200
        keys.revoke("only")
        end = time.monotonic() + KEPT_SECONDS
        while ask(address, "/v1/models", key=secret).status == 200:
            assert time.monotonic() < end + 1
        assert ask(address, "/v1/models", key=secret).status == 401
        assert ask(address, "/v1/models").status == 401


def test_a_key_opens_the_models_and_agents_that_it_names(keys: Keys) -> None:
    _, secret = keys.add("narrow", models=("agent/*",))
    config = {"agents": {"greeter": {"provider": "echo"}}}
    with running_gateway(config) as address:
        refused = ask(address, DOORS["chat"], minimal_body("chat"), key=secret)
        assert (refused.status, refused.body["error"]["param"]) == (403, "model")
        body = minimal_body("chat", model="agent/greeter")
        assert ask(address, DOORS["chat"], body, key=secret).status == 200
        listed = ask(address, "/v1/models", key=secret).body["data"]
        assert {each["id"] for each in listed} == {"agent/greeter"}


def test_requests_of_a_key_are_limited_by_the_minute(keys: Keys) -> None:
    _, secret = keys.add("slow", requests_per_minute=2)
    with running_gateway() as one, running_gateway() as other:
        # Processes that share a store count together.
        statuses = [
            ask(address, DOORS["chat"], minimal_body("chat"), key=secret).status
            for address in (one, other, one, other)
        ]
        refused = ask(one, DOORS["chat"], minimal_body("chat"), key=secret)
    # A minute may have ended in between.
    assert statuses[:2] == [200, 200]
    assert 429 in [*statuses, refused.status]
    if refused.status == 429:
        assert int(refused.headers["retry-after"]) <= 60


def test_a_key_ends_when_its_budget_is_used_up(keys: Keys) -> None:
    key, secret = keys.add("small", budget_tokens=1)
    with running_gateway() as address:
        assert ask(address, DOORS["messages"], minimal_body("messages"), key=secret).status == 200
        refused = ask(address, DOORS["messages"], minimal_body("messages"), key=secret)
        assert refused.status == 429
        assert "tokens" in refused.told
    with opened_store() as store:
        assert Spending(store).totals(key.id)[0] >= 1


def test_whoever_guesses_keys_is_told_to_wait(keys: Keys) -> None:
    _, secret = keys.add("laptop")
    with running_gateway() as address:
        guesses = [
            ask(address, DOORS["chat"], minimal_body("chat"), key=f"agh_{n}") for n in range(12)
        ]
        assert {each.status for each in guesses[:10]} == {401}
        assert {each.status for each in guesses[10:]} == {429}
        assert ask(address, DOORS["chat"], minimal_body("chat"), key=secret).status == 200


def test_without_keys_it_listens_on_this_machine_alone(keys: Keys) -> None:
    assert is_open_to_all("127.0.0.1", keys)
    with pytest.raises(ConfigError, match="without keys"):
        is_open_to_all("0.0.0.0", keys)
    keys.add("laptop")
    assert not is_open_to_all("0.0.0.0", keys)


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"}],
)
def test_web_pages_elsewhere_cannot_use_an_open_gateway(headers: dict[str, str]) -> None:
    with running_gateway() as address:
        refused = ask(address, DOORS["chat"], minimal_body("chat"), headers=headers)
        assert refused.status == 403
        assert "access-control-allow-origin" not in refused.headers


def test_a_stored_response_belongs_to_the_key_that_made_it(tmp_path: Path) -> None:
    config: dict[str, Any] = {"store": f"sqlite:///{tmp_path / 'sessions.db'}"}
    with opened_store(config) as store:
        _, mine = Keys(store).add("mine")
        _, other = Keys(store).add("other")
    with running_gateway(config) as address:
        made = ask(address, DOORS["responses"], minimal_body("responses"), key=mine).body
        path = f"{DOORS['responses']}/{made['id']}"
        assert ask(address, path, key=mine).body == made
        assert ask(address, path, key=other).status == 404
        assert ask(address, path, key=other, method="DELETE").status == 404
        going_on = {**minimal_body("responses"), "previous_response_id": made["id"]}
        assert ask(address, DOORS["responses"], going_on, key=other).status == 404
        assert ask(address, DOORS["responses"], going_on, key=mine).status == 200
        assert ask(address, path, key=mine, method="DELETE").body["deleted"] is True
        assert ask(address, path, key=mine).status == 404


def test_what_many_ask_at_once_is_counted_exactly(keys: Keys) -> None:
    key, _ = keys.add("slow", requests_per_minute=70)

    async def ask_often(spending: Spending) -> list[bool]:
        answers = await asyncio.gather(
            *(spending.admit(key) for _ in range(50)), return_exceptions=True
        )
        return [answer is None for answer in answers]

    async def ask_twice() -> list[bool]:
        with opened_store() as one, opened_store() as other:
            found = await asyncio.gather(ask_often(Spending(one)), ask_often(Spending(other)))
            return [*found[0], *found[1]]

    for _ in range(2):
        begun = time.time() // 60
        admitted = asyncio.run(ask_twice())
        if time.time() // 60 == begun:
            break
    # Of a second hundred in one minute none is let in.
    assert sum(admitted) in (70, 0)


def test_what_was_used_is_kept_while_the_store_is_away(keys: Keys) -> None:
    key, _ = keys.add("small", budget_tokens=5)

    class Away:
        """A store that cannot be reached at first."""

        def __init__(self, store: SessionStore) -> None:
            self.store = store
            self.is_there = False

        def add_counts(self, amounts: Mapping[str, int]) -> dict[str, int]:
            if not self.is_there:
                raise StoreUnavailableError("it is away", hint="wait")
            return self.store.add_counts(amounts)

        def remove_counts(self, first: str, end: str) -> None:
            self.store.remove_counts(first, end)

    async def use() -> None:
        with opened_store() as store:
            away: Any = Away(store)
            spending = Spending(away)
            spending.note(Caller(key.id, key.name, key), "m", {"input": 4, "output": 3})
            with pytest.raises(StoreUnavailableError):
                await spending.admit(key)
            away.is_there = True
            with pytest.raises(Refused, match="7 of 5 tokens"):
                await spending.admit(key)
            await spending.close()
            (row,) = Spending(store).rows("2000-01-01")
            assert (row["requests"], row["input"], row["output"]) == (1, 4, 3)

    asyncio.run(use())
