"""The page on security: each promise has its tests, and the table of limits is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_hookspecs.authoring.partial import MAX_ANSWER_VALUES
from agent_host.agent import preview
from agent_host.agent.limits import Limits
from agent_host.config import contents, files
from agent_host.plugins import models
from agent_host.plugins.hook_time import HookTime
from agent_host.plugins.inspect import doctor
from agent_host.turn import send
from agent_host.turn.size import SizeLimits
from agent_host.wire.compression import MAX_SILENT_BYTES
from agent_host.wire.transport.parser import MAX_HEAD_BYTES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
PROMISED = PAGE.partition("## What is promised")[2].partition("## What is not promised")[0]
NAMED = [
    (file, test)
    for file, tests in re.findall(r"- `([\w/.-]+\.py)`:((?:\s+`test_\w+`,?)+)", PROMISED)
    for test in re.findall(r"`(test_\w+)`", tests)
]


def test_every_promise_names_tests() -> None:
    paragraphs = [part for part in PROMISED.split("\n\n") if part.startswith("**")]
    lists = [part for part in PROMISED.split("\n\n") if part.startswith("- `")]
    assert len(paragraphs) == len(lists) > 0
    assert len(NAMED) == len(re.findall(r"`test_\w+`", PROMISED))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_is_there(file: str, test: str) -> None:
    assert f"def {test}(" in (ROOT / file).read_text("utf-8")


def test_the_limits_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\S+) \|$", PAGE.partition("## Limits")[2], re.M)
    stated = {
        setting.strip("`"): None if default == "none" else float(default)
        for _, setting, default in rows[1:]
        if setting != "fixed"
    }
    tools = {
        "max_turns": Limits().turns,
        "max_tool_calls": Limits().calls,
        "max_tool_calls_per_turn": Limits().calls_per_turn,
        "max_tokens": Limits().tokens,
        "max_seconds": Limits().seconds,
        "max_cost": Limits().cost,
        "max_session_cost": Limits().session_cost,
        "max_key_cost": Limits().key_cost,
        "max_day_cost": Limits().day_cost,
        "max_call_seconds": Limits().call_seconds,
        "max_parallel_calls": Limits().parallel_calls,
        "max_argument_bytes": Limits().argument_bytes,
        "max_result_bytes": Limits().result_bytes,
    }
    of_requests = (SizeLimits(), HookTime())
    known: dict[str, object] = {f"tools.{name}": value for name, value in tools.items()}
    for each in of_requests:
        known |= {name: getattr(each, name) for name in each.__match_args__}
    assert stated == known
    fixed = {what: float(default) for what, setting, default in rows if setting == "fixed"}
    assert sorted(fixed.values()) == sorted(
        [
            MAX_HEAD_BYTES,
            MAX_SILENT_BYTES,
            MAX_ANSWER_VALUES,
            send._MAX_REFUSAL,
            preview._SECONDS,
            models._MAX_BYTES,
            models._TOTAL_SECONDS,
            doctor.LOAD_SECONDS,
            files.MAX_CONFIG_BYTES,
            contents.MAX_TRUSTED_FILES,
            contents.MAX_TRUSTED_BYTES,
        ]
    )
