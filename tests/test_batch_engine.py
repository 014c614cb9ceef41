"""Which engine a name opens, through pluggy like any hook, and the limits that workers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.errors import ConfigError, HookError, HookResultError
from agent_host import AgentApplication, AgentCore
from agent_host.batch import BatchError
from agent_host.batch.engine import LocalEngine, open_engine
from agent_host.batch.environment import find_environment
from agent_host.batch.files import journal_of
from agent_host.batch.journal import Journal, JournalledBatch
from agent_host.batch.limits import LearntLimits
from agent_host.plugins.load import load_catalog
from agent_host.plugins.manager import RoleManager
from agent_host.prices import read_prices
from agent_host.wire.rate_limits import Allowance, read_allowances
from batching import read_results, repeating_server
from making import POISON, install
from openai_like import OpenAiLike


@pytest.fixture
def core() -> Iterator[AgentCore]:
    made = AgentCore()
    yield made
    made.close()


def opened(core: AgentCore, name: str, **options: Any) -> Any:
    return open_engine(name, options, core.stacks.catalog, core.stacks.activator)


def test_the_built_in_engine_is_opened_through_pluggy() -> None:
    calls: list[tuple[str, str]] = []

    def watch(manager: RoleManager) -> None:
        def before(hook: str, implementations: Any, arguments: Any) -> None:
            calls.append((hook, arguments["name"]))

        manager.add_hookcall_monitoring(before, lambda *_: None)

    core = AgentCore(on_manager=watch)
    assert isinstance(opened(core, "local"), LocalEngine)
    assert calls == [("open_batch_engine", "local")]
    core.close()


class OwnEngines(FeaturePlugin):
    """A program's own, for some names."""

    name = "own"

    def open_batch_engine(self, name: str, config: dict[str, Any]) -> Any:
        match name:
            case "own":
                return LocalEngine()
            case "wrong":
                return {"not": "an engine"}
            case "raising":
                raise ZeroDivisionError("no")
        return None


def test_a_program_brings_an_engine_of_its_own(core: AgentCore) -> None:
    core.register_feature(OwnEngines)
    assert isinstance(opened(core, "own"), LocalEngine)


def test_what_is_no_engine_is_refused_by_name(core: AgentCore) -> None:
    core.register_feature(OwnEngines)
    with pytest.raises(HookResultError, match="has no warnings, results, close"):
        opened(core, "wrong")
    with pytest.raises(HookError, match=r"'own'.* raised ZeroDivisionError") as caught:
        opened(core, "raising")
    assert caught.value.hook == "open_batch_engine"


def test_a_name_or_a_setting_that_nobody_knows_is_a_config_error(core: AgentCore) -> None:
    with pytest.raises(ConfigError, match="'unheard'"):
        opened(core, "unheard")
    with pytest.raises(ConfigError, match="has no setting nodes"):
        opened(core, "local", nodes=2)


def test_only_a_plugin_that_announces_the_engine_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from agent_hookspecs import FeaturePlugin\n"
        "class Plugin(FeaturePlugin):\n"
        "    name = 'spread'\n"
        "    def open_batch_engine(self, name, config):\n"
        "        raise ValueError(name)\n"
    )
    install(tmp_path, "spread", "feature", source=source, engines=["spread"])
    install(tmp_path, "other", "feature", source=POISON, engines=["other"])
    monkeypatch.syspath_prepend(tmp_path)
    core = AgentCore(catalog=load_catalog())
    with pytest.raises(HookError, match="spread"):
        opened(core, "spread")
    opened(core, "local")
    core.close()


