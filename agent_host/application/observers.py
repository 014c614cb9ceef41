"""Who is shown the events of an application's runs: plugins that observe, the program, the log.

A plugin is told that the application runs before it is shown anything. Whatever an observer raises
is logged and nobody else's affair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.events import ChildEvent, Event
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
        self._lock = threading.Lock()

    def for_run(
        self, run: str, agent: str | None, added: Mapping[str, Any] | None = None
    ) -> Callable[[Event], None]:
        """What shows an event of this run to everybody; ``added`` are the keys of its caller."""
        story = RunStory(run, agent, self._latest_decisions) if is_story_wanted() else None
        known = {**caller_keys(added), "run_path": (run,), "agent": agent}
        contexts: dict[bool, Mapping[str, Any]] = {}
        own, made = _Watched(), dict[str, _Watched]()

        def show(observer: _Observer, event: Event) -> Any:
            context = contexts.get(observer.is_tool)
            if context is None:
                layer = self._layer_for(observer.is_tool)
                context = contexts[observer.is_tool] = {**layer, **known}
            return observer.show(event, context)

        def show_event(event: Event) -> None:
            kind, watched = event["type"], own
            if event["type"] == "child":
                kind = innermost(event)["type"]
                watched = made.setdefault(_call_of(event), _Watched())
            if kind == "request_started":
                everybody = self._greet_plugins()
                watched.begin(each for each in everybody if show(each, event) is not False)
            elif kind in _FRAGMENTS and watched.is_answering:
                # Every piece of an answer comes by here, so nothing is looked for.
                for observer in watched.thorough:
                    show(observer, event)
            else:
                if kind in _FRAGMENTS:
                    watched.is_answering = True
                known_ones = watched.observers
                for observer in self._observers if known_ones is None else known_ones:
                    show(observer, event)
            for listener in self._listeners:
                _show_to_listener(listener, RunEvent(run, agent, event))
            if story is not None:
                story.note(event)

        return show_event

    def _latest_decisions(self) -> list[Decision]:
        return list(self._policy.decisions)[::-1]

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Show every event to the listener, from now on; gives what ends that."""
        if not callable(listener):
            raise ConfigError(
                f"the listener is {type(listener).__name__}, and not a function",
                hint="give a function, which is called with every event",
            )
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

    def _greet_plugins(self) -> tuple[_Observer, ...]:
        """Those who observe, now that a request has loaded what it needs.

        Between requests nothing is loaded.
        """
        loaded = self._activator.loaded_plugins
        if len(loaded) == len(self._greeted):
            # Every request asks, and few load anything.
            return self._observers
        with self._lock:
            new = [plugin for plugin in loaded if plugin.key not in self._greeted]
            self._greeted |= {plugin.key: plugin for plugin in new}
        for plugin in new:
            _tell(plugin, "host_started", host=self._host_for(plugin))
        if new:
            self._observers = tuple(
                _Observer(plugin, implementation, plugin.role == "tool", _is_thorough(plugin))
                for plugin in loaded
                if plugin.host_manager is not None
                for implementation in plugin.host_manager.implementations("observe_event")
            )
        return self._observers

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
    is_thorough: bool

    def show(self, event: Event, context: Mapping[str, Any]) -> Any:
        try:
            # Called directly, because it runs for every event; with copies of its own.
            return self.implementation.call(plain_copy(event), {**context})
        except (Exception, SystemExit) as error:
            _log_failure(self.plugin, "observe_event", error)


def _is_thorough(plugin: LoadedPlugin) -> bool:
    """Whether it is shown every piece of an answer."""
    return getattr(plugin.instance, "observes_fragments", True) is not False


class _Watched:
    """Who is shown what one run does, from one of its requests to the next."""

    __slots__ = ("is_answering", "observers", "thorough")

    def __init__(self) -> None:
        #: None before the first request: then it is everybody.
        self.observers: tuple[_Observer, ...] | None = None
        self.thorough: tuple[_Observer, ...] = ()
        self.is_answering = False

    def begin(self, observers: Iterable[_Observer]) -> None:
        self.observers = tuple(observers)
        self.thorough = tuple(each for each in self.observers if each.is_thorough)
        self.is_answering = False


def _call_of(event: ChildEvent) -> str:
    """The call whose run tells of this, through those of others."""
    call_id, inner = event["id"], event["event"]
    while inner["type"] == "child":
        call_id, inner = f"{call_id}/{inner['id']}", inner["event"]
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
