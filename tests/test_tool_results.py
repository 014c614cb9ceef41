"""What tools give back becomes a message: text, envelopes, pictures, cut to size, never broken."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from agent_hookspecs import ToolPlugin
from agent_hookspecs.authoring import attachment, expand_attachments
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY
from agent_host.agent.results import TRUNCATED, tool_message, truncate_message
from scripted import WAYS, Way, app_with, call, calling, done, events_of, of_kind, saying, scripted


@dataclass
class City:
    name: str
    since: date


class Pair(BaseModel):
    x: int
    y: list[int] = []


class NoForm:
    def __str__(self) -> str:
        return "no form"


@dataclass
class Loop:
    inner: object = None

    def __str__(self) -> str:
        return "a loop"


LOOP = Loop()
LOOP.inner = LOOP
PIXEL = f"data:image/png;base64,{base64.b64encode(b'pixel').decode()}"
IMAGE = {"type": "image", "content": {"url": PIXEL}}
NATIVE = {
    "type": "provider_native_tool_result",
    "format": "openai.chat_completions",
    "content": [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ],
}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        (3, "3"),
        (True, "true"),
        ([1, "ä"], '[1,"ä"]'),
        ({"a": 1}, '{"a":1}'),
        (Path("/x"), '"/x"'),
        (City("Ulm", date(2024, 1, 2)), '{"name":"Ulm","since":"2024-01-02"}'),
        ([Pair(x=1)], '[{"x":1,"y":[]}]'),
        ({"found": {1}, "size": Decimal("1.5")}, '{"found":[1],"size":"1.5"}'),
        (NoForm(), '"no form"'),
        (LOOP, '"a loop"'),
        ({"type": "tool_result", "text": "given"}, "given"),
        ({"type": "tool_result", "content": [{"type": "text", "text": "a"}, "b", IMAGE]}, "a\nb"),
        (NATIVE, "look"),
        ({"role": "tool", "content": "said"}, "said"),
        ({"role": "tool", "toolResult": {"type": "tool_result", "text": "beside"}}, "beside"),
        ({"role": "tool", "content": {"a": 1}}, '{"a":1}'),
    ],
    ids=str,
)
def test_every_result_has_a_text_that_any_provider_can_carry(result: Any, text: str) -> None:
    message = tool_message(result, "f", "c1")
    assert message["role"] == "tool"
    assert message["content"] == text
    assert message["metadata"] == {"tool_call_id": "c1", "tool_name": "f"}
    view = DEFAULT_TOOL_INTEROP_REGISTRY.inspect_result(message["toolResult"])
    assert view is not None
    assert json.loads(json.dumps(message)) == message


def test_an_envelope_of_one_family_is_kept_as_it_is() -> None:
    assert tool_message(NATIVE, "f", "c1")["toolResult"] == NATIVE


def test_parts_are_kept_beside_their_text() -> None:
    parts = [{"type": "text", "text": "a"}, IMAGE]
    message = tool_message({"type": "tool_result", "content": parts}, "f", "c1")
    assert message["toolResult"] == {"type": "tool_result", "content": parts, "text": "a"}


def test_what_is_only_to_be_shown_is_kept_in_the_metadata() -> None:
    given = {"role": "tool", "content": "short", "metadata": {"display": {"diff": "long"}}}
    metadata = tool_message(given, "f", "c1")["metadata"]
    assert metadata["display"] == {"diff": "long"}
    assert metadata["tool_call_id"] == "c1"


def test_a_tool_cannot_answer_in_another_calls_name() -> None:
    given = {"role": "tool", "content": "", "metadata": {"tool_call_id": "c9", "tool_name": "g"}}
    metadata = tool_message(given, "f", "c1")["metadata"]
    assert (metadata["tool_call_id"], metadata["tool_name"]) == ("c1", "f")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (5, "content is int, not a list"),
        ([5], "content[0] is not an object"),
        ([{}], "content[0] has no type"),
        ([{"type": "text"}], "content[0] has no text"),
        ([{"type": "text", "text": 5}], "has no text"),
        ([{"type": "image"}], "content[0] of type 'image' has no content"),
        ([{"type": "image", "content": {}}], "neither url nor data"),
        ([{"type": "image", "content": {"url": 5}}], "not text"),
        ([{"type": "image", "content": {"url": "data:image/png"}}], "without data"),
        ([{"type": "image", "content": {"url": "data:image/png;base64,%%%"}}], "not base64"),
        ([{"type": "shape", "content": {"x": float("nan")}}], "cannot be written as JSON"),
        ([{"type": "shape", "content": {"x": object()}}], "cannot be written as JSON"),
    ],
)
def test_invalid_content_becomes_an_error_that_says_why(content: Any, why: str) -> None:
    message = tool_message({"type": "tool_result", "content": content}, "f", "c1")
    assert message["content"].startswith("Tool 'f' returned invalid multimodal content: ")
    assert why in message["content"]
    assert message["metadata"]["error"] is True
    assert json.loads(json.dumps(message)) == message


@pytest.mark.parametrize(
    "envelope",
    [
        {"type": "provider_native_tool_result", "content": []},
        {"type": "provider_native_tool_result", "format": "", "content": []},
        {"type": "provider_native_tool_result", "format": "x", "content": 5},
        {"type": "provider_native_tool_result", "format": "x", "content": [5]},
        {"type": "provider_native_tool_result", "format": "x", "content": [{"a": {1, 2}}]},
    ],
)
def test_an_invalid_envelope_becomes_an_error_too(envelope: Any) -> None:
    assert tool_message(envelope, "f", "c1")["metadata"]["error"] is True
    whole = {"role": "tool", "content": "", "toolResult": envelope}
    assert tool_message(whole, "f", "c1")["metadata"]["error"] is True


@given(st.text(), st.integers(14, 60))
def test_a_long_text_is_cut_between_characters(text: str, limit: int) -> None:
    message = tool_message(text, "f", "c1")
    cut = truncate_message(message, limit)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= limit:
        assert cut is message
        return
    assert len(cut["content"].encode("utf-8", "surrogatepass")) <= limit
    assert cut["content"].endswith(TRUNCATED)
    assert text.encode("utf-8", "ignore").decode().startswith(cut["content"][: -len(TRUNCATED)])
    assert cut["toolResult"] == {"type": "tool_result", "text": cut["content"]}
    assert cut["metadata"]["bytes"] == size


def test_a_cut_error_is_still_an_error() -> None:
    cut = truncate_message(tool_message("x" * 100, "f", "c1", failed=True), 50)
    assert cut["metadata"]["error"] is True
    assert cut["metadata"]["tool_call_id"] == "c1"


def test_a_picture_that_is_too_large_leaves_its_text_or_a_note() -> None:
    large = {"type": "image", "content": {"url": f"data:image/png;base64,{'A' * 400}"}}
    with_text = {"type": "tool_result", "text": "a picture", "content": [large]}
    assert truncate_message(tool_message(with_text, "f", "c1"), 100)["content"] == "a picture"
    cut = truncate_message(
        tool_message({"type": "tool_result", "content": [large]}, "f", "c1"), 100
    )
    assert cut["content"] == (
        "Tool 'f' output omitted because it exceeded the size limit (max_bytes=100)."
    )
    assert "content" not in cut["toolResult"]


# --- in a run ---


class Giving(ToolPlugin):
    name = "giving"
    effects = {"give": "read"}  # noqa: RUF012
    result: Any = None

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "give", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name: str) -> Any:
        return self.result


def given_back(result: Any, way: Way = "sync", **tools: Any) -> Any:
    plugin = type("Giving", (Giving,), {"result": result})
    app = app_with(
        scripted([calling(call("give")), saying("Done.")]), plugin, config={"tools": tools}
    )
    events = events_of(app, way=way)
    assert events[-1] == done()
    (event,) = of_kind(events, "tool_result")
    return event["message"]


ways = pytest.mark.parametrize("way", WAYS)


@ways
def test_nonsense_from_a_tool_does_not_end_a_run(way: Way) -> None:
    loop: list[Any] = []
    loop.append(loop)
    for nonsense in (loop, {("a", "b"): 1}, {"type": "tool_result", "content": loop}):
        assert given_back(nonsense, way)["metadata"]["error"] is True


@ways
def test_a_long_result_is_cut_in_a_run(way: Way) -> None:
    message = given_back("ä" * 1000, way, max_result_bytes=100)
    assert message["metadata"]["truncated"] is True
    assert len(message["content"].encode()) <= 100


@ways
def test_results_are_cut_at_two_hundred_thousand_bytes_by_default(way: Way) -> None:
    assert "truncated" not in given_back("x" * 200_000, way)["metadata"]
    assert given_back("x" * 200_001, way)["metadata"]["truncated"] is True


def test_a_reference_to_a_file_stays_compact_in_history_and_is_expanded_for_the_wire(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "large.png"
    picture.write_bytes(b"pixel" * 100_000)
    wire: list[Any] = []

    def to_native_messages(self: Any, messages: Any) -> list[Any]:
        return [dict(message) for message in messages]

    def initialize_request(self: Any, native_messages: Any, state: Any) -> Any:
        wire.append(expand_attachments(native_messages, root=tmp_path))
        return native_messages, state

    shown = {"type": "tool_result", "text": "look", "content": [attachment(picture)]}
    provider = scripted(
        [calling(call("give")), saying("Done.")],
        to_native_messages=to_native_messages,
        initialize_request=initialize_request,
    )
    showing = type("Showing", (Giving,), {"result": shown})
    answer = app_with(provider, showing).run("go")
    stored = json.dumps(answer.session.to_dict())
    assert len(stored) < 5000
    assert picture.as_uri() in stored
    sent = wire[-1][-1]["toolResult"]["content"][0]["content"]["url"]
    assert base64.b64decode(sent.partition(",")[2]) == b"pixel" * 100_000
