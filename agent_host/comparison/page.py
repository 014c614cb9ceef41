"""A comparison as one page without scripts: the answers of all targets to a case side by side.

Words in which an answer differs from the first one in its row are marked. Whatever models have said
is shown as text, and nothing of it is obeyed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from agent_host.comparison.compare import CheckedAnswer
from agent_host.comparison.reports import plain_text

__all__ = ["render_page"]

_WORDS: Final = re.compile(r"\s+|[^\s]+")
#: Comparing longer ones takes too long for what it shows.
_MAX_WORDS: Final = 4000
_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem; } table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { border: 1px solid #8886; padding: .5rem; text-align: left; vertical-align: top; }
th:first-child { width: 10rem; } pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
ul { margin: .5rem 0 0; padding: 0; list-style: none; } mark { background: #fd08; color: inherit; }
.passed { color: #186a2f; } .failed { color: #b3261e; }
@media (prefers-color-scheme: dark) { .passed { color: #7fd89a; } .failed { color: #ff8a80; } }
"""


def render_page(answers: Sequence[CheckedAnswer]) -> str:
    """The page."""
    return "\n".join(_lines(answers)) + "\n"


def _lines(answers: Sequence[CheckedAnswer]) -> Iterator[str]:
    columns = [*dict.fromkeys(answer.column for answer in answers)]
    passed = sum(answer.passed for answer in answers)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8"><title>Comparison</title>'
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    yield f"<style>{_STYLE}</style></head><body>"
    yield f"<h1>Comparison</h1><p>{passed} of {len(answers)} answers pass.</p>"
    yield "<table><thead><tr><th>case</th>"
    yield from (f"<th>{_escape(column)}</th>" for column in columns)
    yield "</tr></thead><tbody>"
    rows = dict.fromkeys((answer.case, answer.repetition) for answer in answers)
    repeats = max((answer.repetition for answer in answers), default=1) > 1
    for case, repetition in rows:
        name = f"{case} #{repetition}" if repeats else case
        yield f"<tr><th>{_escape(name)}</th>"
        row = {a.column: a for a in answers if (a.case, a.repetition) == (case, repetition)}
        first = _words_of(row[columns[0]])
        yield from (_cell(row[column], first) for column in columns)
        yield "</tr>"
    yield "</tbody></table></body></html>"


def _cell(answer: CheckedAnswer, first: str) -> str:
    result = answer.result
    word = "passed" if answer.passed else "failed"
    finish = result.get("finish") or "stop"
    # An answer that is not whole may pass: what was asked of it may be there.
    ended = "" if finish == "stop" else f" ({_escape(finish)})"
    parts = [f'<td><strong class="{word}">{word}</strong>{ended}']
    if result["status"] == "failed":
        error = result["error"]
        parts.append(f"<pre>{_escape(str(error['type']))}: {_escape(str(error['message']))}</pre>")
    else:
        parts.append(f"<pre>{_mark_differences(first, _words_of(answer))}</pre>")
    if answer.findings:
        parts.append("<ul>")
        for each in answer.findings:
            mark, kind = ("✓", "passed") if each.passed else ("✗", "failed")
            reason = f": {_escape(each.reason)}" if each.reason else ""
            parts.append(f'<li class="{kind}">{mark} {_escape(each.check)}{reason}</li>')
        parts.append("</ul>")
    return "".join([*parts, "</td>"])


def _words_of(answer: CheckedAnswer) -> str:
    """What a model said, be it in place of an answer."""
    return str(answer.result.get("text") or answer.result.get("refusal") or "")


def _mark_differences(first: str, text: str) -> str:
    ours, theirs = _WORDS.findall(text), _WORDS.findall(first)
    if text == first or max(len(ours), len(theirs)) > _MAX_WORDS:
        return _escape(text)
    matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
    shown = []
    for kind, _, _, begin, end in matcher.get_opcodes():
        words = _escape("".join(ours[begin:end]))
        shown.append(words if kind == "equal" or not words.strip() else f"<mark>{words}</mark>")
    return "".join(shown)


def _escape(text: str) -> str:
    return escape(plain_text(text))
