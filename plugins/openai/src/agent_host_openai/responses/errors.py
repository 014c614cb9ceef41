"""Failures that the Responses API reports inside an answer.

What its code words mean beyond those of the chat format stands here; the class of each error and
its wording are shared with the chat format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.errors import ProviderError
from agent_host_openai.settings import SERVER
from agent_host_openai_compatible.errors import reported_error

__all__ = ["failed_response"]

#: Code words of this API alone, and the general word for the same thing.
_GENERAL = {
    "invalid_prompt": "invalid_request_error",
    "empty_image_file": "invalid_request_error",
    "failed_to_download_image": "invalid_request_error",
    "image_content_policy_violation": "content_policy_violation",
    "image_file_not_found": "invalid_request_error",
    "image_file_too_large": "invalid_request_error",
    "image_parse_error": "invalid_request_error",
    "image_too_large": "invalid_request_error",
    "image_too_small": "invalid_request_error",
    "invalid_base64_image": "invalid_request_error",
    "invalid_image": "invalid_request_error",
    "invalid_image_format": "invalid_request_error",
    "invalid_image_mode": "invalid_request_error",
    "invalid_image_url": "invalid_request_error",
    "unsupported_image_media_type": "invalid_request_error",
    "bio_policy": "content_policy_violation",
    "cyber_policy_violation": "content_policy_violation",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "vector_store_timeout": "server_error",
    "websocket_connection_limit_reached": "rate_limit_exceeded",
}


def failed_response(event: Mapping[str, Any]) -> ProviderError:
    """The typed error for an ``error`` event, a failed response, or a body with ``error``."""
    response = event.get("response")
    places = (response, event) if isinstance(response, Mapping) else (event,)
    error: Any = next((place["error"] for place in places if place.get("error")), None)
    if error is None:
        # An error event may spell its error out itself; its own type says nothing about it.
        error = {key: event[key] for key in ("code", "message") if event.get(key)}
    if isinstance(error, Mapping):
        code = error.get("code")
        general = _GENERAL.get(code) if isinstance(code, str) else None
        error = {**error, **({"type": general} if general else {})}
    return reported_error(error or "", provider=SERVER.name)
