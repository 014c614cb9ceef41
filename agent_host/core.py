"""`AgentCore`: plugins, sessions and requests, without config files, agents or a tool loop.

A façade: every method hands over to the module that does the work. Its async methods import the
async driver when they are called, because asyncio comes with it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from agent_hookspecs.errors import AgentError, ConfigError
from agent_hookspecs.logs import redact_error
from agent_hookspecs.messages import ActionResult, Config, CoreMessage, ModelInfo
from agent_hookspecs.roles import PluginRole
from agent_host.drivers.blocking import Stream, complete
from agent_host.drivers.effects import Steps
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.register import record_plugin
from agent_host.plugins.stack import Stack
from agent_host.plugins.stacks import Stacks
from agent_host.sessions.frozen import plain_copy
from agent_host.sessions.session import Session
from agent_host.turn.actions import execute_action, offered_actions, run_trigger
from agent_host.turn.context import tool_context
from agent_host.turn.elements import ui_elements
from agent_host.turn.prepare import begin_state
from agent_host.turn.steps import SingleTurn
from agent_host.turn.turn import Turn
from agent_host.wire import framing
from agent_host.wire.client import AsyncWireClient, WireClient

if TYPE_CHECKING:
    from agent_hookspecs.tool_interop import ToolDescriptor
    from agent_host.drivers.asynchronous import AsyncStream
    from agent_host.plugins.activate import OnManager
    from agent_host.plugins.resolve import Resolution
    from agent_host.relay import RelayedAnswer

__all__ = ["AgentCore"]

T = TypeVar("T")


class AgentCore:
    """Runs requests of sessions through plugins.

    It discovers nothing by itself: register classes, or hand it a ``catalog`` of what is installed.
    ``http_client`` and ``async_http_client`` are ready httpx clients to use instead of its own;
    ``http`` names the library its own are made with, by default what AGENT_HOST_HTTP names, or
    else httpx. ``model_seconds`` is how long a list of models stays fresh. ``on_manager`` is told
    of every pluggy manager that is made, to trace or monitor its calls. ``record`` is a folder into
    which every exchange is written, ``replay`` one from which all answers come. Threads and event
    loops may share one core; close it when done.
    """

    def __init__(
        self,
        *,
        catalog: Catalog | None = None,
        http: str | None = None,
        http_client: Any = None,
        async_http_client: Any = None,
        model_seconds: float = 300.0,
        on_manager: OnManager | None = None,
        record: str | os.PathLike[str] | None = None,
        replay: str | os.PathLike[str] | None = None,
    ) -> None:
        self._stacks = Stacks(model_seconds=model_seconds, on_manager=on_manager)
        library = http or os.environ.get("AGENT_HOST_HTTP") or "httpx"
        self._wire, self._async_wire = _make_wires(
            http_client, async_http_client, library, record, replay
        )
        self._lock = threading.Lock()
        if catalog is not None:
            self._stacks.use(catalog)

    def register_provider(self, plugin: object, extensions: Iterable[object] | None = None) -> None:
        """Register a provider, and extensions along with it: all of them or none.

        A plugin is a class, an object with hooks as methods, or a module with marked hooks.
        """
        self._register(("provider", plugin), *(("extension", each) for each in extensions or ()))

    def register_extension(self, plugin: object) -> None:
        """Register a provider extension; see `register_provider` for what a plugin is."""
        self._register(("extension", plugin))

    def register_feature(self, plugin: object) -> None:
        """Register a feature; see `register_provider` for what a plugin is."""
        self._register(("feature", plugin))

    def register_tool(self, plugin: object) -> None:
        """Register a tool; see `register_provider` for what a plugin is."""
        self._register(("tool", plugin))

    def _register(self, *plugins: tuple[PluginRole, object]) -> None:
        with self._lock:
            catalog = self._stacks.catalog
            for role, plugin in plugins:
                record = record_plugin(plugin, role, catalog, self._stacks.activator)
                catalog = replace(catalog, records=(*catalog.records, record))
            self._stacks.use(catalog)

    @property
    def stacks(self) -> Stacks:
        """The resolved stacks, for whoever builds on requests, such as a tool loop."""
        return self._stacks

    @property
    def wire(self) -> WireClient:
        """What carries sync requests."""
        return self._wire

    @property
    def async_wire(self) -> AsyncWireClient:
        """What carries async requests; its connections belong to the event loop that made them."""
        return self._async_wire

    def create_session(self, metadata: Mapping[str, Any] | None = None) -> Session:
        """An empty session."""
        return Session((), metadata)

    def add_message(
        self,
        session: Session,
        role: str,
        content: str,
        metadata: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> Session:
        """A new session with one more message; ``parts`` such as ``toolResult`` go into it."""
        message = {"role": role, "content": content, "metadata": dict(metadata or {}), **parts}
        return session.with_added(message)

    def send_request(
        self, session: Session, config: Config, *, context: Mapping[str, Any] | None = None
    ) -> tuple[Session, list[CoreMessage]]:
        """Send the session; the session with the answer, and the messages it consists of."""
        run = self._single_turn(session, config, context, stream=False, asynchronous=False)
        complete(run.steps(), self._wire)
        return run.session, run.finals

    def send_request_stream(
        self, session: Session, config: Config, *, context: Mapping[str, Any] | None = None
    ) -> Stream:
        """Send the session; the events of the answer as they come."""
        run = self._single_turn(session, config, context, stream=True, asynchronous=False)
        return Stream(run, self._wire)

    async def asend_request(
        self, session: Session, config: Config, *, context: Mapping[str, Any] | None = None
    ) -> tuple[Session, list[CoreMessage]]:
        """The async form of `send_request`."""
        from agent_host.drivers.asynchronous import acomplete

        run = self._single_turn(session, config, context, stream=False, asynchronous=True)
        await acomplete(run.steps(), self._async_wire)
        return run.session, run.finals

    def asend_request_stream(
        self, session: Session, config: Config, *, context: Mapping[str, Any] | None = None
    ) -> AsyncStream:
        """The async form of `send_request_stream`; not itself a coroutine."""
        from agent_host.drivers.asynchronous import AsyncStream

        run = self._single_turn(session, config, context, stream=True, asynchronous=True)
        return AsyncStream(run, self._async_wire)

    async def arelay_request(
        self,
        config: Config,
        body: bytes,
        *,
        stream: bool,
        context: Mapping[str, Any] | None = None,
    ) -> RelayedAnswer:
        """Send a request that was written elsewhere, in the form of the config's provider.

        Its answer is bytes, which nobody has read; see `agent_host.relay`.
        """
        from agent_host.relay import arelay_request

        return await arelay_request(self, config, body, stream=stream, context=context)

    def _single_turn(
        self,
        session: Session,
        config: Config,
        context: Mapping[str, Any] | None,
        *,
        stream: bool,
        asynchronous: bool,
    ) -> SingleTurn:
        return SingleTurn(
            self._stacks,
            session,
            config,
            core=self,
            stream=stream,
            asynchronous=asynchronous,
            caller_context=context,
        )

    def get_models(self, config: Config) -> list[ModelInfo]:
        """The models on offer for this config, after extensions and features have had their say.

        A provider that leaves the listing to the host is asked for all of them, also when the
        config names one.
        """
        stack = self.stack(config)
        if "model" in config and stack.managers.provider.implements("models_request"):
            stack = self.stack({**config, "model": None})
        # Copies, here and below: what the core has is everybody's.
        models: list[ModelInfo] = plain_copy(stack.models)
        return models

    def list_models(self, config: Config) -> list[ModelInfo]:
        """All models that the provider lists, asked now; what `get_models` leaves out is raised."""
        return self._complete(self._stacks.list_models(config))

    def stack(self, config: Config) -> Stack:
        """The stack that this config's requests have; to look at, for its tools may be closed."""
        return self._complete(self._stacks.stack(config))

    def resolution(self, config: Config) -> Resolution:
        """Which plugins this config's requests use, in which order, and why."""
        return self.stack(config).resolution

    def get_tags(self, config: Config) -> list[str]:
        """The tags of the stack that this config resolves to."""
        return sorted(self.stack(config).resolution.tags)

    def get_config_schema(self, config: Config) -> dict[str, dict[str, Any]]:
        """The settings that the active plugins understand, by key."""
        settings: dict[str, dict[str, Any]] = plain_copy(self.stack(config).schema.to_dict())
        return settings

    def get_ui_elements(self, config: Config) -> list[dict[str, Any]]:
        """The input elements that the active plugins suggest for their settings."""
        return ui_elements(self.stack(config), self.get_models(config), self)

    def get_tool_schemas(self, config: Config) -> list[ToolDescriptor]:
        """The tools on offer, each with the schema its plugin authored."""
        descriptors = self.stack(config).descriptors
        return [replace(each, schema=plain_copy(each.schema)) for each in descriptors]

    def get_actions(self, config: Config) -> list[dict[str, Any]]:
        """The session actions that the active plugins offer."""
        return self._complete(self._offering_steps(config))

    def _offering_steps(self, config: Config) -> Steps[list[dict[str, Any]]]:
        stack = yield from self._stacks.stack(config)
        if not stack.has_actions:
            return []
        return offered_actions((yield from self._turn(stack, self.create_session(), config)))

    def execute_tool_calls(
        self,
        calls: Sequence[Mapping[str, Any]],
        config: Config,
        *,
        errors: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[CoreMessage]:
        """Run tool calls as they stand in an assistant message; one tool message for each.

        Give its ``tool_call_errors`` as ``errors``: those calls were broken and are not run.
        """
        return self._complete(self._tool_steps(calls, config, errors, context))

    async def aexecute_tool_calls(
        self,
        calls: Sequence[Mapping[str, Any]],
        config: Config,
        *,
        errors: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[CoreMessage]:
        """The async form of `execute_tool_calls`."""
        return await self._acomplete(self._tool_steps(calls, config, errors, context))

    def _tool_steps(
        self,
        calls: Sequence[Mapping[str, Any]],
        config: Config,
        errors: Mapping[str, str] | None,
        context: Mapping[str, Any] | None,
    ) -> Steps[list[CoreMessage]]:
        # The tool loop answers calls in another way, and most programs leave them to it.
        from agent_host.agent.calls import run_calls

        stack = yield from self._stacks.lease(config)
        try:
            return (yield from run_calls(stack, calls, tool_context(stack, context), errors or {}))
        finally:
            stack.lease.leave()

    def execute_session_action(
        self,
        session: Session,
        action_id: str,
        config: Config,
        params: Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        layer: Mapping[str, Any] | None = None,
    ) -> tuple[Session, ActionResult]:
        """Run an action on the session; the session it leaves behind, and what it returned.

        ``context`` may add keys to the action's context; ``layer`` are those that an application
        around this core owns.
        """
        steps = self._action_steps(session, action_id, config, params, context, layer)
        return self._complete(steps)

    async def aexecute_session_action(
        self,
        session: Session,
        action_id: str,
        config: Config,
        params: Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        layer: Mapping[str, Any] | None = None,
    ) -> tuple[Session, ActionResult]:
        """The async form of `execute_session_action`."""
        steps = self._action_steps(session, action_id, config, params, context, layer)
        return await self._acomplete(steps)

    def _action_steps(
        self,
        session: Session,
        action_id: str,
        config: Config,
        params: Mapping[str, Any] | None,
        context: Mapping[str, Any] | None,
        layer: Mapping[str, Any] | None,
    ) -> Steps[tuple[Session, ActionResult]]:
        stack = yield from self._stacks.lease(config)
        try:
            turn = yield from self._turn(stack, session, config, context, layer)
            return (yield from execute_action(turn, action_id, params or {}))
        finally:
            stack.lease.leave()

    def run_session_lifecycle(
        self,
        session: Session,
        trigger: str,
        config: Config,
        *,
        context: Mapping[str, Any] | None = None,
        layer: Mapping[str, Any] | None = None,
    ) -> Session:
        """Run the actions that name a lifecycle trigger; the session they leave behind.

        Requests do so by themselves for ``request_start`` and ``request_end``.
        """
        return self._complete(self._lifecycle_steps(session, trigger, config, context, layer))

    async def arun_session_lifecycle(
        self,
        session: Session,
        trigger: str,
        config: Config,
        *,
        context: Mapping[str, Any] | None = None,
        layer: Mapping[str, Any] | None = None,
    ) -> Session:
        """The async form of `run_session_lifecycle`."""
        return await self._acomplete(
            self._lifecycle_steps(session, trigger, config, context, layer)
        )

    def _lifecycle_steps(
        self,
        session: Session,
        trigger: str,
        config: Config,
        context: Mapping[str, Any] | None,
        layer: Mapping[str, Any] | None,
    ) -> Steps[Session]:
        stack = yield from self._stacks.lease(config)
        try:
            turn = yield from self._turn(stack, session, config, context, layer)
            return (yield from run_trigger(turn, session, trigger))
        finally:
            stack.lease.leave()

    def _turn(
        self,
        stack: Stack,
        session: Session,
        config: Config,
        context: Mapping[str, Any] | None = None,
        layer: Mapping[str, Any] | None = None,
    ) -> Steps[Turn]:
        """A turn that is begun and not sent, for what is done to a session beside requests."""
        turn = Turn(stack, session, config, core=self, caller_context=context, layer=layer)
        yield from begin_state(turn)
        return turn

    def warm_up(self, config: Config) -> None:
        """Load plugins, models, tools and what requests need now, so that a first one need not."""
        stack = self.stack(config)
        self._wire.warm_up(_address(stack))
        framing.warm_up()

    async def awarm_up(self, config: Config) -> None:
        """The async form of `warm_up`."""
        stack = await self._acomplete(self._stacks.stack(config))
        await self._async_wire.warm_up(_address(stack))
        framing.warm_up()

    def _complete(self, steps: Steps[T]) -> T:
        try:
            return complete(steps, self._wire)
        except AgentError as error:
            redact_error(error)
            raise

    async def _acomplete(self, steps: Steps[T]) -> T:
        from agent_host.drivers.asynchronous import acomplete

        try:
            return await acomplete(steps, self._async_wire)
        except AgentError as error:
            redact_error(error)
            raise

    def close(self) -> None:
        """End sync requests, and let tools and connections go.

        Who waits for an answer gets a StreamCutError. A tool that is in use is closed when whoever
        uses it is done. The core can still be used, with new ones.
        """
        try:
            self._stacks.close()
        finally:
            # Whoever interrupts a tool that closes slowly still wants no connection left.
            self._wire.close()

    async def aclose(self) -> None:
        """`close`, and the requests and connections of the running event loop."""
        await self._async_wire.aclose()
        self.close()

    def __enter__(self) -> AgentCore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> AgentCore:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _make_wires(
    client: Any,
    async_client: Any,
    library: str,
    record: str | os.PathLike[str] | None,
    replay: str | os.PathLike[str] | None,
) -> tuple[WireClient, AsyncWireClient]:
    """What carries sync and async requests: the wire, or cassettes."""
    if record is None and replay is None:
        wire = WireClient(client, library)
        return wire, AsyncWireClient(async_client, library, wire.certificates)
    from agent_host.wire.cassettes import Recorder, Replayer, clients

    if record is not None and replay is not None:
        raise ConfigError("record and replay exclude each other", key="record", hint="leave one")
    if replay is not None:
        replayer = Replayer(replay)
        return clients.ReplayingClient(replayer), clients.AsyncReplayingClient(replayer)
    assert record is not None
    recorder = Recorder(record)
    recording = clients.RecordingClient(recorder, client, library)
    return recording, clients.AsyncRecordingClient(
        recorder, async_client, library, recording.certificates
    )


def _address(stack: Stack) -> str:
    return str(stack.config.get("base_url") or "")
