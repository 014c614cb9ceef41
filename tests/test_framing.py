"""Framing: the same events however the bytes are cut, and clear errors for everything else."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs.errors import (
    AnswerTooLargeError,
    ConfigError,
    ProtocolError,
    StreamCutError,
)
from agent_hookspecs.logs import remember_secrets
from agent_host.wire.failures import _title_of
from agent_host.wire.framing import Event, Framing, framing
from agent_host.wire.framing.decoding import count_values

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"

#: Name, framing, bytes, expected events.
SHAPES: list[tuple[str, str, bytes, list[Event]]] = [
    (
        "unicode line ends inside strings",
        "sse",
        'data: {"a":"x\u2028y\u2029z\u0085w"}\n\n'.encode(),
        [({"a": "x\u2028y\u2029z\u0085w"}, None)],
    ),
    (
        "mixed line ends",
        "sse",
        b'data: {"a":1}\r\n\r\ndata: {"a":2}\r\rdata: {"a":3}\n\n'
        b'data: {"a":4}\r\n\ndata: {"a":5}\n\r\n',
        [({"a": n}, None) for n in range(1, 6)],
    ),
    ("byte order mark", "sse", b'\xef\xbb\xbfdata: {"a":1}\n\n', [({"a": 1}, None)]),
    (
        "no blank line at the end",
        "sse",
        b'data: {"a":1}\n\ndata: {"a":2}',
        [({"a": 1}, None), ({"a": 2}, None)],
    ),
    ("one line end at the end", "sse", b'data: {"a":1}\n', [({"a": 1}, None)]),
    ("no space", "sse", b'data:{"a":1}\n\n', [({"a": 1}, None)]),
    ("two spaces and a trailing one", "sse", b'data:  {"a":1} \n\n', [({"a": 1}, None)]),
    ("several data lines", "sse", b'data: {"a":\ndata: 1}\n\n', [({"a": 1}, None)]),
    ("empty data", "sse", b'data:\n\ndata\n\ndata: \n\ndata: {"a":1}\n\n', [({"a": 1}, None)]),
    ("empty data line beside a full one", "sse", b'data:\ndata: {"a":1}\n\n', [({"a": 1}, None)]),
    (
        "id and retry only",
        "sse",
        b'id: 7\n\nretry: 10\n\nid: 8\n: ping\n\ndata: {"a":1}\n\n',
        [({"a": 1}, None)],
    ),
    ("comments", "sse", b': PROCESSING\n\n:\n\ndata: {"a":1}\n: x\n\n', [({"a": 1}, None)]),
    ("keepalive as data", "sse", b'data: : keepalive\n\ndata: {"a":1}\n\n', [({"a": 1}, None)]),
    (
        "event names",
        "sse",
        b'event: ping\ndata: {"a":1}\n\nevent:stop\ndata: {"a":2}\n\n'
        b'data: {"a":3}\n\nevent: lost\n\ndata: {"a":4}\n\n',
        [({"a": 1}, "ping"), ({"a": 2}, "stop"), ({"a": 3}, None), ({"a": 4}, None)],
    ),
    ("event name after the data", "sse", b'data: {"a":1}\nevent: late\n\n', [({"a": 1}, "late")]),
    ("multi-byte characters", "sse", 'data: {"a":"é中😀"}\n\n'.encode(), [({"a": "é中😀"}, None)]),
    ("lone surrogate", "sse", b'data: {"a":"\\ud83d"}\n\n', [({"a": "\ud83d"}, None)]),
    ("done", "sse", b'data: {"a":1}\n\ndata: [DONE]\n\n', [({"a": 1}, None)]),
    ("done with spaces", "sse", b'data: {"a":1}\n\ndata:  [DONE]  \n\n', [({"a": 1}, None)]),
    ("done without line end", "sse", b'data: {"a":1}\n\ndata: [DONE]', [({"a": 1}, None)]),
    (
        "bytes after done",
        "sse",
        b'data: {"a":1}\n\ndata: [DONE]\n\ndata: {"a":2}\n\n<html>',
        [({"a": 1}, None)],
    ),
    (
        "blank lines forgotten",
        "sse",
        b'data: {"a":1}\ndata: {"a":2}\ndata: [DONE]\n\n',
        [({"a": 1}, None), ({"a": 2}, None)],
    ),
    (
        "empty and null choices",
        "sse",
        b'data: {"choices":[]}\n\ndata: {"choices":[null]}\n\n'
        b'data: {"choices":[{"delta":null}]}\n\n'
        b'data: {"choices":[{"delta":{"content":null}}]}\n\n',
        [
            ({"choices": []}, None),
            ({"choices": [None]}, None),
            ({"choices": [{"delta": None}]}, None),
            ({"choices": [{"delta": {"content": None}}]}, None),
        ],
    ),
    ("invalid UTF-8 is replaced", "sse", b'data: {"a":"\xff"}\n\n', [({"a": "\ufffd"}, None)]),
    (
        "lines",
        "ndjson",
        b'\xef\xbb\xbf{"a":1}\n\r\n  \n{"a":2}\r\n{"a":3}',
        [({"a": n}, None) for n in (1, 2, 3)],
    ),
    (
        "unicode line ends",
        "ndjson",
        '{"a":"\u2028\u0085"}\n'.encode(),
        [({"a": "\u2028\u0085"}, None)],
    ),
    (
        "array",
        "json-array",
        b'\xef\xbb\xbf\n[ {"a":"}]\\"[{,"}\r\n,\n{"b":[{},[1]]} ,[2],"x,]",3]\n',
        [({"a": '}]"[{,'}, None), ({"b": [{}, [1]]}, None), ([2], None), ("x,]", None), (3, None)],
    ),
    ("bytes after the array", "json-array", b'[{"a":1}]{"b":', [({"a": 1}, None)]),
    ("empty array", "json-array", b" [ ] ", []),
    (
        "object in place of the array",
        "json-array",
        b' {"error":{"code":400}}\n',
        [({"error": {"code": 400}}, None)],
    ),
    ("document", "json", b'\xef\xbb\xbf {"a":[1,"\xc3\xa9"]}\n', [({"a": [1, "é"]}, None)]),
    ("empty document", "json", b" \n", []),
]


def run(machine: Framing, pieces: list[bytes]) -> list[Event]:
    events = [event for piece in pieces for event in machine.decode(piece)]
    return events + machine.flush()


def cut(data: bytes, positions: list[int]) -> list[bytes]:
    edges = [0, *sorted(positions), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def recordings() -> list[Any]:
    found = []
    for path in sorted(CORPUS.glob("*/*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["response"]["status"] == 200:
            body = record["response"]["body"].encode()
            found.append(pytest.param(record["framing"], body, id=path.stem[:60]))
    return found or [
        pytest.param("", b"", marks=pytest.mark.skip(reason="no recordings beside the repository"))
    ]


@pytest.mark.parametrize(
    ("name", "data", "expected"), [pytest.param(*shape[1:], id=shape[0]) for shape in SHAPES]
)
def test_shape_gives_the_same_events_whole_and_byte_by_byte(
    name: str, data: bytes, expected: list[Event]
) -> None:
    assert run(framing(name), [data]) == expected
    assert run(framing(name), [data[i : i + 1] for i in range(len(data))]) == expected
    for position in range(len(data) + 1):
        assert run(framing(name), cut(data, [position])) == expected


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_shape_gives_the_same_events_however_it_is_cut(data: st.DataObject) -> None:
    _, name, body, expected = data.draw(st.sampled_from(SHAPES))
    positions = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert run(framing(name), cut(body, positions)) == expected


def outcome(machine: Framing, pieces: list[bytes]) -> tuple[list[Event], str]:
    """The events, and the error that ended them."""
    events: list[Event] = []
    try:
        for piece in pieces:
            events += machine.decode(piece)
            # An error comes after the events that stand before it.
            machine.check()
        events += machine.flush()
        machine.check()
    except (ProtocolError, StreamCutError) as error:
        return events, str(error)
    return events, ""


PADDING = st.integers(0, 60).map(lambda count: b" " * count)
NAMES = st.integers(1, 60).map(lambda count: b"n" * count)
VALUES = st.integers(0, 60).map(lambda count: b'{"a":"%s"}' % (b"x" * count))
LINE_ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])
LINES = st.one_of(
    st.just(b""),
    st.just(b""),
    VALUES.map(lambda value: b"data: " + value),
    VALUES.map(lambda value: b"data:" + value[: len(value) // 2]),
    st.just(b"data"),
    st.just(b"data: [DONE]"),
    NAMES.map(lambda name: b"event: " + name),
    NAMES.map(lambda name: b"event:" + name),
    NAMES.map(lambda name: b"id: " + name),
    NAMES.map(lambda name: b": " + name),
    NAMES,
)
PADDED = st.tuples(PADDING, VALUES, PADDING).map(b"".join)
BODIES = st.one_of(
    st.tuples(
        st.just("sse"),
        st.lists(st.tuples(LINES, LINE_ENDS).map(b"".join), max_size=12).map(b"".join),
    ),
    st.tuples(st.just("ndjson"), st.lists(PADDED | PADDING | NAMES, max_size=6).map(b"\n".join)),
    st.tuples(
        st.just("json-array"),
        st.lists(PADDED | PADDING, max_size=4).map(lambda items: b" [" + b",".join(items) + b"]"),
    ),
    st.tuples(st.just("json"), PADDED),
    st.sampled_from([(name, body) for _, name, body, _ in SHAPES]),
)


@settings(max_examples=300, deadline=None)
@given(BODIES, st.integers(1, 90), st.data())
def test_the_limit_is_the_same_however_the_input_is_cut(
    named: tuple[str, bytes], limit: int, data: st.DataObject
) -> None:
    name, body = named
    if data.draw(st.booleans()):
        body = body[: data.draw(st.integers(0, len(body)))]
    whole = outcome(framing(name, max_event_bytes=limit), [body])
    positions = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert outcome(framing(name, max_event_bytes=limit), cut(body, positions)) == whole
    single = [body[i : i + 1] for i in range(len(body))]
    assert outcome(framing(name, max_event_bytes=limit), single) == whole


@pytest.mark.parametrize(
    ("name", "padding", "event"),
    [
        ("ndjson", b" " * 100, b'{"a":1}\n'),
        ("ndjson", b" " * 100, b'\n{"a":1}\n'),
        ("json-array", b" " * 100, b'[{"a":1}]'),
        ("json", b" " * 100, b'{"a":1}'),
    ],
)
def test_blanks_may_be_of_any_length_and_are_not_kept(
    name: str, padding: bytes, event: bytes
) -> None:
    limit = 50_000
    assert run(framing(name, max_event_bytes=limit), [padding * 1000 + event]) == [({"a": 1}, None)]
    machine = framing(name, max_event_bytes=limit)
    tracemalloc.start()
    try:
        for _ in range(10_000):
            assert machine.decode(padding) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * limit
    assert run(machine, [event]) == [({"a": 1}, None)]


@pytest.mark.parametrize("begin", [b": ", b"id: ", b"event: ", b"data: ", b""])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_no_line_of_server_sent_events_is_longer_than_the_limit(begin: bytes, step: int) -> None:
    limit = 40
    event = b'data: {"a":1}\n\n'
    longest = begin + b"1" * (limit - len(begin))
    for line, error in ((longest, ""), (longest + b"1", "larger than 40 bytes")):
        body = event + line + b"\n\n"
        pieces = [body[at : at + step] for at in range(0, len(body), step)]
        events, said = outcome(framing("sse", max_event_bytes=limit), pieces)
        assert events[0] == ({"a": 1}, None)
        assert error in said
        assert bool(error) is bool(said)


@pytest.mark.parametrize(("name", "body"), recordings())
def test_recording_gives_the_same_events_however_it_is_cut(name: str, body: bytes) -> None:
    whole = run(framing(name), [body])
    assert whole
    if name == "json":
        assert whole == [(json.loads(body), None)]

    @settings(max_examples=5, deadline=None, database=None)
    @given(st.lists(st.integers(0, len(body)), max_size=40), st.integers(1, 200))
    def same(positions: list[int], width: int) -> None:
        assert run(framing(name), cut(body, positions)) == whole
        assert run(framing(name), cut(body, list(range(0, len(body), width)))) == whole

    same()


@pytest.mark.parametrize(("name", "body"), recordings())
def test_recorded_stream_agrees_with_a_naive_parser(name: str, body: bytes) -> None:
    text = body.decode().replace("\r\n", "\n")
    if name == "sse":
        values = [
            line[5:].strip()
            for line in text.split("\n")
            if line.startswith("data:") and line[5:].strip() not in ("", "[DONE]")
        ]
        expected = [json.loads(value) for value in values]
    elif name == "ndjson":
        expected = [json.loads(line) for line in text.split("\n") if line.strip()]
    else:
        expected = json.loads(body) if name == "json-array" else [json.loads(body)]
    assert [chunk for chunk, _ in run(framing(name), [body])] == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=5), st.data())
def test_any_values_come_back_in_every_framing(values: list[Any], data: st.DataObject) -> None:
    ascii_only = data.draw(st.booleans())
    indent = data.draw(st.sampled_from([None, 1]))
    written = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    bodies = {
        "sse": "".join(f"data: {text}\n\n" for text in written),
        "ndjson": "".join(f"{text}\n" for text in written),
        "json-array": json.dumps(values, ensure_ascii=ascii_only, indent=indent),
    }
    for name, body in bodies.items():
        raw = body.encode()
        positions = data.draw(st.lists(st.integers(0, len(raw)), max_size=6))
        machine = framing(name)
        assert [chunk for chunk, _ in run(machine, cut(raw, positions))] == values
        assert machine.skip_count == 0


ODD_VALUES = [
    '"\\ud800"',
    '"\\ud83d\\u0041"',
    "NaN",
    "-Infinity",
    "-0",
    "-0.0",
    "1e400",
    "9" * 60,
    "9" * 5000,
    '{"a":1,"a":2}',
    "0.1e-7",
    "5e-324",
    "1.7976931348623159e308",
    "[" * 500 + "]" * 500,
    "01",
    "'x'",
    "Inf",
    "-NaN",
    "tru",
    "nul",
    "1.",
    ".5",
    "+1",
    '"\x01"',
    '"\\x"',
    '"\\u00e"',
    "[1,]",
    "{,}",
    '{"a" 1}',
    "[]x",
    "//c\n1",
]


@settings(max_examples=120, deadline=None)
@given(JSON, st.data())
def test_quick_decoder_agrees_with_json_on_everything(value: Any, data: st.DataObject) -> None:
    pydantic_core = pytest.importorskip("pydantic_core")
    text = data.draw(st.sampled_from(ODD_VALUES) | st.just(json.dumps(value)))
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + data.draw(st.sampled_from(list('"[]{},:0e-.\\u \t'))) + text[place:]

    def outcome() -> str:
        try:
            return repr(run(framing("ndjson"), [text.encode(errors="surrogatepass") + b"\n"]))
        except ProtocolError as exc:
            return exc.message

    assert sys.modules["pydantic_core"] is pydantic_core
    with_it = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "pydantic_core")
        assert outcome() == with_it


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=4), JSON, min_size=1, max_size=3), st.data())
def test_every_proper_beginning_of_a_document_is_a_cut(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    end = data.draw(st.integers(1, len(text) - 1))
    for name in ("json", "json-array", "ndjson"):
        machine = framing(name)
        machine.decode(text[:end].encode())
        with pytest.raises(StreamCutError):
            machine.flush()
    machine = framing("json-array")
    machine.decode(b"[{}," + text[:end].encode())
    with pytest.raises(StreamCutError):
        machine.flush()


@pytest.mark.parametrize("rest", [b'data: {"b":', b'data: {"b":\n', b'data: {"b":\ndata: 1\r\n'])
def test_sse_that_stops_inside_an_event_is_a_cut(rest: bytes) -> None:
    machine = framing("sse")
    assert machine.decode(b'data: {"a":1}\n\n' + rest) == [({"a": 1}, None)]
    with pytest.raises(StreamCutError, match="middle"):
        machine.flush()


@given(st.binary(max_size=200), st.sampled_from(["sse", "ndjson", "json-array", "json"]))
@settings(max_examples=150, deadline=None)
def test_garbage_never_raises_anything_untyped(garbage: bytes, name: str) -> None:
    for data in (garbage, b"data: " + garbage + b"\n\n", b"[" + garbage, b'{"a":' + garbage):
        machine = framing(name)
        try:
            run(machine, [data[:5], data[5:]])
        except (StreamCutError, ProtocolError):
            continue


def test_done_is_seen_where_the_protocol_has_an_end_marker() -> None:
    for name, body, done in [
        ("sse", b"data: {}\n\ndata: [DONE]\n\n", True),
        ("sse", b"data: {}\n\n", False),
        ("json-array", b"[{}]", True),
        ("json", b"{}", True),
        ("ndjson", b"{}\n", False),
    ]:
        machine = framing(name)
        run(machine, [body])
        assert machine.is_done is done


def test_event_is_given_out_as_soon_as_it_is_complete() -> None:
    sse = framing("sse")
    assert sse.decode(b'data: {"a":1}\r') == []
    assert sse.decode(b"\r") == [({"a": 1}, None)]
    array = framing("json-array")
    assert array.decode(b'[{"a":1}') == [({"a": 1}, None)]


def test_data_that_is_not_json_is_counted() -> None:
    machine = framing("sse")
    run(machine, [b'data: oops\n\ndata: {"a":1}\n\ndata: again\n\n'])
    assert (machine.skip_count, machine.event_count) == (2, 1)


@pytest.mark.parametrize("name", ["sse", "ndjson", "json-array", "json"])
@pytest.mark.parametrize(
    "value",
    [b"[" * 200_000 + b"]" * 200_000, b'{"n":' + b"9" * 5000 + b"}"],
    ids=["deep", "digits"],
)
def test_json_that_python_cannot_read_is_a_protocol_error(name: str, value: bytes) -> None:
    body = {"sse": b"data: %s\n\n", "ndjson": b"%s\n", "json-array": b"[%s]", "json": b"%s"}[name]
    with pytest.raises(ProtocolError):
        run(framing(name), [body % value])


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("sse", b'data: {"a":"'),
        ("ndjson", b'{"a":"'),
        ("json-array", b'[{"a":"'),
        ("json", b'{"a":"'),
    ],
)
def test_event_over_the_limit_is_refused_while_it_grows(name: str, head: bytes) -> None:
    # Of a document, text that is merely copied does not count.
    text = "éxx".encode() if name == "json" else b"xxxx"
    machine = framing(name, max_event_bytes=10_000)
    with pytest.raises(ProtocolError, match="larger than 10000"):
        run(machine, [head, *[text * 250] * 1000])
    assert machine.event_count == 0
    whole = framing(name, max_event_bytes=10_000)
    with pytest.raises(ProtocolError, match="larger than 10000"):
        run(whole, [head + text * 5000 + b'"}\n\n'])


def test_a_document_of_pictures_may_be_larger_than_an_event() -> None:
    pictures = [b'"' + b"A" * 50_000 + b'"' for _ in range(4)]
    body = b'{"said": "\\u00e9", "pictures": [' + b",".join(pictures) + b"]}"
    pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    [(value, _)] = run(framing("json", max_event_bytes=10_000), pieces)
    assert list(map(len, value["pictures"])) == [50_000] * 4


#: What an event is called where it stands, around the JSON that it is.
AROUND = {"sse": b"data: %s\n\n", "ndjson": b"%s\n", "json-array": b"[%s]", "json": b"%s"}
MANY = [b"[],", b'{"":0},', b'"ab",', b"1e9,", b'{"a":[0,1]},', b"9" * 40 + b","]


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("value", MANY)
def test_an_event_of_too_many_values_is_refused_before_it_is_decoded(
    name: str, value: bytes
) -> None:
    body = AROUND[name] % (b"[" + value * 50_000 + b"0]")
    assert len(run(framing(name, max_values=1_000_000), [body])) == 1
    with pytest.raises(AnswerTooLargeError, match="more than 40000 values") as caught:
        run(framing(name, max_values=40_000), [body])
    assert caught.value.limit == "max_answer_values"


@pytest.mark.parametrize("name", AROUND)
def test_what_stands_in_texts_is_no_value(name: str) -> None:
    arguments = json.dumps({"rows": [[n, {"a": 'x"y'}] for n in range(20_000)]})
    body = AROUND[name] % json.dumps({"arguments": arguments, "path": "\\" * 70_000}).encode()
    [(value, _)] = run(framing(name, max_values=20_000), [body])
    assert value["arguments"] == arguments


@given(st.text('[]{},:"\\ax', max_size=40), st.integers(0, 70_000))
def test_values_are_counted_wherever_the_pieces_end(text: str, before: int) -> None:
    whole = json.dumps([["x" * before, text], {"a": [text, 1, {}]}]).encode()
    assert count_values(whole) == 2 * (3 + 1) + 4 + 2


def test_escapes_count_as_values_where_there_are_very_many() -> None:
    body = b'{"a":"' + b"\\n" * 64_000 + b'"}'
    assert count_values(body) == 3 + 2000


def test_lines_of_one_event_without_end_are_refused() -> None:
    with pytest.raises(AnswerTooLargeError, match="more than 1000 values"):
        run(framing("sse", max_values=1000), [b"data:\n" * 1001])


@pytest.mark.parametrize("name", AROUND)
def test_only_what_may_end_a_large_event_takes_long(name: str) -> None:
    machine = framing(name)
    head, tail = AROUND[name].split(b"%s")
    assert not machine.takes_long(b'{"a": 1}' + tail)
    machine.decode(head + b'{"a":"')
    assert not machine.takes_long(b"x" * 1000)
    machine.decode(b"x" * 70_000)
    assert not machine.takes_long(b"x" * 1000)
    # A document ends with the answer alone.
    assert machine.takes_long(b'"}' + tail) is (name != "json")
    assert machine.takes_long(None)
    machine.decode(b'"}' + tail)
    machine.flush()
    assert not machine.takes_long(b"x\n")


def test_many_data_lines_of_one_event_count_together() -> None:
    machine = framing("sse", max_event_bytes=10_000)
    with pytest.raises(ProtocolError):
        run(machine, [b"data: " + b"x" * 1000 + b"\n"] * 20)
    with pytest.raises(ProtocolError):
        run(framing("sse", max_event_bytes=10_000), [b"data\n" * 100] * 30)


@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        ("sse", b'data: {"a":"', b'"}\n\n'),
        ("ndjson", b'{"a":"', b'"}\n'),
        ("json-array", b'[{"a":"', b'"}]'),
    ],
)
def test_long_event_in_small_reads_takes_linear_time(name: str, head: bytes, tail: bytes) -> None:
    def seconds(reads: int) -> float:
        machine = framing(name)
        pieces = [head, *[b"x" * 16] * reads, tail]
        start = time.process_time()
        ((chunk, _),) = run(machine, pieces)
        assert len(chunk["a"]) == 16 * reads
        return time.process_time() - start

    seconds(1000)
    small = min(seconds(20_000) for _ in range(3))
    # Eight times the reads; quadratic work would be sixty-four times the time.
    assert min(seconds(160_000) for _ in range(2)) < 24 * max(small, 0.002)


def test_answer_of_another_kind_is_described() -> None:
    page = b"<!DOCTYPE html><html><head><title>Sign &amp; in</title></head></html>"
    for name in ("sse", "ndjson", "json-array", "json"):
        machine = framing(name)
        assert run(machine, [page]) == []
        error = machine.no_event_error("text/html")
        assert error is not None
        assert "HTML page titled 'Sign & in'" in error.message
        assert error.hint
    remember_secrets(["hunter22"])
    machine = framing("sse")
    run(machine, [b"upstream said: key sk-abcdef0123456789 is bad, ours is hunter22"])
    error = machine.no_event_error("text/plain; charset=utf-8")
    assert error is not None
    assert "text/plain that begins 'upstream said" in error.message
    assert "sk-abc" not in f"{error.message}{error.excerpt}"
    assert "hunter22" not in f"{error.message}{error.excerpt}"


@pytest.mark.parametrize("opening", ["<title", "<title>", "<TITLE x", "<title></titl"])
def test_titles_that_never_end_are_no_title(opening: str) -> None:
    # So many that nobody would see the end if it were looked for from each of them.
    assert _title_of(opening * 200_000) == ""


def test_nothing_is_wrong_with_events_with_done_or_with_no_bytes() -> None:
    for name, body in [("sse", b"data: {}\n\n"), ("sse", b"data: [DONE]\n\n"), ("json", b"")]:
        machine = framing(name)
        run(machine, [body])
        assert machine.no_event_error("text/plain") is None


def test_unknown_framing_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="msgpack") as caught:
        framing("msgpack")
    assert "ndjson" in caught.value.hint


@given(
    st.sampled_from([b"", b"\n \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf "]),
    st.lists(st.integers(1, 9), max_size=9),
)
def test_an_array_in_place_of_events_is_seen_wherever_its_beginning_is_cut(
    lead: bytes, sizes: list[int]
) -> None:
    whole = lead + b"[1, 2]"
    machine, start = framing("sse"), 0
    for size in [*sizes, len(whole)]:
        piece = whole[start : start + size]
        array = machine.find_array(piece) if piece else None
        if array is not None:
            assert array == b"[1, 2]"[: len(array)]
            assert start <= len(lead) < start + size
            break
        assert start + size <= len(lead)
        machine.decode(piece)
        start += size


@pytest.mark.parametrize("said", [b"data: [1]\n\n", b"\xef[", b"{}[", b"\xef\xbbx["])
def test_what_begins_otherwise_is_no_array(said: bytes) -> None:
    for cut in range(len(said)):
        machine = framing("sse")
        assert machine.find_array(said[:cut]) is None
        machine.decode(said[:cut])
        assert machine.find_array(said[cut:]) is None
