"""What is sent to Gemini: address, headers, settings and body of one request.

Owns the shape of the body but for its contents. It must not know answers, nor what tools and
thinking are; their extensions have put their keys into the payload by now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from agent_hookspecs import Config, Context, NativeMessage, State
from agent_hookspecs.authoring import render_history, take_knob
from agent_hookspecs.tool_interop import JsonObject, Warn
from agent_host_google.outgoing import Conversation
from agent_host_google.vertex import key_header, vertex_base

__all__ = [
    "body_of",
    "endpoint",
    "generation_config",
    "headers_of",
    "models_url",
    "take_generation_knobs",
]

_HOST = "https://generativelanguage.googleapis.com"
_VERSION = re.compile(r"/v\d[^/]*(?:/|$)")
#: Beginnings of names that already say what kind of model it is.
_QUALIFIED = ("models/", "tunedModels/", "publishers/", "projects/", "endpoints/")

#: What stands in names of models as it is.
_KEPT = "/@.:-_~"

#: Knobs that are settings of generation, and their names here.
_GENERATION = {
    "max_output_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "stop": "stopSequences",
    "seed": "seed",
}


def endpoint(config: Config, stream: bool) -> str:
    """The address of the model's method."""
    model = str(config.get("model") or "")
    named = model if model.startswith(_QUALIFIED) else f"models/{model}"
    base = _base(config)
    if named.startswith(("publishers/", "projects/")):
        # The name says the whole way from the version on, which a Vertex address may repeat.
        base = base[: base.rfind("/projects/")] if "/projects/" in base else base
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{base}/{quote(named, safe=_KEPT)}:{method}"


def models_url(config: Config) -> str:
    """The address of what is known of the configured model, or of all if there is none."""
    model = str(config.get("model") or "").removeprefix("models/")
    base = _base(config)
    return f"{base}/models/{quote(model, safe=_KEPT)}" if model else f"{base}/models?pageSize=1000"


def _base(config: Config) -> str:
    base = vertex_base(config) or str(config.get("base_url") or _HOST)
    base = base.strip().rstrip("/").removesuffix("/models")
    return base if _VERSION.search(urlsplit(base).path) else f"{base}/v1beta"


def headers_of(config: Config) -> dict[str, str]:
    """The key in its header, and what the config adds; a token of one's own replaces the key."""
    given = config.get("extra_headers")
    extra = {str(k): str(v) for k, v in given.items()} if isinstance(given, Mapping) else {}
    key = config.get("api_key")
    if not key or any(name.lower() in ("authorization", "x-goog-api-key") for name in extra):
        return extra
    return {**key_header(str(key), vertex_base(config) is not None), **extra}


def generation_config(state: State) -> JsonObject:
    """The settings of generation in the payload, there to be added to."""
    payload: JsonObject = state["request"].setdefault("payload", {})
    settings: JsonObject = payload.setdefault("generationConfig", {})
    return settings


def take_generation_knobs(state: State) -> None:
    """Put the knobs that every model has into the payload."""
    settings = generation_config(state)
    for knob, key in _GENERATION.items():
        value = take_knob(state, knob)
        if value is not None:
            settings[key] = [value] if knob == "stop" and isinstance(value, str) else value
    given = state["config"].get("generation_config")
    settings.update(given if isinstance(given, Mapping) else {})
    safety = state["config"].get("safety_settings")
    if safety:
        state["request"]["payload"]["safetySettings"] = list(safety)


def body_of(
    natives: list[NativeMessage],
    state: State,
    context: Context,
    *,
    system: bool,
    signs: bool,
    warn: Warn,
) -> JsonObject:
    """The body; ``system`` says whether the model takes instructions apart from the talk.

    ``signs`` says whether it wants every call in the history signed.
    """
    config = state["config"]
    request = state["request"]
    override = request.get("messages")
    history = override if isinstance(override, list) else natives
    conversation = render_history(Conversation, history, context, signs)
    contents = conversation.end(config.get("attachments_root"), warn)
    told = conversation.instructions
    body: JsonObject = {}
    if told and system:
        body["systemInstruction"] = {"parts": told}
    elif told:
        contents = _with_instructions(contents, told)
    body["contents"] = contents
    body |= {key: value for key, value in (request.get("payload") or {}).items() if value != {}}
    extra = config.get("extra_body")
    return _merged(body, extra) if isinstance(extra, Mapping) else body


def _with_instructions(contents: list[JsonObject], told: list[JsonObject]) -> list[JsonObject]:
    """The instructions at the beginning of what the user says first."""
    if contents and contents[0]["role"] == "user":
        return [{"role": "user", "parts": [*told, *contents[0]["parts"]]}, *contents[1:]]
    return [{"role": "user", "parts": told}, *contents]


def _merged(body: JsonObject, extra: Mapping[str, Any]) -> JsonObject:
    merged = dict(body)
    for key, value in extra.items():
        mine = merged.get(key)
        both = isinstance(mine, dict) and isinstance(value, Mapping)
        merged[key] = _merged(mine or {}, value) if both else value
    return merged
