"""The feature that sends OpenAI-like tools without ``function.description``.

Some strict servers refuse the key. Owns nothing else of a tool: descriptions of parameters and
declarations of other shapes stay as they are.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import FeaturePlugin, NativeMessage, State
from agent_host_repairs._version import __version__
from agent_host_repairs.outgoing import payload_of, replace_payload

__all__ = ["StripFunctionDescriptions"]


class StripFunctionDescriptions(FeaturePlugin):
    """Takes ``description`` out of each ``function`` among the payload's tools."""

    name = "openai_tools_strip_function_descriptions"
    version = __version__
    label = "Tools without descriptions"
    required_tags = ("repair:openai_tools_strip_function_descriptions",)
    priority = -100

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        payload = payload_of(state)
        tools = payload.get("tools")
        if isinstance(tools, list):
            stripped = [_stripped(tool) for tool in tools]
            if any(new is not old for new, old in zip(stripped, tools, strict=True)):
                replace_payload(state, {**payload, "tools": stripped})
        return native_messages, state


def _stripped(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or "description" not in function:
        return tool
    rest = {key: value for key, value in function.items() if key != "description"}
    return {**tool, "function": rest}
