"""What a call would change, as its tool says before anybody is asked: a difference for each file.

The tool gives texts before and after; the differences are made here, so that no tool can show
another change than the one it describes. Whatever goes wrong becomes a reason for having no
preview, which is told with the question. It must not know how a question looks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast, get_args

from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Context
from agent_hookspecs.values import dataclass
from agent_host.plugins.implementation import log_failure
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.plugins.stack import PreparedTool

__all__ = ["NO_PREVIEW", "Preview", "ShownChange", "make_preview", "read_preview"]

log = get_logger(__name__)

#: How long a tool may take to say what a call would change.
_SECONDS: Final = 5.0
#: How many files, and how many characters of a text before or after, are compared.
_MAX_CHANGES: Final = 50
_MAX_TEXT: Final = 1_000_000
#: How many lines are compared one by one; finding the smallest difference takes the square of it.
_MAX_LINES: Final = 400
_CONTEXT: Final = 3

#: What difflib calls the lines that are alike or not: a kind, and from where to where in both.
_Opcode = tuple[str, int, int, int, int]


ChangeKind = Literal["added", "updated", "deleted", "moved"]


class _Change(TypedDict):
    path: str
    change: ChangeKind
    diff: str
    added: int
    removed: int


class ShownChange(_Change, total=False):
    """What becomes of one file: ``diff`` is a unified one, ``note`` says why there is none.

    ``target`` is where a file is moved to.
    """

    target: str
    note: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The changes that a call would make, or why a tool that could say them does not."""

    changes: tuple[ShownChange, ...] = ()
    problem: str = ""

    def to_plain(self) -> dict[str, Any]:
        """The preview as an event and the store hold it; empty if there is none."""
        plain: dict[str, Any] = {"changes": [*self.changes]} if self.changes else {}
        return {**plain, "no_preview": self.problem} if self.problem else plain


NO_PREVIEW: Final = Preview()


def read_preview(plain: Mapping[str, Any]) -> Preview:
    """The preview that `Preview.to_plain` gave; what was not is left out."""
    changes = plain.get("changes")
    known = changes if isinstance(changes, Sequence) else ()
    problem = str(plain.get("no_preview") or "")
    return Preview(tuple(_read_change(each) for each in known if _is_change(each)), problem)


def _is_change(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("change") in get_args(ChangeKind)


def _read_count(plain: object) -> int:
    return plain if isinstance(plain, int) else 0


def _read_change(plain: Mapping[str, Any]) -> ShownChange:
    change: ShownChange = {
        "path": str(plain.get("path")),
        "change": plain["change"],
        "diff": str(plain.get("diff", "")),
        "added": _read_count(plain.get("added")),
        "removed": _read_count(plain.get("removed")),
    }
    if plain.get("target"):
        change["target"] = str(plain["target"])
    if plain.get("note"):
        change["note"] = str(plain["note"])
    return change


def make_preview(tool: PreparedTool, name: str, payload: Any, context: Context) -> Preview:
    """What the tool says that the call would change; it blocks for a few seconds at most."""
    if tool.implementation("preview_tool") is None:
        return NO_PREVIEW
    made: list[Preview] = []

    def work() -> None:
        made.append(_ask_tool(tool, name, payload, context))

    # A thread of its own, which keeps nobody from leaving: a tool may never come back.
    thread = threading.Thread(target=work, name=f"preview of {name}", daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return made[0] if made else Preview(problem=f"it took longer than {_SECONDS:g} s")


def _ask_tool(tool: PreparedTool, name: str, payload: Any, context: Context) -> Preview:
    try:
        with tool.lease:
            given = tool.ask(
                "preview_tool",
                tool_name=name,
                # A copy: what is shown must not be changed by looking at it.
                payload=plain_copy(payload),
                state=tool.state,
                context={**context, "config": tool.config},
            )
        return _compare_all(given or ())
    # In this thread nobody at a keyboard interrupts anything.
    except (Exception, KeyboardInterrupt) as error:
        plugin = tool.plugin.name
        return Preview(problem=log_failure(log, "preview_failed", error, tool=name, plugin=plugin))


def _compare_all(given: Sequence[Mapping[str, Any]]) -> Preview:
    changes = [_compare(each) for each in given[:_MAX_CHANGES]]
    left = len(given) - len(changes)
    problem = f"{left} more files than can be compared" if left else ""
    return Preview(tuple(changes), problem)


def _compare(given: Mapping[str, Any]) -> ShownChange:
    path, before, after = given["path"], given.get("before"), given.get("after")
    for text in (before, after):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"a text of {path!r} is {type(text).__name__}")
    change: ShownChange = {
        "path": str(path),
        "change": _kind_of(given),
        "diff": "",
        "added": 0,
        "removed": 0,
    }
    sizes = [len(text or "") for text in (before, after)]
    if given.get("target"):
        change["target"] = str(given["target"])
    if given.get("note"):
        change["note"] = str(given["note"])
    elif max(sizes) > _MAX_TEXT:
        change["note"] = f"too long to compare: {sizes[0]} characters before, {sizes[1]} after"
    else:
        lines = [*_difference(_lines_of(before), _lines_of(after))]
        change["diff"] = "\n".join(lines)
        change["added"] = sum(line.startswith("+") for line in lines)
        change["removed"] = sum(line.startswith("-") for line in lines)
    return change


def _kind_of(given: Mapping[str, Any]) -> ChangeKind:
    if given.get("target"):
        return "moved"
    if given.get("change") in get_args(ChangeKind):
        return cast(ChangeKind, given["change"])
    if given.get("before") is None:
        return "added"
    return "deleted" if given.get("after") is None else "updated"


def _lines_of(text: str | None) -> list[str]:
    """The lines; the last one says so if it is not ended, as in any unified difference."""
    if not text:
        return []
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ no line break at the end"] if last else lines


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """A unified difference, without the lines that name the files."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    if head == len(old) == len(new):
        return
    start = max(head - _CONTEXT, 0)
    end = max(tail - _CONTEXT, 0)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    groups: Iterable[Sequence[_Opcode]]
    if max(len(old), len(new)) > _MAX_LINES:
        # Not the smallest difference, but all of it lies within.
        one, two, three = head - start, len(old) - tail + end, len(new) - tail + end
        groups = [
            [
                ("equal", 0, one, 0, one),
                ("replace", one, two, one, three),
                ("equal", two, len(old), three, len(new)),
            ]
        ]
    else:
        import difflib

        groups = difflib.SequenceMatcher(None, old, new, False).get_grouped_opcodes(_CONTEXT)
    for group in groups:
        yield from _hunk(old, new, start, group)


def _hunk(
    old: Sequence[str], new: Sequence[str], start: int, group: Sequence[_Opcode]
) -> Iterator[str]:
    (_, one, _, three, _), (_, _, two, _, four) = group[0], group[-1]
    yield f"@@ -{start + one + 1},{two - one} +{start + three + 1},{four - three} @@"
    for kind, one, two, three, four in group:
        if kind == "equal":
            yield from (f" {line}" for line in old[one:two])
        else:
            yield from (f"-{line}" for line in old[one:two])
            yield from (f"+{line}" for line in new[three:four])
