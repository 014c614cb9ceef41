"""The report as one page that people read: Markdown, so that any forge and any editor shows it.

Owns the words and the tables. What is in them is `report`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["page_of"]

_SLOWEST = 5
_WORDS = {"passed": "passed", "failed": "**failed**", "skipped": "skipped"}
_NEXT = {"": "bronze", "bronze": "silver", "silver": "gold"}


def page_of(report: Mapping[str, Any]) -> str:
    """The page of a report as `ConformanceReport.to_dict` gives it."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{count} {status}" for status, count in report["counts"].items())
    yield "# Conformance"
    yield ""
    yield f"agent-host-testing {report['kit']}: {counts}, in {report['seconds']:.0f} s."
    if not report["suites"]:
        yield ""
        yield "No conformance suite was run."
    for name, suite in report["suites"].items():
        yield from _suite(name, suite)


def _suite(name: str, suite: Mapping[str, Any]) -> Iterator[str]:
    tier = suite["tier"]
    yield ""
    yield f"## {suite['role']} `{suite['plugin']}`"
    yield ""
    yield f"`{name}`, {suite['seconds']:.1f} s. Tier: **{tier['reached'] or 'none yet'}**."
    following = _NEXT[tier["reached"]]
    for title, sentences in (
        (f"For {following} it lacks", tier["missing"]),
        ("Not known here", tier["unknown"]),
    ):
        if sentences:
            yield ""
            yield f"{title}:"
            yield ""
            yield from (f"- {_plain(sentence)}" for sentence in sentences)
    if suite["claims"]:
        yield ""
        for words, wanted in (("It claims", True), ("It does not claim", False)):
            told = [f"`{tag}`" for tag, held in suite["claims"].items() if held is wanted]
            if told:
                yield f"{words} {', '.join(told)}."
    yield ""
    yield "| capability | outcome | checks | seconds |"
    yield "|---|---|---|---|"
    for capability, outcome in suite["capabilities"].items():
        checks = [each for each in suite["checks"] if each["capability"] == capability]
        seconds = sum(each["seconds"] for each in checks)
        yield f"| {capability} | {_WORDS.get(outcome, outcome)} | {len(checks)} | {seconds:.1f} |"
    yield from _failures(suite)
    slowest = sorted(suite["checks"], key=lambda each: -each["seconds"])[:_SLOWEST]
    told = [f"{_called(each)} {each['seconds']:.1f} s" for each in slowest]
    yield ""
    yield f"Slowest: {', '.join(told)}."


def _failures(suite: Mapping[str, Any]) -> Iterator[str]:
    failed = [each for each in suite["checks"] if each["status"] == "failed"]
    for each in failed:
        yield ""
        yield f"### {_called(each)}"
        yield ""
        yield f"{each['sentence']} ({each['where']})"
        yield ""
        yield "```text"
        yield from (line.replace("```", "'''") for line in each["reason"].splitlines())
        yield "```"


def _called(check: Mapping[str, Any]) -> str:
    name = str(check["check"]).removeprefix("test_").replace("_", " ")
    return f"{name} [{check['case']}]" if check["case"] else name


def _plain(text: str) -> str:
    return text.replace("|", "\\|")
