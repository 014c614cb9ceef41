"""A provider with nothing but `call_api`: what is said to it is the answer, all at once."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import NativeMessage, ProviderPlugin, State

__all__ = ["Whole"]


class Whole(ProviderPlugin):
    """Repeats the last message."""

    name = "whole"

    def call_api(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[Any], list[NativeMessage], list[NativeMessage], State]:
        said = native_messages[-1]["content"]
        answer: NativeMessage = {"role": "assistant", "content": said}
        return [], [answer], [*native_messages, answer], state
