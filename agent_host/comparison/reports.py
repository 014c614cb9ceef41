"""What came of a comparison: as JSON for programs, and as JUnit for CI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

from agent_host.comparison.compare import CheckedAnswer

__all__ = ["junit_report", "make_report", "plain_text"]

#: What documents have no place for, such as what a terminal obeys.
_NO_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def make_report(answers: Sequence[CheckedAnswer]) -> dict[str, Any]:
    """The whole comparison as JSON."""
    columns = dict.fromkeys(answer.column for answer in answers)
    return {
        "passed": all(answer.passed for answer in answers),
        "targets": {
            column: _summary([answer for answer in answers if answer.column == column])
            for column in columns
        },
        "answers": [
            {
                "case": answer.case,
                "target": answer.target,
                "variant": answer.variant,
                "repetition": answer.repetition,
                "passed": answer.passed,
                "checks": [
                    {"check": each.check, "passed": each.passed, "reason": each.reason}
                    for each in answer.findings
                ],
                **{
                    key: value
                    for key, value in answer.result.items()
                    if key not in ("id", "line", "input", "settings", "metadata")
                },
            }
            for answer in answers
        ],
    }


def _summary(answers: Sequence[CheckedAnswer]) -> dict[str, Any]:
    costs = [answer.result.get("cost") for answer in answers]
    known = [Decimal(cost) for cost in costs if cost is not None]
    return {
        "answers": len(answers),
        "passed": sum(answer.passed for answer in answers),
        "failed": sum(answer.result["status"] == "failed" for answer in answers),
        "cost": str(sum(known, Decimal(0))) if len(known) == len(answers) else None,
    }


def junit_report(answers: Sequence[CheckedAnswer]) -> bytes:
    """The comparison as CI reads tests: a suite for each target, a test for each case."""
    root = ElementTree.Element("testsuites", name="agent-host compare")
    for column in dict.fromkeys(answer.column for answer in answers):
        own = [answer for answer in answers if answer.column == column]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=plain_text(column),
            tests=str(len(own)),
            failures=str(sum(a.result["status"] == "succeeded" and not a.passed for a in own)),
            errors=str(sum(a.result["status"] == "failed" for a in own)),
        )
        repeats = max(answer.repetition for answer in own) > 1
        for answer in own:
            name = f"{answer.case} #{answer.repetition}" if repeats else answer.case
            test = ElementTree.SubElement(
                suite, "testcase", classname=plain_text(column), name=plain_text(name)
            )
            _add_outcome(test, answer)
    ElementTree.indent(root)
    made: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _add_outcome(test: ElementTree.Element, answer: CheckedAnswer) -> None:
    result = answer.result
    if result["status"] == "failed":
        error = result["error"]
        said = plain_text(str(error["message"]))
        ElementTree.SubElement(test, "error", type=plain_text(str(error["type"])), message=said)
        return
    faults = [each for each in answer.findings if not each.passed]
    if faults:
        message = "; ".join(f"{each.check}: {each.reason}" for each in faults)
        failure = ElementTree.SubElement(test, "failure", type="check", message=plain_text(message))
        failure.text = plain_text(result.get("text", ""))


def plain_text(text: str) -> str:
    """The text without characters that no document may have."""
    return _NO_TEXT.sub("\ufffd", text)
