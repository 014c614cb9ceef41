"""Tool calls of the chat format beyond the wire shapes of the kit."""

from __future__ import annotations

from typing import Any

from openai_compatible_bench import END, call, delta, read


def calls_of(*chunks: dict[str, Any]) -> list[tuple[str, str, str]]:
    _, core, _ = read([*chunks, END])
    calls = core["metadata"]["tool_calls"]
    return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]


def test_a_made_up_id_is_new_in_the_conversation() -> None:
    history = [{"role": "assistant", "content": None, "tool_calls": [{"id": "tc_1"}]}]
    _, core, _ = read([call(index=0, function={"name": "f"}), END], history=history)
    assert core["metadata"]["tool_calls"][0]["id"] == "tc_2"


def test_a_legacy_call_beside_real_ones_is_no_further_call() -> None:
    entry = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}
    both = delta(tool_calls=[entry], function_call=entry["function"])
    assert calls_of(both) == [("a", "f", '{"x":1}')]