class FileEngine(LocalEngine):
    """Reads and writes a memory in place of files elsewhere."""

    warnings = ("somebody was lost",)

    def __init__(self, memory: dict[str, list[Any]]) -> None:
        self.memory = memory
        self.is_closed = False

    def read_lines(self, source: str) -> Iterator[Any]:
        return iter(self.memory[source])

    def check_target(self, target: str) -> None:
        if target.startswith("ftp:"):
            raise BatchError(f"{target} cannot be written")

    def write_results(self, results: Any, target: str) -> None:
        # They can be iterated repeatedly.
        assert [*results] == [*results]
        self.memory[target] = [*results]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """An application in a folder, and an engine of its own for files elsewhere."""
    monkeypatch.chdir(tmp_path)
    engine = FileEngine({"mem://in/": [b'{"prompt": "a"}\n', b"\n", {"prompt": "b", "id": "i"}]})

    class Engines(FeaturePlugin):
        name = "elsewhere"

        def open_batch_engine(self, name: str, config: dict[str, Any]) -> Any:
            return engine if name == "elsewhere" else None

    settings = {"agents": {"default": {"provider": "echo", "tools": []}}}
    with AgentApplication(settings, store=False) as app:
        app.core.register_feature(Engines)
        yield app, engine


def test_lines_and_results_elsewhere_are_the_engines(elsewhere: tuple[Any, Any]) -> None:
    app, engine = elsewhere
    for _ in range(2):
        batch = app.batch("mem://in/", out="mem://out.parquet", engine="elsewhere")
        assert batch.run().total == 2
        assert batch.warnings == ["somebody was lost"]
        found = engine.memory.pop("mem://out.parquet")
        assert sorted((each["line"], each["id"]) for each in found) == [(1, None), (3, "i")]
    # The second had nothing to ask.
    assert batch.progress.resumed == 2
    assert found == read_results(Path("out.parquet.jsonl"))
    assert engine.is_closed


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("s3://bucket/out/results.parquet", "results.parquet.jsonl"),
        ("s3://key:secret@bucket/out/?endpoint_override=127.0.0.1:9", "out.jsonl"),
        ("s3://key:secret@bucket", "bucket.jsonl"),
        ("gs://bucket/results.jsonl", "results.jsonl"),
    ],
)
def test_the_local_file_of_results_elsewhere_has_no_keys_in_its_name(
    target: str, name: str
) -> None:
    assert str(journal_of(target)) == name


def test_a_target_that_cannot_be_written_is_told_before_anything_is_asked(
    elsewhere: tuple[Any, Any],
) -> None:
    app, engine = elsewhere
    with pytest.raises(BatchError, match="cannot be written"):
        app.batch(["a"], out="ftp://out.jsonl", engine="elsewhere").run()
    assert not Path("out.jsonl").exists()
    assert engine.is_closed


@pytest.mark.parametrize("source", ["s3://bucket/in.jsonl", "in.parquet", "."])
def test_an_engine_that_reads_no_such_files_says_which_does(
    elsewhere: tuple[Any, Any], source: str
) -> None:
    app, _ = elsewhere
    for lines, out in ((source, None), (["a"], source)):
        with pytest.raises(BatchError, match="engine local neither reads nor writes") as caught:
            app.batch(lines, out=out).run()
        assert "--engine ray" in caught.value.hint


# What headers say ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "149984",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            [Allowance("requests", 59, 1), Allowance("tokens", 149984, 360)],
        ),
        (
            {
                "acme-ratelimit-input-tokens-limit": "50000",
                "acme-ratelimit-input-tokens-remaining": "42",
                "acme-ratelimit-input-tokens-reset": "1970-01-01T00:17:00Z",
            },
            [Allowance("input-tokens", 42, 20)],
        ),
        ({"ratelimit-remaining": "3", "ratelimit-reset": "7"}, [Allowance("requests", 3, 7)]),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "12ms"},
         [Allowance("requests", 0, 0.012)]),
        ({"x-ratelimit-remaining-requests": "5"}, []),
        ({"x-ratelimit-remaining": "many", "x-ratelimit-reset": "soon"}, []),
        ({"content-type": "text/plain"}, []),
    ],
)  # fmt: skip
def test_the_customary_shapes_say_what_is_left(
    headers: Mapping[str, str], expected: list[Allowance]
) -> None:
    assert read_allowances(headers, now=1000.0) == expected


def test_a_time_is_told_from_a_duration_by_its_size() -> None:
    for reset in ("1700000010", "1700000010000"):
        headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
        assert read_allowances(headers, now=1.7e9) == [Allowance("requests", 0, 10)]


