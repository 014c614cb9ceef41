"""Recordings of a format that is none of the kit's: a suite says how they are read, or is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent

SUITE = """
from agent_host_testing import ProviderConformance
from agent_host_testing.corpus import Answer, Entry, RecordedProtocol, Turn, text_block
from testing_reference_formats import LinesFormat


def read_turn(body, url):
    entries = [Entry(turn["by"], (text_block(turn["text"]),)) for turn in body["said"]]
    return Turn(tuple(entries), settings={"model": body.get("model")})


def read_answer(documents):
    text = "".join(each.get("text", "") for each in documents)
    return Answer({"said": [{"by": "assistant", "text": text}]})


def read_usage(raw):
    return {"input_tokens": raw["read"], "output_tokens": raw["wrote"]}


def read_counts(raw):
    return {"input": raw["read"], "output": raw["wrote"]}


class TestLines(ProviderConformance):
    folder = %r
    package, plugin = "reference_plain", "plain"
    wire = LinesFormat()
    settings = {"model": "reference-1"}
    protocol = %s
"""
PROTOCOL = 'RecordedProtocol("lines", "/lines", read_turn, read_answer, read_usage, read_counts)'


def recording(number: int, said: list[dict[str, str]], *answers: dict[str, Any]) -> dict[str, Any]:
    text = "".join(answer.get("text", "") for answer in answers)
    return {
        "source": f"session#{number}",
        "group": "session",
        "provider": "plain",
        "protocol": "lines",
        "request": {
            "url": "http://lines.example/v1/lines",
            "body": {"model": "small", "said": said, "lines": True},
        },
        "response": {"status": 200, "body": "".join(f"{json.dumps(a)}\n" for a in answers)},
        "stream": True,
        "framing": "ndjson",
        "expected": {
            "text": text,
            "finish_reason": "over",
            "usage": {"input_tokens": 5, "output_tokens": 2},
        },
    }


def run(folder: Path, protocol: str, *options: str) -> str:
    end = {"end": "over", "read": 5, "wrote": 2}
    asked = {"by": "user", "text": "Hi"}
    answered = {"by": "assistant", "text": "Hello."}
    corpus = folder / "recorded"
    corpus.mkdir()
    sessions = [
        recording(1, [asked], {"text": "Hel"}, {"text": "lo."}, end),
        recording(2, [asked, answered, {"by": "user", "text": "More"}], {"text": "No."}, end),
    ]
    for number, each in enumerate(sessions):
        (corpus / f"{number}.json").write_text(json.dumps(each), encoding="utf-8")
    text = SUITE % (str(TESTS / "references"), protocol)
    (folder / "test_lines.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"),
            *("-k", "test_recording", *options),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": "300", "PYTHONPATH": str(TESTS)},
        timeout=120,
        check=False,
    )
    return done.stdout


def test_a_suite_says_how_recordings_of_its_own_format_are_read(tmp_path: Path) -> None:
    said = run(tmp_path, PROTOCOL, "--corpus", "recorded")
    assert "1 passed" in said, said


def test_what_is_wrong_in_a_recorded_session_is_found(tmp_path: Path) -> None:
    wrong = PROTOCOL.replace("read_counts", "lambda raw: {'input': 6}")
    said = run(tmp_path, wrong, "--corpus", "recorded")
    assert "1 failed" in said, said
    assert "input" in said


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("recorded", "the suite does not say in 'protocol' how recordings of 'lines' are read"),
        ("elsewhere", "the folder of --corpus has no recordings of 'lines'"),
    ],
)
def test_why_nothing_is_replayed_is_true(tmp_path: Path, folder: str, why: str) -> None:
    assert why in run(tmp_path, "None", "--corpus", folder)
