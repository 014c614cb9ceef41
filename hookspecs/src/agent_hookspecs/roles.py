"""The bases of the four plugin roles.

They carry attributes and no hook methods: a hook that a class does not define is absent, and the
host's default applies. A plain class with the same attributes will do as well when its descriptor,
or the method that registers it, says the role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from agent_hookspecs.messages import Finish, Framing

__all__ = ["Effect", "FeaturePlugin", "ProviderExtensionPlugin", "ProviderPlugin", "ToolPlugin"]

PluginRole = Literal["provider", "extension", "feature", "tool"]

#: The roles in the order in which their plugins run.
PLUGIN_ROLES: tuple[PluginRole, ...] = ("provider", "extension", "feature", "tool")
#: What running a tool does to the world.
Effect = Literal["read", "write", "execute", "network"]


class Plugin:
    """What plugins of every role have. ``name`` is the plugin id, unique per role."""

    role: ClassVar[PluginRole]
    name: str = ""
    version: str = ""
    label: str = ""
    default_enabled: bool = True
    required_plugins: Sequence[str] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    priority: int = 0


class ProviderPlugin(Plugin):
    """A way to reach models. See `agent_hookspecs.specs.ProviderSpec` for its hooks.

    ``finish_reasons`` maps the server's words for the end of an answer to ours, those of `Finish`.
    Words that are ours already need not be there.
    """

    role = "provider"
    requires_api_key: bool = False
    optional_api_key: bool = False
    requires_base_url: bool = False
    supports_tools: bool = True
    framing: Framing = "sse"
    finish_reasons: Mapping[str, Finish] = {}


class ProviderExtensionPlugin(Plugin):
    """Adds to a provider. See `agent_hookspecs.specs.ExtensionSpec` for its hooks."""

    role = "extension"


class FeaturePlugin(Plugin):
    """Adds to any request. See `agent_hookspecs.specs.FeatureSpec` for its hooks."""

    role = "feature"


class ToolPlugin(Plugin):
    """Gives models something to call. See `agent_hookspecs.specs.ToolSpec` for its hooks.

    ``effects`` maps each tool's wire name to what running it does to the world, ``timeouts`` to the
    seconds after which nobody waits for it any more, and ``concurrency`` to how many calls of it
    one run may have at once. A tool that is not named has no such limit of its own.
    """

    role = "tool"
    effects: Mapping[str, Effect] = {}
    timeouts: Mapping[str, float] = {}
    concurrency: Mapping[str, int] = {}
