"""The fake server: what it answers, what it records, how it lives and ends."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from testing_http import CHAT, ask, chat, connect, raw_exchange

from agent_host_testing.faults import Drip, Stall
from agent_host_testing.script import Failure, Raw, Reply, Text, call, say
from agent_host_testing.server import FakeServer
from agent_host_testing.wire import Request


def test_answers_come_in_the_order_of_the_script() -> None:
    with FakeServer("openai.chat", say("one"), say("two")) as server:
        server.queue(say("three"))
        said = [ask(server, CHAT, chat()).json() for _ in range(3)]
    assert [s["choices"][0]["message"]["content"] for s in said] == ["one", "two", "three"]
    assert server.unused == 0


def test_requests_are_recorded_as_they_arrived() -> None:
    with FakeServer("openai.chat", say("x")) as server:
        body = chat("grüezi")
        ask(server, CHAT + "?a=1&b=", body, headers={"X-Thing": "7"})
        (request,) = server.requests
    assert (request.method, request.path, request.query) == ("POST", CHAT, {"a": "1", "b": ""})
    assert request.header("X-THING") == "7"
    assert request.body == body
    assert json.loads(request.raw) == body


def test_a_connection_serves_many_requests() -> None:
    with FakeServer("openai.chat", say("one"), say("two")) as server:
        connection = connect(server)
        ask(server, CHAT, chat(stream=True), connection=connection)
        line = connection.sock
        ask(server, CHAT, chat(), connection=connection)
        assert connection.sock is line
        connection.close()
        assert len(server.requests) == 2


def test_an_unexpected_request_is_a_problem_that_says_so() -> None:
    with FakeServer("openai.chat") as server:
        answer = ask(server, CHAT, chat())
        ((request, problem),) = server.problems
    assert answer.status == 500
    assert "no answer left" in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert request == server.requests[0]
    assert problem.status == 500


def test_the_rest_answers_when_the_script_is_empty() -> None:
    def rest(request: Request) -> Reply:
        return say(f"you said {request.body['messages'][-1]['content']}")

    with FakeServer("openai.chat", say("script"), rest=rest) as server:
        said = [ask(server, CHAT, chat(text)).json() for text in ("a", "b")]
    assert [s["choices"][0]["message"]["content"] for s in said] == ["script", "you said b"]


def test_strict_refuses_a_wrong_request_and_keeps_the_answer_for_the_next() -> None:
    with FakeServer("openai.chat", say("kept")) as server:
        refused = ask(server, CHAT, chat(frobnicate=1))
        assert refused.status == 400
        assert refused.json()["error"]["param"] == "frobnicate"
        assert ask(server, CHAT, chat()).status == 200
        assert [problem.place for _, problem in server.problems] == ["frobnicate"]


@pytest.mark.parametrize("body", [chat(frobnicate=1), {}, [], b"{", {"stream": True}])
def test_lenient_records_the_problem_and_answers(body: object) -> None:
    for name, path in (("openai.chat", CHAT), ("openai.responses", "/v1/responses")):
        with FakeServer(name, say("anyway"), strict=False) as server:
            answer = ask(server, path, body)
            assert answer.status == 200
            assert b"anyway"[:2] in answer.body
            assert len(server.problems) == 1


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe"])
def test_a_body_that_is_no_json_is_refused(raw: bytes) -> None:
    with FakeServer("openai.chat", say("x")) as server:
        assert ask(server, CHAT, raw).status == 400
        assert "no JSON" in server.problems[0][1].message


@pytest.mark.parametrize("body", [[], "text", 7])
def test_a_body_that_is_no_object_is_refused(body: object) -> None:
    with FakeServer("openai.chat", say("x"), strict=True) as server:
        assert ask(server, CHAT, body).status == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": "Bearer sesame"}, 200),
        ({"authorization": "bearer sesame"}, 200),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "sesame"}, 401),
        ({}, 401),
    ],
)
def test_a_key_is_asked_for(headers: dict[str, str], status: int) -> None:
    with FakeServer("openai.chat", say("x"), key="sesame") as server:
        assert ask(server, CHAT, chat(), headers=headers).status == status
        assert ask(server, "/v1/models", headers=headers).status == status


def test_models_are_listed_and_described() -> None:
    with FakeServer("openai.chat", models=("a", "org/b")) as server:
        listed = ask(server, "/v1/models").json()
        assert [model["id"] for model in listed["data"]] == ["a", "org/b"]
        assert ask(server, "/v1/models/org%2Fb").json()["id"] == "org/b"
        assert ask(server, "/v1/models/c").status == 404


def test_an_address_the_api_does_not_have_is_404() -> None:
    with FakeServer("openai.chat", say("x")) as server:
        assert ask(server, "/chat/completions", chat()).status == 404
        assert ask(server, CHAT).status == 404
        assert server.unused == 1


def test_streams_have_an_http_chunk_per_event() -> None:
    with FakeServer("openai.chat", say("abc", fragments=3)) as server:
        received, _, _ = raw_exchange(server, chat(stream=True))
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    chunks = body.split(b"\r\n")[1::2]
    assert all(chunk.endswith(b"\n\n") and chunk.count(b"data:") == 1 for chunk in chunks[:-1])
    assert len(chunks) == 7


@pytest.mark.parametrize(("events_per_chunk", "chunks"), [(2, 4), (100, 2)])
def test_events_can_share_an_http_chunk(events_per_chunk: int, chunks: int) -> None:
    with FakeServer("openai.chat", say("abc"), events_per_chunk=events_per_chunk) as server:
        received, _, _ = raw_exchange(server, chat(stream=True))
    body = received.partition(b"\r\n\r\n")[2]
    assert len(body.split(b"\r\n")[1::2]) == chunks


def test_streams_can_have_a_content_length() -> None:
    with FakeServer("openai.chat", say("abc"), events_per_chunk=None) as server:
        answer = ask(server, CHAT, chat(stream=True))
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.events()[-1] == "[DONE]"


def test_raw_answers_go_out_byte_by_byte_as_they_are() -> None:
    answer = Raw((b"data: \xff", b"\n\n"), 418, {"content-type": "x/y", "x-a": "b"})
    with FakeServer("openai.chat", answer) as server:
        received = ask(server, CHAT, chat())
    assert (received.status, received.body) == (418, b"data: \xff\n\n")
    assert (received.headers["content-type"], received.headers["x-a"]) == ("x/y", "b")


def test_a_raw_answer_may_declare_its_own_length() -> None:
    right = Raw((b"ab", b"cd"), headers={"Content-Length": "4", "Content-Type": "x/y"})
    short = Raw((b"abcd",), headers={"content-length": "9", "transfer-encoding": "chunked"})
    with FakeServer("openai.chat", right, short) as server:
        answer = ask(server, CHAT, chat())
        assert (answer.body, answer.headers["content-type"]) == (b"abcd", "x/y")
        assert "transfer-encoding" not in answer.headers
        with pytest.raises(http.client.IncompleteRead):
            ask(server, CHAT, chat())


def test_every_answer_has_an_id_of_its_own() -> None:
    with FakeServer("openai.chat", say("a"), say("b")) as server:
        ids = {ask(server, CHAT, chat()).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2


def test_a_reply_that_fails_is_a_refusal_when_it_is_not_streamed() -> None:
    reply = Reply((Text("half"),), failure=Failure("overloaded", "too much"))
    with FakeServer("openai.chat", reply) as server:
        assert ask(server, CHAT, chat()).status == 503


def test_a_script_the_format_cannot_render_is_told_and_recorded() -> None:
    with FakeServer("openai.chat", say("x", finish="pause")) as server:
        answer = ask(server, CHAT, chat())
        assert answer.status == 500
        assert "pause" in answer.json()["error"]["message"]
        assert "pause" in server.problems[0][1].message


def test_a_rest_that_raises_is_told_and_recorded() -> None:
    def rest(request: Request) -> Reply:
        raise RuntimeError("no idea")

    with FakeServer("openai.chat", rest=rest) as server:
        assert ask(server, CHAT, chat()).status == 500
        assert "no idea" in server.problems[0][1].message


def test_bytes_that_are_no_http_are_refused() -> None:
    with FakeServer("openai.chat") as server:
        host, port = server.url.removeprefix("http://").split(":")
        for sent in (b"hello\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=10) as line:
                line.sendall(sent)
                assert line.recv(100).startswith(b"HTTP/1.1 400 ")
        assert server.requests == []


def test_chunked_requests_are_read() -> None:
    body = json.dumps(chat()).encode()
    with FakeServer("openai.chat", say("x")) as server:
        connection = connect(server)
        connection.request("POST", CHAT, iter([body[:9], body[9:]]), encode_chunked=True)
        assert connection.getresponse().status == 200
        connection.close()
        assert server.requests[0].raw == body


def test_a_client_that_expects_to_be_told_to_continue_is_told() -> None:
    body = json.dumps(chat()).encode()
    with FakeServer("openai.chat", say("x")) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as line:
            head = f"POST {CHAT} HTTP/1.1\r\nexpect: 100-continue\r\n"
            line.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode())
            assert line.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            line.sendall(body)
            assert line.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_leaves_is_noticed() -> None:
    with FakeServer("openai.chat") as server:
        server.queue(say("x"), fault=Stall(after=10))
        connection = connect(server)
        connection.request("POST", CHAT, json.dumps(chat(stream=True)))
        response = connection.getresponse()
        assert response.read(10) == b'data: {"id'
        assert server.abandoned == 0
        response.close()
        connection.close()
        assert server.wait(lambda s: s.abandoned == 1 and s.connections == 0)


def test_many_clients_are_served_at_once() -> None:
    count = 100
    everybody = threading.Barrier(count)

    def rest(request: Request) -> Reply:
        everybody.wait(timeout=30)
        return say(request.body["messages"][0]["content"])

    with FakeServer("openai.chat", rest=rest) as server:
        with ThreadPoolExecutor(count) as pool:
            asked = [str(n) for n in range(count)]
            answers = list(pool.map(lambda text: ask(server, CHAT, chat(text)), asked))
        assert [a.json()["choices"][0]["message"]["content"] for a in answers] == asked
        assert len({a.json()["id"] for a in answers}) == count


@pytest.mark.parametrize("fault", [Stall(), Stall(head=False), Drip(seconds=3600)])
def test_closing_ends_answers_under_way(fault: Stall | Drip) -> None:
    before = threading.active_count()
    with FakeServer("openai.chat") as server:
        server.queue(say("x" * 100), fault=fault)
        connection = connect(server)
        connection.request("POST", CHAT, json.dumps(chat(stream=True)))
        assert server.wait(lambda s: len(s.requests) == 1)
    connection.close()
    assert server.connections == 0
    assert threading.active_count() <= before
    assert server.abandoned == 0


def test_closing_twice_or_unstarted_does_no_harm() -> None:
    FakeServer("openai.chat").close()
    server = FakeServer("openai.chat").start()
    server.close()
    server.close()
    with pytest.raises(ConnectionRefusedError):
        connect(server).connect()


def test_a_port_in_use_is_an_error_of_the_socket() -> None:
    with FakeServer("openai.chat") as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            FakeServer("openai.chat", port=port).start()


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(LookupError, match=r"openai\.chat, openai\.responses"):
        FakeServer("smoke.signals")


def test_the_base_url_is_where_clients_begin() -> None:
    with FakeServer("openai.responses") as server:
        assert server.base_url == server.url + "/v1"


def test_what_went_over_the_wire_can_be_shown() -> None:
    with FakeServer("openai.chat", call("f", {"a": 1})) as server:
        server.queue(say("long enough"), fault=Stall(after=5))
        first = ask(server, CHAT, chat())
        shown = server.exchanges
    assert [(e.request, e.status, e.answer) for e in shown] == [(f"POST {CHAT}", 200, first.body)]
    assert json.loads(shown[0].body) == chat()
