"""`AgentApplication`: config, installed plugins and the tool loop around a core.

This is what most programs use: name an agent, give it a prompt, watch the events, take the answer.
It must not know any provider, nor how a request or a stream works.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import ConfigError, UnknownPluginError
from agent_hookspecs.events import Event, WarningEvent
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import ActionResult, CoreMessage, Finish, Limit
from agent_hookspecs.store.protocol import SessionStore
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.store.values import Question, StoredRun
from agent_hookspecs.values import dataclass
from agent_host.agent.limits import Limits
from agent_host.agent.loop import AgentRun, close_calls
from agent_host.agent.policy import Approve, Decision, Memory, Policy
from agent_host.agent.questions import Ask
from agent_host.agent.resume import LaterRun, stored_decisions
from agent_host.config import AppConfig, load_config, parse_config
from agent_host.config.catalog import configured_catalog
from agent_host.config.check import check_loading, check_request
from agent_host.core import AgentCore
from agent_host.drivers.blocking import Stream, complete
from agent_host.places import ignored_variables
from agent_host.plugins.access import KEY_SETTINGS, set_variable
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.plugins.stores import open_store
from agent_host.private import config_home
from agent_host.redaction import without_secrets
from agent_host.runs.recorder import RunRecorder
from agent_host.runs.runs import Runs
from agent_host.runs.sessions import Sessions
from agent_host.runs.storage import Storage
from agent_host.sessions.frozen import plain_copy
from agent_host.sessions.session import Session
from agent_host.store.plugin import DEFAULT_URL, database_files

if TYPE_CHECKING:
    from agent_host.drivers.asynchronous import AsyncStream
    from agent_host.plugins.activate import LoadedPlugin, OnManager
    from agent_host.plugins.catalog import Catalog, PluginRecord
    from agent_host.plugins.stack import PlainWarning, Stack

__all__ = ["AgentApplication", "Answer"]

log = get_logger(__name__)

#: Answers of people by the ids of the questions.
Decisions = Mapping[str, "str | bool"]
#: What a config gives in the place of a URL if nothing is to be stored.
_NO_STORE = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run came to: the last text, every new message, the session, and how it ended.

    ``finish`` is ``stop`` for an answer that is whole. Else ``text`` may be a part of one or empty:
    ``refusal`` has the words of a model that declined, ``limit`` the limit that the run reached.
    ``finish_reason`` is the provider's own word for the end of the last turn.
    ``warnings`` are those of the whole run: what was left out, ignored or tried again.
    ``run`` is the id under which it is stored, if it is; ``waiting`` is what it waits for.
    """

    text: str
    messages: list[CoreMessage]
    session: Session
    finish: Finish
    finish_reason: str | None = None
    limit: Limit | None = None
    warnings: list[WarningEvent] = field(default_factory=list)
    run: str | None = None
    waiting: tuple[Question, ...] = ()

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
    about calls that the policy neither allows nor denies; without it they are denied. ``ask`` puts
    the questions of tools to a person. With ``park`` a run that nobody answers waits in the store.
    ``store`` says where sessions and runs are stored: a URL, a store, True for the user's own file
    if the config names none, or False; by default where the config says, or nowhere.
    ``on_manager`` is told of every pluggy manager that is made, to trace or monitor its calls.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | AppConfig | str | Path | None = None,
        *,
        tools: Iterable[Any] = (),
        approve: Approve | None = None,
        ask: Ask | None = None,
        park: bool = False,
        store: str | bool | SessionStore | None = None,
        http_client: Any = None,
        async_http_client: Any = None,
        on_manager: OnManager | None = None,
    ) -> None:
        for ignored in ignored_variables():
            log.warning("variable_ignored", reason=ignored)
        self.config = _load(config)
        values = self.config.values
        # For plugins, which look there; the config itself does not need it.
        os.environ.update(values.get("env", {}))
        self.core = AgentCore(
            catalog=configured_catalog(self.config),
            http=values.get("http"),
            http_client=http_client,
            async_http_client=async_http_client,
            on_manager=on_manager,
        )
        self.core.stacks.protect(*self.config.own_paths())
        for tool in tools:
            self.core.register_tool(tool)
        described = values.get("tools", {})
        self.limits = Limits.of(described)
        self.policy = Policy.of(described, Memory(config_home() / "allowed-tools.json"))
        self._parallel = bool(described.get("parallel", False))
        self._approve = approve
        self._ask = ask
        self._park = park
        self._storage = self._make_storage(store)
        self._greeted: dict[str, LoadedPlugin] = {}
        self._observers: tuple[Callable[[Event], None], ...] = ()
        self._lock = threading.Lock()
        self._is_loading_checked = False

    @property
    def decisions(self) -> deque[Decision]:
        """The latest decisions about tool calls, in order; the log has them all."""
        return self.policy.decisions

    def _make_storage(self, given: str | bool | SessionStore | None) -> Storage | None:
        if isinstance(given, bool) or given is None:
            url = None if given is False else self.config.values.get("store")
            given = url or (DEFAULT_URL if given is True else None)
        if given is None or given == _NO_STORE:
            return None
        if not isinstance(given, str):
            made = given
            return Storage(lambda: made)
        options = self.config.values.get("store_options", {})
        stacks = self.core.stacks
        where = given
        stacks.protect(*database_files(where))
        return Storage(lambda: open_store(where, options, stacks.catalog, stacks.activator))

    @property
    def sessions(self) -> Sessions:
        """The stored sessions."""
        return Sessions(self._require_storage())

    @property
    def runs(self) -> Runs:
        """The stored runs."""
        return Runs(self._require_storage())

    def _require_storage(self) -> Storage:
        if self._storage is None:
            raise ConfigError(
                "this application stores nothing",
                key="store",
                hint="set store in the config, or give AgentApplication(store=…)",
            )
        return self._storage

    def run(self, prompt: str, **options: Any) -> Answer:
        """Give an agent a prompt and wait for its answer. Options are those of `stream`."""
        run = self._begin_run(prompt, asynchronous=False, **options)
        complete(run.steps(), self.core.wire)
        return _answer_of(run)

    def stream(self, prompt: str, **options: Any) -> Stream:
        """Give an agent a prompt and watch the events as they come.

        Options: ``session`` to go on with, or the id or name of a stored one; ``agent``,
        ``provider`` and ``model`` to use, ``system`` for the system prompt and ``session_name`` for
        the name of a new session, ``tools`` as patterns of tool names, ``settings`` for the
        request, ``approve``, ``ask``, ``park``, ``limits``, ``context`` for the plugins, and
        ``parent`` for the id of the run that this one is a part of.
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

    def resume(self, run: str, decisions: Decisions | None = None, **options: Any) -> Answer:
        """Go on with a stored run from its last stored step, and wait for its answer.

        ``decisions`` are answers to what it waits for, by the ids of its questions: ``once``,
        ``always`` or ``deny`` for calls, text for what tools ask. A call that has a result is never
        run again. Options are ``approve``, ``ask``, ``park``, ``limits`` and ``context``.
        """
        later = self._begin_resuming(run, decisions, asynchronous=False, **options)
        complete(later.steps(), self.core.wire)
        return _answer_of(later.made)

    def resume_stream(self, run: str, decisions: Decisions | None = None, **options: Any) -> Stream:
        """`resume`, and watch the events as they come."""
        later = self._begin_resuming(run, decisions, asynchronous=False, **options)
        return Stream(later, self.core.wire, on_close=later.cancel)

    async def aresume(self, run: str, decisions: Decisions | None = None, **options: Any) -> Answer:
        """The async form of `resume`."""
        from agent_host.drivers.asynchronous import acomplete

        later = self._begin_resuming(run, decisions, asynchronous=True, **options)
        await acomplete(later.steps(), self.core.async_wire)
        return _answer_of(later.made)

    def aresume_stream(
        self, run: str, decisions: Decisions | None = None, **options: Any
    ) -> AsyncStream:
        """The async form of `resume_stream`; not itself a coroutine."""
        from agent_host.drivers.asynchronous import AsyncStream

        later = self._begin_resuming(run, decisions, asynchronous=True, **options)
        return AsyncStream(later, self.core.async_wire, on_close=later.cancel)

    def _begin_resuming(
        self,
        run: str,
        decisions: Decisions | None,
        *,
        asynchronous: bool,
        approve: Approve | None = None,
        ask: Ask | None = None,
        park: bool | None = None,
        limits: Limits | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> LaterRun:
        storage = self._require_storage()

        def make() -> AgentRun:
            stored = stored_decisions(storage.open().find_run(run), decisions or {})
            asked = stored.details.get("asked", {})
            return self._make_run(
                Session(id=stored.session),
                self.request_config(**asked),
                own=asked.get("settings", {}).keys(),
                asynchronous=asynchronous,
                approve=approve,
                ask=ask,
                park=bool(stored.details.get("park")) if park is None else park,
                limits=limits,
                context=context,
                recorder=RunRecorder(storage, stored, stored.session, resumes=True),
            )

        return LaterRun(make, self.core.create_session())

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
        is_only_shown: bool = False,
        session: Session | str | None = None,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        system: str | None = None,
        session_name: str | None = None,
        tools: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        parent: str | None = None,
        park: bool | None = None,
        **options: Any,
    ) -> AgentRun:
        if not (is_only_shown or self._is_loading_checked):
            check_loading(self.config, self.core.stacks.catalog)
            self._is_loading_checked = True
        asked: dict[str, Any] = {
            "agent": agent,
            "provider": provider,
            "model": model,
            "tools": tools if tools is None or isinstance(tools, str) else list(tools),
            "settings": dict(settings or {}),
        }
        config, own = self.request_config(**asked), asked["settings"].keys()
        is_new = session is None
        if session is None:
            session = self.create_session(system or self.config.system_prompt(agent))
        message: CoreMessage = {"role": "user", "content": prompt, "metadata": {}}
        park = self._park if park is None else park
        if self._storage is None:
            if isinstance(session, str) or park:
                # There is nothing to find it in, nor to wait in.
                self._require_storage()
            start = close_calls(cast(Session, session)).with_added(message)
            return self._make_run(
                start, config, own=own, asynchronous=asynchronous, park=park, **options
            )
        asked["settings"] = without_secrets(asked["settings"])
        now = time.time()
        run = StoredRun(
            id=new_id(),
            session="",
            state="pending",
            parent=parent,
            agent=agent,
            created=now,
            updated=now,
            details={"asked": asked, "park": park},
        )
        return self._make_run(
            session if isinstance(session, Session) else Session(),
            config,
            own=own,
            asynchronous=asynchronous,
            park=park,
            prompt=message,
            recorder=RunRecorder(self._storage, run, session, is_new=is_new, name=session_name),
            **options,
        )

    def _make_run(
        self,
        start: Session,
        config: dict[str, Any],
        *,
        own: Collection[str],
        asynchronous: bool,
        park: bool,
        approve: Approve | None = None,
        ask: Ask | None = None,
        limits: Limits | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: CoreMessage | None = None,
        recorder: RunRecorder | None = None,
    ) -> AgentRun:
        """A run; ``own`` are the settings that the caller has named."""
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigError(
                f"limits is {type(limits).__name__}, and not Limits",
                key="limits",
                hint="from agent_host.agent.limits import Limits; limits=Limits(turns=1)",
            )
        return AgentRun(
            stacks=self.core.stacks,
            start=start,
            config=config,
            core=self.core,
            policy=self.policy,
            limits=limits or self.limits,
            approve=approve or self._approve,
            ask=ask or self._ask,
            park=park,
            parallel=self._parallel,
            asynchronous=asynchronous,
            context=context,
            layer=self._layer(),
            observe=self._observe,
            prompt=prompt,
            recorder=recorder,
            first_warnings=[
                *((text, None) for text in self.config.warnings),
                *self._fallback_warnings(config),
            ],
            defaults=self.config.values.get("request_defaults", {}).keys() - set(own),
        )

    def stack(self, **options: Any) -> Stack:
        """The stack that a run with these options has, which are those of `stream`; to look at."""
        run = self._begin_run("", asynchronous=False, is_only_shown=True, **options)
        return self.core.stack(run.config)

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
        session: Session | str,
        action_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        agent: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, ActionResult]:
        """Run an action that an active plugin offers on the session.

        Of the id or name of a stored session, what the action has made is stored.
        """
        config = self.request_config(agent)

        def act(session: Session) -> tuple[Session, ActionResult]:
            return self.core.execute_session_action(
                session, action_id, config, params, context=context, layer=self._layer()
            )

        if isinstance(session, Session):
            return act(session)
        results: list[ActionResult] = []

        def keep_result(found: Session) -> Session:
            changed, result = act(found)
            results.append(result)
            return changed

        return self.sessions.edit(session, keep_result), results[0]

    def run_session_lifecycle(
        self,
        session: Session | str,
        trigger: str,
        *,
        agent: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Session:
        """Run the actions that name a lifecycle trigger.

        Runs of a stored session do so by themselves. Of the id or name of one, what the actions
        have made is stored.
        """
        config = self.request_config(agent)

        def act(session: Session) -> Session:
            return self.core.run_session_lifecycle(
                session, trigger, config, context=context, layer=self._layer()
            )

        if isinstance(session, Session):
            return act(session)
        return self.sessions.edit(session, act)

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
        if self._storage is not None:
            self._storage.close()

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
        _last_text(new),
        new,
        session,
        run.finish,
        run.finish_reason,
        run.limit,
        run.warnings,
        run.run_id,
        tuple(run.waiting),
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
