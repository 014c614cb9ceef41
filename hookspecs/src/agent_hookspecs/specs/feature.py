"""The hooks of a feature: an addition to requests of any provider."""

from __future__ import annotations

from typing import Any, Protocol

from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import (
    Action,
    ActionResult,
    Config,
    Context,
    ModelInfo,
    NativeMessage,
    State,
)
from agent_hookspecs.session import Session
from agent_hookspecs.specs.gating import GatingSpec

__all__ = ["FeatureSpec"]


class FeatureSpec(GatingSpec, Protocol):
    """Implemented by plugins of role ``feature``. A feature cannot persist or delete sessions."""

    @hookspec("fold", over=("models",), skips=True)
    def get_models(self, config: Config, models: list[ModelInfo]) -> list[ModelInfo]:
        """The models after the feature has added, removed or described some.

        Fires: after provider and extensions, when the cached list has expired.
        May change: the list.
        On exception: the list stays as it was and a warning says so.
        """

    @hookspec("fold", over=("state",), wrappers=True)
    def init(self, config: Config, state: State) -> State:
        """The shared state after the feature's changes; it may edit ``state["config"]``.

        Fires: once a request, after provider and extensions, before the request is built.
        May change: the state, its ``config`` included.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """

    @hookspec("fold", over=("native_messages", "state"), wrappers=True)
    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        """Last changes before sending; may set the exact list at ``state["request"]["messages"]``.

        Fires: once a request, after provider and extensions.
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
        """Last changes to the finals and the native history.

        Fires: once a request, after provider and extensions.
        May change: finals, native messages and state.
        On exception: the request ends with a HookError.
        """

    @hookspec("collect")
    def get_actions(self, state: State) -> list[Action]:
        """Session-scoped actions the feature offers.

        Fires: when an application lists actions, and at each lifecycle trigger.
        May change: nothing.
        On exception: the feature's actions are left out and a warning says so.
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

        Fires: when an application asks for the action, or at a lifecycle trigger it names.
        May change: nothing but through its result.
        On exception: the action fails with a HookError; the session stays as it was.
        """
