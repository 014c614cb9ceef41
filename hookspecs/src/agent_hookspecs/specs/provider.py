"""The hooks of a provider: a way to reach models.

A provider normally writes no I/O. It says what to send, names its framing, and turns decoded chunks
into messages; the host owns the socket. Every hook has one owner, the provider selected for the
request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agent_hookspecs.errors import AgentError
from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import (
    Action,
    ActionResult,
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    NativeChunk,
    NativeMessage,
    RequestSpec,
    State,
    Usage,
)
from agent_hookspecs.session import Session

if TYPE_CHECKING:
    from agent_hookspecs.batch import BatchEndpoint

__all__ = ["ProviderSpec"]

Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


class ProviderSpec(Protocol):
    """Implemented by plugins of role ``provider``. Partials are core-shaped; finals are native."""

    @hookspec("single")
    def get_config_schema(self) -> dict[str, Any]:
        """The settings the provider understands: a flat map of keys, or a JSON Schema object.

        A key marked ``"secret": true`` never appears in logs, events, exports or errors.

        Fires: when the config of a stack is validated or shown.
        May change: nothing.
        On exception: the settings are not validated and a warning says so.
        """

    @hookspec("single", waits=True)
    def get_models(self, config: Config) -> list[ModelInfo]:
        """The models on offer, each with a non-empty string ``id``; extensions and features add on.

        Configs that differ in knobs and tools alone share a list.

        Fires: before a request's stack is resolved, when the cached list has expired and
        ``dynamic`` names it or there is no descriptor.
        May change: nothing.
        On exception: the list is empty and the request goes on.
        """

    @hookspec("single")
    def models_request(self, config: Config) -> RequestSpec | None:
        """The request that lists models, for providers that leave the sending to the host.

        A config that names a model asks what that one can do, before its first request: None says
        that this is known, and saves whoever waits for the answer a round trip. Without a model
        all of them are asked for.

        Fires: in place of ``get_models``, under whose name ``dynamic`` lists it, when the provider
        has this hook and ``parse_models``.
        May change: nothing.
        On exception: the list is empty and the request goes on.
        """

    @hookspec("single")
    def parse_models(self, body: Any) -> list[ModelInfo]:
        """The models in the decoded answer to ``models_request``.

        Fires: after the host has fetched what ``models_request`` asked for.
        May change: nothing.
        On exception: the list is empty and the request goes on.
        """

    @hookspec("single", result=("tags",))
    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        """Tags that describe the provider and the selected model, such as ``supports_tools``.

        Fires: while a request's stack is resolved, when ``dynamic`` names it or there is no
        descriptor.
        May change: nothing; the answer may depend on the arguments alone.
        On exception: the request ends; no stack can be made without the provider.
        """

    @hookspec("single", result=("elements",), optional=True, skips=True)
    def get_ui_elements(
        self, config: Config, tags: Sequence[str], models: Sequence[ModelInfo], context: Context
    ) -> list[dict[str, Any]]:
        """Input elements an application may show for the provider's settings.

        Fires: when an application asks for the elements of a stack.
        May change: nothing.
        On exception: the provider's elements are left out and a warning says so.
        """

    @hookspec("single", result=("formats",), optional=True)
    def accepted_tool_schema_formats(
        self, config: Config, models: Sequence[ModelInfo]
    ) -> list[str]:
        """Tool schema formats the provider's wire accepts, best first.

        Fires: once a request, while the interop registry is built.
        May change: nothing.
        On exception: the request ends with a HookError.
        """

    @hookspec("single")
    def get_tool_interop_contribution(self, config: Config) -> Any:
        """Accessors and adapters for tool schemas, calls and results of the provider's own formats.

        Fires: once a request, while the interop registry is built.
        May change: nothing.
        On exception: the request ends with a HookError.
        """

    @hookspec("single", wrappers=True, result=("state",), optional=True)
    def init(self, config: Config) -> State:
        """The state of one request, usually ``{"config": config, "request": {}, "partial": None}``.

        A provider with several forms of native messages names the request's one in
        ``native_format``; history in another form is then made anew from core messages.

        Fires: first of all hooks of a request, before extensions and features.
        May change: nothing; it returns a new state that all plugins of the request share.
        On exception: the request ends with a HookError.
        """

    @hookspec("single", wrappers=True, result=("converted_messages",))
    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        """Core messages as the provider's wire wants them; may be given a single message.

        Fires: for the messages of the session that have no retained native form.
        May change: nothing; it returns a new list.
        On exception: the request ends with a HookError.
        """

    @hookspec("single", wrappers=True, result=("messages",))
    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        """Native messages as core messages.

        Fires: on the new finals of a turn, after ``finalize``.
        May change: nothing; it returns a new list.
        On exception: the request ends with a HookError.
        """

    @hookspec("single", wrappers=True, result=("native_messages", "state"))
    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        """Fill ``state["request"]`` with url, payload, headers and timeout for this turn.

        Files that messages refer to are put in here, with `expand_attachments`, into what is sent
        and not into the native messages.

        Fires: once a request, after the native history is known, before extensions and features.
        May change: the native messages and the state.
        On exception: the request ends with a HookError.
        """

    @hookspec("single", wrappers=True, result=("request",))
    def build_request(
        self,
        native_messages: list[NativeMessage],
        state: State,
        stream: bool,
        context: Context,
    ) -> RequestSpec:
        """What to send: method, url, headers, body, framing and timeout.

        An API that streams whether it is asked to or not is told of with ``streamed``: the host
        reads its stream also where ``stream`` is False, and gives the whole answer.

        Without it the host merges ``state["request"]`` with the native messages, or with the list
        at ``state["request"]["messages"]`` if a feature put one there, and strips ``_metadata``.

        Fires: once a request, after every ``initialize_request``.
        May change: nothing.
        On exception: the request ends with a HookError.
        """

    @hookspec("single")
    def get_batch_endpoint(self, config: Config, request: RequestSpec) -> BatchEndpoint | None:
        """Where the provider takes requests like this one in batches, or None if it does not.

        ``config`` is the one that the request was made with, key included; ``request`` is not sent.
        A provider that has it gives the tag ``supports_batches``.

        Fires: for each line of a batch with the engine ``provider``, after ``build_request``.
        May change: nothing.
        On exception: the line fails with a HookError.
        """

    @hookspec(
        "single",
        wrappers=True,
        result=("partials", "finals", "native_messages", "state"),
        waits=True,
    )
    def call_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Answer:
        """Send and receive by other means than the host's wire, without streaming.

        Fires: in place of the wire when the provider has it and no stream is asked for, and for
        streams too when there is no ``stream_api`` and no ``build_request``.
        May change: the native messages, to which it appends its finals, and the state.
        On exception: a contract error ends the request as it is, any other as a HookError.
        """

    @hookspec(
        "single", may_be_async=True, result=("partials", "finals", "native_messages", "state")
    )
    def acall_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Answer:
        """The async form of ``call_api``; without it the host runs ``call_api`` in a thread.

        Fires: in place of the wire in async requests.
        May change: the native messages, to which it appends its finals, and the state.
        On exception: a contract error ends the request as it is, any other as a HookError.
        """

    @hookspec("single", waits=True)
    def stream_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Iterator[NativeChunk]:
        """Native chunks obtained by other means than the host's wire: dicts, or SSE-like strings.

        Fires: in place of the wire when a stream is asked for.
        May change: the state.
        On exception: a contract error ends the stream as it is, any other as a HookError.
        """

    @hookspec("single", may_be_async=True)
    def astream_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> AsyncIterator[NativeChunk]:
        """The async form of ``stream_api``; without it the host runs ``stream_api`` in a thread.

        Fires: in place of the wire in async streams.
        May change: the state.
        On exception: a contract error ends the stream as it is, any other as a HookError.
        """

    @hookspec("single", wrappers=True, result=("partials", "finals", "native_messages", "state"))
    def parse_response(
        self, body: Any, native_messages: list[NativeMessage], state: State
    ) -> Answer:
        """A decoded answer that was not streamed, as partials, finals, native history and state.

        Fires: once a request, when the host fetched the whole answer. Without it the body goes
        through ``process_chunk`` and ``finalize``.
        May change: the native messages, to which it appends its finals, and the state.
        On exception: a contract error ends the request as it is, any other as a HookError.
        """

    @hookspec("single", result=("partials", "finals", "native_messages", "state"), per_chunk=True)
    def process_chunk(
        self,
        native_chunk: NativeChunk,
        native_messages: list[NativeMessage],
        state: State,
        event: str | None,
    ) -> Answer:
        """One decoded chunk as core-shaped partials; ``event`` is the SSE event name, if any.

        Fires: for every chunk of a stream; nothing here may cost more as the stream grows.
        May change: the state; raw chunks never go into the native messages.
        On exception: a contract error ends the stream as it is, any other as a HookError.
        """

    @hookspec("single", per_chunk=True)
    def extract_delta(self, chunk: NativeChunk) -> dict[str, Any]:
        """The part of a chunk that `AccumulatorStreamingMixin` reduces.

        Fires: for every chunk, from the mixin's ``process_chunk``.
        May change: nothing.
        On exception: as in ``process_chunk``.
        """

    @hookspec("single", per_chunk=True)
    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any] | None
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Reduce a delta: the new fragment, None if there is nothing to show, and the accumulator.

        Every other key of the accumulator is kept. An empty delta does not come here.

        Fires: for every chunk, from the mixin's ``process_chunk``.
        May change: the accumulator, in place or as a new dict.
        On exception: as in ``process_chunk``.
        """

    @hookspec("single")
    def stream_complete(self, state: State) -> bool | None:
        """Whether the protocol's own end was seen: False means the stream was cut, None unknown.

        Fires: once a stream, when its bytes have ended.
        May change: nothing.
        On exception: the request ends with a HookError.
        """

    @hookspec("single")
    def usage_so_far(self, state: State) -> Usage | None:
        """The token counts that an answer has reported, if it failed before it was finished.

        They are told all the same, in a usage event and by the error.

        Fires: once a failed attempt whose answer had begun.
        May change: nothing.
        On exception: a warning names the plugin; the request ends with its own error.
        """

    @hookspec("single", wrappers=True, result=("finals", "native_messages", "state"))
    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        """The finished native messages of the turn, and the native history with them appended.

        Fires: once a request, after the last chunk, before extensions and features.
        May change: the native messages and the state.
        On exception: the request ends with a HookError.
        """

    @hookspec("single")
    def map_error(self, status: int, headers: Mapping[str, str], body: bytes) -> AgentError | None:
        """A typed error for an answer that is not a success, or None for the host's own mapping.

        What a ProviderError leaves open of status, code, request id, wait and hint is taken from
        the answer. The host's own mapping finds the words of the API under ``message``, ``error``,
        ``detail``, ``msg`` or ``errors``, in the JSON body or in the object at its ``error``, and
        its code under ``code``, ``type`` or ``status`` there; a body in which they stand elsewhere
        is quoted as it is, so an API with such bodies wants this hook for all of its errors.

        Fires: when the wire receives an error status.
        May change: nothing.
        On exception: the host's own mapping applies.
        """

    @hookspec("single")
    def get_actions(self, state: State) -> list[Action]:
        """Session-scoped actions the provider offers, with their inputs and triggers.

        Fires: when actions are listed, and before the first lifecycle trigger of a request.
        May change: nothing.
        On exception: the provider's actions are left out and a warning says so.
        """

    @hookspec("single", may_be_async=True, result=("action_result",))
    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[NativeMessage],
        params: dict[str, Any],
        context: Context,
        state: State,
    ) -> ActionResult:
        """Run one of the provider's actions; a ``native_messages`` in the result replaces history.

        Fires: when an application asks for the action, or at a lifecycle trigger it names.
        May change: nothing but through its result.
        On exception: the action fails with a HookError; the session stays as it was.
        """
