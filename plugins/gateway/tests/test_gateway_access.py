"""Who is let in, to what, how often and how much."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from gateway_process import DOORS, ask, minimal_body, running_gateway

from agent_host import AgentApplication, ConfigError
from agent_host.cli import main
from agent_host_gateway.keys import KeyFile
from agent_host_gateway.serving import check_listening, own_config
from agent_host_gateway.spending import Spending


def key_file() -> KeyFile:
    with AgentApplication({}) as application:
        return KeyFile(own_config(application)["plugin_folder"])


def test_keys_are_added_listed_and_revoked_at_the_command_line(
    capsys: pytest.CaptureFixture[str],
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
    assert key_file().find(secret) is None


def test_only_the_hash_of_a_key_is_kept_and_only_for_its_owner(own_places: Path) -> None:
    _, secret = key_file().add("laptop")
    (file,) = own_places.rglob("keys.json")
    assert secret not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("door", DOORS)
def test_with_keys_nobody_else_is_let_in(door: str) -> None:
    _, secret = key_file().add("laptop")
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


def test_a_key_that_is_revoked_or_expired_ends_at_once() -> None:
    keys = key_file()
    _, expired = keys.add("old", expires=1.0)
    _, revoked = keys.add("gone")
    with running_gateway() as address:
        body = minimal_body("chat")
        assert "expired" in ask(address, DOORS["chat"], body, key=expired).told
        assert ask(address, DOORS["chat"], body, key=revoked).status == 200
        keys.revoke("gone")
        assert ask(address, DOORS["chat"], body, key=revoked).status == 401


def test_revoking_the_last_key_lets_nobody_in() -> None:
    keys = key_file()
    _, secret = keys.add("only")
    with running_gateway() as address:
        assert ask(address, "/v1/models", key=secret).status == 200
        keys.revoke("only")
        assert ask(address, "/v1/models", key=secret).status == 401
        assert ask(address, "/v1/models").status == 401


def test_a_key_opens_the_models_and_agents_that_it_names() -> None:
    _, secret = key_file().add("narrow", models=("agent/*",))
    config = {"agents": {"greeter": {"provider": "echo"}}}
    with running_gateway(config) as address:
        refused = ask(address, DOORS["chat"], minimal_body("chat"), key=secret)
        assert (refused.status, refused.body["error"]["param"]) == (403, "model")
        body = minimal_body("chat", model="agent/greeter")
        assert ask(address, DOORS["chat"], body, key=secret).status == 200
        listed = ask(address, "/v1/models", key=secret).body["data"]
        assert {each["id"] for each in listed} == {"agent/greeter"}


def test_requests_of_a_key_are_limited_by_the_minute() -> None:
    _, secret = key_file().add("slow", requests_per_minute=2)
    with running_gateway() as one, running_gateway() as other:
        # The workers of a machine count together.
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


def test_a_key_ends_when_its_budget_is_used_up() -> None:
    key, secret = key_file().add("small", budget_tokens=1)
    with running_gateway() as address:
        assert ask(address, DOORS["messages"], minimal_body("messages"), key=secret).status == 200
        refused = ask(address, DOORS["messages"], minimal_body("messages"), key=secret)
        assert refused.status == 429
        assert "tokens" in refused.told
    with AgentApplication({}) as application:
        spending = Spending(own_config(application)["plugin_folder"])
    assert spending.totals(key.id)[0] >= 1


def test_whoever_guesses_keys_is_told_to_wait() -> None:
    _, secret = key_file().add("laptop")
    with running_gateway() as address:
        guesses = [
            ask(address, DOORS["chat"], minimal_body("chat"), key=f"agh_{n}") for n in range(12)
        ]
        assert {each.status for each in guesses[:10]} == {401}
        assert {each.status for each in guesses[10:]} == {429}
        assert ask(address, DOORS["chat"], minimal_body("chat"), key=secret).status == 200


def test_without_keys_it_listens_on_this_machine_alone() -> None:
    keys = key_file()
    check_listening("127.0.0.1", keys)
    with pytest.raises(ConfigError, match="without keys"):
        check_listening("0.0.0.0", keys)
    keys.add("laptop")
    check_listening("0.0.0.0", keys)


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
    keys = key_file()
    _, mine = keys.add("mine")
    _, other = keys.add("other")
    config: dict[str, Any] = {"store": f"sqlite:///{tmp_path / 'sessions.db'}"}
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
