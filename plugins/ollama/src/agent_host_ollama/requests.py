"""What is sent to Ollama: addresses, headers, messages and options of one request.

Owns the shape of the body. It must not know answers; tools, thinking and answer schemas have been
put into the payload by their extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Config, Context, MultipartContent, NativeMessage, State
from agent_hookspecs.authoring import Rendering, expand_attachments, render_history, take_knob
from agent_hookspecs.tool_interop import JsonObject, Warn
from agent_host_ollama.images import image_data

__all__ = ["DEFAULT_BASE", "address", "body_of", "headers_of", "take_options"]

DEFAULT_BASE = "http://localhost:11434"

#: Knobs that are options of the model, and their names here.
_OPTIONS = {
    "max_output_tokens": "num_predict",
    "temperature": "temperature",
    "seed": "seed",
    "stop": "stop",
}


def address(config: Config, method: str) -> str:
    """The address of a method of the API, whichever part of it the base URL ends with."""
    base = str(config.get("base_url") or DEFAULT_BASE).strip().rstrip("/")
    for ending in ("/api/chat", "/api", "/v1"):
        base = base.removesuffix(ending)
    if "://" not in base:
        base = f"http://{base}"
    return f"{base}/api/{method}"


def headers_of(config: Config) -> dict[str, str]:
    """Nothing, unless there is a key; servers on one's own machine want none."""
    given = config.get("extra_headers")
    extra = {str(k): str(v) for k, v in given.items()} if isinstance(given, Mapping) else {}
    key = config.get("api_key")
    return {**({"authorization": f"Bearer {key}"} if key else {}), **extra}


def take_options(state: State) -> None:
    """Put the knobs that every model has, and what the config adds, into the payload."""
    config, payload = state["config"], state["request"].setdefault("payload", {})
    options: JsonObject = {}
    for knob, key in _OPTIONS.items():
        value = take_knob(state, knob)
        if value is not None:
            options[key] = [value] if knob == "stop" and isinstance(value, str) else value
    if config.get("num_ctx") is not None:
        options["num_ctx"] = config["num_ctx"]
    given = config.get("options")
    options.update(given if isinstance(given, Mapping) else {})
    if options:
        payload["options"] = options
    if config.get("keep_alive") is not None:
        payload["keep_alive"] = _duration(config["keep_alive"])


def _duration(value: Any) -> Any:
    """Durations have a unit; a bare number is one of seconds and must not be text."""
    bare = isinstance(value, str) and value.strip().removeprefix("-").isdigit()
    return int(value) if bare else value


def body_of(
    natives: list[NativeMessage], state: State, context: Context, *, stream: bool, warn: Warn
) -> JsonObject:
    """The whole body of a request."""
    config, request = state["config"], state["request"]
    override = request.get("messages")
    sent = override if isinstance(override, list) else natives
    history = render_history(_Messages, sent, context)
    body: JsonObject = {
        "model": config.get("model"),
        "messages": history.end(config.get("attachments_root"), warn),
        "stream": stream,
        **(request.get("payload") or {}),
    }
    extra = config.get("extra_body")
    return {**body, **extra} if isinstance(extra, Mapping) else body


class _Messages(Rendering):
    """The messages of a history so far, and the files that they refer to, by place."""

    def __init__(self) -> None:
        self._messages: list[NativeMessage] = []
        self._files: dict[int, list[MultipartContent]] = {}

    def add(self, native: NativeMessage) -> None:
        notes = native.pop("_metadata", None)
        files = notes.get("files") if isinstance(notes, dict) else None
        if files:
            self._files[len(self._messages)] = files
        self._messages.append(native)

    def end(self, attachments_root: Any, warn: Warn) -> list[NativeMessage]:
        """The messages with their files as data; nothing can be added afterwards."""
        for place, files in self._files.items():
            parts = expand_attachments(files, root=attachments_root, warn=warn)
            self._messages[place] = _with_images(self._messages[place], parts)
        return self._messages


def _with_images(native: NativeMessage, parts: list[JsonObject]) -> NativeMessage:
    message = {**native}
    for part in parts:
        data = image_data(part)
        if data is not None:
            message["images"] = [*message.get("images", ()), data]
        else:
            note = part["content"]["text"]
            message["content"] = "\n\n".join(filter(None, (message["content"], note)))
    return message
