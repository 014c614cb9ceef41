"""What the console's page asks the server for: who may, what it is told, and what it is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_process import ask, opened_store, running_gateway

from agent_host_gateway.console import room
from agent_host_gateway.keys import Keys

API = "/console/api/"


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "work").mkdir()
    return {
        "store": f"sqlite:///{tmp_path}/store.db",
        "agents": {"default": {"provider": "echo", "model": "echo-1"}},
        "request_defaults": {"root": str(tmp_path / "work")},
    }


@pytest.fixture
def address(config: dict[str, Any]) -> Iterator[str]:
    with running_gateway(config) as where:
        yield where


def add_key(config: dict[str, Any], name: str, **limits: Any) -> str:
    with opened_store(config) as store:
        return Keys(store).add(name, **limits)[1]


def begin(address: str, prompt: str, **more: Any) -> Any:
    answered = ask(address, f"{API}runs", {"prompt": prompt, "model": "agent/default", **more})
    assert answered.status == 200, answered.text
    return answered.body


def follow(address: str, run: str, after: int = 0) -> tuple[list[Any], Any]:
    """The events of a run, and how it stands after them."""
    answered = ask(address, f"{API}runs/{run}/events?after={after}")
    assert answered.headers["content-type"].startswith("text/event-stream")
    told = re.findall(r"^event: (\w+)\ndata: (.*)$", answered.text, re.MULTILINE)
    *events, (last, end) = [(kind, json.loads(data)) for kind, data in told]
    assert last == "end"
    return [event for _, event in events], end


def said(address: str, session: str) -> list[str]:
    found = ask(address, f"{API}sessions/{session}").body
    return [message["content"] for message in found["messages"]]


# --- the page -------------------------------------------------------------------------------------


def test_every_file_of_the_page_is_served_under_a_strict_policy(address: str) -> None:
    led = ask(address, "/")
    assert (led.status, led.headers["location"]) == (307, "/console/")
    files = [path.name for path in (Path(room.__file__).parent / "pages").iterdir()]
    for name in ["", *files]:
        answered = ask(address, f"/console/{name}")
        assert answered.status == 200
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answered.headers["x-content-type-options"] == "nosniff"
    assert ask(address, "/console/room.py").status == 404
    assert ask(address, "/console/..%2froom.py").status == 404


def test_nothing_of_the_page_reads_html_or_runs_text() -> None:
    pages = Path(room.__file__).parent / "pages"
    wrong = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|srcdoc|style="
    )
    found = {path.name: wrong.findall(path.read_text()) for path in pages.iterdir()}
    assert not any(found.values()), found


# --- who is let in --------------------------------------------------------------------------------


def test_a_key_of_the_console_logs_in_with_a_cookie_that_no_script_reads(
    config: dict[str, Any],
) -> None:
    secret = add_key(config, "desk", console=True)
    with running_gateway(config) as address:
        assert ask(address, f"{API}me").status == 401
        logged_in = ask(address, f"{API}login", {"key": secret})
        cookie = logged_in.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/console/api"} <= set(cookie.split("; "))
        sent = {"cookie": cookie.partition(";")[0]}
        me = ask(address, f"{API}me", headers=sent)
        assert (me.body["name"], me.body["has_key"], me.body["stores"]) == ("desk", True, True)
        assert me.body["agents"] == ["agent/default"]
        left = ask(address, f"{API}login", method="DELETE", headers=sent)
        assert 'agent_host_console=""' in left.headers["set-cookie"]
        # A page of others has neither the cookie nor, had it one, the right origin.
        elsewhere = {**sent, "origin": "https://evil.example"}
        assert ask(address, f"{API}me", headers=elsewhere).status == 403


def test_a_key_for_models_alone_does_not_open_the_console(config: dict[str, Any]) -> None:
    secret = add_key(config, "ci")
    with running_gateway(config) as address:
        refused = ask(address, f"{API}login", {"key": secret})
        assert refused.status == 403
        assert "set-cookie" not in refused.headers
        assert "--console" in ask(address, f"{API}sessions", key=secret).told


@pytest.mark.parametrize("key", ["wrong", "", None, 7, "a\nb", "ü"])
def test_what_is_no_key_does_not_log_in(config: dict[str, Any], key: Any) -> None:
    add_key(config, "desk", console=True)
    with running_gateway(config) as address:
        assert ask(address, f"{API}login", {"key": key}).status == 401


def test_a_key_that_is_spent_begins_no_run(config: dict[str, Any]) -> None:
    secret = add_key(config, "desk", console=True, requests_per_minute=1)
    body = {"prompt": "Hi", "model": "agent/default"}
    with running_gateway(config) as address:
        first = ask(address, f"{API}runs", body, key=secret)
        second = ask(address, f"{API}runs", body, key=secret)
    assert (first.status, second.status) == (200, 429)


# --- conversations --------------------------------------------------------------------------------


def test_a_conversation_is_streamed_stored_and_gone_on_with(address: str) -> None:
    begun = begin(address, "Good morning")
    events, end = follow(address, begun["run"])
    assert end == {"state": "succeeded", "session": begun["session"]}
    kinds = [event["type"] for event in events]
    assert {"request_started", "final", "done"} <= {*kinds}
    assert not any("session" in event for event in events)
    again = begin(address, "And now?", session=begun["session"])
    assert again["session"] == begun["session"]
    follow(address, again["run"])
    assert said(address, begun["session"]) == [
        "Good morning",
        "Good morning",
        "And now?",
        "And now?",
    ]


def test_files_go_with_a_message(address: str) -> None:
    pixel = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    begun = begin(address, "What is this?", files=[pixel], model="echo/echo-reasoner")
    assert follow(address, begun["run"])[1]["state"] == "succeeded"
    first, *_ = ask(address, f"{API}sessions/{begun['session']}").body["messages"]
    assert first["multipartContent"][0]["content"]["url"].startswith("data:image/gif;base64,")


CALL = '/call write_file {"path": "made.txt", "content": "made"}'


@pytest.mark.parametrize(("answer", "is_made"), [("once", True), ("deny", False)])
def test_a_call_waits_for_consent_and_goes_on(
    address: str, tmp_path: Path, answer: str, is_made: bool
) -> None:
    begun = begin(address, CALL)
    assert follow(address, begun["run"])[1]["state"] == "waiting"
    run = ask(address, f"{API}runs/{begun['run']}").body
    (question,) = run["questions"]
    assert (question["kind"], question["shown"]["name"]) == ("approval", "write_file")
    assert question["shown"]["changes"][0]["diff"]
    # Whoever reloads the page finds it again.
    assert ask(address, f"{API}sessions/{begun['session']}").body["waiting"]["id"] == begun["run"]
    file = tmp_path / "work" / "made.txt"
    assert not file.exists()
    decisions = {"decisions": {question["id"]: answer}}
    later = ask(address, f"{API}runs/{begun['run']}/decisions", decisions).body
    events, end = follow(address, later["run"], later["after"])
    assert end["state"] == "succeeded"
    # What was told before is not told again.
    assert "approval_required" not in [event["type"] for event in events]
    assert file.exists() is is_made


def test_nothing_is_allowed_for_good_from_a_page(address: str) -> None:
    begun = begin(address, CALL)
    follow(address, begun["run"])
    (question,) = ask(address, f"{API}runs/{begun['run']}").body["questions"]
    for answer in ("always", "folder", True, None):
        body = {"decisions": {question["id"]: answer}}
        assert ask(address, f"{API}runs/{begun['run']}/decisions", body).status == 400
    assert ask(address, f"{API}runs/{begun['run']}").body["state"] == "waiting"


def test_a_run_that_waits_can_be_cancelled(address: str) -> None:
    begun = begin(address, CALL)
    follow(address, begun["run"])
    assert ask(address, f"{API}runs/{begun['run']}/cancel", {}).body["state"] == "cancelled"
    listed = ask(address, f"{API}runs?state=cancelled").body["runs"]
    assert [run["id"] for run in listed] == [begun["run"]]


def test_without_a_store_it_is_said_how_to_have_one() -> None:
    with running_gateway({}) as address:
        assert ask(address, f"{API}me").body["stores"] is False
        refused = ask(address, f"{API}runs", {"prompt": "Hi", "model": "echo/echo-1"})
        assert (refused.status, "store =" in refused.told) == (400, True)
        assert "store =" in ask(address, f"{API}sessions").told


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        {"model": "agent/default"},
        {"prompt": " ", "model": "agent/default"},
        {"prompt": 3, "model": "agent/default"},
        {"prompt": "x"},
        {"prompt": "x", "model": "agent/nobody"},
        {"prompt": "x", "model": "agent/default", "files": "abc"},
        {"prompt": "x", "model": "agent/default", "files": ["***"]},
        {"prompt": "x", "model": "agent/default", "settings": [1]},
        {"prompt": "x", "model": "agent/default", "session": "nothing"},
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_reason(address: str, body: Any) -> None:
    refused = ask(address, f"{API}runs", body)
    assert refused.status in (400, 404)
    assert refused.told


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "base_url",
        "api_key",
        "api_key_command",
        "headers",
        "provider",
        "root",
        "add_tags",
        "nothing",
    ],
)
def test_no_page_says_where_requests_go_nor_what_tools_reach(address: str, key: str) -> None:
    body = {"prompt": "Hi", "model": "agent/default", "settings": {key: "https://evil.example"}}
    refused = ask(address, f"{API}runs", body)
    assert refused.status == 403
    assert key in refused.told


def test_a_form_has_what_plugins_suggest_and_shows_no_secret(tmp_path: Path) -> None:
    config = {
        "providers": {
            "mine": {
                "provider": "custom",
                "base_url": "http://127.0.0.1:9/private",
                "api_key": "a-secret-of-the-server",
                "model": "m",
            }
        }
    }
    with running_gateway(config) as address:
        answered = ask(address, f"{API}settings?model=mine/m")
    fields = {field["key"]: field for field in answered.body["fields"]}
    assert fields["temperature"]["type"] == "number"
    assert fields["api_key"]["locked"]
    assert fields["base_url"]["locked"]
    assert "a-secret-of-the-server" not in answered.text
    assert "private" not in answered.text


# --- what is stored -------------------------------------------------------------------------------


def test_sessions_are_found_branched_renamed_and_removed(address: str) -> None:
    begun = begin(address, "Where do herons nest?")
    follow(address, begun["run"])
    path = f"{API}sessions/{begun['session']}"
    (hit, *_) = ask(address, f"{API}search?q=herons").body["found"]
    assert hit["session"] == begun["session"]
    branch = ask(address, f"{path}/branch", {"count": 1}).body
    assert (branch["parent"], branch["count"]) == (begun["session"], 1)
    assert ask(address, f"{path}/name", {"name": "birds"}).body["name"] == "birds"
    listed = ask(address, f"{API}sessions").body["sessions"]
    assert {each["name"] for each in listed} == {"birds", None}
    assert ask(address, path, method="DELETE").status == 200
    assert ask(address, path).status == 404


def test_what_was_used_is_told_by_day_model_and_key(config: dict[str, Any]) -> None:
    secret = add_key(config, "desk", console=True)
    with running_gateway(config) as address:
        body = {"prompt": "one two three", "model": "agent/default"}
        run = ask(address, f"{API}runs", body, key=secret).body["run"]
        ask(address, f"{API}runs/{run}/events", key=secret)
        rows = [*ask(address, f"{API}usage?days=7", key=secret).body["rows"]]
    (of_run,) = [row for row in rows if not row["key"]]
    assert (of_run["model"], of_run["requests"]) == ("echo/echo-1", 1)
    assert of_run["input"] > 0
    # What it cost is not known, which is not the same as nothing.
    assert of_run["cost"] is None


def test_plugins_are_listed_examined_and_explained_in_words_and_as_a_picture(
    config: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    with running_gateway(str(file)) as address:
        listed = ask(address, f"{API}plugins").body["plugins"]
        found = ask(address, f"{API}plugins/explain?model=agent/default").body
        health = ask(address, f"{API}plugins/doctor").body
        assert ask(address, f"{API}plugins/explain?model=--help").status == 404
    assert "gateway" in [each["name"] for each in listed]
    assert found["told"]["provider"] == "echo"
    assert found["told"]["rounds"]
    assert found["picture"].startswith("<svg")
    assert health["examined"] >= len(listed)
