"""The hooks of the provider while it speaks Chat Completions.

The format and its hooks are those of every server that copies it; here stands what OpenAI itself
adds: its models' facts, freeform tools, and settings of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import Config, Context, CoreMessage, NativeMessage, State
from agent_hookspecs.authoring.knobs import take_knob
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.messages import RequestSpec
from agent_hookspecs.tool_interop import OPENAI_CHAT_CUSTOM, OPENAI_CHAT_FUNCTION
from agent_host_openai.models import can, facts_of, refused_knobs, takes_parallel_setting
from agent_host_openai.settings import SERVER, headers_for
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.messages import to_native

__all__ = ["ChatApi"]

#: Settings that are sent as they are, under the same name.
_PLAIN = ("service_tier", "prompt_cache_key", "safety_identifier", "verbosity", "store")


class ChatApi(ChatCompletionsProvider):
    """Requests to ``/chat/completions`` and their answers."""

    server = SERVER
    facts_package = "agent_host_openai"

    def formats_for(self, config: Config) -> list[str]:
        """Freeform tools stay freeform for the models that take them."""
        freeform = can(config, "supports_custom_tools")
        return [OPENAI_CHAT_FUNCTION, *([OPENAI_CHAT_CUSTOM] if freeform else ())]

    def init(self, config: Config) -> State:
        state = super().init(config)
        facts = facts_of(config.get("model"))
        state["facts"] = {**state["facts"], **facts, "refuses": refused_knobs(config)}
        if not takes_parallel_setting(config):
            state["quirks"] = [*state["quirks"], "no_parallel_tool_calls"]
            if config.get("parallel_tool_calls") is False:
                # Such models make one call at a time anyway.
                take_knob(state, "parallel_tool_calls")
        return state

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return to_native(messages, state, self.formats_for(state["config"]))

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        native_messages, state = super().initialize_request(native_messages, state, context)
        request = state["request"]
        request["headers"] = headers_for(config)
        own = {key: config[key] for key in _PLAIN if config.get(key) not in (None, False)}
        request["payload"] = {**own, **request["payload"]}
        warn = get_warn_from_context(context, SERVER.name)
        if config.get("builtin_tools"):
            warn(
                "builtin_tools are not offered: only the Responses API has tools of the provider's"
            )
        if config.get("include"):
            warn("include is not sent: only the Responses API can say more than the answer")
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        spec = super().build_request(native_messages, state, stream, context)
        body = spec["body"]
        if isinstance(body.get("tool_choice"), dict):
            body["tool_choice"] = _of_its_kind(body["tool_choice"], body.get("tools") or ())
        return spec


def _of_its_kind(choice: dict[str, Any], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A choice of a freeform tool says so; that of a function is what it was."""
    name = (choice.get("function") or {}).get("name")
    freeform = any(name == tool["custom"].get("name") for tool in tools if tool.get("custom"))
    return {"type": "custom", "custom": {"name": name}} if name and freeform else choice
