"""`AgentApplication`: config, installed plugins and the tool loop around a core.

This is what most programs use: name an agent, give it a prompt, watch the events, take the answer.
It must not know any provider, nor how a request or a stream works.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from agent_hookspecs.events import Event, WarningEvent
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import ActionResult, Config, CoreMessage
from agent_hookspecs.store.protocol import SessionStore
from agent_hookspecs.store.values import Question
from agent_host.agent.limits import Limits
from agent_host.agent.policy import Approve, Decision, Memory, Policy
from agent_host.agent.questions import Ask
from agent_host.application.answer import Answer, answer_of_run
from agent_host.application.observers import Observers
from agent_host.application.options import Decisions, ResumeOptions, RunOptions, Selected
from agent_host.application.replaying import add_placeholder_keys
from agent_host.application.request_config import make_request_config
from agent_host.application.run_maker import RunMaker, check_tools
from agent_host.application.storage import choose_storage
from agent_host.application.watching import EventFeed, Listener
from agent_host.config import LoadedConfig, load_config, parse_config
from agent_host.config.catalog import configured_catalog
from agent_host.config.selection import Selection, Selector
from agent_host.core import AgentCore
from agent_host.drivers.blocking import Stream, complete
from agent_host.drivers.effects import Emit
from agent_host.input import Part, Prompt
from agent_host.places import ignored_variables
from agent_host.plugins.hook_time import take_slow
from agent_host.plugins.prices import Prices
from agent_host.sessions.frozen import freeze
from agent_host.sessions.session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agent_host.agent.offered_input import OfferedInput, OfferedPrompt
    from agent_host.agent.resume import LaterRun
    from agent_host.application.agents import Agent
    from agent_host.batch.batch import AsyncBatch, Batch, BatchOptions
    from agent_host.batch.lines import Source
    from agent_host.drivers.asynchronous import AsyncStream
    from agent_host.plugins.activate import OnManager
    from agent_host.plugins.stack import Stack
    from agent_host.runs.runs import Runs
    from agent_host.runs.sessions import Sessions
    from agent_host.turn.context import Warn

__all__ = ["AgentApplication", "open_runs"]

log = get_logger(__name__)

T = TypeVar("T")


class AgentApplication:
    """Agents as a config describes them, on the plugins that are installed.

    ``config`` is a path, a dict in the form of the file (typed, it is `agent_host.AppConfig`), what
    `load_config` gave, or None for what `find_config` finds.
    ``tools`` are the program's own: functions, objects with tools as methods, or tool classes.
    ``approve`` is asked about calls that the policy neither allows nor denies; without it they are
    denied. ``ask`` puts the questions of tools to a person. With ``park`` a run that nobody answers
    waits in the store.
    ``store`` says where sessions and runs are stored: a URL, a store, True for the user's own file
    if the config names none, or False; by default where the config says, or nowhere.
    ``on_manager`` is told of every pluggy manager that is made, to trace or monitor its calls.
    ``record`` is a folder into which every exchange with a server is written, ``replay`` one from
    which all answers come, without any server or key.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | LoadedConfig | str | Path | None = None,
        *,
        tools: Iterable[Any] = (),
        approve: Approve | None = None,
        ask: Ask | None = None,
        park: bool = False,
        store: str | bool | SessionStore | None = None,
        http_client: Any = None,
        async_http_client: Any = None,
        on_manager: OnManager | None = None,
        record: str | os.PathLike[str] | None = None,
        replay: str | os.PathLike[str] | None = None,
    ) -> None:
        for ignored in ignored_variables():
            log.warning("variable_ignored", reason=ignored)
        self.config = _load(config)
        # For plugins, which look there; the config itself does not need it.
        os.environ.update(self.config.values.get("env", {}))
        catalog = configured_catalog(self.config)
        if replay is not None:
            self.config = add_placeholder_keys(self.config, catalog)
        values = self.config.values
        self.core = AgentCore(
            catalog=catalog,
            http=values.get("http"),
            http_client=http_client,
            async_http_client=async_http_client,
            on_manager=on_manager,
            record=record,
            replay=replay,
        )
        self.core.stacks.protect(*self.config.own_paths())
        for tool in check_tools(tools):
            self.core.register_tool(tool)
        described = values.get("tools", {})
        self.limits = Limits.of(described)
        self.policy = Policy.of(described, Memory.of_user())
        self.prices = Prices(values.get("prices", {}), self.core.stacks)
        self._selector = Selector(self.config, self.core.stacks)
        self._observers = Observers(self, self.core.stacks.activator, self._layer, self.policy)
        storage = choose_storage(store, values, self.core.stacks)
        self._storage = storage
        self._runs = RunMaker(
            config=self.config,
            core=self.core,
            selector=self._selector,
            policy=self.policy,
            limits=self.limits,
            prices=self.prices,
            storage=storage,
            layer=self._layer,
            observe=self._observers.for_run,
            approve=approve,
            ask=ask,
            park=park,
            parallel=bool(described.get("parallel", False)),
        )

    @property
    def decisions(self) -> deque[Decision]:
        """The latest decisions about tool calls, in order; the log has them all."""
        return self.policy.decisions

    @property
    def sessions(self) -> Sessions:
        """The stored sessions."""
        from agent_host.runs.sessions import Sessions

        return Sessions(self._runs.require_storage())

    @property
    def runs(self) -> Runs:
        """The stored runs."""
        from agent_host.runs.runs import Runs

        return Runs(self._runs.require_storage())

    def open_store(self) -> SessionStore:
        """The store itself, for what plugins keep there: that of the config, or the user's file.

        Where the config names none, sessions and runs are not stored in it.
        """
        if self._storage is None:
            self._storage = choose_storage(True, {}, self.core.stacks)
        assert self._storage is not None, "the user's own file is always there"
        store = self._storage.open()
        # No request has waited for it, so that the next one is not to say that it took long.
        take_slow(inf)
        return store

    def agent(self, name: str) -> Agent:
        """An agent of the config, for instance to make a tool of it."""
        from agent_host.application.agents import Agent

        return Agent(name, self._runs)

    @overload
    def run(
        self, prompt: Prompt, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> Answer[T]: ...
    @overload
    def run(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> Answer[Any]: ...
    def run(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> Answer[Any]:
        """Give an agent a prompt and wait for its answer.

        ``output_type`` is the type that the answer's ``data`` has: a pydantic model, a dataclass, a
        TypedDict, a union, a primitive, or a JSON Schema. `RunOptions` has the options.
        """
        run = self._runs.begin_run(prompt, asynchronous=False, output_type=output_type, **options)
        complete(run.steps(), self.core.wire)
        return answer_of_run(run)

    @overload
    def stream(
        self, prompt: Prompt, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> Stream[Answer[T]]: ...
    @overload
    def stream(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> Stream[Answer[Any]]: ...
    def stream(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> Stream[Answer[Any]]:
        """`run`, and watch the events as they come; the stream's ``answer`` is there at its end."""
        run = self._runs.begin_run(prompt, asynchronous=False, output_type=output_type, **options)
        return Stream(run, self.core.wire, run.cancel, lambda: answer_of_run(run))

    @overload
    async def arun(
        self, prompt: Prompt, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> Answer[T]: ...
    @overload
    async def arun(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> Answer[Any]: ...
    async def arun(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> Answer[Any]:
        """The async form of `run`."""
        from agent_host.drivers.asynchronous import acomplete

        run = self._runs.begin_run(prompt, asynchronous=True, output_type=output_type, **options)
        await acomplete(run.steps(), self.core.async_wire)
        return answer_of_run(run)

    @overload
    def astream(
        self, prompt: Prompt, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> AsyncStream[Answer[T]]: ...
    @overload
    def astream(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> AsyncStream[Answer[Any]]: ...
    def astream(
        self, prompt: Prompt, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> AsyncStream[Answer[Any]]:
        """The async form of `stream`; not itself a coroutine."""
        from agent_host.drivers.asynchronous import AsyncStream

        run = self._runs.begin_run(prompt, asynchronous=True, output_type=output_type, **options)
        return AsyncStream(run, self.core.async_wire, run.cancel, lambda: answer_of_run(run))

    def asend_request_stream(
        self, session: Session, config: Config, *, context: Mapping[str, Any] | None = None
    ) -> AsyncStream:
        """A request of the core that observers are shown like a run: for who stands in between.

        One request and no loop: calls are for whoever reads the events, and nothing is stored.
        """
        from agent_host.drivers.asynchronous import AsyncStream

        run = self._runs.begin_request(session, config, context)
        return AsyncStream(run, self.core.async_wire)

    def batch(self, lines: Source, **options: Unpack[BatchOptions]) -> Batch:
        """Answer many prompts at once: iterate for the results as they come, or call its ``run``.

        ``lines`` are prompts, or objects as lines of a batch file are, or the path of such a file.
        With ``out`` results are written to a file, and a batch that has ended early goes on there.
        `agent_host.batch.BatchOptions` has the options.
        """
        from agent_host.batch.batch import Batch, BatchSetup

        return Batch(BatchSetup(self._runs, lines, options))

    def abatch(self, lines: Source, **options: Unpack[BatchOptions]) -> AsyncBatch:
        """The async form of `batch`; not itself a coroutine."""
        from agent_host.batch.batch import AsyncBatch, BatchSetup

        return AsyncBatch(BatchSetup(self._runs, lines, options))

    def resume(
        self,
        run: str,
        decisions: Decisions | None = None,
        *,
        output_type: Any = None,
        **options: Unpack[ResumeOptions],
    ) -> Answer[Any]:
        """Go on with a stored run from its last stored step, and wait for its answer.

        ``decisions`` are answers to what it waits for, by the ids of its questions: ``once``,
        ``always`` or ``deny`` for calls, text for what tools ask. A call that has a result is never
        run again. `ResumeOptions` has the options.
        """
        later = self._begin_resuming(run, decisions, output_type, options, asynchronous=False)
        complete(later.steps(), self.core.wire)
        return answer_of_run(later.made)

    def resume_stream(
        self,
        run: str,
        decisions: Decisions | None = None,
        *,
        output_type: Any = None,
        **options: Unpack[ResumeOptions],
    ) -> Stream[Answer[Any]]:
        """`resume`, and watch the events as they come."""
        later = self._begin_resuming(run, decisions, output_type, options, asynchronous=False)
        return Stream(later, self.core.wire, later.cancel, lambda: answer_of_run(later.made))

    async def aresume(
        self,
        run: str,
        decisions: Decisions | None = None,
        *,
        output_type: Any = None,
        **options: Unpack[ResumeOptions],
    ) -> Answer[Any]:
        """The async form of `resume`."""
        from agent_host.drivers.asynchronous import acomplete

        later = self._begin_resuming(run, decisions, output_type, options, asynchronous=True)
        await acomplete(later.steps(), self.core.async_wire)
        return answer_of_run(later.made)

    def aresume_stream(
        self,
        run: str,
        decisions: Decisions | None = None,
        *,
        output_type: Any = None,
        **options: Unpack[ResumeOptions],
    ) -> AsyncStream[Answer[Any]]:
        """The async form of `resume_stream`; not itself a coroutine."""
        from agent_host.drivers.asynchronous import AsyncStream

        later = self._begin_resuming(run, decisions, output_type, options, asynchronous=True)
        wire = self.core.async_wire
        return AsyncStream(later, wire, later.cancel, lambda: answer_of_run(later.made))

    def _begin_resuming(
        self,
        run: str,
        decisions: Decisions | None,
        output_type: Any,
        options: ResumeOptions,
        *,
        asynchronous: bool,
    ) -> LaterRun:
        return self._runs.begin_resuming(
            run, decisions, asynchronous=asynchronous, output_type=output_type, **options
        )

    async def acall_tool(
        self,
        name: str,
        payload: Mapping[str, Any],
        *,
        approve: Approve | None = None,
        park: bool = False,
        on_event: Callable[[Event], None] | None = None,
        agent: str | None = None,
        provider: str | None = None,
    ) -> CoreMessage | Question:
        """Call a tool without a model, as the policy allows; the message that a model would get.

        For programs that offer the tools to somebody else. With ``park`` and without ``approve`` a
        call that has to be asked about comes to its question. ``on_event`` is told of progress.
        """
        from agent_host.agent.single_call import SingleCall
        from agent_host.drivers.asynchronous import acomplete

        def emit(events: list[Event]) -> Emit:
            if on_event is not None:
                for event in events:
                    on_event(event)
            return Emit(events)

        call = SingleCall(
            stacks=self.core.stacks,
            config=self.request_config(agent, provider),
            policy=self.policy,
            limits=self.limits,
            approve=approve,
            park=park,
            emit=emit,
        )
        return await acomplete(call.steps(name, payload), self.core.async_wire)

    def list_prompts(self, **selected: Unpack[Selected]) -> list[OfferedPrompt]:
        """The prompts that the tools have for people; options are those of `run`."""
        return complete(self._offered_input(None, None, selected).list_prompts(), self.core.wire)

    def read_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        ask: Ask | None = None,
        warn: Warn | None = None,
        **selected: Unpack[Selected],
    ) -> list[Part]:
        """What a prompt of a tool gives: parts that `run` takes as its prompt.

        ``ask`` puts questions to a person; ``warn`` is told, with the name of the plugin, what was
        left out.
        """
        steps = self._offered_input(ask, warn, selected).read_prompt(name, arguments or {})
        return complete(steps, self.core.wire)

    def read_attachment(
        self,
        address: str,
        *,
        ask: Ask | None = None,
        warn: Warn | None = None,
        **selected: Unpack[Selected],
    ) -> list[Part] | None:
        """What stands at an address that a tool knows, as parts for `run`; else None."""
        steps = self._offered_input(ask, warn, selected).read_attachment(address)
        return complete(steps, self.core.wire)

    async def aread_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        ask: Ask | None = None,
        warn: Warn | None = None,
        **selected: Unpack[Selected],
    ) -> list[Part]:
        """The async form of `read_prompt`."""
        from agent_host.drivers.asynchronous import acomplete

        steps = self._offered_input(ask, warn, selected).read_prompt(name, arguments or {})
        return await acomplete(steps, self.core.async_wire)

    async def aread_attachment(
        self,
        address: str,
        *,
        ask: Ask | None = None,
        warn: Warn | None = None,
        **selected: Unpack[Selected],
    ) -> list[Part] | None:
        """The async form of `read_attachment`."""
        from agent_host.drivers.asynchronous import acomplete

        steps = self._offered_input(ask, warn, selected).read_attachment(address)
        return await acomplete(steps, self.core.async_wire)

    def _offered_input(
        self, ask: Ask | None, warn: Warn | None, selected: Selected
    ) -> OfferedInput:
        from agent_host.agent.offered_input import OfferedInput

        return OfferedInput(self.core.stacks, self.request_config(**selected), ask, warn)

    def on_event(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every event of every run, from now on.

        In the thread of the run, and before whoever reads its stream; what it raises is logged.
        Gives a function that ends it.
        """
        return self._observers.add_listener(listener)

    def events(self) -> EventFeed:
        """Every event of every run from now on, to be read with ``for`` or ``async for``.

        It goes on until it is closed, or the application is.
        """
        return self._observers.open_feed()

    def check(self, **options: Unpack[RunOptions]) -> list[WarningEvent]:
        """Do what `run` does before it sends anything, and raise what it would raise.

        Options are those of `run`. The models of the provider may be asked for. The warnings
        that a run would begin with are given.
        """
        run = self._runs.begin_run("never sent", asynchronous=False, **options)
        complete(run.check_steps(), self.core.wire)
        return run.warnings

    def stack(self, **options: Unpack[RunOptions]) -> Stack:
        """The stack that a run with these options has, which are those of `run`; to look at."""
        run = self._runs.begin_run("never sent", asynchronous=False, is_only_shown=True, **options)
        return self.core.stack(run.config)

    def request_config(
        self,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        use_tools: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The settings of a request, as a core wants them."""
        return make_request_config(self._selector, agent, provider, model, use_tools, settings)

    def select(
        self,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        *,
        parts: bool = False,
    ) -> Selection:
        """Whom a run with these options asks, and why if nobody has said so.

        With ``parts`` the model may be a part of an id, for who types it.
        """
        return self._selector.select(agent, provider, model, parts=parts)

    def create_session(self, system: str | None = None) -> Session:
        """An empty session, or one that begins with a system prompt."""
        return self._runs.create_session(system)

    def execute_session_action(
        self,
        session: Session | str,
        action_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, ActionResult]:
        """Run an action that an active plugin offers on the session.

        The plugins are those of a run with the same options. Of the id or name of a stored session,
        what the action has made is stored.
        """
        config = self.request_config(agent, provider, model, settings=settings)

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
            "base_config": self.config.values,
            "trigger_source": "application",
        }

    def close(self) -> None:
        """Tell the plugins, and let tools and connections go."""
        try:
            self._observers.close()
        finally:
            # Also if somebody interrupts a plugin that is told.
            self._close_parts()

    def _close_parts(self) -> None:
        try:
            self.core.close()
        finally:
            if self._storage is not None:
                self._storage.close()

    async def aclose(self) -> None:
        """`close`, and the connections of the running event loop."""
        try:
            self.close()
        finally:
            await self.core.aclose()

    def __enter__(self) -> AgentApplication:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> AgentApplication:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def open_runs(values: Mapping[str, Any]) -> tuple[RunMaker, Callable[[], Awaitable[None]]]:
    """The runs of an application of its own, and what closes it: for workers in other processes."""
    app = AgentApplication(values, store=False)
    return app._runs, app.aclose


def _load(config: Mapping[str, Any] | LoadedConfig | str | Path | None) -> LoadedConfig:
    """The config, whose values nobody can change: plugins get to see them."""
    if isinstance(config, Mapping):
        config = parse_config(dict(config))
    elif not isinstance(config, LoadedConfig):
        config = load_config(None if config is None else Path(config))
    return replace(config, values=freeze(dict(config.values)))
