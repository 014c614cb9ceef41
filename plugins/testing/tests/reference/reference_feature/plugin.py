"""A feature that tells the provider who asks, marks answers with it, and titles sessions.

It has no way of its own to keep anything: what should stay is in the result of its action.
"""

from __future__ import annotations

from agent_hookspecs import (
    Action,
    ActionResult,
    Config,
    FeaturePlugin,
    NativeMessage,
    Session,
    State,
)

__all__ = ["ReferenceFeature"]


class ReferenceFeature(FeaturePlugin):
    """Who asks, in every request, and a title on demand."""

    name = "reference_feature"
    version = "1"
    label = "Reference feature"
    required_tags = ("provider:echo",)

    def init(self, config: Config, state: State) -> State:
        return {**state, "asker": config.get("asker", "somebody")}

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        state["request"].setdefault("payload", {})["user"] = state["asker"]
        return native_messages, state

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        for final in final_messages:
            # The final and the one in the history are one object.
            final["_metadata"] = {**final.get("_metadata", {}), "asker": state["asker"]}
        return final_messages, native_messages, state

    def get_actions(self) -> list[Action]:
        return [{"id": "reference_feature_title", "label": "Title", "inputs": {}}]

    def execute_action(self, action_id: str, session: Session) -> ActionResult:
        said = session.messages[0]["content"] if session.messages else ""
        return {"session_metadata": {"title": said[:40]}}
