"""Who is shown the events of an application's runs: plugins that observe.

A plugin is told that the application runs before it is shown anything. Whatever an observer raises
is logged and nobody else's affair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.plugins.activate import Activator, LoadedPlugin

__all__ = ["Observers"]

log = get_logger(__name__)


class Observers:
    """``host`` is what plugins are told of, ``layer`` what they find in their context."""

    def __init__(
        self, host: object, activator: Activator, layer: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._host = host
        self._activator = activator
        self._layer = layer
        self._greeted: dict[str, LoadedPlugin] = {}
        self._observers: tuple[Callable[[Event], None], ...] = ()
        self._lock = threading.Lock()

    def show_event(self, event: Event) -> None:
        """Show an event to every loaded plugin, once it knows that the application runs."""
        if event["type"] == "request_started":
            # A request has just loaded what it needs; between requests nothing is loaded.
            self._greet_plugins()
        for observer in self._observers:
            observer(event)

    def close(self) -> None:
        """Tell the plugins that the application is closed."""
        with self._lock:
            known, self._greeted = list(self._greeted.values()), {}
            self._observers = ()
        for plugin in known:
            _tell(plugin, "host_closing", host=self._host)

    def _greet_plugins(self) -> None:
        with self._lock:
            loaded = self._activator.loaded_plugins
            new = [plugin for plugin in loaded if plugin.key not in self._greeted]
            self._greeted |= {plugin.key: plugin for plugin in new}
        for plugin in new:
            _tell(plugin, "host_started", host=self._host)
        if new:
            self._observers = tuple(
                partial(self._show_to_plugin, plugin, implementation)
                for plugin in loaded
                if plugin.host_manager is not None
                for implementation in plugin.host_manager.implementations("observe_event")
            )

    def _show_to_plugin(
        self, plugin: LoadedPlugin, implementation: Implementation, event: Event
    ) -> None:
        # Tools see what happens, but not the config with the providers' keys.
        layer = {"trigger_source": "application"} if plugin.role == "tool" else self._layer()
        try:
            # Called directly, because it runs for every event; with a copy of its own.
            implementation.call(plain_copy(event), layer)
        except (Exception, SystemExit) as error:
            _log_failure(plugin, "observe_event", error)


def _tell(plugin: LoadedPlugin, hook: str, **arguments: Any) -> None:
    """Call a broadcast hook; what it raises is logged and nobody else's affair."""
    try:
        plugin.ask_host(hook, **arguments)
    except Exception as error:
        _log_failure(plugin, hook, error)


def _log_failure(plugin: LoadedPlugin, hook: str, error: BaseException) -> None:
    log_failure(log, "broadcast_failed", error, hook=hook, plugin=plugin.name)
