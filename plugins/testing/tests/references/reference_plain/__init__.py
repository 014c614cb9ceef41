"""A provider without tools: lines of text over the host's own wire."""

from __future__ import annotations

from reference_common import TextProvider, refusal, request_body, warn_of_unsent

from agent_hookspecs import AgentError, Context, NativeMessage, RequestSpec, State

__all__ = ["Plain"]


class Plain(TextProvider):
    """Adds up what the lines say."""

    name = "plain"
    framing = "ndjson"

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        warn_of_unsent(state, context, self.name)
        config = state["config"]
        return {
            "method": "POST",
            "url": f"{config['base_url'].rstrip('/')}/lines",
            "headers": {"x-lines-key": config["api_key"]},
            "body": {**request_body("said", native_messages, state), "lines": stream},
            "framing": self.framing,
        }

    def map_error(self, status: int, body: bytes) -> AgentError | None:
        return refusal(status, body)
