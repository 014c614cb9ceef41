"""The server that stands alone: its command line, its scripts, and the model without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as UrlRequest, urlopen

import pytest
from hypothesis import given, strategies as st
from testing_http import ask, chat

from agent_host_testing.faults import Drip, Reset, Split, Stall, Truncate, WrongLength
from agent_host_testing.formats import FORMATS, wire_format
from agent_host_testing.improvisation import Improviser, example
from agent_host_testing.script import (
    Call,
    Failure,
    Picture,
    Raw,
    Reply,
    Search,
    Text,
    Thought,
    Tokens,
    say,
)
from agent_host_testing.script_file import ScriptError, read_script
from agent_host_testing.server import FakeServer

COMMAND = [sys.executable, "-m", "agent_host_testing.serve"]
Process = subprocess.Popen[str]
Serve = Callable[..., tuple[Process, dict[str, str]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start the command with --json; gives the process and what it printed first."""
    started: list[Process] = []

    def start(*arguments: str) -> tuple[Process, dict[str, str]]:
        process = subprocess.Popen(
            [*COMMAND, *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _fails(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


def _post(url: str, body: Any, key: str = "") -> Any:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    request = UrlRequest(url, json.dumps(body).encode(), headers)
    with urlopen(request, timeout=10) as response:
        return json.load(response)


def _said(answer: Any) -> Any:
    return answer["choices"][0]["message"]["content"]


def _end(process: Process) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    return out, err


def test_it_serves_until_interrupted_and_logs_a_line_for_each_request(serve: Serve) -> None:
    process, told = serve("openai.chat", "--models", "a,b")
    assert told["format"] == "openai.chat"
    assert told["base_url"] == told["url"] + "/v1"
    assert _said(_post(told["base_url"] + "/chat/completions", chat("good day"))) == (
        "You said: good day"
    )
    with urlopen(told["base_url"] + "/models", timeout=10) as response:
        assert [model["id"] for model in json.load(response)["data"]] == ["a", "b"]
    with pytest.raises(HTTPError, match="400"):
        _post(told["base_url"] + "/chat/completions", chat(frob=1))
    out, err = _end(process)
    assert out == ""
    lines = err.splitlines()
    assert lines[:2] == ["POST /v1/chat/completions 200", "GET /v1/models 200"]
    assert lines[2].startswith("problem: unknown field 'frob' at frob")
    assert lines[3] == "POST /v1/chat/completions 400"


def test_the_base_url_is_printed_plainly_without_json() -> None:
    process = subprocess.Popen([*COMMAND, "openai.responses"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    _end(process)


def test_a_key_is_asked_for_and_never_logged(serve: Serve) -> None:
    process, told = serve("openai.chat", "--key", "sesame-9431")
    url = told["base_url"] + "/chat/completions"
    with pytest.raises(HTTPError, match="401"):
        _post(url, chat(), key="wrong-7720")
    assert _said(_post(url, chat(), key="sesame-9431")) == "You said: hi"
    _, err = _end(process)
    assert "sesame-9431" not in err
    assert "wrong-7720" not in err


def test_lenient_logs_problems_and_answers(serve: Serve) -> None:
    process, told = serve("openai.chat", "--lenient")
    assert _post(told["base_url"] + "/chat/completions", chat(frob=1))
    assert "unknown field 'frob'" in _end(process)[1]


def test_reasoning_of_a_dialect_is_shown_in_its_field(serve: Serve) -> None:
    _, told = serve("openai.chat", "--reasoning", "reasoning_content")
    body = {**chat("good day"), "reasoning_effort": "low"}
    answer = _post(told["base_url"] + "/chat/completions", body)
    assert answer["choices"][0]["message"]["reasoning_content"].startswith("The user said")


def test_reasoning_of_a_dialect_is_refused_for_other_formats() -> None:
    failed = _fails("ollama.chat", "--reasoning", "reasoning")
    assert failed.returncode == 2
    assert "--reasoning is for openai.chat; ollama.chat has its own" in failed.stderr


def test_a_script_is_played_and_then_the_model_goes_on_alone(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"say": "from the script"}, {"failure": {"kind": "rate_limit"}}]')
    _, told = serve("openai.chat", "--script", str(script))
    url = told["base_url"] + "/chat/completions"
    assert _said(_post(url, chat())) == "from the script"
    with pytest.raises(HTTPError, match="429"):
        _post(url, chat())
    assert _said(_post(url, chat())) == "You said: hi"


def test_a_port_in_use_says_what_to_do() -> None:
    with FakeServer("openai.chat") as server:
        port = server.url.rpartition(":")[2]
        failed = _fails("openai.chat", "--port", port)
    assert failed.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in failed.stderr
    assert "--port" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_an_unknown_format_names_those_there_are() -> None:
    failed = _fails("smoke.signals")
    assert failed.returncode == 2
    assert all(name in failed.stderr for name in FORMATS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("[", "no JSON"),
        ('{"say": "x"}', "script: expected an array"),
        ('[{"say": "x"}, {"says": "x"}]', "script[1]: this is no answer"),
    ],
)
def test_a_bad_script_says_where_and_why(content: str | None, message: str, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    if content is not None:
        script.write_text(content)
    failed = _fails("openai.chat", "--script", str(script))
    assert failed.returncode == 2
    assert str(script) in failed.stderr
    assert message in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_help_tells_of_every_option() -> None:
    told = _fails("--help")
    assert told.returncode == 0
    for option in ("--port", "--host", "--key", "--lenient", "--models", "--script", "--json"):
        assert option in told.stdout


# Scripts


def test_scripts_have_the_words_of_the_kit() -> None:
    lines = read_script(
        [
            {"say": "hi", "finish": "length", "fragments": 5, "tokens": {"input": 1}},
            {"call": "f", "arguments": {"a": 1}, "id": "x", "tokens": None},
            {"call": "p", "arguments": "text", "freeform": True, "fault": {"reset": {"after": 3}}},
            {
                "parts": [
                    {"thought": "hm", "signature": "s", "redacted": False},
                    {"text": "so", "signature": "t"},
                    {"call": "g"},
                    {"picture": "iVBO", "media_type": "image/webp"},
                    {"search": "rain", "cut": True},
                ],
                "failure": {"kind": "server", "message": "oh"},
            },
            {"failure": {"kind": "overloaded", "headers": {"retry-after": "1"}}},
            {"raw": ["a", "b"], "status": 502, "headers": {"x": "y"}},
        ]
    )
    assert [answer for answer, _ in lines] == [
        say("hi", finish="length", fragments=5, tokens=Tokens(input=1)),
        Reply((Call("f", {"a": 1}, "x"),), tokens=None),
        Reply((Call("p", "text", freeform=True),)),
        Reply(
            (
                Thought("hm", "s"),
                Text("so", "t"),
                Call("g"),
                Picture("iVBO", "image/webp"),
                Search("rain", True),
            ),
            failure=Failure("server", "oh"),
        ),
        Failure("overloaded", headers={"retry-after": "1"}),
        Raw((b"a", b"b"), 502, {"x": "y"}),
    ]
    assert [faults for _, faults in lines] == [(), (), (Reset(3),), (), (), ()]


def test_scripts_have_every_fault() -> None:
    faults = [
        {"reset": {}},
        {"stall": {"head": False}},
        {"truncate": {"after": None, "tidy": True}},
        {"wrong_length": {"by": -1}},
        {"split": {"at": [1, -1], "every": 7}},
        {"drip": {"seconds": 0.5, "size": 3}},
    ]
    ((_, read),) = read_script([{"say": "x", "fault": faults}])
    assert read == (
        Reset(),
        Stall(head=False),
        Truncate(None, tidy=True),
        WrongLength(-1),
        Split((1, -1), 7),
        Drip(0.5, 3),
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (7, r"script\[0\]: expected an object"),
        ({"say": 7}, r"script\[0\]\.say: expected a string"),
        ({"say": "x", "id": "y"}, r"script\[0\]\.id: unknown field"),
        ({"say": "x", "finish": "bored"}, r"script\[0\]\.finish: invalid value"),
        ({"say": "x", "tokens": {"in": 1}}, r"script\[0\]\.tokens\.in: unknown field"),
        ({"call": "f", "arguments": 7}, r"script\[0\]\.arguments: expected an object"),
        ({"parts": [{"words": "x"}]}, r"script\[0\]\.parts\[0\]: this is no part"),
        ({"failure": {"kind": "fire"}}, r"script\[0\]\.failure\.kind: invalid value"),
        ({"raw": "x"}, r"script\[0\]\.raw: expected an array"),
        ({"say": "x", "fault": {"flood": {}}}, r"script\[0\]\.fault: this is no fault"),
        (
            {"say": "x", "fault": {"wrong_length": {}}},
            r"script\[0\]\.fault\.wrong_length\.by: miss",
        ),
        ({"say": "x", "fault": [{"split": {"at": 3}}]}, r"script\[0\]\.fault\[0\]\.split\.at: exp"),
    ],
)
def test_what_is_wrong_with_a_script_is_told_with_its_place(answer: Any, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        read_script([answer])


# The model without a script

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
FUNCTION = {"name": "get_weather", "description": "The weather", "parameters": SCHEMA}
WISH = "please use get_weather"


def _anthropic(**fields: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": WISH}]
    return {"model": "m", "max_tokens": 2000, "messages": said, **fields}


REQUESTS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "openai.chat": (
        "/v1/chat/completions",
        chat(WISH, tools=[{"type": "function", "function": FUNCTION}]),
        {},
    ),
    "openai.responses": (
        "/v1/responses",
        {"model": "m", "input": WISH, "tools": [{"type": "function", **FUNCTION}]},
        {},
    ),
    "anthropic.messages": (
        "/v1/messages",
        _anthropic(tools=[{"name": "get_weather", "input_schema": SCHEMA}]),
        {"anthropic-version": "2023-06-01", "x-api-key": "k", "content-type": "application/json"},
    ),
    "google.generate": (
        "/v1beta/models/m:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": WISH}]}],
            "tools": [{"functionDeclarations": [FUNCTION]}],
        },
        {"x-goog-api-key": "k"},
    ),
    "ollama.chat": (
        "/api/chat",
        {
            "model": "m",
            "messages": [{"role": "user", "content": WISH}],
            "tools": [{"type": "function", "function": FUNCTION}],
            "stream": False,
        },
        {},
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_tool_that_the_user_names_is_called_in_every_format(name: str) -> None:
    path, body, headers = REQUESTS[name]
    with FakeServer(name, rest=Improviser(wire_format(name))) as server:
        answer = ask(server, path, body, headers=headers)
        assert server.problems == []
    assert answer.status == 200
    assert b"get_weather" in answer.body
    assert b"city" in answer.body


def test_named_tools_are_called_one_a_turn_and_then_the_result_is_told() -> None:
    tools = [
        {"type": "function", "function": {**FUNCTION, "name": name}} for name in ("add", "mul")
    ]
    messages: list[Any] = [{"role": "user", "content": "add, then mul; not addition"}]
    made: list[str] = []
    with FakeServer("openai.chat", rest=Improviser(wire_format("openai.chat"))) as server:
        for turn in range(3):
            body = chat(*messages, tools=tools)
            message = ask(server, "/v1/chat/completions", body).json()["choices"][0]["message"]
            for call in message.get("tool_calls", ()):
                made.append(call["function"]["name"])
                result = {"role": "tool", "tool_call_id": call["id"], "content": f"r{turn}"}
                messages += [message, result]
        assert server.problems == []
    assert made == ["add", "mul"]
    assert message["content"] == "The result is: r1"


def test_thoughts_are_thought_when_asked_and_signed_each_on_its_own() -> None:
    body = {
        "model": "m",
        "input": "hi",
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }
    with FakeServer("openai.responses", rest=Improviser(wire_format("openai.responses"))) as server:
        outputs = [ask(server, "/v1/responses", body).json()["output"] for _ in range(2)]
        plain = ask(server, "/v1/responses", {"model": "m", "input": "hi"}).json()["output"]
    assert [item["type"] for item in outputs[0]] == ["reasoning", "message"]
    assert outputs[0][0]["summary"]
    assert len({output[0]["encrypted_content"] for output in outputs}) == 2
    assert [item["type"] for item in plain] == ["message"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "text"),
        ({"const": 4}, 4),
        ({"enum": ["b", "a"]}, "b"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": ["number", "null"]}, 1),
        ({"type": "boolean"}, True),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": "ARRAY", "items": {"type": "STRING"}}, ["text"]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {}},
                "required": ["a"],
                "$defs": {"A": {"type": "object", "properties": {}, "required": ["c"]}},
            },
            {"a": {"c": "text"}},
        ),
        ({"type": "string", "default": "d"}, "d"),
    ],
)
def test_examples_follow_their_schema(schema: dict[str, Any], value: Any) -> None:
    assert example(schema) == value


