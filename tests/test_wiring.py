"""What a provider or a config wants sent is checked before anything is."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hookspecs.errors import ConfigError, HookResultError
from both_ways import BOTH_WAYS, hosted, sse, texts
from loopback import serve
from openai_like import OpenAiLike


def building(**spec: Any) -> type[OpenAiLike]:
    """A provider whose request is right but for this."""

    def build_request(self: Any, native_messages: Any, state: Any) -> dict[str, Any]:
        return {"url": state["request"]["url"], "body": {}, **spec}

    return type("Building", (OpenAiLike,), {"name": "building", "build_request": build_request})


def outcome_of(way: str, provider: type, **config: Any) -> Any:
    """What comes of a request, which must not have been sent."""
    with (
        serve(lambda peer, _: peer.answer(sse(*texts("x")))) as server,
        hosted(way, [provider], extensions=[]) as host,
    ):
        outcome = host.stream(server.url, provider=provider.name, **config)  # type: ignore[attr-defined]
        assert server.connections == (1 if outcome.error is None else 0)
    return outcome


@BOTH_WAYS
@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"x-count": 5}, "'x-count' as int"),
        ({"x-count": None}, "'x-count' as NoneType"),
        ({"x-count": b"canary"}, "'x-count' as bytes"),
        ({5: "canary"}, "5 as int"),
    ],
)
def test_a_header_that_is_not_text_names_plugin_and_header(
    headers: Any, words: str, way: str
) -> None:
    error = outcome_of(way, building(headers=headers)).error
    assert isinstance(error, HookResultError)
    assert (error.plugin, error.hook) == ("building", "build_request")
    assert words in error.message
    assert "canary" not in error.message


@pytest.mark.parametrize("kind", ["xml", ["sse"], 5, {"sse": True}])
def test_a_framing_that_does_not_exist_names_plugin_and_those_that_do(kind: Any) -> None:
    for provider in (
        building(framing=kind),
        type("Odd", (OpenAiLike,), {"name": "building", "framing": kind}),
    ):
        error = outcome_of("sync", provider).error
        assert isinstance(error, HookResultError)
        assert error.plugin == "building"
        assert repr(kind) in error.message
        assert "sse, ndjson, json-array, json" in error.hint


INFINITE = float("inf")


@BOTH_WAYS
@pytest.mark.parametrize(
    "timeout",
    [INFINITE, float("nan"), 1e10, 4294968, pytest.param(10**400, id="huge"), {"idle": INFINITE}],
)
def test_a_timeout_that_nobody_can_wait_for_is_refused(timeout: Any, way: str) -> None:
    error = outcome_of(way, OpenAiLike, timeout=timeout).error
    assert isinstance(error, ConfigError)
    assert error.key == "timeout"


@BOTH_WAYS
@pytest.mark.parametrize("timeout", [5, 2e6, {"total": 2e6, "idle": None}])
def test_a_timeout_may_be_long(timeout: Any, way: str) -> None:
    assert outcome_of(way, OpenAiLike, timeout=timeout).error is None
