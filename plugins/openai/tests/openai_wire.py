"""A loopback server that answers as OpenAI would, and the core that asks it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent_hookspecs import CoreMessage, Event
from agent_host import AgentCore, Session
from agent_host_openai.provider import OpenAIProvider
from agent_host_openai.responses.reasoning import OpenAIResponsesReasoning
from agent_host_openai.responses.structured import OpenAIResponsesStructuredOutput
from agent_host_openai.responses.tools import OpenAIResponsesTools
from agent_host_openai_compatible.reasoning import ChatReasoning, ChatThoughts
from agent_host_openai_compatible.structured import ChatStructuredOutput
from agent_host_openai_compatible.tools import ChatTools, ChatWithoutTools
from agent_host_openai_compatible.usage import ChatUsage

EXTENSIONS = (
    OpenAIResponsesTools,
    OpenAIResponsesReasoning,
    OpenAIResponsesStructuredOutput,
    ChatTools,
    ChatWithoutTools,
    ChatReasoning,
    ChatThoughts,
    ChatUsage,
    ChatStructuredOutput,
)

USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 16,
}


@dataclass
class Answer:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    #: A body shorter than promised is a connection that broke.
    promised: int | None = None


@dataclass
class Wire:
    url: str
    answers: list[Answer]
    core: AgentCore
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    listing: bytes = b'{"data": []}'


@contextlib.contextmanager
def wire(*answers: Answer | bytes | dict[str, Any]) -> Iterator[Wire]:
    """A server that gives these answers to what is posted, one after the other."""
    given = [_answer(each) for each in answers]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(Answer(served.listing, headers={"Content-Type": "application/json"}))

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            served.bodies.append(json.loads(self.rfile.read(length)))
            served.headers.append({key.lower(): value for key, value in self.headers.items()})
            served.paths.append(self.path)
            self._send(served.answers.pop(0))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(answer.promised or len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = answer.promised is not None

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Wire(f"http://127.0.0.1:{server.server_port}/v1", given, _core())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.core.close()
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(given: Answer | bytes | dict[str, Any]) -> Answer:
    if isinstance(given, Answer):
        return given
    if isinstance(given, bytes):
        return Answer(given)
    return Answer(json.dumps(given).encode(), headers={"Content-Type": "application/json"})


def _core() -> AgentCore:
    core = AgentCore()
    core.register_provider(OpenAIProvider)
    for extension in EXTENSIONS:
        core.register_extension(extension)
    return core


def config(served: Wire, **more: Any) -> dict[str, Any]:
    return {
        "provider": "openai",
        "model": "gpt-5",
        "api_key": "sk-test-0123456789",
        "base_url": served.url,
        "retries": 0,
        **more,
    }


def user(*texts: str) -> Session:
    return Session([{"role": "user", "content": text} for text in texts])


def events_of(served: Wire, session: Session, **more: Any) -> list[Event]:
    return list(served.core.send_request_stream(session, config(served, **more)))


def ask(served: Wire, session: Session, **more: Any) -> tuple[Session, CoreMessage]:
    """Ask without a stream."""
    answered, finals = served.core.send_request(session, config(served, **more))
    return answered, finals[-1]


def ask_streamed(served: Wire, session: Session, **more: Any) -> tuple[Session, CoreMessage]:
    (final,) = [e for e in events_of(served, session, **more) if e["type"] == "final"]
    return final["session"], final["messages"][-1]


def warnings_in(events: list[Event]) -> list[str]:
    return [event["message"] for event in events if event["type"] == "warning"]


# Responses as the API sends them.


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


def message(text: str, item_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {
        "id": item_id,
        "type": "message",
        "status": "completed",
        "content": [part],
        "role": "assistant",
        **more,
    }


def reasoning(encrypted: str | None = "gAAA", **more: Any) -> dict[str, Any]:
    return {
        "id": "rs_1",
        "type": "reasoning",
        "encrypted_content": encrypted,
        "summary": [],
        **more,
    }


def call(arguments: Any = '{"a":1}', call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": call_id,
        "name": "add",
        **more,
    }


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5-2025-08-07",
        "output": list(output),
        "usage": USAGE,
        **more,
    }


def text_delta(text: str, place: int = 0) -> dict[str, Any]:
    return {
        "type": "response.output_text.delta",
        "output_index": place,
        "content_index": 0,
        "item_id": "msg_1",
        "delta": text,
        "logprobs": [],
    }


def streamed(*items: dict[str, Any], end: str = "response.completed", **more: Any) -> bytes:
    """The items as a stream that tells each of them piece by piece."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response(status="in_progress", usage=None)}
    ]
    for place, item in enumerate(items):
        where = {"output_index": place, "item_id": item.get("id")}
        begun = {**item, "status": "in_progress"}
        if item["type"] == "message":
            begun["content"] = []
            told = [part["text"] for part in item["content"] if part["type"] == "output_text"]
            pieces = [text_delta(piece, place) for text in told for piece in _pieces(text)]
        elif item["type"] in ("function_call", "custom_tool_call"):
            key = "arguments" if item["type"] == "function_call" else "input"
            kind = "function_call_arguments" if key == "arguments" else "custom_tool_call_input"
            begun[key] = ""
            written = item[key] if isinstance(item[key], str) else ""
            pieces = [
                {"type": f"response.{kind}.delta", "delta": piece, **where}
                for piece in _pieces(written)
            ]
        else:
            pieces = []
        events.append({"type": "response.output_item.added", "item": begun, **where})
        events += pieces
        events.append({"type": "response.output_item.done", "item": item, **where})
    return sse(*events, {"type": end, "response": response(*items, **more)})


def _pieces(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]