def test_an_example_of_a_schema_that_holds_itself_comes_to_an_end() -> None:
    node: dict[str, Any] = {"type": "object", "required": ["next"]}
    node["properties"] = {"next": {"$ref": "#"}}
    assert isinstance(example(node), dict)


@given(
    st.recursive(
        st.sampled_from([{"type": t} for t in ("string", "integer", "boolean", "null")]),
        lambda inner: st.one_of(
            inner.map(lambda items: {"type": "array", "items": items}),
            st.dictionaries(st.text(max_size=3), inner, max_size=3).map(
                lambda p: {"type": "object", "properties": p, "required": list(p)}
            ),
        ),
        max_leaves=8,
    )
)
def test_examples_are_json_of_the_type_asked_for(schema: dict[str, Any]) -> None:
    kinds = {
        "string": str,
        "integer": int,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    made = example(schema)
    assert isinstance(made, kinds[schema["type"]])
    assert json.loads(json.dumps(made)) == made


# Formats of one's own.

OWN = """
from agent_host_testing import Gist
from agent_host_testing.formats.openai_chat import OpenAIChat


class Own(OpenAIChat):
    name = "own.chat"

    def gist(self, request):
        return Gist(request.body["messages"][-1]["content"].upper())


WIRE = Own()
NONE = "no format"
"""


@pytest.fixture
def own_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_format_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("own_format")
@pytest.mark.parametrize("attribute", ["WIRE", "Own"])
def test_a_format_of_ones_own_is_served_and_made_up_by_its_gist(attribute: str) -> None:
    found = wire_format(f"own_format_of_a_test:{attribute}")
    with FakeServer(found, rest=Improviser(found)) as server:
        body = ask(server, "/v1/chat/completions", chat("hello")).json()
    assert body["choices"][0]["message"]["content"] == "You said: HELLO"


@pytest.mark.usefixtures("own_format")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("unheard.of", "there are openai.chat, .*, and your own as module:NAME"),
        ("no_such_module:WIRE", "there is no wire format"),
        ("own_format_of_a_test:MISSING", "there is no wire format"),
        ("own_format_of_a_test:NONE", "is no WireFormat, but str"),
    ],
)
def test_what_is_no_format_is_refused_by_name(name: str, says: str) -> None:
    with pytest.raises(LookupError, match=says):
        wire_format(name)
