"""`AgentApplication`: config, installed plugins and the tool loop around a core.

This is what most programs use: name an agent, give it a prompt, watch the events, take the answer.
It must not know any provider, nor how a request or a stream works.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ConfigError, UnknownPluginError
from agent_hookspecs.events import Event, WarningEvent
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import ActionResult, CoreMessage, Finish, Limit
from agent_hookspecs.values import dataclass
from agent_host.agent.limits import Limits
from agent_host.agent.loop import AgentRun, close_calls
from agent_host.agent.policy import Approve, Decision, Memory, Policy
from agent_host.config import AppConfig, load_config, parse_config
from agent_host.config.catalog import configured_catalog
from agent_host.config.check import check_loading, check_request
from agent_host.core import AgentCore
from agent_host.drivers.blocking import Stream, complete
from agent_host.plugins.access import KEY_SETTINGS, set_variable
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.private import config_home
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.drivers.asynchronous import AsyncStream
    from agent_host.plugins.activate import LoadedPlugin, OnManager
    from agent_host.plugins.catalog import Catalog, PluginRecord
    from agent_host.plugins.stack import PlainWarning, Stack
    from agent_host.sessions.session import Session

__all__ = ["AgentApplication", "Answer"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run came to: the last text, every new message, the session, and how it ended.

    ``finish`` is ``stop`` for an answer that is whole. Else ``text`` may be a part of one or empty:
    ``refusal`` has the words of a model that declined, ``limit`` the limit that the run reached.
    ``finish_reason`` is the provider's own word for the end of the last turn.
    ``warnings`` are those of the whole run: what was left out, ignored or tried again.
    """

    text: str
    messages: list[CoreMessage]
    session: Session
    finish: Finish
    finish_reason: str | None = None
    limit: Limit | None = None
    warnings: list[WarningEvent] = field(default_factory=list)

    @property
    def refusal(self) -> str:
        """What the model said in place of an answer; empty unless it refused."""
        said = [message["metadata"].get("refusal") for message in self.messages]
        return str(said[-1] or "") if self.finish == "refusal" else ""


