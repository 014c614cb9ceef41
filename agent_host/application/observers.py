"""Who is shown the events of an application's runs: plugins that observe, the program, the log.

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
from agent_host.agent.children import innermost
from agent_host.agent.policy import Decision, Policy
from agent_host.application.story import RunStory, is_story_wanted
from agent_host.application.watching import EventFeed, Listener, RunEvent
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.plugins.activate import Activator, LoadedPlugin

__all__ = ["Observers"]

log = get_logger(__name__)


class Observers:
    """``host`` is what plugins are told of, ``layer`` what they find in their context.

    ``policy`` has the decisions about calls, of which the log tells.
    """

    def __init__(
        self,
        host: object,
        activator: Activator,
        layer: Callable[[], Mapping[str, Any]],
        policy: Policy,
    ) -> None:
        self._host = host
        self._activator = activator
        self._layer = layer
        self._policy = policy
        self._listeners: tuple[Listener, ...] = ()
        self._feeds: tuple[EventFeed, ...] = ()
        self._greeted: dict[str, LoadedPlugin] = {}
        self._observers: tuple[Callable[[Event], None], ...] = ()
        self._lock = threading.Lock()

    def for_run(self, run: str, agent: str | None) -> Callable[[Event], None]:
        """What shows an event of this run to everybody."""
        story = RunStory(run, agent, self._latest_decisions) if is_story_wanted() else None

        def show_event(event: Event) -> None:
            if innermost(event)["type"] == "request_started":
                # A request has just loaded what it needs; between requests nothing is loaded.
                self._greet_plugins()
            for observer in self._observers:
                observer(event)
            for listener in self._listeners:
                _show_to_listener(listener, RunEvent(run, agent, event))
            if story is not None:
                story.note(event)

        return show_event

    def _latest_decisions(self) -> list[Decision]:
        return list(self._policy.decisions)[::-1]

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Show every event to the listener, from now on; gives what ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
        return lambda: self._remove_listener(listener)

    def _remove_listener(self, listener: Listener) -> None:
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each != listener)

    def open_feed(self) -> EventFeed:
        """A feed of every event from now on."""
        feed = EventFeed(self._remove_feed)
        with self._lock:
            self._feeds = (*self._feeds, feed)
            self._listeners = (*self._listeners, feed.put)
        return feed

    def _remove_feed(self, feed: EventFeed) -> None:
        with self._lock:
            self._feeds = tuple(each for each in self._feeds if each is not feed)
        self._remove_listener(feed.put)

    def close(self) -> None:
        """Tell the plugins that the application is closed, and end the feeds."""
        for feed in self._feeds:
            feed.close()
        with self._lock:
            known, self._greeted = list(self._greeted.values()), {}
            self._observers = ()
        for plugin in known:
            _tell(plugin, "host_closing", host=self._host_for(plugin))

    def _greet_plugins(self) -> None:
        loaded = self._activator.loaded_plugins
        if len(loaded) == len(self._greeted):
            # Every request asks, and few load anything.
            return
        with self._lock:
            new = [plugin for plugin in loaded if plugin.key not in self._greeted]
            self._greeted |= {plugin.key: plugin for plugin in new}
        for plugin in new:
            _tell(plugin, "host_started", host=self._host_for(plugin))
        if new:
            self._observers = tuple(
                partial(self._show_to_plugin, plugin, implementation)
                for plugin in loaded
                if plugin.host_manager is not None
                for implementation in plugin.host_manager.implementations("observe_event")
            )

    def _host_for(self, plugin: LoadedPlugin) -> object:
        """Nobody for a tool: whoever has the application has every key."""
        return None if plugin.role == "tool" else self._host

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


def _show_to_listener(listener: Listener, event: RunEvent) -> None:
    try:
        listener(event)
    except Exception as error:
        log_failure(log, "listener_failed", error)


def _tell(plugin: LoadedPlugin, hook: str, **arguments: Any) -> None:
    """Call a broadcast hook; what it raises is logged and nobody else's affair."""
    try:
        plugin.ask_host(hook, **arguments)
    except Exception as error:
        _log_failure(plugin, hook, error)


def _log_failure(plugin: LoadedPlugin, hook: str, error: BaseException) -> None:
    log_failure(log, "broadcast_failed", error, hook=hook, plugin=plugin.name)
