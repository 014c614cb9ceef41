"""``agent-host compare``: the same cases to several models, with checks, for people and for CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_host.cli.batch import open_application
from agent_host.cli.options import cassette_options, config_option
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_error, print_heading, print_json, print_table, style_text
from agent_host.cli.screen import quiet_logs

if TYPE_CHECKING:
    from agent_host.comparison import CheckedAnswer

__all__ = ["compare"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog="\b\nExamples:\n"
    "  agent-host compare cases.toml\n"
    "  agent-host compare cases.toml --record tape --page compared.html\n"
    "  agent-host compare cases.toml --replay tape --junit results.xml\n"
    "  agent-host compare cases.toml --json\n"
    "\n\nThe file names targets, cases and checks; docs/compare.md describes it. It exits with 1 "
    "if an answer is missing or a check does not pass. With --replay it needs neither keys nor a "
    "network."
)
@click.argument("file", type=_FILE)
@config_option
@cassette_options
@click.option("--repeat", type=click.IntRange(min=1), metavar="N",
              help="Ask everything so often, whatever the file says.")  # fmt: skip
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N",
              help="How many are asked at a time; 16 by default.")  # fmt: skip
@click.option("--junit", type=_FILE, metavar="FILE", help="Write the results as CI reads tests.")
@click.option("--page", type=_FILE, metavar="FILE", help="Write a page with answers side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def compare(
    file: Path,
    config_file: Path | None,
    record: Path | None,
    replay: Path | None,
    repeat: int | None,
    concurrency: int | None,
    junit: Path | None,
    page: Path | None,
    as_json: bool,
) -> int:
    """Ask every target of FILE every case, and check the answers."""
    from agent_host.comparison import compare as ask, junit_report, load_cases, make_report

    quiet_logs()
    comparison = load_cases(file)
    if repeat is not None:
        comparison.repeat = repeat
    with open_application(config_file, record=record, replay=replay) as app:
        answers = ask(app, comparison, concurrency=concurrency)
    if junit is not None:
        junit.write_bytes(junit_report(answers))
    if page is not None:
        from agent_host.comparison.page import render_page

        page.write_text(render_page(answers), encoding="utf-8")
    report = make_report(answers)
    if as_json:
        print_json(report)
    else:
        _show(answers)
    return 0 if report["passed"] else 1


def _show(answers: Sequence[CheckedAnswer]) -> None:
    columns = [*dict.fromkeys(answer.column for answer in answers)]
    rows = []
    for case in dict.fromkeys(answer.case for answer in answers):
        row = [clean_text(case)]
        for column in columns:
            own = [a for a in answers if (a.case, a.column) == (case, column)]
            passed = sum(answer.passed for answer in own)
            mark = "passed" if passed == len(own) else "FAILED"
            row.append(mark if len(own) == 1 else f"{mark} {passed}/{len(own)}")
        rows.append(row)
    print_table(["case", *map(clean_text, columns)], rows)
    faults = [answer for answer in answers if not answer.passed]
    if faults:
        print_heading("What did not pass")
    for answer in faults:
        where = f"{answer.case}, {answer.column}, {answer.repetition}"
        click.echo(style_text(clean_text(where), bold=True))
        if answer.result["status"] == "failed":
            error = answer.result["error"]
            print_error(str(error["message"]), str(error.get("hint") or ""))
        for each in answer.findings:
            if not each.passed:
                click.echo(f"  {clean_text(each.check)}: {clean_text(each.reason)}")
