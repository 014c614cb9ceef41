"""Drives providers of the chat format for tests: chunk by chunk, or over a socket by the host."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_host.core import AgentCore
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import LoaderSettings, build_catalog
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.load import load_catalog
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.reasoning import ChatThoughts
from agent_host_openai_compatible.tools import ChatTools

_BUNDLES = frozenset({"openai-compatible", "openrouter"})

__all__ = [
    "END",
    "Scripted",
    "call",
    "call_chunk",
    "chunk",
    "converse",
    "core",
    "delta",
    "function_call",
    "message",
    "read",
    "sent",
    "serve",
]


def delta(**fields: Any) -> dict[str, Any]:
    """A chunk with one delta."""
    return chunk({"index": 0, "delta": fields, "finish_reason": None})


def chunk(choice: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    choices = [choice] if choice is not None else []
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": choices,
    } | fields


def call(**fields: Any) -> dict[str, Any]:
    """A chunk with one fragment of a tool call."""
    return delta(tool_calls=[fields])


def call_chunk(name: str, call_id: str = "a", arguments: str = "{}") -> dict[str, Any]:
    """A chunk with one whole tool call."""
    function = {"name": name, "arguments": arguments}
    return call(index=0, id=call_id, type="function", function=function)


END = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})


def read(
    chunks: Sequence[Any],
    provider: ChatCompletionsProvider | None = None,
    config: dict[str, Any] | None = None,
    history: Sequence[dict[str, Any]] = (),
) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """The native and core message of a stream, and every partial message it showed."""
    provider = provider or ChatCompletionsProvider()
    state = provider.init({"model": "m", **(config or {})})
    shown: list[dict[str, Any]] = []
    natives = list(history)
    for each in chunks:
        partials, finals, natives, state = provider.process_chunk(each, natives, state)
        for extension in (ChatTools(), ChatThoughts()):
            partials, finals, natives, state = extension.process_chunk(
                each, partials, finals, natives, state
            )
        shown += partials
    finals, natives, state = provider.finalize(natives, state, {})
    messages = provider.from_native_messages(finals, state)
    messages = ChatThoughts().from_native_messages(finals, messages)
    return finals[0], dict(messages[0]), shown


def sent(
    provider: ChatCompletionsProvider | None = None,
    messages: Sequence[dict[str, Any]] = ({"role": "user", "content": "hi", "metadata": {}},),
    extensions: Sequence[Any] = (),
    *,
    stream: bool = True,
    **config: Any,
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """The request for core messages, the knobs that nobody took, and the warnings."""
    provider = provider or ChatCompletionsProvider()
    state = provider.init({"model": "m", "base_url": "http://host/v1", **config})
    warnings: list[str] = []
    context = {"warn": lambda message, plugin: warnings.append(message)}
    natives = provider.to_native_messages(messages, state)  # type: ignore[arg-type]
    natives, state = provider.initialize_request(natives, state, context)
    for extension in extensions:
        with_context = extension.initialize_request.__code__.co_argcount == 4
        rest = (context,) if with_context else ()
        natives, state = extension.initialize_request(natives, state, *rest)
    spec = provider.build_request(natives, state, stream, context)
    return dict(spec), state["knobs"], warnings


def message(role: str, content: str = "", /, **more: Any) -> dict[str, Any]:
    """A core message; what is no part of it is its metadata."""
    apart: list[str] = ["multipartContent", "toolResult"]
    parts = {key: more.pop(key) for key in apart if key in more}
    return {"role": role, "content": content, "metadata": more, **parts}


def function_call(call_id: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    """A whole call, as it stands in messages."""
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


class Scripted:
    """What a server answers, in order, and what it was asked."""

    def __init__(self, *answers: bytes | dict[str, Any]) -> None:
        self.answers = [a if isinstance(a, bytes) else json.dumps(a).encode() for a in answers]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.models: dict[str, Any] | None = None


@contextlib.contextmanager
def serve(script: Scripted) -> Iterator[str]:
    """A server on a free port; its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = script.models is not None
            self._answer(json.dumps(script.models or {}).encode(), 200 if found else 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            script.requests.append(json.loads(body))
            script.headers.append({k.lower(): v for k, v in self.headers.items()})
            script.paths.append(self.path)
            self._answer(script.answers.pop(0), 200)

        def _answer(self, body: bytes, status: int) -> None:
            kind = "text/event-stream" if body.startswith(b"data:") else "application/json"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def core(*rows: dict[str, Any]) -> AgentCore:
    """A core with the packages of the chat format; ``rows`` are added to the base's descriptor."""
    if not rows:
        return AgentCore(catalog=load_catalog(LoaderSettings(allow=_BUNDLES)))
    package = "agent_host_openai_compatible"
    file = str(files(package) / DESCRIPTOR_NAME)
    document = json.loads(Path(file).read_text("utf-8"))
    document["entries"] += rows
    descriptor = parse_descriptor(document)
    bundle = Bundle(package, "pkg", f"pkg:{package}", file=file, descriptor=descriptor)
    return AgentCore(catalog=build_catalog([bundle], LoaderSettings()))


def converse(
    script: Scripted, config: dict[str, Any], turns: Sequence[Sequence[dict[str, Any]]]
) -> Any:
    """Send each turn's messages to the scripted server, whole answers; the session at the end."""
    with serve(script) as url, core() as host:
        session = host.create_session()
        for messages in turns:
            session = session.with_added(*messages)
            session, _ = host.send_request(session, {"retries": 0, "base_url": url, **config})
        return session
