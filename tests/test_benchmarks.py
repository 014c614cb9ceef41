"""The benchmarks measure what they say they do, on answers that mean what they should."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
# At the end, so that the packages under test are those that are installed.
sys.path.append(str(ROOT))

from agent_host import AgentCore  # noqa: E402
from agent_host.plugins.load import load_catalog  # noqa: E402
from benchmarks.cases import WIRES, Case  # noqa: E402
from benchmarks.drivers.ours import SaveDocument, config_of  # noqa: E402
from benchmarks.drivers.raw_socket import _dechunked  # noqa: E402
from benchmarks.drivers.splitting import Lines  # noqa: E402
from benchmarks.formats.pieces import CALL, fragments, words  # noqa: E402
from benchmarks.goals import GOALS, judged, lines  # noqa: E402
from benchmarks.measure import Samples, Table, growth, interleaved  # noqa: E402
from benchmarks.server import answer_to, running  # noqa: E402

COUNT = 20
STREAMED = [(wire, transfer) for wire in WIRES for transfer in ("each", "several", "length")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture(scope="module")
def core() -> Iterator[AgentCore]:
    with AgentCore(catalog=load_catalog()) as made:
        made.register_tool(SaveDocument)
        yield made


def events_of(core: AgentCore, server: str, case: Case) -> list[Any]:
    installed = {record.name for record in load_catalog().usable("provider")}
    if WIRES[case.wire].provider not in installed:
        pytest.skip(f"{WIRES[case.wire].distribution} is not installed")
    session = core.add_message(core.create_session(), "user", "Go on.")
    return list(core.send_request_stream(session, config_of(case, server)))


def final_of(events: list[Any]) -> Any:
    [final] = [event for event in events if event["type"] == "final"]
    return final["messages"][-1]


@pytest.mark.parametrize(("wire", "transfer"), STREAMED)
def test_the_servers_text_arrives_word_by_word(
    core: AgentCore, server: str, wire: str, transfer: str
) -> None:
    events = events_of(core, server, Case(wire, "text", COUNT, transfer))
    shown = [e["message"]["content"] for e in events if e["type"] == "partial"]
    assert [text for text in shown if text] == list(words(COUNT))
    assert final_of(events)["content"] == "".join(words(COUNT))


@pytest.mark.parametrize("wire", WIRES)
def test_the_servers_reasoning_arrives_word_by_word(
    core: AgentCore, server: str, wire: str
) -> None:
    events = events_of(core, server, Case(wire, "reasoning", COUNT))
    assert [e["text"] for e in events if e["type"] == "reasoning"] == list(words(COUNT))


@pytest.mark.parametrize("shape", ["string", "objects"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_servers_calls_are_calls_of_the_tool_that_is_offered(
    core: AgentCore, server: str, wire: str, shape: str
) -> None:
    events = events_of(core, server, Case(wire, shape, COUNT))
    deltas = [e["arguments"] for e in events if e["type"] == "tool_call_delta"]
    written = list(fragments(shape, COUNT))
    assert json.loads("".join(deltas)) == json.loads("".join(written))
    if WIRES[wire].fragments_calls:
        assert deltas == written
    [call] = final_of(events)["metadata"]["tool_calls"]
    assert call.get("function", call)["name"] == CALL


@pytest.mark.parametrize("wire", WIRES)
def test_tools_and_reasoning_have_extensions_in_every_format(
    core: AgentCore, server: str, wire: str
) -> None:
    events_of(core, server, Case(wire, "text", 1))
    resolution = core.resolution(config_of(Case(wire, "text", 1), server))
    assert {"supports_tools", "supports_reasoning"} <= resolution.tags
    assert len(resolution.plugins["extension"]) >= 2


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_in_one_piece_says_the_same(core: AgentCore, server: str, wire: str) -> None:
    events_of(core, server, Case(wire, "text", 1))
    session = core.add_message(core.create_session(), "user", "Go on.")
    case = Case(wire, "whole", COUNT, "length")
    _, [final] = core.send_request(session, config_of(case, server))
    assert final["content"] == "".join(words(COUNT))


@pytest.mark.parametrize("wire", WIRES)
def test_an_idle_answer_begins_and_never_ends(wire: str) -> None:
    path = Case(wire, "text", 50, "idle").url("")
    assert b"token 0" in answer_to(path)
    assert not answer_to(path).endswith(b"0\r\n\r\n")


def test_several_events_share_an_http_chunk() -> None:
    each, several = (
        answer_to(Case("chat", "text", 80, how).url("")) for how in ("each", "several")
    )
    _, _, body = each.partition(b"\r\n\r\n")
    _, _, joined = several.partition(b"\r\n\r\n")
    assert _dechunked(body)[0] == _dechunked(joined)[0]
    assert len(joined) < len(body)


def test_a_path_that_is_nothing_is_not_found() -> None:
    assert answer_to("/text/1/each/v1/nonsense").startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_lines_are_the_same_however_they_are_cut(size: int) -> None:
    data = b'data: {"a": 1}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n'
    lines_of = Lines("sse")
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [line for piece in pieces for line in lines_of.feed(piece)]
    assert found == [b'{"a": 1}', b'{"b": 2}']


def test_a_row_has_the_ratios_of_the_best_and_of_the_medians() -> None:
    table = Table("t")
    table.add("ours", Samples((2.0, 3.0, 9.0)), Samples((1.0, 2.0, 4.0)), goal="g")
    assert table.data["ours"]["ratio"] == 2.0
    assert table.data["ours"]["ratio_of_medians"] == 1.5
    assert table.goals == {"g": [2.0]}


def test_of_rates_the_best_is_the_most() -> None:
    table = Table("t")
    table.add("ours", Samples((2.0, 9.0)), Samples((1.0, 3.0)), inverse=True)
    assert table.data["ours"]["best"] == 9.0
    assert table.data["ours"]["ratio"] == 3.0


def test_a_quadratic_cost_is_broken_and_a_linear_one_is_not() -> None:
    table = Table("t")
    growth(table, "linear", Samples((1.0,)), Samples((11.0,)), 10)
    assert not table.broken
    growth(table, "quadratic", Samples((1.0,)), Samples((100.0,)), 10)
    assert "quadratic" in table.broken[0]


def test_everybody_runs_once_a_round_and_the_first_round_does_not_count() -> None:
    order: list[str] = []

    def task(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = interleaved({"a": lambda: task("a"), "b": lambda: task("b")}, 2)
    assert order == ["a", "b"] * 3
    assert found["a"].values == (3.0, 5.0)


def test_a_goal_is_judged_by_the_worst_measurement() -> None:
    table = Table("t", goals={"chunk": [0.5, 1.2], "rate": [2.0, 0.9]})
    verdicts = {verdict.goal.key: verdict for verdict in judged([table])}
    assert verdicts["chunk"].measured == 1.2
    assert verdicts["chunk"].met is False
    assert verdicts["rate"].measured == 0.9
    assert verdicts["rate"].met is False
    assert verdicts["disk"].met is None
    shown = "\n".join(lines(verdicts.values(), quick=False))
    assert shown.count("NOT MET") == 2
    assert f"not measured by this run: {len(GOALS) - 2}" in shown


def test_the_command_writes_json_with_its_circumstances(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "gating", "--quick", "--json", str(file)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Gating and ordering" in ended.stdout
    written = json.loads(file.read_text("utf-8"))
    assert {"date", "command", "python", "machine", "versions", "goals"} <= written.keys()
    assert written["benchmarks"]["gating"][0]["rows"]


def test_an_unknown_benchmark_is_refused_with_those_there_are() -> None:
    command = [sys.executable, "-m", "benchmarks", "nonsense"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "there are starting" in ended.stderr
