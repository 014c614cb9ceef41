"""``agent-host plugins validate``: whether a package is fit to be published."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path

import click

from agent_host.cli.findings import format_count, print_findings
from agent_host.cli.render import print_json, style_text
from agent_host.plugins.inspect.doctor import Finding
from agent_host.plugins.inspect.trial import try_tree
from agent_host.plugins.inspect.validate import AREAS, validate as check_package

__all__ = ["validate"]


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins validate .\n"
    "  agent-host plugins validate dist/agent_host_acme-0.1.0-py3-none-any.whl\n"
    "  agent-host plugins validate . --tier\n"
    "  agent-host plugins validate agent-host-echo --json"
)
@click.argument("target", metavar="PATH|DIST")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
@click.option("--strict", is_flag=True, help="Let warnings count as problems.")
@click.option(
    "--tier", "with_tier", is_flag=True,
    help="Run the suites of a source folder with the conformance kit, and say the tier.",
)  # fmt: skip
def validate(target: str, as_json: bool, strict: bool, with_tier: bool) -> int:
    """Check a plugin package: descriptor, contract, imports, packaging and the tier it claims.

    PATH is a source folder, a single file or a wheel, DIST an installed distribution. Exits with 1
    if there is a problem. Of a tier that is claimed, hashes and all that can be seen without a run
    are checked; how a package behaves in requests is for the conformance kit, agent-host-testing,
    which --tier runs.
    """
    if with_tier and not Path(target).is_dir():
        raise click.UsageError(
            "--tier needs a source folder; agent-host plugins matrix tries what is released"
        )
    with redirect_stdout(sys.stderr):
        # Plugins may print while they are imported; our output must stay readable by scripts.
        found = list(check_package(target))
    tried, passed = try_tree(Path(target).resolve()) if with_tier else (None, True)
    for is_wrong, message in (
        (with_tier and tried is None, "its suites reach no tier; what they lack stands above"),
        (not passed, "some of its tests did not pass; they stand above"),
    ):
        if is_wrong:
            found.append(("tier", Finding("problem", Path(target).resolve().name, target, message)))
    findings = [finding for _, finding in found]
    problems = sum(finding.level == "problem" for finding in findings)
    bad = problems or (strict and findings)
    if as_json:
        areas = {area: [asdict(f) for where, f in found if where == area] for area in AREAS}
        tier = {"tier": tried.tier if tried else None} if with_tier else {}
        print_json({"target": target, "valid": not bad, "checks": areas, **tier})
        return 1 if bad else 0
    for area in AREAS:
        here = [finding for where, finding in found if where == area]
        mark = style_text("sound", fg="green") if not here else f"{len(here)} to look at"
        click.echo(f"{area}: {mark}")
        print_findings(here)
    if tried is not None:
        click.echo(f"tried: {tried.tier}, on Python {', '.join(tried.pythons)}")
    warnings = len(findings) - problems
    click.echo(f"{format_count(problems, 'problem')}, {format_count(warnings, 'warning')}.")
    return 1 if bad else 0
