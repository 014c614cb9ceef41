"""The hooks that plugins of any role may implement besides their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from agent_hookspecs.events import Event
from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import Config, Context

if TYPE_CHECKING:
    from agent_hookspecs.batch import BatchEngine
    from agent_hookspecs.store.protocol import SessionStore

__all__ = ["HostSpec"]


class HostSpec(Protocol):
    """Broadcast by the host to every plugin it has loaded."""

    @hookspec("collect", per_chunk=True)
    def observe_event(self, event: Event, context: Context) -> None:
        """See an event of a run as it is delivered.

        Fires: for every event of a run; it must be quick.
        May change: nothing.
        On exception: it is logged, never passed on.
        """

    @hookspec("first")
    def open_session_store(self, url: str, config: Config) -> SessionStore | None:
        """A session store for a URL whose scheme the plugin knows, else None.

        The descriptor lists the scheme under ``stores``. ``config`` is what stands
        in ``store_options``: ``content``, ``keep_days``, and settings of the store's own.

        Fires: when the application opens its store.
        May change: nothing.
        On exception: the application reports it and does not start.
        """

    @hookspec("first")
    def open_batch_engine(self, name: str, config: Config) -> BatchEngine | None:
        """An engine for the lines of a batch, if the plugin has one of that name, else None.

        The descriptor lists the name under ``engines``. ``config`` is what the caller has set for
        the engine.

        Fires: when a batch begins.
        May change: nothing.
        On exception: the batch reports it and does not begin.
        """

    @hookspec("first", result=("secret",), optional=True)
    def resolve_secret(self, name: str, config: Config) -> str | None:
        """The key that is kept under a name, else None.

        ``name`` is a provider's plugin id, or what ``api_key_name`` says. ``config`` has the
        settings of the request without what is secret. The descriptor says
        ``resolves_secrets``. Whoever answers comes before the host's own key store.

        Fires: when a request needs a key that neither its config nor the environment has, and
        again when that key was refused. It may block.
        May change: nothing.
        On exception: the request fails with it.
        """

    @hookspec("first")
    def cli_command(self, name: str, open_application: Callable[..., Any]) -> Any:
        """The click command for a name that the plugin's descriptor lists under ``commands``.

        ``open_application(config_file=None)`` makes the application that the other commands use,
        from that file or from where they look for one; ``with`` closes it. It has every provider's
        key, which is why it is made when the command asks, and not before.

        Fires: when that command is called, or its help is shown.
        May change: nothing.
        On exception: the command reports the plugin and exits with 1.
        """

    @hookspec("collect")
    def host_started(self, host: Any) -> None:
        """The application has its config and plugins and is about to run.

        Tools get None as ``host``: whoever has the application has every provider's key.

        Fires: once for each application.
        May change: nothing.
        On exception: it is logged, never passed on.
        """

    @hookspec("collect")
    def host_closing(self, host: Any) -> None:
        """The application is about to close; tools get None as ``host``.

        Fires: once for each application.
        May change: nothing.
        On exception: it is logged, never passed on.
        """
