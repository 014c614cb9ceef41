"""The benchmarks measure what they say they do, on answers that mean what they should."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
# At the end, so that the packages under test are those that are installed.
sys.path.append(str(ROOT))

from agent_host import AgentCore  # noqa: E402
from agent_host.plugins.load import load_catalog  # noqa: E402
from benchmarks import streaming  # noqa: E402
from benchmarks.cases import WIRES, Case  # noqa: E402
from benchmarks.charts import CHARTS, plot  # noqa: E402
from benchmarks.drivers.ours import SaveDocument, config_of  # noqa: E402
from benchmarks.drivers.raw_socket import read_chunks  # noqa: E402
from benchmarks.drivers.splitting import Lines  # noqa: E402
from benchmarks.formats.pieces import CALL, fragments, words  # noqa: E402
from benchmarks.goals import GOALS, judge, verdict_lines  # noqa: E402
from benchmarks.measure import Samples, Table, growth, interleaved  # noqa: E402
from benchmarks.page import SECTIONS, fill  # noqa: E402
from benchmarks.peers import installed  # noqa: E402
from benchmarks.results import Results  # noqa: E402
from benchmarks.server import answer_to, parts_of, running  # noqa: E402
from benchmarks.svg import Bar, Chart, Group, Line, draw  # noqa: E402

COUNT = 20
TRANSFERS = ("each", "paced", "several", "length")
STREAMED = [(wire, transfer) for wire in WIRES for transfer in TRANSFERS]


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
    assert read_chunks(body)[0] == read_chunks(joined)[0]
    assert len(joined) < len(body)


@pytest.mark.parametrize("wire", WIRES)
def test_a_paced_answer_is_the_same_in_a_part_for_each_event(wire: str) -> None:
    each, paced = (Case(wire, "text", COUNT, how).url("") for how in ("each", "paced"))
    assert answer_to(paced) == answer_to(each)
    assert len(parts_of(each)) == 1
    parts = parts_of(paced)
    assert len(parts) > COUNT
    assert all(part.endswith(b"\r\n") for part in parts)


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


def test_some_may_stop_after_fewer_rounds() -> None:
    found = interleaved({"a": lambda: 1.0, "slow": lambda: 2.0}, 3, fewer={"slow": 1})
    assert {name: len(samples.values) for name, samples in found.items()} == {"a": 3, "slow": 1}


def test_a_goal_is_judged_by_the_worst_measurement() -> None:
    table = Table("t", goals={"chunk": [0.5, 1.2], "rate": [2.0, 0.9]})
    verdicts = {verdict.goal.key: verdict for verdict in judge([table])}
    assert verdicts["chunk"].measured == 1.2
    assert verdicts["chunk"].met is False
    assert verdicts["rate"].measured == 0.9
    assert verdicts["rate"].met is False
    assert verdicts["disk"].met is None
    shown = "\n".join(verdict_lines(verdicts.values(), quick=False))
    assert shown.count("NOT MET") == 2
    assert f"not measured by this run: {len(GOALS) - 2}" in shown


# What is made of the results.


def document(**more: Any) -> dict[str, Any]:
    """The results of a run with something in every table that is looked at."""
    labels: dict[str, dict[str, list[str]]] = {
        "streaming": {
            "text": [
                f"OpenAI chat, {how}, {mode}"
                for how in streaming.TRANSFERS.values()
                for mode in ("sync", "async")
            ],
            "paced": ["OpenAI chat, sync", "OpenAI chat, async"],
            "reasoning": ["OpenAI chat, sync", "OpenAI chat, async"],
            "others": ["OpenAI chat, sync", "Anthropic Messages, sync"],
        },
        "tool_calls": {"cost": [f"OpenAI chat, one string, {m}, 500" for m in ("sync", "async")]},
        "requests": {"": ["OpenAI chat, sync", "OpenAI chat, async"]},
        "history": {"": ["OpenAI chat, 100 messages", "OpenAI chat, 10000 messages"]},
        "first_chunk": {"": ["OpenAI chat"]},
        "concurrency": {
            "rate": ["200 streams, OpenAI chat"],
            "memory": ["200 streams, OpenAI chat"],
        },
        "footprint": {"resident": ["OpenAI chat"]},
    }
    benchmarks: dict[str, list[dict[str, Any]]] = {}
    for benchmark, tables in labels.items():
        for name, rows in tables.items():
            table = Table("T (µs)", name=name)
            for label in rows:
                table.add(f"{label}: ours", Samples((5.0,)), Samples((10.0,)), goal="chunk")
                table.add(f"{label}: httpx_lines", Samples((10.0,)), Samples((10.0,)))
                table.add(f"{label}: litellm", Samples((1234.0,)), Samples((10.0,)))
            benchmarks.setdefault(benchmark, []).append(table.to_dict())
    growing = Table("200 chunks of text against 20 (s; a ratio of 10 is linear)", name="growth")
    growing.add("OpenAI chat, sync", Samples((10.0,)), Samples((1.0,)))
    benchmarks["streaming"].append(growing.to_dict())
    idle = Table("Idle", name="idle")
    idle.add("OpenAI chat: above httpx_lines", Samples((4.0,)))
    benchmarks["concurrency"].append(idle.to_dict())
    started = Table("Starting", name="starts")
    for label in ("list, 0, warm", "list, 500, cold", "--version", "import httpx"):
        started.add(label, Samples((30.0,)), Samples((15.0,)))
    new, known = Table("New", name="new"), Table("Known", name="known")
    new.add("50 plugins", Samples((1.5,)))
    known.add("50 plugins", Samples((9.0,)))
    gated = Table("Gating")
    gated.add("gate, flat, 100 candidates", Samples((20.0,)))
    turns, gap = Table("Loop"), Table("Fairness", ("worst",))
    turns.add("turn 2", Samples((0.25,)))
    gap.add("largest gap", Samples((2.0,)), worst=4.0)
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "python": "CPython 3.10",
        "machine": "A processor, 2 cores, Some-System",
        "versions": {"httpx": "0.28"},
        "peers": {"litellm": "1.0"},
        "quick": False,
        "whole": True,
        "goals": [verdict.to_dict() for verdict in judge([Table("t", goals={"chunk": [0.5]})])],
        "benchmarks": {
            **benchmarks,
            "starting": [started.to_dict()],
            "resolution": [new.to_dict(), known.to_dict()],
            "gating": [gated.to_dict()],
            "loop": [turns.to_dict()],
            "fairness": [gap.to_dict()],
        },
        **more,
    }


def test_a_row_is_found_by_the_parts_of_its_label() -> None:
    results = Results(document())
    found = results.find("streaming", "paced", "OpenAI chat", "async", who="ours")
    assert found is not None
    assert (found.best, found.ratio) == (5.0, 0.5)
    assert results.find("streaming", "paced", "OpenAI chat", "async", who="llm") is None
    whos = [row.who for row in results.everybody("first_chunk", None, "OpenAI chat")]
    assert whos == ["ours", "httpx_lines", "litellm"]


def test_bars_are_as_long_as_their_values_and_say_them() -> None:
    bars = [Bar("short & sweet", 1.0, "1 ms", "ours"), Bar("long", 4.0, "4 ms")]
    drawn = draw(Chart("T", "s", "f", [Group("G", bars)], [Line(2.0, "two")]))
    root = ElementTree.fromstring(drawn)
    space = "{http://www.w3.org/2000/svg}"
    widths = [
        float(each.attrib["width"])
        for each in root.iter(f"{space}rect")
        if each.attrib["class"] in ("ours", "other")
    ]
    assert widths[1] == pytest.approx(4 * widths[0], rel=0.01)
    texts = [each.text for each in root.iter(f"{space}text")]
    assert {"T", "s", "f", "G", "two", "short & sweet", "1 ms", "4 ms"} <= set(texts)
    right = max(float(each.attrib["x"]) for each in root.iter(f"{space}text"))
    assert right < float(root.attrib["width"])


def test_charts_bring_colours_for_light_and_dark_pages() -> None:
    drawn = draw(Chart("T", "s", "f", [Group("", [Bar("a", 1.0, "1")])]))
    light, dark = re.findall(r"rect\.card\{fill:(#\w+)", drawn)
    assert light != dark
    assert "prefers-color-scheme:dark" in drawn


def test_every_chart_is_drawn_of_a_whole_run(tmp_path: Path) -> None:
    written, missing = plot(Results(document()), tmp_path)
    assert missing == []
    assert [file.stem for file in written] == list(CHARTS)
    for file in written:
        ElementTree.parse(file)
    shown = (tmp_path / "peers-chunk.svg").read_text("utf-8")
    assert "Agent Host" in shown
    assert "litellm" in shown
    assert "1,234 µs" in shown


def test_charts_that_were_not_measured_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "starting.svg").write_text("before", "utf-8")
    only = {"first_chunk": document()["benchmarks"]["first_chunk"]}
    written, missing = plot(Results(document(benchmarks=only)), tmp_path)
    assert [file.name for file in written] == ["first-chunk.svg"]
    assert "starting" in missing
    assert (tmp_path / "starting.svg").read_text("utf-8") == "before"


def test_figures_are_put_between_the_markers_and_nowhere_else() -> None:
    page = "Before.\n\n<!-- figures: requests -->\nold\n<!-- end -->\n\nAfter.\n"
    filled, missing = fill(page, Results(document()))
    assert missing == []
    assert "old" not in filled
    assert "| OpenAI chat | 0.50 (5 µs) | 0.50 (5 µs) |" in filled
    assert filled.startswith("Before.\n")
    assert filled.endswith("<!-- end -->\n\nAfter.\n")
    assert fill(filled, Results(document())) == (filled, [])


def test_figures_that_were_not_measured_stay_as_they_were() -> None:
    page = "<!-- figures: loop -->\nold\n<!-- end -->\n"
    assert fill(page, Results(document(benchmarks={}))) == (page, ["loop"])


def test_a_page_that_asks_for_unknown_figures_is_refused() -> None:
    with pytest.raises(ValueError, match="asks for figures of 'nonsense'"):
        fill("<!-- figures: nonsense -->\n<!-- end -->", Results(document()))


def test_the_page_has_a_place_for_all_figures_and_charts() -> None:
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert sorted(re.findall(r"<!-- figures: ([\w-]+) -->", page)) == sorted(SECTIONS)
    filled, missing = fill(page, Results(document()))
    assert missing == []
    assert filled.count("<!-- end -->") == len(SECTIONS)
    linked = re.findall(r"!\[(.+)\]\(charts/([\w-]+)\.svg\)", page)
    titles = {name: make(Results(document())).title for name, make in CHARTS.items()}
    assert {name: title for title, name in linked} == titles


def test_a_peer_runs_in_the_first_environment_that_has_it(tmp_path: Path) -> None:
    pythons = []
    for number, modules in enumerate((["llm"], ["llm", "litellm"])):
        site, python = tmp_path / f"site{number}", tmp_path / f"python{number}"
        site.mkdir()
        for module in modules:
            (site / f"{module}.py").touch()
        # Without the folder of what is installed here there is nothing but those.
        script = f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" -S "$@"\n'
        python.write_text(script, "utf-8")
        python.chmod(0o755)
        pythons.append(str(python))
    installed.use_pythons(pythons)
    try:
        assert list(installed.versions()) == ["llm", "litellm"]
        assert [installed.python_of(name) for name in ("llm", "litellm")] == pythons
        assert installed.python_of("ours") == sys.executable
        assert not installed.is_installed("aisuite")
    finally:
        installed.use_pythons([sys.executable])


# The command.


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


def test_the_command_draws_and_writes_what_an_earlier_run_measured(tmp_path: Path) -> None:
    results, page, charts = (tmp_path / name for name in ("r.json", "page.md", "charts"))
    results.write_text(json.dumps(document()), "utf-8")
    page.write_text("<!-- figures: goals -->\n<!-- end -->\n", "utf-8")
    given = ["--results", str(results), "--plot", str(charts), "--page", str(page)]
    command = [sys.executable, "-m", "benchmarks", *given]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"wrote {len(CHARTS)} charts" in ended.stdout
    assert sorted(file.stem for file in charts.iterdir()) == sorted(CHARTS)
    assert "| at most 0.5× | 0.50× | met |" in page.read_text("utf-8")
