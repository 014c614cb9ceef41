"""A provider whose server repeats in every line all that it has said so far."""

from __future__ import annotations

from typing import Any

from reference_plain import Plain

from agent_hookspecs import NativeMessage, State

__all__ = ["Ladder"]


class Ladder(Plain):
    """Shows of each line what the one before did not have."""

    name = "ladder"

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        before = state.get("length", 0)
        whole = native_chunk.get("text")
        if whole is not None:
            state["length"] = len(whole)
            native_chunk = {**native_chunk, "text": whole[before:]}
        return super().process_chunk(native_chunk, native_messages, state)
