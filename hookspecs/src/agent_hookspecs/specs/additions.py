"""The hooks of extensions and features: what adds to one provider, or to any request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import (
    Action,
    ActionResult,
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    MultipartContent,
    NativeChunk,
    NativeMessage,
    State,
)
from agent_hookspecs.session import Session
from agent_hookspecs.specs.gating import GatingSpec

if TYPE_CHECKING:
    from agent_hookspecs.tool_interop import ToolDescriptor

__all__ = ["ExtensionSpec", "FeatureSpec"]


class _AdditionSpec(GatingSpec, Protocol):
    """What extensions and features have in common; extensions run before features."""

    @hookspec("fold", over=("models",), skips=True)
    def get_models(self, config: Config, models: list[ModelInfo]) -> list[ModelInfo]:
        """The models after the plugin has added, removed or described some.

        Fires: after the provider's models are known, when the cached list has expired.
        May change: the list.
        On exception: the list stays as it was and a warning says so.
        """

    @hookspec("fold", over=("state",), wrappers=True)
    def init(self, config: Config, state: State) -> State:
        """The shared state after the plugin's changes.

        An extension adds settings of its own, small and serialisable; a feature may also edit
        ``state["config"]``.

        Fires: once a request, after the provider's ``init``, before the request is built.
        May change: the state; its ``config`` features alone.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("fold", over=("native_messages", "state"), wrappers=True)
    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        """Changes to the request before it is sent.

        An extension decorates the payload at ``state["request"]["payload"]``; a feature comes last
        and may set the exact list at ``state["request"]["messages"]``.

        Fires: once a request, after the provider's ``initialize_request``.
        May change: the native messages and the state.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("fold", over=("final_messages", "native_messages", "state"), wrappers=True)
    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
        context: Context,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        """Last changes to the finals and the native history, such as sanitising tool calls.

        Fires: once a request, after the provider's ``finalize``.
        May change: finals, native messages and state.
        On exception: the request ends with a HookError.
        """

    @hookspec("collect")
    def get_actions(self, state: State) -> list[Action]:
        """Session-scoped actions the plugin offers; those of extensions work on native history.

        Fires: when actions are listed, and before the first lifecycle trigger of a request.
        May change: nothing.
        On exception: the plugin's actions are left out and a warning says so.
        """


class ExtensionSpec(_AdditionSpec, Protocol):
    """Implemented by plugins of role ``extension``, which share the provider's state."""

    @hookspec("collect", result=("formats",), optional=True)
    def accepted_tool_schema_formats(
        self, config: Config, models: Sequence[ModelInfo]
    ) -> list[str]:
        """Further tool schema formats that can be sent while the extension is active.

        Fires: once a request, while the interop registry is built.
        May change: nothing.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("collect")
    def get_tool_interop_contribution(self, config: Config) -> Any:
        """Accessors and adapters; they rank below the provider's and above the tools'.

        Fires: once a request, while the interop registry is built.
        May change: nothing.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec(
        "fold",
        over=("partial_messages", "final_messages", "native_messages", "state"),
        per_chunk=True,
    )
    def process_chunk(
        self,
        native_chunk: NativeChunk | None,
        partial_messages: list[dict[str, Any]],
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        """Accumulate into ``state["partial"]`` what the provider does not, and show it in partials.

        On an answer that was not streamed it runs once with the decoded body, or with None if the
        provider did its own I/O.

        Fires: for every chunk, after the provider's ``process_chunk``.
        May change: partials, finals and state.
        On exception: the request ends with a HookError.
        """

    @hookspec("fold", over=("native_messages",), result=("converted_messages",), wrappers=True)
    def to_native_messages(
        self, messages: Sequence[CoreMessage], native_messages: list[NativeMessage]
    ) -> list[NativeMessage]:
        """Carry core metadata into the natives made from the same messages.

        Fires: after the provider's ``to_native_messages``, for the same messages.
        May change: the native messages.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("fold", over=("messages",), wrappers=True)
    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        """Carry native fields into the metadata of the core messages made from them.

        Fires: after the provider's ``from_native_messages``, on the turn's new finals.
        May change: the core messages.
        On exception: the request ends with a HookError.
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
        """Run one of the extension's actions; a ``native_messages`` in the result replaces history.

        Fires: when an application asks for the action, or at a lifecycle trigger it names.
        May change: nothing but through its result.
        On exception: the action fails with a HookError; the session stays as it was.
        """


class FeatureSpec(_AdditionSpec, Protocol):
    """Implemented by plugins of role ``feature``. A feature cannot persist or delete sessions."""

    @hookspec("collect", result=("instructions",), optional=True, waits=True)
    def get_instructions(self, session: Session, config: Config, context: Context) -> str | None:
        """Text that stands with the system prompt of this request; None or nothing adds none.

        The texts of all features follow the system prompt, in order, each as a paragraph; no
        feature sees or changes another's. They are no part of the session nor of the native history
        that it retains, so they may change from request to request. While they stay the same, so
        does the beginning of what is sent, and prompt caches hold.

        Fires: once a request, before ``initialize_request``; it may block.
        May change: nothing; session, config and context are there to be read.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("collect", result=("context_parts",), optional=True, waits=True)
    def get_context_parts(
        self, session: Session, config: Config, context: Context
    ) -> list[str | MultipartContent] | None:
        """What the model should have before it with the user's latest message; None adds nothing.

        Texts, such as passages that were found, are put before the user's words, in order, each as
        a paragraph; other parts, such as pictures, after them. The messages of the session keep the
        user's words alone. The native history keeps what was sent, so that later turns begin with
        the same bytes.

        Fires: before ``get_instructions``, in the first request after a message of the user's;
        again only if that message has no native form any more.
        May change: nothing; session, config and context are there to be read.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("fold", over=("tools",), wrappers=True)
    def select_tools(
        self,
        tools: list[ToolDescriptor],
        session: Session,
        config: Config,
        context: Context,
    ) -> list[ToolDescriptor]:
        """The tools whose schemas go with this request, in the order in which they are sent.

        All tools of plugins are given, and ``context["tools"]`` has them for other hooks as well;
        the config is without them.
        One that is left out can be called all the same: a model may know its name from elsewhere.
        Schemas stand at the beginning of what is sent, so whoever adds one adds it at the end, and
        leaves the others in their places.
        One that is given back with ``deferred`` is for the provider's own search to find, under the
        tag ``supports_tool_search``; without that tag its schema goes as any other.

        Fires: once a request that has tools, after ``init`` and the actions at its start.
        May change: the list; session, config and context are there to be read.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("single", may_be_async=True, result=("action_result",))
    def execute_action(
        self,
        action_id: str,
        session: Session,
        params: dict[str, Any],
        context: Context,
        state: State,
    ) -> ActionResult:
        """Run one of the feature's actions; the result may patch the session's metadata.

        It may also give an ``excerpt`` of the session, which is what is sent of it from then on.

        Fires: when an application asks for the action, or at a lifecycle trigger it names.
        May change: nothing but through its result.
        On exception: the action fails with a HookError; the session stays as it was.
        """
