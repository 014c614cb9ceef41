"""The feature that lets calls without a thought signature pass the validator of Gemini routes.

Owns the placeholder and the places where a signature can stand: OpenAI-like tool calls and the
parts of Gemini's own messages. A real signature is never replaced, and siblings of a signed call
get none, because only the first of parallel calls is ever signed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from agent_hookspecs import Config, FeaturePlugin, NativeMessage, State
from agent_host_repairs._version import __version__
from agent_host_repairs.outgoing import replace_messages

__all__ = ["PLACEHOLDER", "SignaturePlaceholder"]

#: Gemini accepts this text in place of a signature, for calls that it did not make itself.
PLACEHOLDER = "skip_thought_signature_validator"

_FIELDS = ("signature", "extra_content")
_SIGNATURES = ("signature", "thought_signature", "thoughtSignature")


class SignaturePlaceholder(FeaturePlugin):
    """Signs the first call of each unsigned assistant message with the placeholder."""

    name = "assistant_tool_calls_signature_skip_validator_if_missing"
    version = __version__
    label = "Gemini signature placeholder"
    required_tags = ("repair:assistant_tool_calls_signature_skip_validator_if_missing",)
    priority = -100

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "gemini_signature_field": {
                "type": "string",
                "required": False,
                "enum": list(_FIELDS),
                "default": _FIELDS[0],
                "description": "Where OpenAI-like calls carry the signature: signature, or "
                "extra_content for Google's own OpenAI-compatible API.",
            }
        }

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config: Config = state.get("config") or {}
        field = config.get("gemini_signature_field") or _FIELDS[0]
        replace_messages(native_messages, state, partial(_mended, field=field))
        return native_messages, state


def _mended(message: NativeMessage, field: str) -> NativeMessage:
    calls, parts = message.get("tool_calls"), message.get("parts")
    if message.get("role") == "assistant" and isinstance(calls, list):
        places = [place for place, call in enumerate(calls) if isinstance(call, dict)]
        if not places or _has_encrypted_reasoning(message) or any(map(_is_signed, calls)):
            return message
        return {**message, "tool_calls": _with(calls, places[0], _signature(calls, places, field))}
    if message.get("role") == "model" and isinstance(parts, list):
        places = [place for place, part in enumerate(parts) if _is_call(part)]
        if not places or any(_is_signed(parts[place]) for place in places):
            return message
        return {**message, "parts": _with(parts, places[0], {"thoughtSignature": PLACEHOLDER})}
    return message


def _signature(calls: list[Any], places: list[int], field: str) -> dict[str, Any]:
    if field != "extra_content":
        return {"signature": PLACEHOLDER}
    extra = calls[places[0]].get("extra_content")
    extra = extra if isinstance(extra, dict) else {}
    google = extra.get("google")
    google = google if isinstance(google, dict) else {}
    return {"extra_content": {**extra, "google": {**google, "thought_signature": PLACEHOLDER}}}


def _with(entries: list[Any], place: int, added: dict[str, Any]) -> list[Any]:
    return [*entries[:place], {**entries[place], **added}, *entries[place + 1 :]]


def _is_call(part: object) -> bool:
    return isinstance(part, dict) and bool(part.get("functionCall") or part.get("function_call"))


def _is_signed(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    extra = entry.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    return any(
        bool(holder.get(key))
        for holder in (entry, google)
        if isinstance(holder, dict)
        for key in _SIGNATURES
    )


def _has_encrypted_reasoning(message: NativeMessage) -> bool:
    """Whether a router carries the signature beside the calls, as a reasoning block."""
    details = message.get("reasoning_details")
    return isinstance(details, list) and any(
        isinstance(detail, dict) and detail.get("type") == "reasoning.encrypted"
        for detail in details
    )
