"""How problems and warnings are shown, by ``plugins doctor`` and ``plugins validate``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_text, style_text

if TYPE_CHECKING:
    from agent_host.plugins.inspect.doctor import Finding

__all__ = ["format_count", "print_findings"]

_COLOURS = {"problem": "red", "warning": "yellow"}


def print_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        mark = style_text(finding.level, fg=_COLOURS[finding.level])
        click.echo(f"{mark}  {clean_text(f'{finding.plugin} ({finding.owner})')}")
        print_text(clean_text(finding.message), indent=4)


def format_count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
