"""What a person is shown of a call before it may run, and which words answer the question.

Pure: it makes rows for a screen of a given width, and prints and asks nothing, so that every front
end shows the same. What comes first is the host's to say, never the model's: the tool and what it
does, where, short arguments, the changes, and long texts last. What does not fit is folded, and how
much that is is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_hookspecs.values import dataclass
from agent_host.cli.outside import show_exactly
from agent_host.cli.render import text_width

if TYPE_CHECKING:
    from agent_hookspecs.roles import Effect
    from agent_hookspecs.store.values import Question
    from agent_host.agent.policy import Approval
    from agent_host.agent.preview import Preview, ShownChange

__all__ = [
    "QUIET_SECONDS",
    "WORDS",
    "Row",
    "Rows",
    "Word",
    "approval_rows",
    "question_rows",
    "read_word",
]

#: What is typed in this time after a question is drawn was not meant for it, and does not count.
QUIET_SECONDS: Final = 0.5

#: What a row is, by which a front end may style it.
RowKind = Literal["title", "target", "value", "text", "added", "removed", "place", "note"]

#: What a person may say: an answer to the call, or that they want to see all of it, or edit it.
Word = Literal["once", "session", "folder", "always", "deny", "edit", "view"]

#: How each word may be written, the shortest first.
WORDS: Final[Mapping[Word, tuple[str, ...]]] = {
    "once": ("y", "yes"),
    "deny": ("n", "no"),
    "session": ("s", "session"),
    "folder": ("f", "folder"),
    "always": ("a", "always", "anywhere", "everywhere"),
    "edit": ("e", "edit"),
    "view": ("v", "view", "all"),
}
_MEANINGS: Final = {text: word for word, texts in WORDS.items() for text in texts}

_WANTS: Final[Mapping[Effect, str]] = {
    "read": "read something",
    "write": "write something",
    "execute": "run something",
    "network": "use the network",
}

#: Arguments under these names, in this order, are what a call is about.
_TARGETS: Final = (
    *("command", "cmd", "argv", "args", "program", "executable", "script", "code", "sql"),
    *("url", "uri", "href", "endpoint", "host", "address", "recipient", "to"),
    *("path", "paths", "file", "files", "filename", "file_name", "file_path", "filepath"),
    *("folder", "directory", "dir", "cwd", "root", "source", "src", "from"),
    *("target", "destination", "dest", "dst", "method", "query", "table", "name"),
)

_SIGNS: Final = {"added": "A", "updated": "M", "deleted": "D", "moved": "R"}

#: A question fits most screens without being scrolled.
_ROOM: Final = 20
#: How many rows what the call is about may take: the first, which may be a command, and the others.
_FIRST_ROWS: Final = 8
_TARGET_ROWS: Final = 3
#: How many of them there are, and how many short arguments, before the rest is folded.
_TARGET_COUNT: Final = 4
_SHORT_COUNT: Final = 6
_LONG_COUNT: Final = 4
#: Whatever else there is, of a long text or a difference so much is shown.
_LEAST_ROWS: Final = 3
#: A value is short if it has no line break and as many columns at most.
_SHORT_WIDTH: Final = 60
#: Names of arguments are cut behind this.
_LABEL_WIDTH: Final = 40
#: Behind the gutter. A narrower screen than this folds badly whatever we do.
_INDENT: Final = "  "
_NARROWEST: Final = 16


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the screen, clean and no wider than was asked for."""

    kind: RowKind
    text: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a question; ``is_folded`` says that there is more to see."""

    rows: list[Row]
    is_folded: bool


def read_word(typed: str) -> Word | None:
    """What was typed as a word, however it is written; nothing at all is a no."""
    return _MEANINGS.get(typed.strip().casefold()) if typed.strip() else "deny"


def approval_rows(approval: Approval, width: int, room: int | None = _ROOM) -> Rows:
    """The rows of a question on a screen of ``width`` columns; all there are if ``room`` is None.

    ``width`` is what there is beside the gutter.
    """
    page = _Page(max(width, _NARROWEST), room)
    use = approval.use
    owner = "of this program" if use.own else use.owner
    # What was stored may have come from elsewhere.
    wants = _WANTS.get(use.effect, "do something")
    page.add("title", f"{use.name} ({owner}) wants to {wants}:", rows=_TARGET_ROWS)
    if approval.note:
        page.add("note", approval.note, rows=_TARGET_ROWS)
    targets, short, long = _sort_arguments(use.payload, approval.parameters)
    for number, (label, value) in enumerate(targets):
        page.add("target", value, label, rows=_TARGET_ROWS if number else _FIRST_ROWS)
    _add_changes(page, approval.preview)
    page.add_values("value", short, _SHORT_COUNT)
    if _add_differences(page, approval.preview):
        # They are in what the tool says will change.
        page.add_values("text", long, 0)
    else:
        page.add_values("text", long, _LONG_COUNT)
    return Rows(page.rows, page.is_folded)


def question_rows(question: Question, width: int) -> list[Row]:
    """The rows of what a tool wants to know of a person."""
    # Nobody can ask for the rest, for every word is an answer; so there is more room.
    page = _Page(max(width, _NARROWEST), 5 * _ROOM, view="")
    shown = question.shown
    page.add("title", f"{shown['name']} asks:", rows=_TARGET_ROWS)
    page.add("target", shown["question"], rows=page.share(_FIRST_ROWS))
    if shown.get("choices"):
        page.add("value", ", ".join(shown["choices"]), "one of", rows=_FIRST_ROWS)
    targets, short, long = _sort_arguments(shown["payload"], ())
    page.add_values("text", [*targets, *short, *long], _SHORT_COUNT)
    return page.rows


class _Page:
    """Rows as they are added, each text cut to what room there is for it."""

    def __init__(self, width: int, room: int | None, view: str = "; v shows all") -> None:
        self._width = width
        self._room = room
        self._view = view
        self.rows: list[Row] = []
        self.is_folded = False

    def share(self, others: int = 0) -> int:
        """How many rows a long text may take if there are ``others`` of its kind behind it."""
        left = (self._room or 0) - len(self.rows) - others * (_LEAST_ROWS + 2)
        return max(left, _LEAST_ROWS)

    def add_values(self, kind: RowKind, values: _Named, count: int) -> None:
        """Add arguments, the first ``count`` of them if there is little room."""
        shown = values[:count] if self._room is not None else values
        for number, (label, value) in enumerate(shown, 1):
            self.add(kind, value, label, rows=self.share(len(shown) - number))
        if left := values[len(shown) :]:
            size = sum(len(label) + len(value) for label, value in left)
            names = show_exactly(", ".join(label or "the text" for label, _ in left))
            note = f"… {len(left):,} more ({_cut_text(names)}), {size:,} characters{self._view}"
            self.rows += [Row("note", row) for row in _cut_rows(note, self._width, _INDENT)]
            self.is_folded = True

    def add(self, kind: RowKind, text: str, label: str = "", *, rows: int) -> None:
        """Add a text behind its label; one of several lines, or a long one, stands below it."""
        lead = "" if kind == "title" else _INDENT
        if label:
            shown = show_exactly(label)
            if self._room is not None and len(shown) > _LABEL_WIDTH:
                shown, self.is_folded = _cut_text(shown), True
            if "\n" not in text and text_width(f"{lead}{shown}: {text}") <= self._width:
                text = f"{shown}: {text}"
            else:
                self.rows += [Row(kind, row) for row in _cut_rows(f"{shown}:", self._width, lead)]
                lead += _INDENT
        self.add_lines(((kind, line) for line in text.split("\n")), len(text), lead, rows=rows)

    def add_lines(
        self, lines: Iterable[tuple[RowKind, str]], size: int, lead: str, *, rows: int
    ) -> None:
        """Add lines, of ``size`` characters altogether; the last of what is folded is shown too."""
        made = [
            Row(kind, row)
            for kind, line in lines
            for row in _cut_rows(show_exactly(line.expandtabs(4)), self._width, lead)
        ]
        hidden = len(made) - rows
        # One row is as soon shown as told of.
        if self._room is None or hidden <= 1:
            self.rows += made
            return
        last = made[-1:] if made[-1].kind == "target" else []
        self.rows += made[: rows - len(last)]
        note = f"… {hidden:,} more rows, {size:,} characters{self._view}"
        self.rows += [Row("note", row) for row in _cut_rows(note, self._width, lead)]
        self.rows += last
        self.is_folded = True


def _cut_rows(text: str, width: int, lead: str) -> Iterator[str]:
    """Clean text as rows that fit behind ``lead``, cut between characters."""
    width -= len(lead)
    if text.isascii():
        yield from (lead + text[at : at + width] for at in range(0, max(len(text), 1), width))
        return
    start, used = 0, 0
    for at, c in enumerate(text):
        columns = text_width(c)
        if used + columns > width:
            yield lead + text[start:at]
            start, used = at, 0
        used += columns
    yield lead + text[start:]


def _cut_text(text: str) -> str:
    return text if len(text) <= _LABEL_WIDTH else f"{text[:_LABEL_WIDTH]}…"


#: Arguments as texts behind their names.
_Named = list[tuple[str, str]]


def _sort_arguments(payload: Any, parameters: Sequence[str]) -> tuple[_Named, _Named, _Named]:
    """What the call is about, short arguments, and long ones, in an order no model has a say in."""
    if not isinstance(payload, Mapping):
        return [], [], [("", payload if isinstance(payload, str) else _json(payload))]
    places = {name: at for at, name in enumerate(parameters)}
    # First as the tool declares them; what it does not declare comes last, by name.
    names = sorted(payload, key=lambda name: (places.get(name, len(places)), str(name)))
    targets: _Named = []
    short: _Named = []
    long: _Named = []
    for name in sorted(names, key=_target_place):
        value = payload[name]
        text = value if isinstance(value, str) else _json(value)
        is_target = _target_place(name) < len(_TARGETS) and len(targets) < _TARGET_COUNT
        is_short = "\n" not in text and text_width(text) <= _SHORT_WIDTH
        (targets if is_target else short if is_short else long).append((str(name), text))
    return targets, short, long


def _target_place(name: object) -> int:
    folded = str(name).casefold().replace("-", "_")
    return _TARGETS.index(folded) if folded in _TARGETS else len(_TARGETS)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _add_changes(page: _Page, preview: Preview) -> None:
    """Say which files would change; and if the tool cannot say so, why."""
    lines: list[tuple[RowKind, str]] = [
        ("target", f"{_SIGNS[each['change']]} {_describe_change(each)}") for each in preview.changes
    ]
    size = sum(len(line) for _, line in lines)
    if lines:
        page.add_lines(lines, size, _INDENT, rows=2 * _TARGET_ROWS)
    if preview.problem:
        page.add("note", f"no preview: {preview.problem}", rows=_TARGET_ROWS)


def _describe_change(change: ShownChange) -> str:
    target = f" -> {change['target']}" if "target" in change else ""
    counts = change.get("note") or f"+{change['added']} -{change['removed']}"
    return f"{change['path']}{target} ({counts})"


def _add_differences(page: _Page, preview: Preview) -> bool:
    """Add what would change, and say whether anything could be added."""
    lines: list[tuple[RowKind, str]] = []
    several = len(preview.changes) > 1
    for change in preview.changes:
        if change["diff"]:
            lines += [("place", f"--- {change['path']}")] if several else []
            lines += [(_diff_kind(line), line) for line in change["diff"].split("\n")]
    if lines:
        size = sum(len(line) for _, line in lines)
        page.add_lines(lines, size, _INDENT, rows=page.share())
    return bool(lines)


def _diff_kind(line: str) -> RowKind:
    kinds: dict[str, RowKind] = {"+": "added", "-": "removed", "@": "place", "\\": "place"}
    return kinds.get(line[:1], "text")
