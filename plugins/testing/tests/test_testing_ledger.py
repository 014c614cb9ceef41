"""What a fake server remembers of the calls that it made, whatever its format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testing_http import ask

from agent_host_testing import Call, FakeServer, Ledger, Reply, Request, say

ONE = Call("weather", {"place": "Oslo"}, "call_1")
TWO = Call("clock", {"place": "Oslo"}, "call_2")
BERGEN = Call("clock", {"place": "Bergen"}, "call_2")


def _request(turns: int = 0) -> Request:
    """A request with so many turns that have calls, as far as a ledger looks at it."""
    return Request("POST", "/", {}, {}, b"turn" * turns, None)


def _ledger(*answers: tuple[Call, ...]) -> Ledger:
    """The ledger of a server that has given these answers, all of them to a first request."""
    ledger = Ledger()
    for answer in answers:
        ledger.hand_out(_request(), answer)
    return ledger


def _change(ledger: Ledger, *turns: list[Call]) -> tuple[int, int, str] | None:
    return ledger.find_change(_request(len(turns)), turns)


def test_calls_may_come_back_as_they_were_written_or_as_they_are_read() -> None:
    ledger = _ledger((ONE, TWO))
    written = Call("weather", '{ "place":"Oslo" }', "call_1")
    assert _change(ledger, [ONE, TWO]) is None
    assert _change(ledger, [written]) is None
    assert _change(ledger, [TWO]) is None


def test_a_changed_call_is_told_with_what_it_was() -> None:
    ledger = _ledger((ONE, TWO))
    found = _change(ledger, [ONE, BERGEN])
    assert found == (0, 1, "the call 'call_2' was clock with {'place': 'Oslo'}")
    assert _change(ledger, [Call("clock", {"place": "Oslo"}, "call_1")]) is not None


def test_calls_in_another_order_are_told() -> None:
    found = _change(_ledger((ONE, TWO)), [TWO, ONE])
    assert found == (0, 1, "the call 'call_1' was made before 'call_2'")


def test_ids_that_come_again_are_judged_by_every_answer_that_had_them() -> None:
    again = Call("clock", {"place": "Bergen"}, "call_1")
    ledger = _ledger((ONE, TWO), (TWO, again))
    assert _change(ledger, [ONE, TWO]) is None
    assert _change(ledger, [TWO, again]) is None
    assert _change(ledger, [Call("clock", {"place": "Oslo"}, "call_1")]) is not None


def test_a_turn_is_compared_with_what_was_answered_where_it_stands() -> None:
    elsewhere = Call("weather", {"place": "Bergen"}, "call_1")
    ledger = Ledger()
    # The session comes from another server, which had used the same id.
    assert _change(ledger, [elsewhere]) is None
    ledger.hand_out(_request(1), [ONE])
    assert _change(ledger, [elsewhere], [ONE]) is None
    was = "the call 'call_1' was weather with {'place': 'Oslo'}"
    assert _change(ledger, [elsewhere], [elsewhere]) == (1, 0, was)


def test_calls_of_others_are_not_judged() -> None:
    elsewhere = Call("weather", {"place": "Oslo"}, "toolu_elsewhere")
    nameless = Call("weather", {"place": "Oslo"})
    assert _change(_ledger((ONE,)), [elsewhere, nameless, ONE]) is None


def test_arguments_that_were_no_object_may_come_back_as_one() -> None:
    ledger = _ledger((Call("weather", '{"place": ', "call_1"),))
    assert _change(ledger, [Call("weather", {}, "call_1")]) is None
    assert _change(ledger, [Call("clock", {}, "call_1")]) is not None


def test_freeform_calls_come_back_to_the_letter() -> None:
    ledger = _ledger((Call("patch", "{ }", "call_1", freeform=True),))
    assert _change(ledger, [Call("patch", "{ }", "call_1")]) is None
    assert _change(ledger, [Call("patch", "{}", "call_1")]) is not None


def _function(call: Call) -> dict[str, Any]:
    return {"name": call.name, "arguments": dict(call.arguments)}  # type: ignore[arg-type]


def _written(call: Call) -> dict[str, Any]:
    return {"name": call.name, "arguments": json.dumps(call.arguments)}


def _chat(calls: list[Call]) -> tuple[str, dict[str, Any]]:
    made = [{"id": c.id, "type": "function", "function": _written(c)} for c in calls]
    results = [{"role": "tool", "tool_call_id": c.id, "content": "ok"} for c in calls]
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": made}]
    return "/chat/completions", {"model": "m", "messages": [*said, *results]}


def _responses(calls: list[Call]) -> tuple[str, dict[str, Any]]:
    made = [{"type": "function_call", "call_id": c.id, **_written(c)} for c in calls]
    results = [{"type": "function_call_output", "call_id": c.id, "output": "ok"} for c in calls]
    return "/responses", {
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}, *made, *results],
    }


def _anthropic(calls: list[Call]) -> tuple[str, dict[str, Any]]:
    made = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in calls]
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": "ok"} for c in calls]
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": made},
        {"role": "user", "content": results},
    ]
    return "/v1/messages", {"model": "m", "max_tokens": 9, "messages": said}


def _google(calls: list[Call]) -> tuple[str, dict[str, Any]]:
    made = [{"functionCall": {"id": c.id, "name": c.name, "args": c.arguments}} for c in calls]
    results = [
        {"functionResponse": {"id": c.id, "name": c.name, "response": {"said": "ok"}}}
        for c in calls
    ]
    said = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": made},
        {"role": "user", "parts": results},
    ]
    return "/v1beta/models/gemini-2.5-flash:generateContent", {"contents": said}


def _ollama(calls: list[Call]) -> tuple[str, dict[str, Any]]:
    made = [{"id": c.id, "function": _function(c)} for c in calls]
    results = [{"role": "tool", "tool_call_id": c.id, "content": "ok"} for c in calls]
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": made}]
    return "/api/chat", {"model": "m", "stream": False, "messages": [*said, *results]}


FORMATS = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _anthropic,
    "google.generate": _google,
    "ollama.chat": _ollama,
}
KEYS = {
    "authorization": "Bearer k",
    "x-api-key": "k",
    "x-goog-api-key": "k",
    "anthropic-version": "2023-06-01",
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("calls", "refused"),
    [([ONE, TWO], ""), ([TWO, ONE], "was made before"), ([ONE, BERGEN], "was clock with")],
    ids=["as they were", "in another order", "with other arguments"],
)
def test_every_format_remembers_its_calls(format: str, calls: list[Call], refused: str) -> None:
    path, body = FORMATS[format](calls)
    with FakeServer(format, Reply((ONE, TWO)), say("Yes.")) as server:
        _, asked = FORMATS[format]([])
        ask(server, server.format.base_path + path, _only_first(asked), headers=KEYS)
        ask(server, server.format.base_path + path, body, headers=KEYS)
        problems = [str(problem) for _, problem in server.problems]
    assert [refused in each for each in problems] == ([True] if refused else [])


def _only_first(body: dict[str, Any]) -> dict[str, Any]:
    key = next(key for key in ("messages", "input", "contents") if key in body)
    return {**body, key: body[key][:1]}
