"""The hooks extensions, features and tools share: whether they take part, and what they add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import Config, Context, ModelInfo

__all__ = ["GatingSpec"]


class GatingSpec(Protocol):
    """Asked of every candidate on its own; what a descriptor says statically is not asked again."""

    @hookspec("collect")
    def required_tags(self) -> list[str]:
        """Tags that must all be present for the plugin to take part.

        A plain list as a class attribute does the same.

        Fires: while a request's stack is resolved, unless the descriptor gives the tags.
        May change: nothing; the answer must always be the same.
        On exception: the plugin is set aside as failed and the stack is resolved without it.
        """

    @hookspec("collect")
    def forbidden_tags(self) -> list[str]:
        """Tags of which none may be present for the plugin to take part.

        A plain list as a class attribute does the same.

        Fires: while a request's stack is resolved, unless the descriptor gives the tags.
        May change: nothing; the answer must always be the same.
        On exception: the plugin is set aside as failed and the stack is resolved without it.
        """

    @hookspec("collect", result=("enabled",), optional=True)
    def is_enabled(
        self, config: Config, tags: Sequence[str], models: Sequence[ModelInfo], context: Context
    ) -> bool | None:
        """Whether the plugin takes part: True skips the tag checks, False refuses, None leaves it.

        Fires: once in every round of gating in which the static checks let the plugin through.
        May change: nothing; the answer may depend on the arguments alone.
        On exception: the plugin is set aside as failed and the stack is resolved without it.
        """

    @hookspec("collect", result=("tags",))
    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        """Tags the plugin adds when it takes part.

        Fires: while a request's stack is resolved, when ``dynamic`` names it or there is no
        descriptor.
        May change: nothing; the answer may depend on the arguments alone.
        On exception: the plugin is set aside as failed and the stack is resolved without it.
        """

    @hookspec("collect")
    def get_config_schema(self) -> dict[str, Any]:
        """The settings the plugin understands: a flat map of keys, or a JSON Schema object.

        A key marked ``"secret": true`` never appears in logs, events, exports or errors.

        Fires: when the config of a stack is validated or shown.
        May change: nothing.
        On exception: the plugin's settings are not validated and a warning says so.
        """

    @hookspec("collect", result=("elements",), optional=True, skips=True)
    def get_ui_elements(
        self, config: Config, tags: Sequence[str], models: Sequence[ModelInfo], context: Context
    ) -> list[dict[str, Any]]:
        """Input elements an application may show for the plugin's settings.

        Fires: when an application asks for the elements of a stack.
        May change: nothing.
        On exception: the plugin's elements are left out and a warning says so.
        """
