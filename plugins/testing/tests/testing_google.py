"""A right request to Gemini's generateContent, and what the format finds wrong with others."""

from __future__ import annotations

import json
from typing import Any

from testing_requests import Body

from agent_host_testing.formats import wire_format
from agent_host_testing.wire import Ledger, Problem, Request

API = wire_format("google.generate")


def request(
    body: Any,
    model: str = "gemini-2.5-flash",
    method: str = "generateContent",
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> Request:
    path = f"/v1beta/models/{model}:{method}"
    sent = {"x-goog-api-key": "k"} if headers is None else headers
    return Request("POST", path, query or {}, sent, json.dumps(body).encode(), body)


def problem(body: Any, ledger: Ledger | None = None, **options: Any) -> Problem | None:
    return API.problem(request(body, **options), ledger or Ledger())


def conversation() -> Body:
    """A conversation with two calls and their results."""
    return {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "how is it in Rome and Oslo?"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "let me look"},
                    {"functionCall": {"name": "weather", "args": {"in": "Rome"}}},
                    {"functionCall": {"name": "clock", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "weather", "response": {"result": "warm"}}},
                    {"functionResponse": {"name": "clock", "response": {"result": 12}}},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "weather",
                        "description": "the weather",
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {"in": {"type": "STRING"}},
                            "required": ["in"],
                        },
                    },
                    {"name": "clock"},
                ]
            }
        ],
        "generationConfig": {"maxOutputTokens": 100},
    }
