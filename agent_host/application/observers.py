"""Who is shown the events of an application's runs: plugins that observe, the program, the log.

A plugin is told that the application runs before it is shown anything. Whatever an observer raises
is logged and nobody else's affair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.values import dataclass
from agent_host.agent.child_events import innermost
from agent_host.agent.policy import Decision, Policy
from agent_host.application.story import RunStory, is_story_wanted
from agent_host.application.watching import EventFeed, Listener, RunEvent
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.context import caller_keys

if TYPE_CHECKING:
    from agent_host.plugins.activate import Activator, LoadedPlugin

__all__ = ["Observers"]

log = get_logger(__name__)

#: The events of which an answer has one for each of its pieces.
_FRAGMENTS = frozenset({"partial", "reasoning", "tool_call_started", "tool_call_delta"})


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
        self._observers: tuple[_Observer, ...] = ()
        #: Those that are shown every piece of an answer.
        self._thorough: tuple[_Observer, ...] = ()
        self._lock = threading.Lock()

    def for_run(
        self, run: str, agent: str | None, added: Mapping[str, Any] | None = None
    ) -> Callable[[Event], None]:
        """What shows an event of this run to everybody; ``added`` are the keys of its caller."""
        story = RunStory(run, agent, self._latest_decisions) if is_story_wanted() else None
        known = {**caller_keys(added), "run_path": (run,), "agent": agent}
        contexts: dict[bool, Mapping[str, Any]] = {}
        #: The calls whose runs have begun to answer; empty for that of this run itself.
        answering: set[str] = set()

        def show_event(event: Event) -> None:
            kind = innermost(event)["type"]
            observers = self._observers
            if kind == "request_started":
                # A request has just loaded what it needs; between requests nothing is loaded.
                self._greet_plugins()
                observers = self._observers
                answering.discard(_call_of(event))
            elif kind in _FRAGMENTS and observers:
                # Every piece comes by here, and few are those of a run that a run has made.
                call_id = _call_of(event) if event["type"] == "child" else ""
                if call_id in answering:
                    observers = self._thorough
                else:
                    answering.add(call_id)
            for observer in observers:
                context = contexts.get(observer.is_tool)
                if context is None:
                    layer = self._layer_for(observer.is_tool)
                    context = contexts[observer.is_tool] = {**layer, **known}
                observer.show(event, context)
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
            self._observers = self._thorough = ()
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
                _Observer(plugin, implementation, plugin.role == "tool")
                for plugin in loaded
                if plugin.host_manager is not None
                for implementation in plugin.host_manager.implementations("observe_event")
            )
            self._thorough = tuple(each for each in self._observers if each.observes_fragments)

    def _host_for(self, plugin: LoadedPlugin) -> object:
        """Nobody for a tool: whoever has the application has every key."""
        return None if plugin.role == "tool" else self._host

    def _layer_for(self, is_tool: bool) -> Mapping[str, Any]:
        """Tools see what happens, but not the config with the providers' keys."""
        return {"trigger_source": "application"} if is_tool else self._layer()


@dataclass(frozen=True, slots=True)
class _Observer:
    """A plugin that observes, and how."""

    plugin: LoadedPlugin
    implementation: Implementation
    is_tool: bool

    @property
    def observes_fragments(self) -> bool:
        return getattr(self.plugin.instance, "observes_fragments", True) is not False

    def show(self, event: Event, context: Mapping[str, Any]) -> None:
        try:
            # Called directly, because it runs for every event; with copies of its own.
            self.implementation.call(plain_copy(event), {**context})
        except (Exception, SystemExit) as error:
            _log_failure(self.plugin, "observe_event", error)


def _call_of(event: Event) -> str:
    """The call whose run tells of this, through those of others; empty for the run itself."""
    call_id = ""
    while event["type"] == "child":
        call_id, event = f"{call_id}/{event['id']}", event["event"]
    return call_id


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
