"""A provider of an API that streams whether it is asked to or not, over the host's own wire."""

from __future__ import annotations

from reference_common import TextProvider, refusal, request_body, warn_of_unsent

from agent_hookspecs import AgentError, Context, NativeMessage, RequestSpec, State

__all__ = ["Spout"]


class Spout(TextProvider):
    """Adds up what the lines say, also for those who want the answer at once."""

    name = "spout"
    framing = "ndjson"

    def build_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> RequestSpec:
        warn_of_unsent(state, context, self.name)
        config = state["config"]
        return {
            "url": f"{config['base_url'].rstrip('/')}/spout",
            "headers": {"x-lines-key": config["api_key"]},
            "body": request_body("said", native_messages, state),
            "streamed": True,
        }

    def map_error(self, status: int, body: bytes) -> AgentError | None:
        return refusal(status, body)
