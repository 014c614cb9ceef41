"""`Turn`: all that one request of a session has, from its stack to the answer so far.

The steps of the room take it, each reading what the steps before it have put there: `begin`,
`prepare`, `send`, `read`, `finish`. It decides nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import AgentError, ConfigError
from agent_hookspecs.events import Event, WarningEvent
from agent_hookspecs.logs import get_logger, redact
from agent_hookspecs.messages import Config, Context, CoreMessage, Finish, NativeMessage, State
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.tool_interop.arguments import MAX_ARGUMENT_BYTES
from agent_hookspecs.values import dataclass
from agent_host.drivers.effects import Emit, Steps
from agent_host.plugins.hook_time import HookTime, take_slow
from agent_host.plugins.implementation import Implementation
from agent_host.plugins.stack import Managers, PlainWarning, Stack
from agent_host.sessions.natives import Origin, RetainedHistory
from agent_host.turn.calls import ToolCall
from agent_host.turn.context import request_context
from agent_host.turn.deadline import TotalTime
from agent_host.turn.read import Reading
from agent_host.turn.size import SizeLimits

if TYPE_CHECKING:
    from agent_host.sessions.session import Session
    from agent_host.turn.actions import Offer

__all__ = ["Keep", "Sink", "Turn", "Warnings", "deliver_all"]

log = get_logger(__name__)

#: Sees events before they are delivered, and gives those that are to be.
Sink = Callable[[list[Event]], list[Event]]
#: Stores the finished turn; gives the session that is announced.
Keep = Callable[["Turn"], Steps["Session"]]


class Warnings:
    """What plugins have to say to whoever runs the request; each thing once, also over retries.

    ``said`` is what was said before, by whom, and is added to.
    """

    def __init__(self, said: set[PlainWarning] | None = None) -> None:
        #: Each with the setting that was not sent, if that is what it says.
        self._waiting: list[tuple[PlainWarning, str | None]] = []
        self._said = set() if said is None else said

    def add(self, message: str, plugin: str | None = None, *, unsent: str | None = None) -> None:
        self._waiting += [(warning, unsent) for warning in self._unsaid([(message, plugin)])]

    def say(self, warnings: Iterable[PlainWarning]) -> list[Event]:
        """Those that were not said before, for what whoever found it has logged."""
        return [_warning_event(*warning) for warning in self._unsaid(warnings)]

    def _unsaid(self, warnings: Iterable[PlainWarning]) -> list[PlainWarning]:
        new = [warning for warning in dict.fromkeys(warnings) if warning not in self._said]
        self._said.update(new)
        return new

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self) -> list[Event]:
        """What was added since the last time, logged and without secrets.

        Not earlier: which secrets a plugin has brought is known once it has had its turn.
        """
        waiting, self._waiting = self._waiting, []
        for (message, plugin), _ in waiting:
            log.warning("request_warning", plugin=plugin, says=message)
        return [_warning_event(*warning, unsent) for warning, unsent in waiting]


def _warning_event(message: str, plugin: str | None, unsent: str | None = None) -> Event:
    event: WarningEvent = {"type": "warning", "message": redact(message), "plugin": plugin}
    if unsent is not None:
        event["unsent"] = unsent
    return event


def deliver_all(events: list[Event]) -> list[Event]:
    """The sink that leaves everything as it is."""
    return events


@dataclass(slots=True)
class Turn:
    """One request of a session, and what becomes of it.

    ``asked`` is the config as the caller gave it. ``caller_context`` are the keys that the caller
    adds to the plugins' context, ``layer`` those of the application. ``sink`` sees every event;
    ``keep`` is carried out before the answer is announced.
    ``settings`` are those of this turn alone, above the stack's.

    What is set by an attempt is set anew when it is repeated. ``session`` can be read at any time:
    while the answer is still coming, or after the turn was closed or has failed, it holds the text
    so far, marked partial.
    """

    stack: Stack
    start: Session
    asked: Config
    core: object
    stream: bool = False
    asynchronous: bool = False
    caller_context: Mapping[str, Any] | None = None
    layer: Mapping[str, Any] | None = None
    sink: Sink = deliver_all
    keep: Keep | None = None
    warnings: Warnings = field(default_factory=Warnings)
    argument_limit: int = MAX_ARGUMENT_BYTES
    settings: Mapping[str, Any] | None = None
    #: What the host says beside features' instructions.
    instructions: str = ""
    total_time: TotalTime = field(default_factory=TotalTime)
    #: Whether the actions at the start of the request have run, which they do once.
    started: bool = False

    limits: SizeLimits = field(init=False)
    hook_time: HookTime = field(init=False)

    # Of an attempt.
    managers: Managers = field(init=False)
    context: Context = field(init=False)
    state: State = field(init=False)
    natives: list[NativeMessage] = field(init=False)
    retained: RetainedHistory = field(init=False)
    origin: Origin = field(init=False)
    #: What features have said in it, by the hook that gave the text.
    spoken: dict[str, str] = field(default_factory=dict)
    reading: Reading | None = None
    #: The actions on offer, once somebody has looked.
    offers: list[Offer] | None = None
    #: The key it is sent with, if the config says where to get one.
    key: str = field(default="", repr=False)

    # Of the end.
    result: Session | None = None
    finals: list[CoreMessage] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    finish: Finish = "stop"
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        self.limits = SizeLimits.of(self.stack.config)
        self.hook_time = HookTime.of(self.stack.config)
        self.begin_attempt()

    def begin_attempt(self) -> None:
        """Managers and context as they are before the first hook."""
        self.managers = self._pick_managers()
        self.context = request_context(
            self.core, self.stack, self.caller_context, self.layer, self.warnings.add
        )
        self.context["config"].update(self.settings or {})
        self.reading = None
        self.offers = None
        self.spoken = {}

    def _pick_managers(self) -> Managers:
        policy = self.stack.config.get("on_plugin_error", "raise")
        if policy == "raise":
            return self.stack.managers
        if policy == "skip":
            stack = self.stack
            return stack.managers.tolerating(stack.resolution, stack.activator, self._leave_out)
        raise ConfigError(
            f"on_plugin_error is {policy!r}", key="on_plugin_error", hint="use raise or skip"
        )

    def _leave_out(self, implementation: Implementation, error: AgentError) -> None:
        """Go on without an optional plugin that has failed, in all hooks that follow."""
        name = implementation.plugin
        manager = self.managers.role(cast(PluginRole, implementation.hook.role))
        if manager.has_plugin(name):
            manager.drop_plugin(name)
        self.warnings.add(f"plugin {name!r} was left out of this request: {error.message}", name)

    @property
    def session(self) -> Session:
        if self.result is not None:
            return self.result
        text = self.reading.text() if self.reading is not None else ""
        if not text:
            return self.start
        partial = {"role": "assistant", "content": text, "metadata": {"partial": True}}
        return self.start.with_added(partial)

    @property
    def known_config(self) -> Config:
        """The config as it was before any plugin has seen it."""
        return {**self.stack.config, **self.settings} if self.settings else self.stack.config

    @property
    def provider(self) -> str:
        return self.stack.provider.name

    def emit(self, events: list[Event]) -> Emit:
        """The effect that delivers events, after the sink has seen them."""
        return Emit(self.sink(events))

    def note_slow_hooks(self) -> None:
        """Warn of hooks that have held everybody up since the last time."""
        limit = self.hook_time.slow_hook_seconds
        for plugin, hook in take_slow(limit):
            text = f"plugin {plugin!r}: hook {hook!r} took longer than {limit:g} s"
            self.warnings.add(f"{text}, and everything else had to wait", plugin)

    def emit_warnings(self) -> Emit:
        return self.emit(self.warnings.take())
