"""`RunMaker`: runs of an application, from what a caller gives for each.

It decides which session a run begins with and whether it is stored; how a run works is the affair
of the tool loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.events import Event
from agent_hookspecs.messages import Config, CoreMessage
from agent_hookspecs.session import Session as AnySession
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.store.values import StoredRun
from agent_hookspecs.values import dataclass
from agent_host.agent.costs import RunCosts
from agent_host.agent.limits import Limits, LimitSettings
from agent_host.agent.loop import AgentRun
from agent_host.agent.policy import Approve, Policy
from agent_host.agent.questions import Ask
from agent_host.agent.setup import RunSetup
from agent_host.agent.unanswered import close_calls
from agent_host.application.limits import read_limits
from agent_host.application.options import Decisions, RunOptions
from agent_host.application.request_config import fallback_warnings, make_request_config
from agent_host.checking import suggest_name
from agent_host.config import LoadedConfig
from agent_host.config.check import check_loading
from agent_host.config.selection import Selector
from agent_host.input import Prompt, make_message
from agent_host.plugins.prices import Prices
from agent_host.redaction import without_secrets
from agent_host.sessions.session import Session
from agent_host.turn.steps import SingleTurn

if TYPE_CHECKING:
    from agent_host.agent.resume import LaterRun
    from agent_host.core import AgentCore
    from agent_host.output import ExpectedOutput
    from agent_host.runs.recorder import RunRecorder
    from agent_host.runs.storage import Storage

__all__ = ["RunMaker", "check_tools"]


@dataclass(slots=True)
class RunMaker:
    """What the runs of one application have in common."""

    config: LoadedConfig
    core: AgentCore
    selector: Selector
    policy: Policy
    limits: Limits
    prices: Prices
    storage: Storage | None
    layer: Callable[[], Mapping[str, Any]]
    #: Gives what is shown the events of a run, for its id, its agent and the keys of its caller.
    observe: Callable[[str, str | None, Mapping[str, Any] | None], Callable[[Event], None]]
    approve: Approve | None = None
    ask: Ask | None = None
    park: bool = False
    parallel: bool = False
    _is_loading_checked: bool = False

    def begin_run(
        self,
        prompt: Prompt,
        *,
        asynchronous: bool,
        stream: bool = True,
        is_only_shown: bool = False,
        session: AnySession | str | None = None,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        system: str | None = None,
        session_name: str | None = None,
        use_tools: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        parent: str | None = None,
        park: bool | None = None,
        output_type: Any = None,
        output_retries: int | None = None,
        **options: Any,
    ) -> AgentRun:
        """A new run of a prompt; one that ``is_only_shown`` is never carried out.

        Without ``stream`` it asks for whole answers.
        """
        _refuse_unknown(options)
        if not (is_only_shown or self._is_loading_checked):
            check_loading(self.config, self.core.stacks.catalog)
            self._is_loading_checked = True
        chosen = self.selector.select(agent, provider, model, settings=settings)
        asked: dict[str, Any] = {
            "agent": agent,
            # As they were chosen, because whoever resumes the run asks the same.
            "provider": chosen.provider,
            "model": chosen.model,
            "use_tools": (
                use_tools if use_tools is None or isinstance(use_tools, str) else list(use_tools)
            ),
            "settings": dict(settings or {}),
        }
        config = make_request_config(self.selector, **asked)
        own = asked["settings"].keys()
        is_new = session is None
        if session is None:
            session = self.create_session(system or self.config.system_prompt(agent))
        if not isinstance(session, (str, Session)):
            raise ConfigError(
                f"session is {type(session).__name__}, and not a session of this host",
                key="session",
                hint="give a Session, or the id or name of a stored one",
            )
        message = make_message(prompt)
        options["output"] = _expected_output(output_type, output_retries)
        park = self.park if park is None else park
        make_run: Callable[..., AgentRun] = partial(
            self._make_run,
            config,
            agent=agent,
            provider=chosen.provider,
            own=own,
            asynchronous=asynchronous,
            stream=stream,
            park=park,
            **options,
        )
        if self.storage is None:
            if isinstance(session, str) or park:
                # There is nothing to find it in, nor to wait in.
                self.require_storage()
            return make_run(close_calls(cast(Session, session)).with_added(message))
        from agent_host.runs.recorder import RunRecorder

        run = _new_run(agent, parent, {"asked": asked, "park": park})
        recorder = RunRecorder(self.storage, run, session, is_new=is_new, name=session_name)
        start = session if isinstance(session, Session) else Session()
        return make_run(start, prompt=message, recorder=recorder)

    def begin_request(
        self, session: Session, config: Config, context: Mapping[str, Any] | None
    ) -> SingleTurn:
        """A single async request whose events are observed as those of a run are."""
        run_id = new_id()
        return SingleTurn(
            self.core.stacks,
            session,
            config,
            observe=self.observe(run_id, None, context),
            core=self.core,
            stream=True,
            asynchronous=True,
            caller_context=context,
            layer={**self.layer(), "run_path": (run_id,), "agent": None},
        )

    def begin_resuming(
        self,
        run: str,
        decisions: Decisions | None,
        *,
        asynchronous: bool,
        approve: Approve | None = None,
        ask: Ask | None = None,
        park: bool | None = None,
        limits: Limits | LimitSettings | None = None,
        context: Mapping[str, Any] | None = None,
        output_type: Any = None,
        output_retries: int | None = None,
        tools: Iterable[object] = (),
        deps: object = None,
    ) -> LaterRun:
        """A stored run that goes on, with these answers to what it waits for."""
        from agent_host.agent.resume import LaterRun, stored_decisions
        from agent_host.runs.recorder import RunRecorder

        storage = self.require_storage()
        output = _expected_output(output_type, output_retries)

        def make() -> AgentRun:
            stored = stored_decisions(storage.open().find_run(run), decisions or {})
            asked = stored.details.get("asked", {})
            return self._make_run(
                make_request_config(self.selector, **asked),
                Session(id=stored.session),
                agent=stored.agent,
                provider=asked.get("provider"),
                own=asked.get("settings", {}).keys(),
                asynchronous=asynchronous,
                approve=approve,
                ask=ask,
                park=bool(stored.details.get("park")) if park is None else park,
                limits=limits,
                context=context,
                output=output,
                tools=tools,
                deps=deps,
                recorder=RunRecorder(storage, stored, stored.session, resumes=True),
            )

        return LaterRun(make, self.core.create_session())

    def create_session(self, system: str | None = None) -> Session:
        """An empty session, or one that begins with a system prompt."""
        session = self.core.create_session()
        return session.with_added({"role": "system", "content": system}) if system else session

    def require_storage(self) -> Storage:
        """The storage; raises where there is none."""
        if self.storage is None:
            raise ConfigError(
                "this application stores nothing",
                key="store",
                hint="set store in the config, or give AgentApplication(store=…)",
            )
        return self.storage

    def _make_run(
        self,
        config: dict[str, Any],
        start: Session,
        *,
        agent: str | None,
        provider: str | None,
        own: Collection[str],
        asynchronous: bool,
        park: bool,
        stream: bool = True,
        approve: Approve | None = None,
        ask: Ask | None = None,
        limits: Limits | LimitSettings | None = None,
        context: Mapping[str, Any] | None = None,
        output: ExpectedOutput | None = None,
        tools: Iterable[object] = (),
        deps: object = None,
        prompt: CoreMessage | None = None,
        recorder: RunRecorder | None = None,
    ) -> AgentRun:
        """A run of an agent; ``own`` are the settings that the caller has named.

        ``provider`` is whom the caller has named, if anybody.
        """
        approve, ask = approve or self.approve, ask or self.ask
        _check_person("approve", approve)
        _check_person("ask", ask)
        chosen_limits = read_limits(limits, self.limits)
        if recorder is None:
            _refuse_uncounted(chosen_limits)
        run_id = recorder.run.id if recorder else new_id()
        setup = RunSetup(
            stacks=self.core.stacks,
            core=self.core,
            policy=self.policy,
            limits=chosen_limits,
            costs=RunCosts(self.prices, self.config.provider_name(agent, provider)),
            approve=approve,
            ask=ask,
            park=park,
            parallel=self.parallel,
            asynchronous=asynchronous,
            stream=stream,
            context=context,
            tools=check_tools(tools),
            deps=deps,
            first_warnings=[
                *((text, None) for text in self.config.warnings),
                *fallback_warnings(self.core.stacks.catalog, config),
            ],
            defaults=self.config.values.get("request_defaults", {}).keys() - set(own),
        )
        return AgentRun(
            setup,
            start,
            config,
            layer={**self.layer(), "run_path": (run_id,), "agent": agent},
            observe=self.observe(run_id, agent, context),
            prompt=prompt,
            output=output,
            recorder=recorder,
        )


def _new_run(agent: str | None, parent: str | None, details: dict[str, Any]) -> StoredRun:
    """The record of a run that begins; its settings are stored without secrets."""
    asked, now = details["asked"], time.time()
    details["asked"] = {**asked, "settings": without_secrets(asked["settings"])}
    return StoredRun(
        id=new_id(),
        session="",
        state="pending",
        parent=parent,
        agent=agent,
        created=now,
        updated=now,
        details=details,
    )


def _refuse_unknown(options: Iterable[str]) -> None:
    known = RunOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f"a run has no option {name!r}: {suggest_name(name, known)}")


def _refuse_uncounted(limits: Limits) -> None:
    """Refuse a budget of more than one run where nobody counts what runs have cost."""
    setting = limits.needs_store
    if setting is not None:
        raise ConfigError(
            f"{setting} is set, and this run is not stored, so that nobody counts what it costs",
            key=f"tools.{setting}",
            hint="set store in the config (and leave out --no-store), or use max_cost alone",
        )


def _expected_output(output_type: Any, retries: int | None) -> ExpectedOutput | None:
    if output_type is None:
        return None
    from agent_host.output import ExpectedOutput

    return ExpectedOutput(output_type, retries)


def _check_person(option: str, person: object) -> None:
    """Refuse at once what could not be asked when it comes to that."""
    if person is not None and not callable(person):
        raise ConfigError(
            f"{option} is {type(person).__name__}, and not a function",
            key=option,
            hint=f"give a function, which is called with what is to be decided, or no {option}",
        )


def check_tools(tools: Iterable[object]) -> tuple[object, ...]:
    """The tools of a run; names of tools are another option."""
    if not isinstance(tools, (str, Iterable)):
        raise ConfigError(
            f"tools is {type(tools).__name__}, and not a list",
            key="tools",
            hint="give a list of tools: tools=[…]",
        )
    given = (tools,) if isinstance(tools, str) else tuple(tools)
    for each in given:
        if isinstance(each, str):
            raise ConfigError(
                f"tools has the text {each!r}, and takes functions, classes and objects",
                key="tools",
                hint=f"which of the installed tools may be used is use_tools=[{each!r}]",
            )
    return given