class AgentApplication:
    """Agents as a config describes them, on the plugins that are installed.

    ``config`` is a path, a dict in the form of the file, what `load_config` gave, or None for what
    `find_config` finds.
    ``tools`` are tool classes or decorated functions of the program's own. ``approve`` is asked
    about calls that the policy neither allows nor denies; without it they are denied.
    ``on_manager`` is told of every pluggy manager that is made, to trace or monitor its calls.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | AppConfig | str | Path | None = None,
        *,
        tools: Iterable[Any] = (),
        approve: Approve | None = None,
        http_client: Any = None,
        async_http_client: Any = None,
        on_manager: OnManager | None = None,
    ) -> None:
        self.config = _load(config)
        values = self.config.values
        # For plugins, which look there; the config itself does not need it.
        os.environ.update(values.get("env", {}))
        catalog = configured_catalog(self.config)
        check_loading(self.config, catalog)
        self.core = AgentCore(
            catalog=catalog,
            http=values.get("http"),
            http_client=http_client,
            async_http_client=async_http_client,
            on_manager=on_manager,
        )
        for tool in tools:
            self.core.register_tool(tool)
        described = values.get("tools", {})
        self.limits = Limits.of(described)
        self.policy = Policy.of(described, Memory(config_home() / "allowed-tools.json"))
        self._parallel = bool(described.get("parallel", False))
        self._approve = approve
        self._greeted: dict[str, LoadedPlugin] = {}
        self._observers: tuple[Callable[[Event], None], ...] = ()
        self._lock = threading.Lock()

    @property
    def decisions(self) -> deque[Decision]:
        """The latest decisions about tool calls, in order; the log has them all."""
        return self.policy.decisions

    def run(self, prompt: str, **options: Any) -> Answer:
        """Give an agent a prompt and wait for its answer. Options are those of `stream`."""
        run = self._begin_run(prompt, asynchronous=False, **options)
        complete(run.steps(), self.core.wire)
        return _answer_of(run)

    def stream(self, prompt: str, **options: Any) -> Stream:
        """Give an agent a prompt and watch the events as they come.

        Options: ``session`` to go on with, ``agent``, ``provider`` and ``model`` to use, ``system``
        for the system prompt of a new session, ``tools`` as patterns of tool names, ``settings``
        for the request, ``approve``, ``limits``, and ``context`` for the plugins.
        """
        run = self._begin_run(prompt, asynchronous=False, **options)
        return Stream(run, self.core.wire, on_close=run.cancel)

    async def arun(self, prompt: str, **options: Any) -> Answer:
        """The async form of `run`."""
        from agent_host.drivers.asynchronous import acomplete

        run = self._begin_run(prompt, asynchronous=True, **options)
        await acomplete(run.steps(), self.core.async_wire)
        return _answer_of(run)

    def astream(self, prompt: str, **options: Any) -> AsyncStream:
        """The async form of `stream`; not itself a coroutine."""
        from agent_host.drivers.asynchronous import AsyncStream

        run = self._begin_run(prompt, asynchronous=True, **options)
        return AsyncStream(run, self.core.async_wire, on_close=run.cancel)

    def check(self, **options: Any) -> list[WarningEvent]:
        """Do what `run` does before it sends anything, and raise what it would raise.

        Options are those of `stream`. The models of the provider may be asked for. The warnings
        that a run would begin with are given.
        """
        run = self._begin_run("", asynchronous=False, **options)
        complete(run.check_steps(), self.core.wire)
        return run.warnings

    def _begin_run(
        self,
        prompt: str,
        *,
        asynchronous: bool,
        session: Session | None = None,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        system: str | None = None,
        tools: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        approve: Approve | None = None,
        limits: Limits | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> AgentRun:
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigError(
                f"limits is {type(limits).__name__}, and not Limits",
                key="limits",
                hint="from agent_host.agent.limits import Limits; limits=Limits(turns=1)",
            )
        config = self.request_config(agent, provider, model, tools, settings)
        if session is None:
            session = self.create_session(system or self.config.system_prompt(agent))
        return AgentRun(
            stacks=self.core.stacks,
            start=close_calls(session).with_added({"role": "user", "content": prompt}),
            config=config,
            core=self.core,
            policy=self.policy,
            limits=limits or self.limits,
            approve=approve or self._approve,
            parallel=self._parallel,
            asynchronous=asynchronous,
            context=context,
            layer=self._layer(),
            observe=self._observe,
            first_warnings=self._fallback_warnings(config),
            defaults=self.config.values.get("request_defaults", {}).keys() - (settings or {}),
        )

    def stack(self, **options: Any) -> Stack:
        """The stack that a run with these options has, which are those of `stream`; to look at."""
        return self.core.stack(self._begin_run("", asynchronous=False, **options).config)

    def request_config(
        self,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        tools: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The settings of a request, as a core wants them."""
        config = self.config.request_config(agent, provider, model)
        if self.config.values:
            stacks = self.core.stacks
            check_request(self.config, stacks.catalog, stacks.activator, agent, provider)
        if isinstance(tools, str):
            tools = [tools]
        patterns = list(tools) if tools is not None else self.config.tool_patterns(agent)
        if patterns is not None:
            config["use_tools"] = patterns
        config |= settings or {}
        self._complete_provider(config, agent)
        return config

    def _complete_provider(self, config: dict[str, Any], agent: str | None) -> None:
        """Refuse a provider that is not there, and take its key from where it customarily is."""
        catalog, named = self.core.stacks.catalog, config.get("provider")
        if catalog.usable(None):
            # Some plugins are known by name only once they are imported, which a request does.
            return
        installed = {record.name: record for record in catalog.usable("provider")}
        if named is not None and named not in installed:
            broken = ("failed", "incompatible")
            if not any(record.state in broken or record.name == named for record in catalog):
                names = {*self.config.values.get("providers", {}), *installed}
                key = f"agents.{agent or 'default'}.provider"
                raise self.config.unknown_error("provider", str(named), names, key)
            # It may be one of those that cannot be used, and a request says why.
            return
        record = installed[named] if named is not None else _fallback(catalog)
        if record is None or record.entry is None or any(config.get(key) for key in KEY_SETTINGS):
            return
        variable = set_variable(record.entry, self.config.env)
        if variable is not None:
            config["api_key"] = self.config.env[variable]

    def _fallback_warnings(self, config: Mapping[str, Any]) -> list[PlainWarning]:
        """Who answers, where nobody has said who should."""
        record = _fallback(self.core.stacks.catalog) if config.get("provider") is None else None
        if record is None or record.entry is None or not record.entry.fallback:
            return []
        usable = [each.entry for each in self.core.stacks.catalog.usable("provider") if each.entry]
        keys = [e for e in usable if e.key_variable and self.config.env.get(e.key_variable)]
        found = ", ".join(f"{entry.key_variable} is set for {entry.name!r}" for entry in keys)
        text = f"no provider is named, so {record.name!r} answers; name one with --provider or in "
        return [(f"{text}the config" + (f" ({found})" if found else ""), record.name)]

    def create_session(self, system: str | None = None) -> Session:
        """An empty session, or one that begins with a system prompt."""
        session = self.core.create_session()
        return session.with_added({"role": "system", "content": system}) if system else session

    def execute_session_action(
        self,
        session: Session,
        action_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        agent: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, ActionResult]:
        """Run an action that an active plugin offers on the session."""
        config = self.request_config(agent)
        return self.core.execute_session_action(
            session, action_id, config, params, context=context, layer=self._layer()
        )

    def run_session_lifecycle(
        self,
        session: Session,
        trigger: str,
        *,
        agent: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Session:
        """Run the actions that name a lifecycle trigger."""
        config = self.request_config(agent)
        return self.core.run_session_lifecycle(
            session, trigger, config, context=context, layer=self._layer()
        )

    def _layer(self) -> dict[str, Any]:
        return {
            "app": self,
            "application": self,
            "base_config": dict(self.config.values),
            "trigger_source": "application",
        }

    def _observe(self, event: Event) -> None:
        """Show an event to every loaded plugin, once it knows that the application runs."""
        if event["type"] == "request_started":
            # A request has just loaded what it needs; between requests nothing is loaded.
            self._greet_plugins()
        for observer in self._observers:
            observer(event)

    def _greet_plugins(self) -> None:
        with self._lock:
            loaded = self.core.stacks.activator.loaded_plugins
            new = [plugin for plugin in loaded if plugin.key not in self._greeted]
            self._greeted |= {plugin.key: plugin for plugin in new}
        for plugin in new:
            _tell(plugin, "host_started", host=self)
        if new:
            self._observers = tuple(
                partial(self._show_event, plugin, implementation)
                for plugin in loaded
                if plugin.host_manager is not None
                for implementation in plugin.host_manager.implementations("observe_event")
            )

    def _show_event(
        self, plugin: LoadedPlugin, implementation: Implementation, event: Event
    ) -> None:
        # Tools see what happens, but not the config with the providers' keys.
        layer = {"trigger_source": "application"} if plugin.role == "tool" else self._layer()
        try:
            # Called directly, because it runs for every event; with a copy of its own.
            implementation.call(plain_copy(event), layer)
        except (Exception, SystemExit) as error:
            _log_failure(plugin, "observe_event", error)

    def close(self) -> None:
        """Tell the plugins, and let tools and connections go."""
        with self._lock:
            known, self._greeted = list(self._greeted.values()), {}
            self._observers = ()
        for plugin in known:
            _tell(plugin, "host_closing", host=self)
        self.core.close()

    async def aclose(self) -> None:
        """`close`, and the connections of the running event loop."""
        self.close()
        await self.core.aclose()

    def __enter__(self) -> AgentApplication:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> AgentApplication:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _tell(plugin: LoadedPlugin, hook: str, **arguments: Any) -> None:
    """Call a broadcast hook; what it raises is logged and nobody else's affair."""
    try:
        plugin.ask_host(hook, **arguments)
    except Exception as error:
        _log_failure(plugin, hook, error)


def _log_failure(plugin: LoadedPlugin, hook: str, error: BaseException) -> None:
    log_failure(log, "broadcast_failed", error, hook=hook, plugin=plugin.name)


def _fallback(catalog: Catalog) -> PluginRecord | None:
    """The provider of requests that name none, if that can be told."""
    try:
        return catalog.provider(None)
    except UnknownPluginError:  # Nothing is lost: the request raises it too.
        return None


def _load(config: Mapping[str, Any] | AppConfig | str | Path | None) -> AppConfig:
    if isinstance(config, AppConfig):
        return config
    if isinstance(config, Mapping):
        return parse_config(dict(config))
    return load_config(None if config is None else Path(config))


def _answer_of(run: AgentRun) -> Answer:
    session = run.session
    new = session.since(run.start.count)
    return Answer(
        _last_text(new), new, session, run.finish, run.finish_reason, run.limit, run.warnings
    )


def _last_text(messages: Sequence[CoreMessage]) -> str:
    """What was said last; an answer that was paused and went on is one."""
    spoken = [message for message in messages if message["role"] == "assistant"]
    texts = [message["content"] for message in spoken[-1:]]
    for message in reversed(spoken[:-1]):
        if message["metadata"].get("finish") != "pause":
            break
        texts.append(message["content"])
    return "".join(reversed(texts))
