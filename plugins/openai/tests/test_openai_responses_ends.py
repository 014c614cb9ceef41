"""How answers of the Responses API end: as they should, cut short, failed or refused."""

from __future__ import annotations

from typing import Any

import pytest
from openai_wire import (
    ask,
    ask_streamed,
    call,
    config,
    events_of,
    message,
    response,
    sse,
    streamed,
    text_delta,
    user,
    wire,
)

from agent_hookspecs import (
    ContextLengthError,
    InvalidRequestError,
    OverloadedError,
    ProtocolError,
    ProviderError,
    RateLimitError,
    ServerError,
)

TOOLS = [{"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}]


def test_text_of_a_message_that_was_never_finished_is_kept_when_the_answer_ends() -> None:
    body = sse(
        text_delta("Half a sen"),
        {
            "type": "response.incomplete",
            "response": response(
                status="incomplete", incomplete_details={"reason": "content_filter"}
            ),
        },
    )
    with wire(body) as served:
        session, told = ask_streamed(served, user("Hi"))
    assert told["content"] == "Half a sen"
    assert told["metadata"]["finish_reason"] == "content_filter"
    assert session.metadata["native_messages"][-1]["output"][0]["status"] == "incomplete"


@pytest.mark.parametrize("cut", [call("{}", status="incomplete"), call("", status="incomplete")])
def test_a_call_that_was_cut_off_is_marked_even_if_its_arguments_parse(cut: Any) -> None:
    more = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    with wire(streamed(cut, end="response.incomplete", **more)) as served:
        _, told = ask_streamed(served, user("Hi"), tools=TOOLS)
    assert told["metadata"]["tool_calls"][0]["arguments"] == "{}"
    assert told["metadata"]["tool_call_errors"] == {"call_1": "it was cut off before its end"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "Oh."}, ServerError),
        ({"code": "rate_limit_exceeded", "message": "Slow."}, RateLimitError),
        ({"code": "invalid_prompt", "message": "No."}, InvalidRequestError),
        ({"code": "context_length_exceeded", "message": "Long."}, ContextLengthError),
        ({"code": "server_is_overloaded", "message": "Busy."}, OverloadedError),
        ({"code": "never_heard_of", "message": "?"}, ProviderError),
    ],
)
def test_shape_33_a_failed_response_is_a_typed_error_and_its_text_is_kept(
    error: dict[str, Any], kind: type[ProviderError]
) -> None:
    failed = response(status="failed", error=error)
    body = sse(text_delta("So far"), {"type": "response.failed", "response": failed})
    with wire(body, response(message("So far"), status="failed", error=error)) as served:
        stream = served.core.send_request_stream(user("Hi"), config(served))
        with pytest.raises(kind) as streamed_error:
            list(stream)
        assert stream.session.messages[-1]["content"] == "So far"
        assert stream.session.messages[-1]["metadata"] == {"partial": True}
        with pytest.raises(kind):
            ask(served, user("Hi"))
    assert error["message"] in streamed_error.value.message
    assert streamed_error.value.code == error["code"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Oh.", "param": None},
        {"type": "error", "error": {"type": "server_error", "code": None, "message": "Oh."}},
        {"type": "some.new.event", "error": {"code": "server_error", "message": "Oh."}},
    ],
)
def test_an_error_event_is_a_typed_error(event: dict[str, Any]) -> None:
    with wire(sse(event)) as served, pytest.raises(ServerError, match="Oh"):
        events_of(served, user("Hi"))


def test_a_failed_response_that_says_nothing_is_a_server_error() -> None:
    body = sse({"type": "response.failed", "response": response(status="failed")})
    with wire(body) as served, pytest.raises(ServerError, match="without saying why"):
        events_of(served, user("Hi"))


def test_shape_44_an_end_marker_after_the_closing_event_is_no_trouble() -> None:
    with wire(streamed(message("Hello.")) + b"data: [DONE]  \n\n: bye\n\n") as served:
        assert ask_streamed(served, user("Hi"))[1]["content"] == "Hello."


def test_a_body_that_is_no_response_is_a_protocol_error() -> None:
    with (
        wire({"object": "list", "data": []}) as served,
        pytest.raises(ProtocolError, match="no response"),
    ):
        ask(served, user("Hi"))
