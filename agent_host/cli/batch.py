"""``agent-host batch``: many prompts from a file, and results that can be gone on with."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from agent_host.cli.batch_display import BatchDisplay, describe_waiting
from agent_host.cli.event_lines import EventLines, interruption_error
from agent_host.cli.options import (
    cassette_options,
    check_exclusive,
    config_option,
    offer_options,
    parse_settings,
    request_options,
)
from agent_host.cli.render import print_wrapped
from agent_host.cli.schemas import parse_schema
from agent_host.cli.screen import quiet_logs
from agent_host.cli.signals import Interruptions, end_on_signals, exit_code_of

if TYPE_CHECKING:
    from agent_host.application import AgentApplication
    from agent_host.batch import Batch, BatchResult

__all__ = ["batch", "open_application"]

_STANDARD = "-"


@click.command(
    epilog="\b\nExamples:\n"
    "  agent-host batch prompts.jsonl --out results.jsonl\n"
    "  agent-host batch prompts.jsonl --out results.jsonl --concurrency 8\n"
    '  echo \'{"prompt": "Hello"}\' | agent-host batch - --no-tools\n'
    "  agent-host batch prompts.jsonl --out results.jsonl --retry-failed --json\n"
    "  agent-host batch s3://bucket/prompts/ --out s3://bucket/results.parquet --engine ray\n"
    "\n\nThe same command again goes on where the last one ended, however it ended. A line is an "
    "object with prompt or messages, and if need be id, agent, provider, model, system, settings, "
    "use_tools, output_schema and metadata; what it does not say the options do. Calls that need "
    "an approval are denied, unless --yes is given. It exits with 1 if a line has failed, and with "
    "3 if only answers are not whole, or wait. With --engine provider lines go into batches of "
    "their providers, which take their time and cost less; --engine-set wait=false submits them "
    "and ends, --engine-set cancel=true ends what was submitted."
)
@click.argument("file", metavar="FILE|-")
@config_option
@request_options
@offer_options
@click.option("-o", "--out", default=_STANDARD, show_default=True, metavar="FILE|-",
              help="The file of results, or standard output; with an engine that writes there, a "
              "folder, a Parquet file or a URL.")  # fmt: skip
@click.option("--system", metavar="TEXT", help="The system prompt.")
@click.option("--schema", metavar="FILE|FIELDS", help="Have the answers in this form, as JSON.")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N",
              help="How many lines are answered at a time; 16 by default.")  # fmt: skip
@click.option("--ordered", is_flag=True, help="Results in the order of the lines.")
@click.option("--strict", is_flag=True, help="Do not begin if a line is wrong.")
@click.option("--fresh", is_flag=True, help="Begin anew: what is in --out is removed.")
@click.option("--retry-failed", is_flag=True, help="Ask again what has failed.")
@click.option("--engine", default="local", show_default=True, metavar="NAME",
              help="What answers the lines.")  # fmt: skip
@click.option("--engine-set", "engine_options", multiple=True, callback=parse_settings,
              metavar="KEY=VALUE", help="A setting of the engine; VALUE may be JSON.")  # fmt: skip
@cassette_options
@click.option("--yes", is_flag=True, help="Allow every call that would be asked about.")
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON, one a line.")
def batch(
    file: str,
    config_file: Path | None,
    out: str,
    schema: str | None,
    yes: bool,
    as_json: bool,
    record: Path | None,
    replay: Path | None,
    **options: Any,
) -> int:
    """Answer each line of FILE, and write a result for each."""
    is_piped = out == _STANDARD
    check_exclusive({"--json": as_json, "--out -": is_piped})
    check_exclusive({"--fresh": options["fresh"], "--retry-failed": options["retry_failed"]})
    if schema is not None:
        options["output_schema"] = parse_schema(schema)
    options["out"] = None if is_piped else out
    quiet_logs()
    source: str | BinaryIO = sys.stdin.buffer if file == _STANDARD else file
    approve = (lambda approval: "once") if yes else None
    interruptions = Interruptions()
    with open_application(config_file, approve=approve, record=record, replay=replay) as app:
        made = app.batch(source, **options)
        show = _EventOutput(interruptions) if as_json else BatchDisplay(prints_results=is_piped)

        def tell() -> None:
            _tell_of_interruption(made, show)

        try:
            with end_on_signals(interruptions, tell), closing(made), show:
                show.begin(made)
                made.progress.watch = show.show_waiting
                for result in made:
                    show.add(result)
                show.end(made)
        except KeyboardInterrupt as interruption:
            tell()
            return exit_code_of(interruption)
    progress = made.progress
    return 1 if progress.failed else 3 if progress.not_whole or progress.submitted else 0


def open_application(config_file: Path | None, **options: Any) -> AgentApplication:
    """An application for many runs, which are stored only where the config wants that.

    It does if it names a store, or has a budget that counts more than one run.
    """
    from agent_host.agent.limits import Limits
    from agent_host.application import AgentApplication
    from agent_host.config import load_config

    config = load_config(config_file)
    counts = Limits.of(config.values.get("tools", {})).needs_store is not None
    return AgentApplication(config, store=True if counts else None, **options)


def _tell_of_interruption(made: Batch, show: BatchDisplay | _EventOutput) -> None:
    progress = made.progress
    total = "" if progress.total is None else f" of {progress.total}"
    message = f"interrupted: {progress.done}{total} lines are done"
    hint = f"the same command goes on; what is done is in {made.file}" if made.file else ""
    if progress.submitted:
        hint = f"{hint}. {describe_waiting(progress)}"
    if isinstance(show, _EventOutput):
        show.lines.end({**interruption_error(message), "hint": hint})
    print_wrapped(f"{message}; {hint}" if hint else message)


class _EventOutput:
    """Prints events: ``batch_started``, ``batch_result`` for each line, ``done``.

    ``batch_waiting`` comes between them, when what waits at a provider has changed.
    """

    def __init__(self, interruptions: Interruptions) -> None:
        self.lines = EventLines(interruptions)
        self._batch: Batch | None = None
        self._has_begun = False
        #: How many warnings were printed.
        self._warned = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def begin(self, made: Batch) -> None:
        self._batch = made

    def add(self, result: BatchResult) -> None:
        assert self._batch is not None
        self._start(self._batch)
        self._warn(self._batch)
        progress = self._batch.progress.to_dict()
        self.lines.print({"type": "batch_result", "result": result, "progress": progress})

    def show_waiting(self) -> None:
        assert self._batch is not None
        self._start(self._batch)
        self.lines.print({"type": "batch_waiting", "progress": self._batch.progress.to_dict()})

    def end(self, made: Batch) -> None:
        self._start(made)
        self._warn(made)
        self.lines.print({"type": "done", "progress": made.progress.to_dict()})

    def _start(self, made: Batch) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._warn(made)
            event = {"type": "batch_started", "progress": made.progress.to_dict()}
            self.lines.print(event)

    def _warn(self, made: Batch) -> None:
        for warning in made.warnings[self._warned :]:
            self._warned += 1
            self.lines.print({"type": "warning", "message": warning, "plugin": None})
