"""How problems and warnings are shown, by ``plugins doctor`` and ``plugins validate``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from agent_host.cli.render import print_text, printable, styled

if TYPE_CHECKING:
    from agent_host.plugins.inspect.doctor import Finding

__all__ = ["as_dict", "counted", "print_findings"]

_COLOURS = {"problem": "red", "warning": "yellow"}


def as_dict(finding: Finding) -> dict[str, str]:
    return {
        "plugin": finding.plugin,
        "owner": finding.owner,
        "level": finding.level,
        "message": finding.message,
    }


def print_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        mark = styled(finding.level, fg=_COLOURS[finding.level])
        click.echo(f"{mark}  {printable(f'{finding.plugin} ({finding.owner})')}")
        print_text(printable(finding.message), indent=4)


def counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
