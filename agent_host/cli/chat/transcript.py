"""The events of a run as they are read: blocks that stay, and a few lines about what goes on.

A block is printed once, when it is complete. What is not complete is in `live_lines`, which may be
asked for from another thread at any time. It must not know what a terminal is, nor how a run works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_hookspecs.values import dataclass
from agent_host.cli.blocks import Block, BlockSplitter
from agent_host.cli.outside import clean_lines, clean_text
from agent_host.cli.paper import draw, draw_block, draw_diff, make_text
from agent_host.cli.screen import describe_end, format_warning, summarize
from agent_host.cli.usage import UsageLine

if TYPE_CHECKING:
    from agent_hookspecs.events import Event, ToolResultEvent
    from agent_host.cli.chat.folds import Folds

__all__ = ["Transcript"]

#: How many lines of each are shown before the rest is folded.
_MESSAGE_LINES = 12
_REASONING_LINES = 3
_RESULT_LINES = 4
_DIFF_LINES = 30
#: How many lines of what is being said are shown before it is printed for good.
_TAIL_LINES = 6

#: Stands before every line that others say; what begins further left is the host's own.
_MARGIN = "  "

#: A line with its style, for whoever shows what goes on.
Line = tuple[str, str]


@dataclass(slots=True)
class _Call:
    """A tool at work."""

    name: str
    payload: Any
    began: float
    update: str = ""


class Transcript:
    """Prints a run through ``write``, which is given text with colours that ends its line.

    ``warned`` has the warnings of earlier runs, which need not be said again.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        width: Callable[[], int],
        folds: Folds,
        warned: set[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._width = width
        self._folds = folds
        self._warned = warned
        self._clock = clock
        self._splitter = BlockSplitter()
        self._reasoning: list[str] = []
        self._calls: dict[str, _Call] = {}
        #: The calls whose changes were shown with a question, and need not be shown again.
        self._compared: set[str] = set()
        self._began = clock()
        self._shown: list[str] = []
        self._refusal = ""
        self._activity = "waiting"
        self._needs_gap = True
        self.usage = UsageLine(clock)

    def show(self, event: Event) -> None:
        """Take the next event of the run."""
        self.usage.add_event(event)
        match event["type"]:
            case "request_started":
                self._activity, self._shown = "waiting", []
            case "reasoning":
                self._activity = "thinking"
                self._reasoning.append(event["text"])
            case "partial":
                text = event["message"].get("content")
                if isinstance(text, str) and text:
                    self._end_reasoning()
                    self._activity = "answering"
                    self._shown.append(text)
                    self._print_blocks(self._splitter.add_text(text))
            case "tool_call_started":
                self._end_text()
                self._activity = f"calling {clean_text(event['name'] or 'a tool')}"
            case "tool_started":
                self._end_text()
                call = _Call(event["name"], event["payload"], self._clock())
                self._calls[event["id"]] = call
            case "tool_update":
                if event["id"] in self._calls:
                    self._calls[event["id"]].update = summarize(event["update"])
            case "tool_result":
                self._show_result(event)
            case "warning":
                text = format_warning(event)
                if text not in self._warned:
                    self._warned.add(text)
                    self._end_text()
                    self._print_line(text, "yellow")
            case "final":
                said = [message["metadata"].get("refusal") for message in event["messages"]]
                self._refusal = str(said[-1] or "") if said else ""
                self._show_final("".join(message["content"] for message in event["messages"]))
            case "approval_required":
                self._end_text()
                if event.get("changes"):
                    self._compared.add(event["id"])
            case "turn_end" | "error":
                self._end_text()
            case "done":
                self._end_text()
                if event["finish"] != "stop":
                    self._print_line(clean_lines(describe_end(event, self._refusal)), "yellow")

    def end(self, *, stopped: bool = False) -> None:
        """The run is over: print what is left of it, and what it has cost."""
        self._end_text()
        for call in self._calls.values():
            self._print_call(call, "stopped", "yellow")
        self._calls.clear()
        if stopped:
            self._print_line("stopped; the session can be gone on with", "yellow")
        if text := self.usage.describe():
            self._needs_gap = False
            self._print_line(text, "dim")
        self._needs_gap = True

    def print_message(self, text: str, attachments: Sequence[str]) -> None:
        """Print what the person has said, and what goes with it."""
        width = self._width()
        lines, rest = self._folds.fold(text, _MESSAGE_LINES)
        drawn = _indent(draw(make_text(("\n".join(lines), "bold")), width - len(_MARGIN)))
        self._write(f"\n› {drawn.removeprefix(_MARGIN)}")
        if rest:
            self._write(draw(make_text((f"{_MARGIN}{rest}", "dim")), width))
        for each in attachments:
            self._write(draw(make_text((f"{_MARGIN}+ {each}", "dim")), width))
        self._needs_gap = True

    # --- what goes on ----------------------------------------------------------------------------

    def live_lines(self, width: int) -> list[Line]:
        """What goes on now, in as few lines as will do."""
        now = self._clock()
        lines: list[Line] = []
        reasoning, tail = self._reasoning, self._splitter.tail
        if reasoning:
            lines += [("dim", f"┆ {line}") for line in _last_lines("".join(reasoning), width, 2)]
        elif tail:
            shown = _last_lines(tail, width, _TAIL_LINES)
            lines += [("", f"{_MARGIN}{line}") for line in shown]
        for call in [*self._calls.values()]:
            update = f": {call.update}" if call.update else ""
            text = f"{call.name} {_seconds(now - call.began)}{update}"
            lines.append(("cyan", _cut(f"● {clean_text(text)}", width)))
        return lines

    def activity(self) -> str:
        """What goes on now, in a word or two, and for how long."""
        doing = "running" if self._calls else self._activity
        return f"{doing} {_seconds(self._clock() - self._began)}"

    # --- what stays ------------------------------------------------------------------------------

    def _print_blocks(self, blocks: list[Block]) -> None:
        for block in blocks:
            drawn = draw_block(block, self._width() - len(_MARGIN))
            self._print(_indent(drawn), gap=not block.is_joined)

    def _print(self, text: str, *, gap: bool) -> None:
        # One piece, so that nobody sees a gap without what follows it.
        self._write(f"\n{text}" if gap or self._needs_gap else text)
        self._needs_gap = False

    def _print_line(self, text: str, style: str) -> None:
        self._print(draw(make_text((text, style)), self._width()), gap=False)

    def _end_reasoning(self) -> None:
        if not self._reasoning:
            return
        text, self._reasoning = "".join(self._reasoning).strip(), []
        if not text:
            return
        width = self._width()
        # Folded by what a screen shows: reasoning often comes as one long line.
        drawn = draw(make_text((text, "")), width - 2).rstrip("\n")
        lines, rest = self._folds.fold(drawn, _REASONING_LINES)
        body = "\n".join(f"┆ {line}" for line in (*lines, *([rest] if rest else ())))
        self._print(draw(make_text((body, "dim")), width), gap=True)
        self._needs_gap = True

    def _end_text(self) -> None:
        self._end_reasoning()
        self._print_blocks(self._splitter.end())

    def _show_final(self, text: str) -> None:
        """Show what became of an answer that was changed when it was finished."""
        shown, self._shown = "".join(self._shown), []
        if text.strip() == shown.strip():
            self._end_text()
            return
        if not text.startswith(shown):
            self._end_text()
            note = "the answer was changed when it was finished; it is now:"
            if not text.strip():
                note = "the answer was taken back when it was finished; nothing is left of it"
            self._print_line(note, "yellow")
            shown = ""
        self._print_blocks(self._splitter.add_text(text[len(shown) :]))
        self._end_text()

    def _show_result(self, event: ToolResultEvent) -> None:
        self._end_text()
        call = self._calls.pop(event["id"], None) or _Call(event["name"], None, self._clock())
        message = event["message"]
        failed = message["metadata"].get("error")
        took = _seconds(self._clock() - call.began)
        self._print_call(call, took, "red" if failed else "cyan")
        width = self._width()
        diff = None if event["id"] in self._compared else _diff_of(message["metadata"])
        text = diff if diff is not None else message["content"].strip("\n")
        lines, rest = self._folds.fold(text, _DIFF_LINES if diff is not None else _RESULT_LINES)
        if diff is not None:
            drawn = draw_diff(lines, width - 2)
        else:
            drawn = draw(make_text(("\n".join(lines), "red" if failed else "dim")), width - 2)
        if text:
            self._write(_indent(drawn))
        if rest:
            self._write(draw(make_text((f"  {rest}", "dim")), width))
        self._needs_gap = True

    def _print_call(self, call: _Call, end: str, style: str) -> None:
        width = self._width()
        room = width - len(end) - len(call.name) - 4
        arguments = _cut(clean_text(summarize(call.payload or "")), max(room - 2, 0))
        space = " " * max(width - 3 - len(call.name) - _columns(arguments) - len(end), 1)
        parts = (("● ", style), (call.name, f"bold {style}"), (f" {arguments}", ""))
        self._print(draw(make_text(*parts, (f"{space}{end}", "dim")), width), gap=True)


def _indent(drawn: str) -> str:
    lines = drawn.rstrip("\n").split("\n")
    return "".join(f"{_MARGIN}{line}".rstrip() + "\n" for line in lines)


def _diff_of(metadata: Mapping[str, Any]) -> str | None:
    """What a tool says it has changed, if it does."""
    display = metadata.get("display")
    if isinstance(display, Mapping) and isinstance(display.get("diff"), str):
        return str(display["diff"]).rstrip("\n")
    return None


def _last_lines(text: str, width: int, count: int) -> list[str]:
    """The last lines of a text, each as wide as the screen at most, beside its margin."""
    room = max(width - len(_MARGIN) - 1, 1)
    lines: list[str] = []
    for line in clean_lines(text[-count * width * 2 :]).split("\n"):
        lines += [line[at : at + room] for at in range(0, len(line), room)] or [""]
    return lines[-count:]


def _cut(text: str, room: int) -> str:
    if _columns(text) <= room:
        return text
    text = text[: max(room - 1, 0)]
    while text and _columns(text) >= room:
        text = text[:-1]
    return f"{text}…" if room > 0 else ""


def _columns(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
