"""How far a batch is, for people: a bar on a terminal, and a line now and then elsewhere.

It goes to standard error; results that are printed go to standard output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.outside import clean_text
from agent_host.cli.paper import can_draw
from agent_host.cli.render import is_terminal, print_error, print_wrapped, style_text

if TYPE_CHECKING:
    from agent_host.batch import Batch, BatchProgress, BatchResult

__all__ = ["BatchDisplay", "describe_waiting"]

#: Between two lines where there is no bar.
_SECONDS = 5.0
#: So many failures are told one by one; the file has them all.
_FAILURES = 5
#: So many different warnings are told.
_WARNINGS = 20


class BatchDisplay:
    """Shows a batch. With ``prints_results`` results are printed as well, each a line of JSON."""

    def __init__(self, *, prints_results: bool) -> None:
        self._prints_results = prints_results
        self._batch: Batch | None = None
        self._bar: Any = None
        self._task: Any = None
        self._told = time.monotonic()
        self._failures = 0
        #: What was said already: answers to many lines say the same.
        self._said: set[str] = set()
        #: The batches of providers that were told of.
        self._submitted: set[str] = set()

    def __enter__(self) -> None:
        # Results on the same terminal would be drawn over.
        is_shared = self._prints_results and is_terminal(sys.stdout)
        if is_terminal(sys.stderr) and can_draw() and not is_shared:
            self._bar = _make_bar()
            self._bar.start()

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, made: Batch) -> None:
        """Show this batch."""
        self._batch = made
        if self._bar is not None:
            self._task = self._bar.add_task("", total=None, rest="")

    def add(self, result: BatchResult) -> None:
        """Show that a line has its result."""
        assert self._batch is not None
        self._warn([*self._batch.warnings, *result.get("warnings", ())])
        if self._prints_results:
            from agent_host.batch.results_file import encode_result

            sys.stdout.buffer.write(encode_result(result))
            sys.stdout.buffer.flush()
        if result["status"] == "failed":
            self._tell_failure(result)
        self._show_progress(self._batch.progress)

    def show_waiting(self) -> None:
        """Show that what waits in batches of providers has changed."""
        assert self._batch is not None
        self._warn(self._batch.warnings)
        for each in self._batch.progress.waiting.values():
            if each.id is not None and each.id not in self._submitted:
                self._submitted.add(each.id)
                where = f"at {each.provider} in {clean_text(each.id)}"
                self._print(f"{_count_waiting(each.lines)} {where}")
        self._show_progress(self._batch.progress)

    def _show_progress(self, progress: BatchProgress) -> None:
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=progress.done,
                total=progress.total,
                rest=describe_progress(progress),
            )
        elif time.monotonic() - self._told > _SECONDS:
            self._told = time.monotonic()
            click.echo(describe_progress(progress), err=True)

    def end(self, made: Batch) -> None:
        """Show what the batch came to."""
        self._warn(made.warnings)
        if self._bar is not None:
            self._bar.stop()
        progress = made.progress
        if self._failures > _FAILURES:
            print_wrapped(f"{self._failures - _FAILURES} more lines have failed")
        click.echo(describe_progress(progress), err=True)
        if progress.submitted:
            print_wrapped(describe_waiting(progress))
        if made.target is not None:
            print_wrapped(f"written to {made.target}; {made.file} has the same, to go on with")
        if progress.failed and not self._prints_results:
            click.echo("--retry-failed asks again what has failed", err=True)

    def _warn(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            if warning not in self._said and len(self._said) < _WARNINGS:
                self._said.add(warning)
                self._print(style_text(f"warning: {clean_text(warning)}", fg="yellow"))

    def _print(self, text: str) -> None:
        if self._bar is None:
            print_wrapped(text)
        else:
            # Above the bar; it is drawn again below.
            self._bar.console.print(click.unstyle(text), markup=False, highlight=False)

    def _tell_failure(self, result: BatchResult) -> None:
        self._failures += 1
        if self._failures > _FAILURES:
            return
        error = result["error"]
        name = f"line {result['line']}"
        message = str(error["message"])
        if not message.startswith(name):
            message = f"{name}: {message}"
        if self._bar is not None:
            self._print(f"error: {clean_text(message)}")
        else:
            print_error(message, str(error.get("hint") or ""))


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.fields[rest]}", markup=False))
    return Progress(*columns, console=Console(stderr=True), redirect_stdout=False)


def describe_progress(progress: BatchProgress) -> str:
    """How far it is, in one line."""
    total = "" if progress.total is None else f"/{progress.total:,}"
    parts = [f"{progress.done:,}{total} lines"]
    if progress.submitted:
        answered = [each.answered for each in progress.waiting.values() if each.answered]
        there = f", {sum(answered):,} answered there" if answered else ""
        parts.append(f"{progress.submitted:,} wait{there}")
    if progress.resumed:
        parts.append(f"{progress.resumed:,} from before")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.not_whole:
        parts.append(f"{progress.not_whole:,} not whole")
    if progress.done > progress.resumed:
        parts.append(f"{progress.rate:,.1f}/s")
    if progress.seconds_left:
        parts.append(f"{_duration(progress.seconds_left)} left")
    if progress.cost:
        more = "at least " if progress.unpriced else ""
        parts.append(f"{more}${progress.cost:.4f}")
    elif progress.unpriced:
        parts.append("cost unknown")
    return " · ".join(parts)


def _count_waiting(lines: int) -> str:
    return "1 line waits" if lines == 1 else f"{lines:,} lines wait"


def describe_waiting(progress: BatchProgress) -> str:
    """What waits at providers when the command ends, and what can be done about it."""
    ids = [each.id or "one that is looked for" for each in progress.waiting.values()]
    more = f" and {len(ids) - _FAILURES} more" if len(ids) > _FAILURES else ""
    return (
        f"{_count_waiting(progress.submitted)} at a provider, whatever happens here, in "
        f"{clean_text(', '.join(ids[:_FAILURES]))}{more}: the same command fetches them, and with "
        "--engine-set cancel=true ends them"
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
