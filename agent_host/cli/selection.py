"""Whom a command asks: as the options say, completed as a run would, and told in one dim line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_host.cli.render import clean_text, print_wrapped, style_text

if TYPE_CHECKING:
    from agent_host.application import AgentApplication

__all__ = ["complete_selection"]


def complete_selection(app: AgentApplication, options: dict[str, Any]) -> None:
    """Put the provider and the model that are asked into the options of a run; tell who decided.

    That a fallback answers is not told here: the run itself warns of it.
    """
    if "provider" in (options.get("settings") or {}):
        return
    named = {key: options.get(key) for key in ("agent", "provider", "model")}
    chosen = app.select(**named, parts=True)
    if chosen.is_fallback:
        return
    options |= {"provider": chosen.provider, "model": chosen.model}
    if chosen.line:
        print_wrapped(style_text(clean_text(chosen.line), dim=True))
