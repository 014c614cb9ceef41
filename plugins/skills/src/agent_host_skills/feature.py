"""The feature ``skills``: tells every model which skills there are, and has the command for people.

It speaks of what the tool of this package has found for the same settings, and looks for nothing
itself: where no model can read skills, it would be of no use to name them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from agent_hookspecs import Config, Context, FeaturePlugin
from agent_hookspecs.logs import get_warn_from_context
from agent_host_skills._version import __version__
from agent_host_skills.declarations import CONFIG_SCHEMA
from agent_host_skills.library import find_library
from agent_host_skills.listing import list_skills
from agent_host_skills.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    import click

__all__ = ["Skills"]


class Skills(FeaturePlugin):
    """Puts the names and descriptions of skills before every model that can read them."""

    name = "skills"
    version = __version__
    label = "Skills"
    required_tags = ("supports_tools",)
    required_plugins = ("tool:skill_reader",)

    def cli_command(self, name: str, open_application: Callable[..., Any]) -> click.Command | None:
        if name != "skills":
            return None
        from agent_host_skills.command import make_command

        return make_command(open_application)

    def get_config_schema(self) -> dict[str, Any]:
        return deepcopy(CONFIG_SCHEMA)

    def get_instructions(self, config: Config, context: Context) -> str | None:
        settings = Settings.of(config)
        library = find_library(settings.folders, settings.patterns)
        if library is None:
            return None
        warn = get_warn_from_context(context, self.name)
        losses = library.describe_losses()
        if losses and library.is_first("losses"):
            warn(f"skills: {losses}; agent-host skills list says it all")
        listed = list_skills(
            [found.skill for found in library.skills.values()], settings.list_bytes
        )
        if listed.width is not None and library.is_first("width"):
            lost = f", and not the last {listed.unlisted} skills" if listed.unlisted else ""
            warn(
                f"skills: there are {len(library.skills)}, so models are sent descriptions of at "
                f"most {listed.width} characters{lost}; name fewer in use_skills, or allow more in "
                "max_skill_list_bytes"
            )
        return listed.text or None
