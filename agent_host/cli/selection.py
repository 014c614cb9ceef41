"""Whom a command asks: as the options say, completed as a run would, and told in one dim line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_wrapped, style_text

if TYPE_CHECKING:
    from agent_host.application import AgentApplication

__all__ = ["complete_selection", "print_selection"]


def complete_selection(app: AgentApplication, options: dict[str, Any]) -> str:
    """Put the provider and the model that are asked into the options of a run; who decided.

    That a fallback answers is not said here: the run itself warns of it.
    """
    if "provider" in (options.get("settings") or {}):
        return ""
    named = {key: options.get(key) for key in ("agent", "provider", "model")}
    chosen = app.select(**named, parts=True)
    if chosen.is_fallback:
        return ""
    options |= {"provider": chosen.provider, "model": chosen.model}
    return clean_text(chosen.line)


def print_selection(line: str) -> None:
    """Print who was decided on, dimly, if anything was."""
    if line:
        print_wrapped(style_text(line, dim=True))