# What is learnt -----------------------------------------------------------------------------------


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def limits(time: Time) -> LearntLimits:
    return LearntLimits(time, time)


def reserve(limits: LearntLimits, server: str = "s", tokens: int = 1) -> float:
    return asyncio.run(limits.reserve(server, tokens))


def report(limits: LearntLimits, status: int, server: str = "s", **headers: str) -> None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asyncio.run(limits.report(server, status, named))


def test_a_refusal_holds_everybody_up_who_asks_the_same_server(
    limits: LearntLimits, time: Time
) -> None:
    assert reserve(limits) == reserve(limits) == 0
    report(limits, 429, retry_after="20")
    assert reserve(limits) == 20
    assert reserve(limits, "another") == 0
    time.now += 20
    assert reserve(limits) == 0
    # From then on they go out one after the other.
    assert 0 < reserve(limits) < 5


def test_a_server_that_does_not_say_how_long_is_left_alone_longer_each_time(
    limits: LearntLimits, time: Time
) -> None:
    waits = []
    for _ in range(4):
        report(limits, 503)
        waits.append(reserve(limits))
        time.now += waits[-1]
    assert waits == [1, 2, 4, 8]
    report(limits, 200)
    report(limits, 503)
    assert reserve(limits) == 1


def test_refusals_of_what_was_sent_together_count_once(limits: LearntLimits) -> None:
    for _ in range(10):
        report(limits, 429)
    assert reserve(limits) == 1


def test_requests_come_closer_again_with_every_answer(limits: LearntLimits, time: Time) -> None:
    report(limits, 429, retry_after="0.5")
    time.now += 0.5
    assert reserve(limits) == 0
    first = reserve(limits)
    for _ in range(300):
        report(limits, 200)
    assert first > 0
    assert reserve(limits) == 0


def test_no_more_goes_out_than_the_headers_say_is_left(limits: LearntLimits, time: Time) -> None:
    assert reserve(limits) == 0
    report(limits, 200, x_ratelimit_remaining_requests="2", x_ratelimit_reset_requests="30s")
    assert reserve(limits) == reserve(limits) == 0
    assert reserve(limits) == 30
    time.now += 30
    assert reserve(limits) == 0


def test_what_the_server_has_not_seen_yet_is_counted(limits: LearntLimits) -> None:
    for _ in range(3):
        assert reserve(limits) == 0
    report(limits, 200, x_ratelimit_remaining="2", x_ratelimit_reset="30")
    assert reserve(limits) == 30


def test_tokens_are_counted_as_tokens(limits: LearntLimits) -> None:
    report(limits, 200, x_ratelimit_remaining_tokens="100", x_ratelimit_reset_tokens="9s")
    assert reserve(limits, tokens=60) == 0
    assert reserve(limits, tokens=60) == 9
    assert reserve(limits, tokens=40) == 0


def test_a_wait_that_nobody_wants_holds_nobody_up(limits: LearntLimits) -> None:
    report(limits, 429, retry_after="86400")
    assert reserve(limits) == 0


# On the wire --------------------------------------------------------------------------------------


def test_a_line_that_was_refused_because_of_the_rate_is_asked_again() -> None:
    def refuse(prompt: str, times: int) -> tuple[str, str] | None:
        # More often than one run tries.
        return ("429 Too Many Requests", "Retry-After-Ms: 20\r\n") if times <= 3 else None

    with repeating_server(refuse) as server, server.open_application() as app:
        progress = app.batch(["a", "b"], concurrency=2).run()
        assert (progress.done, progress.failed) == (2, 0)
        assert server.asked == {"a": 4, "b": 4}


def test_a_server_that_asks_for_hours_ends_the_batch_and_loses_nothing(tmp_path: Path) -> None:
    def refuse(prompt: str, times: int) -> tuple[str, str] | None:
        return ("429 Too Many Requests", "Retry-After: 86400\r\n") if prompt == "b" else None

    out = tmp_path / "out.jsonl"
    with repeating_server(refuse) as server, server.open_application() as app:
        with pytest.raises(BatchError, match="wait 86400 s") as caught:
            app.batch(["a", "b", "c"], out=out, concurrency=1).run()
        assert "again later" in caught.value.hint
        assert "c" not in server.asked
    assert [result["line"] for result in read_results(out)] == [1]


