"""A right request to Anthropic's Messages API, and what the format finds wrong with others."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from testing_requests import Body

from agent_host_testing.formats import wire_format
from agent_host_testing.wire import Ledger, Problem, Request

API = wire_format("anthropic.messages")
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
THINK = {"type": "enabled", "budget_tokens": 1024}


def request(body: Any, headers: Mapping[str, str] = HEADERS) -> Request:
    return Request("POST", "/v1/messages", {}, headers, json.dumps(body).encode(), body)


def problem(
    body: Any, ledger: Ledger | None = None, headers: Mapping[str, str] | None = None
) -> Problem | None:
    return API.problem(request(body, {**HEADERS, **(headers or {})}), ledger or Ledger())


def conversation() -> Body:
    """A conversation with two calls and their results."""
    return {
        "model": "claude",
        "max_tokens": 4096,
        "system": "be brief",
        "tools": [copy.deepcopy(TOOL)],
        "messages": [
            {"role": "user", "content": "how is it in Rome and Oslo?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "let me look"},
                    {"type": "tool_use", "id": "a-1", "name": "weather", "input": {"in": "Rome"}},
                    {"type": "tool_use", "id": "a_2", "name": "weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a_2", "content": "cold"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "a-1",
                        "content": [{"type": "text", "text": "warm"}],
                        "is_error": False,
                    },
                    {"type": "text", "text": "well?"},
                ],
            },
        ],
    }
