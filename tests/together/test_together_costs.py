"""What answers cost, from the counts that vendors sent to the cent of an invoice.

The counts are those of recorded answers, as each vendor writes them; writing to a cache and long
inputs, which no recording has, are made up and stand apart. Beside each stands the invoice as a
person writes it: tokens, dollars for a million of them, and the sum of that. The prices are those
that genai-prices had in November 2026, so that the test stays what it is when vendors change
theirs; that of a request to sonar is what the recorded answer says of itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent_host.prices import count_cost, read_prices
from agent_host_anthropic.usage import normalised_usage as anthropic
from agent_host_cohere.answers import usage_of
from agent_host_google.usage import usage_of as google
from agent_host_openai.responses.usage import usage_of as responses
from agent_host_openai_compatible.usage import normalised_usage as chat


def cohere(raw: dict[str, Any]) -> Any:
    return usage_of({"usage": raw})


#: US dollars for a million tokens; a request or a search is billed by itself.
PRICES: dict[str, dict[str, Any]] = {
    "claude-3-7-sonnet": {
        "input": 3,
        "cached_input": 0.3,
        "cache_write": 3.75,
        "cache_write_1h": 6,
        "output": 15,
        "search": 0.01,
    },
    "claude-sonnet-4": {
        "input": 3,
        "cached_input": 0.3,
        "cache_write": 3.75,
        "cache_write_1h": 6,
        "output": 15,
        "search": 0.01,
    },
    "claude-sonnet-4-5": {
        "input": 3,
        "cached_input": 0.3,
        "cache_write": 3.75,
        "cache_write_1h": 6,
        "output": 15,
        "search": 0.01,
        "tiers": [
            {
                "above": 200000,
                "input": 6,
                "cached_input": 0.6,
                "cache_write": 7.5,
                "cache_write_1h": 12,
                "output": 22.5,
            }
        ],
    },
    "claude-haiku-4-5": {
        "input": 1,
        "cached_input": 0.1,
        "cache_write": 1.25,
        "cache_write_1h": 2,
        "output": 5,
        "search": 0.01,
    },
    "gpt-5": {"input": 1.25, "cached_input": 0.125, "output": 10},
    "gpt-5-mini": {"input": 0.25, "cached_input": 0.025, "output": 2},
    "gpt-4o": {"input": 2.5, "cached_input": 1.25, "output": 10},
    "gpt-3.5-turbo": {"input": 0.5, "output": 1.5},
    "o4-mini": {"input": 1.1, "cached_input": 0.275, "output": 4.4},
    "gemini-2.5-pro": {
        "input": 1.25,
        "cached_input": 0.125,
        "output": 10,
        "tiers": [{"above": 200000, "input": 2.5, "cached_input": 0.25, "output": 15}],
    },
    "deepseek-reasoner": {"input": 0.55, "cached_input": 0.14, "output": 2.19},
    "deepseek-v4-flash": {"input": 0.15, "cached_input": 0.003, "output": 0.6},
    "gemini-3-flash": {"input": 0.5, "cached_input": 0.05, "output": 3, "search": 0.014},
    "llama-4-scout": {"input": 0.11, "output": 0.34},
    "grok-4-fast": {"input": 0.2, "cached_input": 0.05, "output": 0.5},
    "gpt-oss-120b": {"input": 0.15, "cached_input": 0.075, "output": 0.6},
    "mistral-small": {"input": 0.15, "cached_input": 0.015, "output": 0.6},
    "sonar": {"input": 1, "output": 1, "request": 0.005},
    "command-a": {"input": 2.5, "output": 10},
    "command-r": {"input": 0.15, "output": 0.6},
}
#: Who reads the counts, the model, the counts, the lines of the invoice, and its total.
Invoice = tuple[Callable[[Any], Any], str, dict[str, Any], list[tuple[int, str]], str]
RECORDED: list[Invoice] = [
    (
        anthropic,
        "claude-3-7-sonnet",
        {"output_tokens": 16, "input_tokens": 16},
        [(16, "3"), (16, "15")],
        "0.000288",
    ),
    (
        anthropic,
        "claude-sonnet-4",
        {
            "input_tokens": 424,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 109,
        },
        [(424, "3"), (109, "15")],
        "0.002907",
    ),
    (
        anthropic,
        "claude-sonnet-4",
        {
            "input_tokens": 548,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 34,
        },
        [(548, "3"), (34, "15")],
        "0.002154",
    ),
    (
        anthropic,
        "claude-sonnet-4",
        {
            "input_tokens": 549,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 37,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        },
        [(549, "3"), (37, "15")],
        "0.002202",
    ),
    (
        anthropic,
        "claude-sonnet-4-5",
        {
            "input_tokens": 92,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 196,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        },
        [(92, "3"), (196, "15")],
        "0.003216",
    ),
    (
        anthropic,
        "claude-sonnet-4-5",
        {
            "input_tokens": 168,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 232,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        },
        [(168, "3"), (232, "15")],
        "0.003984",
    ),
    (
        anthropic,
        "claude-haiku-4-5",
        {
            "input_tokens": 674,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 39,
        },
        [(674, "1"), (39, "5")],
        "0.000869",
    ),
    (
        anthropic,
        "claude-haiku-4-5",
        {
            "input_tokens": 9447,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 114,
            "server_tool_use": {"web_search_requests": 1},
        },
        [(9447, "1"), (114, "5"), (1_000_000, "0.01")],
        "0.020017",
    ),
    (
        anthropic,
        "claude-haiku-4-5",
        {
            "input_tokens": 7289,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 5,
        },
        [(7289, "1"), (5, "5")],
        "0.007314",
    ),
    (
        chat,
        "o4-mini",
        {
            "prompt_tokens": 19,
            "completion_tokens": 149,
            "total_tokens": 168,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 128},
        },
        [(19, "1.1"), (149, "4.4")],
        "0.0006765",
    ),
    (
        chat,
        "gpt-5",
        {
            "prompt_tokens": 190,
            "completion_tokens": 379,
            "total_tokens": 569,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 320},
        },
        [(190, "1.25"), (379, "10")],
        "0.0040275",
    ),
    (
        chat,
        "gpt-5",
        {
            "prompt_tokens": 262,
            "completion_tokens": 25,
            "total_tokens": 287,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        [(262, "1.25"), (25, "10")],
        "0.0005775",
    ),
    (
        chat,
        "gpt-5",
        {
            "prompt_tokens": 95,
            "completion_tokens": 281,
            "total_tokens": 376,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 256},
        },
        [(95, "1.25"), (281, "10")],
        "0.00292875",
    ),
    (
        chat,
        "gpt-5-mini",
        {
            "prompt_tokens": 375,
            "completion_tokens": 372,
            "total_tokens": 747,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 256},
        },
        [(375, "0.25"), (372, "2")],
        "0.00083775",
    ),
    (
        chat,
        "gpt-3.5-turbo",
        {"prompt_tokens": 76, "completion_tokens": 35, "total_tokens": 111},
        [(76, "0.5"), (35, "1.5")],
        "0.0000905",
    ),
    (
        chat,
        "gpt-4o",
        {
            "prompt_tokens": 65,
            "completion_tokens": 13,
            "total_tokens": 78,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        [(65, "2.5"), (13, "10")],
        "0.0002925",
    ),
    (
        responses,
        "gpt-4o",
        {
            "input_tokens": 104,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 51,
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        [(104, "2.5"), (51, "10")],
        "0.00077",
    ),
    (
        responses,
        "gpt-4o",
        {
            "input_tokens": 150,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 21,
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        [(150, "2.5"), (21, "10")],
        "0.000585",
    ),
    (
        responses,
        "gpt-5-mini",
        {
            "input_tokens": 47,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 60,
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        [(47, "0.25"), (60, "2")],
        "0.00013175",
    ),
    (
        responses,
        "gpt-5",
        {
            "input_tokens": 9463,
            "input_tokens_details": {"cached_tokens": 8320},
            "output_tokens": 582,
            "output_tokens_details": {"reasoning_tokens": 512},
        },
        [(1143, "1.25"), (8320, "0.125"), (582, "10")],
        "0.00828875",
    ),
    (
        responses,
        "gpt-5",
        {
            "input_tokens": 9703,
            "input_tokens_details": {"cached_tokens": 8576},
            "output_tokens": 638,
            "output_tokens_details": {"reasoning_tokens": 576},
        },
        [(1127, "1.25"), (8576, "0.125"), (638, "10")],
        "0.00886075",
    ),
    (
        responses,
        "deepseek-v4-flash",
        {
            "input_tokens": 366,
            "input_tokens_details": {"cached_tokens": 256},
            "output_tokens": 59,
            "output_tokens_details": {"reasoning_tokens": 14},
        },
        [(110, "0.15"), (256, "0.003"), (59, "0.6")],
        "0.000052668",
    ),
    (
        responses,
        "deepseek-v4-flash",
        {
            "input_tokens": 440,
            "input_tokens_details": {"cached_tokens": 384},
            "output_tokens": 14,
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        [(56, "0.15"), (384, "0.003"), (14, "0.6")],
        "0.000017952",
    ),
    (
        chat,
        "deepseek-reasoner",
        {
            "prompt_tokens": 6,
            "completion_tokens": 212,
            "total_tokens": 218,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 198},
        },
        [(6, "0.55"), (212, "2.19")],
        "0.00046758",
    ),
    (
        google,
        "gemini-2.5-pro",
        {"promptTokenCount": 57, "candidatesTokenCount": 10, "thoughtsTokenCount": 69},
        [(57, "1.25"), (79, "10")],
        "0.00086125",
    ),
    (
        google,
        "gemini-2.5-pro",
        {"promptTokenCount": 73, "candidatesTokenCount": 25, "thoughtsTokenCount": 83},
        [(73, "1.25"), (108, "10")],
        "0.00117125",
    ),
    (
        google,
        "gemini-2.5-pro",
        {"promptTokenCount": 84, "candidatesTokenCount": 12},
        [(84, "1.25"), (12, "10")],
        "0.000225",
    ),
    (
        google,
        "gemini-3-flash",
        {
            "promptTokenCount": 427,
            "candidatesTokenCount": 122,
            "thoughtsTokenCount": 447,
            "toolUsePromptTokenCount": 771,
        },
        [(1198, "0.5"), (569, "3")],
        "0.002306",
    ),
    (
        chat,
        "grok-4-fast",
        {
            "prompt_tokens": 165,
            "completion_tokens": 2,
            "total_tokens": 296,
            "prompt_tokens_details": {"cached_tokens": 164},
            "completion_tokens_details": {"reasoning_tokens": 129},
        },
        [(1, "0.2"), (164, "0.05"), (131, "0.5")],
        "0.0000739",
    ),
    (
        chat,
        "gpt-oss-120b",
        {
            "prompt_tokens": 343,
            "completion_tokens": 180,
            "total_tokens": 523,
            "completion_tokens_details": {"reasoning_tokens": 153},
        },
        [(343, "0.15"), (180, "0.6")],
        "0.00015945",
    ),
    (
        chat,
        "llama-4-scout",
        {"prompt_tokens": 779, "completion_tokens": 65, "total_tokens": 844},
        [(779, "0.11"), (65, "0.34")],
        "0.00010779",
    ),
    (
        chat,
        "mistral-small",
        {"prompt_tokens": 109, "completion_tokens": 19, "total_tokens": 128},
        [(109, "0.15"), (19, "0.6")],
        "0.00002775",
    ),
    (
        chat,
        "sonar",
        {"prompt_tokens": 8, "completion_tokens": 5, "total_tokens": 13},
        [(8, "1"), (5, "1"), (1_000_000, "0.005")],
        "0.005013",
    ),
    (
        cohere,
        "command-r",
        {
            "billed_units": {"input_tokens": 62, "output_tokens": 28},
            "tokens": {"input_tokens": 968, "output_tokens": 83},
        },
        [(62, "0.15"), (28, "0.6")],
        "0.0000261",
    ),
    (
        cohere,
        "command-a",
        {
            "billed_units": {"input_tokens": 64, "output_tokens": 35},
            "tokens": {"input_tokens": 1470, "output_tokens": 67},
            "cached_tokens": 704,
        },
        [(64, "2.5"), (35, "10")],
        "0.00051",
    ),
]
MADE_UP: list[Invoice] = [
    (
        anthropic,
        "claude-sonnet-4-5",
        {
            "input_tokens": 21,
            "cache_creation_input_tokens": 2048,
            "cache_read_input_tokens": 118000,
            "output_tokens": 503,
        },
        [(21, "3"), (118_000, "0.3"), (2048, "3.75"), (503, "15")],
        "0.050688",
    ),
    (
        anthropic,
        "claude-sonnet-4-5",
        {
            "input_tokens": 12,
            "cache_creation_input_tokens": 30000,
            "cache_read_input_tokens": 0,
            "output_tokens": 900,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 10000,
                "ephemeral_1h_input_tokens": 20000,
            },
        },
        [(12, "3"), (10_000, "3.75"), (20_000, "6"), (900, "15")],
        "0.171036",
    ),
    (
        anthropic,
        "claude-sonnet-4-5",
        {
            "input_tokens": 1000,
            "cache_creation_input_tokens": 5000,
            "cache_read_input_tokens": 240000,
            "output_tokens": 2000,
        },
        [(1000, "6"), (240_000, "0.6"), (5000, "7.5"), (2000, "22.5")],
        "0.2325",
    ),
    (
        google,
        "gemini-2.5-pro",
        {
            "promptTokenCount": 250000,
            "candidatesTokenCount": 800,
            "thoughtsTokenCount": 200,
            "cachedContentTokenCount": 200000,
        },
        [(50_000, "2.5"), (200_000, "0.25"), (1000, "15")],
        "0.19",
    ),
]
INVOICES = [*RECORDED, *MADE_UP]
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("read", "model", "raw", "lines", "total"),
    INVOICES,
    ids=[f"{number}-{model}" for number, (_, model, *_) in enumerate(INVOICES)],
)
def test_a_recorded_answer_costs_what_its_invoice_says(
    read: Callable[[Any], Any],
    model: str,
    raw: dict[str, Any],
    lines: list[tuple[int, str]],
    total: str,
) -> None:
    # The invoice itself adds up; a million of a thing is one that is billed by itself.
    assert sum(count * Decimal(price) for count, price in lines) / 1_000_000 == Decimal(total)
    assert count_cost(read(raw), read_prices(PRICES[model])) == Decimal(total)


@cache
def recorded_counts() -> list[dict[str, Any]]:
    """What each recording says that an answer has used, its reports put together."""
    found = []
    for file in sorted(CORPUS.glob("*/*.json")):
        body, counts = json.loads(file.read_text("utf-8"))["response"]["body"], dict[str, Any]()
        for place in re.finditer(r'"(?:usage|usageMetadata)"\s*:\s*(?=\{)', body):
            counts |= json.JSONDecoder().raw_decode(body[place.end() :])[0]
        found.append(counts)
    return found


def is_part(given: Any, whole: Any) -> bool:
    if isinstance(given, dict):
        return isinstance(whole, dict) and all(
            key in whole and is_part(value, whole[key]) for key, value in given.items()
        )
    return bool(given == whole)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="there are no recordings in ../shared/corpus")
def test_thirty_of_the_counts_are_those_of_recordings() -> None:
    known = recorded_counts()
    strange = [raw for _, _, raw, *_ in RECORDED if not any(is_part(raw, each) for each in known)]
    assert (strange, len(RECORDED) >= 30) == ([], True)


def test_what_a_vendor_says_an_answer_has_cost_is_what_its_prices_say() -> None:
    told = chat(
        {
            "prompt_tokens": 165,
            "completion_tokens": 2,
            "total_tokens": 296,
            "prompt_tokens_details": {"cached_tokens": 164},
            "completion_tokens_details": {"reasoning_tokens": 129},
            "cost_in_usd_ticks": 739000,
        }
    )
    counted = count_cost(told, read_prices(PRICES["grok-4-fast"]))
    assert counted == Decimal(str(told["cost"])) == Decimal("0.0000739")