def test_an_account_without_quota_is_an_error_of_each_line() -> None:
    def refuse(prompt: str, times: int) -> tuple[str, str] | None:
        return "402 Payment Required", ""

    with repeating_server(refuse) as server, server.open_application() as app:
        results = list(app.batch(["a", "b"]))
        assert {result["error"]["type"] for result in results} == {"RateLimitError"}
        assert server.asked == {"a": 1, "b": 1}


def test_a_budget_of_a_day_ends_the_batch_before_it_is_passed(tmp_path: Path) -> None:
    settings = {
        "agents": {"default": {"provider": "echo", "tools": []}},
        "tools": {"max_day_cost": 0},
    }
    with AgentApplication(settings, store=f"sqlite:///{tmp_path}/s.db") as app:
        out = tmp_path / "out.jsonl"
        with pytest.raises(BatchError, match="max_day_cost was reached") as caught:
            app.batch(["a", "b"], out=out).run()
        assert "again" in caught.value.hint
    assert read_results(out) == []


# Batches of the providers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"poll_seconds": 0}, "poll_seconds is 0"),
        ({"poll_seconds": "soon"}, "poll_seconds is 'soon'"),
        ({"batch_lines": 1.5}, "batch_lines is 1.5"),
        ({"batch_lines": True}, "batch_lines is True"),
        ({"wait": "no"}, "wait is 'no'"),
        ({"nodes": 2}, "has no setting nodes"),
    ],
)
def test_a_wrong_setting_of_the_engine_of_providers_is_told(
    core: AgentCore, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(core, "provider", **settings)


def ask_provider(out: Path | None, config: Mapping[str, Any], **options: Any) -> None:
    agents = {"default": {"provider": "echo", "tools": []}}
    with AgentApplication({"agents": agents, **config}, **options) as app:
        app.batch(["a"], engine="provider", out=out).run()


def test_a_provider_without_batches_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(BatchError, match="'echo' takes no such request") as caught:
        ask_provider(tmp_path / "out", {}, store=False)
    assert "--engine local" in caught.value.hint


def raise_in_a_hook() -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("give_endpoint", "kind", "message"),
    [
        (raise_in_a_hook, "HookError", "broken"),
        (lambda: "an endpoint", "HookResultError", "gave (str) has no group"),
    ],
)
def test_a_provider_whose_endpoint_is_none_is_named_for_each_line(
    tmp_path: Path, give_endpoint: Callable[[], Any], kind: str, message: str
) -> None:
    class Misbehaving(OpenAiLike):
        def get_batch_endpoint(self, config: Any, request: Any) -> Any:
            return give_endpoint()

    settings = {"base_url": "http://127.0.0.1:9", "model": "m"}
    with AgentApplication({}, store=False) as app:
        app.core.register_provider(Misbehaving)
        out = tmp_path / "out"
        app.batch(
            ["a"], engine="provider", provider="openai_like", settings=settings, out=out
        ).run()
    (result,) = read_results(out)
    assert result["error"]["type"] == kind
    assert message in result["error"]["message"]
    assert "openai_like" in result["error"]["message"]


def test_a_batch_of_a_provider_needs_a_file_of_results() -> None:
    with pytest.raises(BatchError, match="noted somewhere") as caught:
        ask_provider(None, {}, store=False)
    assert "--out" in caught.value.hint


def test_what_nobody_could_count_or_record_is_refused(tmp_path: Path) -> None:
    budget, store = {"tools": {"max_day_cost": 5}}, f"sqlite:///{tmp_path}/s.db"
    with pytest.raises(BatchError, match="max_day_cost is set"):
        ask_provider(tmp_path / "out", budget, store=store)
    with pytest.raises(BatchError, match="recorded or replayed"):
        ask_provider(tmp_path / "out", {}, store=False, record=tmp_path / "cassette")


