"""What came of a matrix, for scripts (JSON), for CI (JUnit) and for people (a page).

The page is one file without scripts. Everything that came from outside is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from typing import Any
from xml.etree import ElementTree

from agent_host.distributions.matrix.cells import Outcome, Status

__all__ = [
    "count_outcomes",
    "describe_outcome",
    "render_junit",
    "render_matrix_page",
    "to_document",
]

_STATUSES: tuple[Status, ...] = ("passed", "failed", "does not fit", "not tested")
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid #c9c9c9; padding: .4rem .7rem; text-align: left; vertical-align: top; }
.passed { background: #dff3e0; } .failed { background: #f9d6d5; }
.does-not-fit { background: #eee; } .not-tested { background: #fdf0cf; }
pre { overflow: auto; max-height: 20rem; background: #f6f6f6; padding: .7rem; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  body { background: #161616; color: #eee; } th, td { border-color: #555; }
  .passed { background: #17401b; } .failed { background: #5a1b1a; }
  .does-not-fit { background: #333; } .not-tested { background: #4d3f10; }
  pre { background: #222; }
}
"""


def count_outcomes(outcomes: Sequence[Outcome]) -> dict[Status, int]:
    """How many cells ended in each way."""
    return {status: sum(each.status == status for each in outcomes) for status in _STATUSES}


def to_document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """As JSON."""
    return {"counts": count_outcomes(outcomes), "cells": [_cell(each) for each in outcomes]}


def _cell(outcome: Outcome) -> dict[str, Any]:
    cell = outcome.cell
    passed, failed, skipped = outcome.counts
    fields = asdict(outcome)
    return {
        "plugin": cell.release.name,
        "version": cell.release.version,
        "python": cell.python,
        "host": cell.host,
        "contract": cell.contract,
        **{key: fields[key] for key in ("status", "reason", "notes", "seconds", "log")},
        "tests": {"passed": passed, "failed": failed, "skipped": skipped},
    }


def render_junit(outcomes: Sequence[Outcome]) -> str:
    """A case for each cell: what failed is a failure, what could not be tested an error."""
    counts = count_outcomes(outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name="matrix",
        tests=str(len(outcomes)),
        failures=str(counts["failed"]),
        errors=str(counts["not tested"]),
        skipped=str(counts["does not fit"]),
        time=f"{sum(each.seconds for each in outcomes):.1f}",
    )
    kinds = {"failed": "failure", "does not fit": "skipped", "not tested": "error"}
    for each in outcomes:
        cell = each.cell
        name = f"Python {cell.python}, host {cell.host}, contract {cell.contract}"
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{cell.release.name} {cell.release.version}",
            name=name,
            time=f"{each.seconds:.1f}",
        )
        if each.status in kinds:
            said = f"{each.status}: {each.reason}"
            ended = ElementTree.SubElement(case, kinds[each.status], message=_printable(said))
            ended.text = _printable(each.log)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without the characters that XML cannot have."""
    return "".join(
        c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else "?" for c in text
    )


def describe_outcome(outcome: Outcome) -> str:
    """In one line, without what the cell is."""
    passed, failed, skipped = outcome.counts
    words = [outcome.status + (f": {outcome.reason}" if outcome.reason else "")]
    if passed or failed:
        words.append(f"{passed} passed, {failed} failed, {skipped} skipped")
    return "; ".join([*words, *outcome.notes])


def render_matrix_page(outcomes: Sequence[Outcome]) -> str:
    """One page: a table for each plugin, Pythons down, hosts and contracts across."""
    return "\n".join(_page_lines(outcomes)) + "\n"


def _page_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    counts = ", ".join(f"{count} {status}" for status, count in count_outcomes(outcomes).items())
    yield '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>Matrix of plugins</title>\n<style>{_STYLE}</style>"
    yield f"<h1>Matrix of plugins</h1>\n<p>{counts}.</p>"
    for title in dict.fromkeys(f"{o.cell.release.name} {o.cell.release.version}" for o in outcomes):
        mine = [o for o in outcomes if f"{o.cell.release.name} {o.cell.release.version}" == title]
        yield from _table_lines(title, mine)


def _table_lines(title: str, mine: Sequence[Outcome]) -> Iterator[str]:
    columns = [*dict.fromkeys((o.cell.host, o.cell.contract) for o in mine)]
    yield f"<h2>{escape(title)}</h2>\n<table>\n<tr><th scope=col>Python</th>"
    for host, contract in columns:
        yield f"<th scope=col>host {escape(host)}<br>contract {escape(contract)}</th>"
    for python in dict.fromkeys(o.cell.python for o in mine):
        yield f"<tr><th scope=row>{escape(python)}</th>"
        for column in columns:
            for each in mine:
                if (each.cell.python, each.cell.host, each.cell.contract) == (python, *column):
                    kind = each.status.replace(" ", "-")
                    yield f'<td class="{kind}">{escape(describe_outcome(each))}</td>'
    yield "</table>"
    for each in mine:
        if each.log:
            named = f"{each.cell.title}: {each.status}"
            yield f"<details><summary>{escape(named)}</summary>"
            yield f"<pre>{escape(each.log)}</pre></details>"
