"""The feature ``echo_transcript``: statistics on each answer, and the session as plain text.

Off unless it is named. It must not know chunks or the model; it reads finished messages only.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Action, ActionResult, FeaturePlugin, NativeMessage, Session, State
from agent_host_echo._version import __version__

__all__ = ["EchoTranscript"]


class EchoTranscript(FeaturePlugin):
    """Puts ``{"lines", "words"}`` at ``_metadata["transcript"]`` of each final message."""

    name = "echo_transcript"
    version = __version__
    label = "Echo transcript"
    required_tags = ("provider:echo",)
    default_enabled = False

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        for final in final_messages:
            text = final.get("content") or ""
            counts = {"lines": len(text.splitlines()), "words": len(text.split())}
            # In place, because the same message stands in the native history.
            final["_metadata"] = {**(final.get("_metadata") or {}), "transcript": counts}
        return final_messages, native_messages, state

    def get_actions(self) -> list[Action]:
        return [
            {
                "id": "echo_transcript",
                "label": "Transcript",
                "description": "Write the session as plain text into its metadata.",
                "inputs": {},
            }
        ]

    def execute_action(self, action_id: str, session: Session) -> ActionResult:
        if action_id != "echo_transcript":
            return {
                "error": {
                    "type": "unknown_action",
                    "message": f"feature 'echo_transcript' has no action {action_id!r}",
                }
            }
        lines = [f"{message['role']}: {message['content']}" for message in session.messages]
        patch: dict[str, Any] = {"echo_transcript": "\n".join(lines)}
        return {"session_metadata": patch}