@pytest.mark.parametrize("content", ["[]\n", '{"mark": "a", "id": "b"}\n', "nonsense\n"])
def test_a_file_that_is_no_journal_is_not_touched(tmp_path: Path, content: str) -> None:
    journal = tmp_path / "out.batches"
    journal.write_text(content)
    with pytest.raises(BatchError, match="no entry of a journal"):
        ask_provider(tmp_path / "out", {}, store=False)
    assert journal.read_text() == content


def test_half_an_entry_of_a_journal_is_cut_off(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.note_begun(JournalledBatch("m", "p", "s", 1.0, ["1-a", "2-b"]))
    journal.note_id(journal.batches["m"], "id")
    journal.close()
    whole = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(whole + b'{"mark": "m", "is_l')
    again = Journal(tmp_path / "j")
    assert (again.latest["2-b"].id, again.latest["2-b"].is_lost) == ("id", False)
    again.close()
    assert (tmp_path / "j").read_bytes() == whole


def test_prices_of_a_share_are_those_of_tokens_alone() -> None:
    usual = read_prices(
        {"input": 2, "output": 8, "request": 1, "tiers": [{"above": 10, "input": 4}]}
    )
    half = usual.times(Decimal("0.5"))
    told = [half.input, half.output, half.request, half.cached_input]
    assert told == [Decimal(1), Decimal(4), Decimal(1), None]
    assert half.for_input(11).input == 2


# In other processes -------------------------------------------------------------------------------


def answer_block(open_worker: Any, lines: list[Any]) -> list[Any]:
    """What a process of an engine does that has several."""

    async def answer() -> list[Any]:
        worker = open_worker(LearntLimits())
        try:
            return await asyncio.gather(*map(worker.answer, lines))
        finally:
            await worker.aclose()

    return asyncio.run(answer())


class SpreadEngine:
    """Answers blocks of lines in a process of its own."""

    warnings = ()

    def close(self) -> None:
        pass

    async def results(self, lines: Any, open_worker: Any, concurrency: int) -> Any:
        loop, waiting = asyncio.get_running_loop(), iter(lines)
        with ProcessPoolExecutor(1, get_context("spawn")) as processes:
            while block := [*islice(waiting, concurrency)]:
                results = await loop.run_in_executor(processes, answer_block, open_worker, block)
                for result in results:
                    yield result


class SpreadEngines(FeaturePlugin):
    name = "spread"

    def open_batch_engine(self, name: str, config: dict[str, Any]) -> Any:
        return SpreadEngine() if name == "spread" else None


def test_lines_can_be_answered_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "spread", "feature", source=SPREAD, engines=["spread"])
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"agents": {"default": {"provider": "echo", "tools": []}}}
    with AgentApplication(settings, store=False) as app:
        local = list(app.batch(["a", "b", "c"], ordered=True))
        assert list(app.batch(["a", "b", "c"], ordered=True, engine="spread")) == local
    # There nobody would count for it: each line would fail, or the budget would hold nobody up.
    budget: Any = {**settings, "store": ":memory:", "tools": {"max_day_cost": 5}}
    with AgentApplication(budget) as app, pytest.raises(BatchError, match="max_day_cost is set"):
        app.batch(["a"], engine="spread").run()


#: A plugin whose engine is the one above.
SPREAD = """
from agent_hookspecs import FeaturePlugin

class Plugin(FeaturePlugin):
    name = "spread"

    def open_batch_engine(self, name, config):
        from test_batch_engine import SpreadEngine
        return SpreadEngine()
"""


def test_what_is_in_this_process_alone_is_not_left_behind_in_silence() -> None:
    with AgentApplication({}, store=False) as app:
        app.core.register_feature(SpreadEngines)
        with pytest.raises(BatchError, match="in this process alone"):
            app.batch(["a"], engine="spread", provider="echo").run()


def test_what_is_installed_is_found_beside_what_an_uninstall_has_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "acme", "feature", version="2.5")
    (tmp_path / "empty-1.0.dist-info").mkdir()
    (tmp_path / "nameless-1.0.dist-info").mkdir()
    (tmp_path / "nameless-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_environment()
    assert found["dist-acme"] == "2.5"
    assert found["agent-hookspecs"] == version("agent-hookspecs")
    assert not {"empty", "nameless", ""} & {*found}
