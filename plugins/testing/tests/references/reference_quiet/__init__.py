"""An extension and a feature that change what they are given and return nothing where they may."""

from __future__ import annotations

from collections.abc import Sequence

from agent_hookspecs import (
    Config,
    CoreMessage,
    FeaturePlugin,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
)

__all__ = ["QuietExtension", "QuietFeature"]


class QuietFeature(FeaturePlugin):
    """Leaves a note in the state."""

    name = "quiet_feature"

    def init(self, config: Config, state: State) -> None:
        state["quiet_feature"] = True


class QuietExtension(ProviderExtensionPlugin):
    """Marks the messages that it sees."""

    name = "quiet_extension"
    required_tags = ("provider:echo",)

    def init(self, config: Config, state: State) -> None:
        state["quiet_extension"] = True

    def to_native_messages(
        self, messages: Sequence[CoreMessage], native_messages: list[NativeMessage]
    ) -> None:
        return

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> None:
        if len(native_messages) == len(messages):
            for message in messages:
                message["metadata"]["quiet"] = True
