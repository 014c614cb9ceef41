"""Lines answered on a real cluster: by the suite, and with workers and nodes that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ray_nodes import RayNodes, ray_nodes
from ray_workers import OpenKilledWorker

from agent_hookspecs.errors import AgentError
from agent_host import AgentApplication
from agent_host_ray.plugin import RayEngines
from agent_host_testing import BatchEngineConformance, FakeServer, say, wire_format
from agent_host_testing.wire import Request

# Not imported: it looks then at the environment, which is made by `ray_nodes`.
if find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install 'ray[data]'", allow_module_level=True)

#: With it as many lines as the claim has; else fewer.
IS_LONG = os.environ.get("AGENT_HOST_LONG_TRIALS", "") not in ("", "0")
#: Two workers on a node with one processor.
TWO: dict[str, Any] = {"workers": 2, "cpus_per_worker": 0.5}


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with ray_nodes() as made:
        made.add(1)
        yield made


@pytest.fixture(autouse=True)
def _address(nodes: RayNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)


class TestRay(BatchEngineConformance):
    plugin = "ray"
    options = TWO


class CountingServer:
    """A model that repeats what it is asked; ``asked`` counts the prompts.

    It answers nobody until so many ask at a time as ``gate`` says.
    """

    def __init__(self) -> None:
        self.gate = 0
        self._open = 0
        self.asked: Counter[str] = Counter()
        self.changed = threading.Condition()
        self.fake = FakeServer("openai.chat", rest=self._answer, events_per_chunk=None)
        self._format = wire_format("openai.chat")

    def _answer(self, request: Request) -> Any:
        prompt = self._format.gist(request).said
        with self.changed:
            self.asked[prompt] += 1
            self._open += 1
            if self._open >= self.gate:
                self.gate = 0
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: not self.gate, timeout=120)
            self._open -= 1
        return say(f"You said {prompt}.")

    def wait_until(self, count: int) -> None:
        """Wait until so many different prompts were asked."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, timeout=120)

    def config(self) -> dict[str, Any]:
        alias = {
            "provider": "custom",
            "base_url": self.fake.base_url,
            "model": "fake-model",
            "api_key": "test",
        }
        return {"providers": {"main": alias}, "agents": {"default": {"provider": "main"}}}


@pytest.fixture
def server() -> Iterator[CountingServer]:
    made = CountingServer()
    with made.fake:
        yield made


def test_a_node_that_is_killed_loses_and_repeats_nothing_that_was_finished(
    nodes: RayNodes, server: CountingServer
) -> None:
    count = 10_000 if IS_LONG else 1_000
    lines = [f"p{n}" for n in range(count)]
    # One worker on each node.
    options = {"workers": 2, "lost_after_seconds": 1}
    doomed = nodes.add(1)
    # More than one of them asks at a time.
    server.gate = 12
    asked_before: set[str] = set()
    with AgentApplication(server.config(), store=False) as app:
        batch = app.batch(lines, engine="ray", engine_options=options)
        results = []
        for result in batch:
            results.append(result)
            if len(results) == count // 3:
                assert all(each["status"] == "succeeded" for each in results), result
                asked_before = {lines[each["line"] - 1] for each in results}
                nodes.kill(doomed)
        assert any("was lost" in warning for warning in batch.warnings), batch.warnings
        assert {server.asked[prompt] for prompt in asked_before} == {1}
        assert {*server.asked} == {*lines}
        # What was asked twice was with the worker that was lost, and had no result.
        assert sum(server.asked.values()) - count <= 2 * (8 + 8)
        results.sort(key=lambda each: each["line"])
        undisturbed = list(app.batch(lines, ordered=True))
        for result in [*results, *undisturbed]:
            # A slow machine is no difference.
            result.pop("warnings", None)
        assert results == undisturbed


def test_a_line_that_ends_every_worker_fails_alone() -> None:
    engine = RayEngines().open_batch_engine("ray", {**TWO, "workers": 1})
    assert engine is not None

    async def answer() -> list[Any]:
        lines = [{"n": n} for n in range(12)]
        async with aclosing(engine.results(lines, OpenKilledWorker(), 4)) as results:
            return [result async for result in results]

    try:
        found = asyncio.run(answer())
    finally:
        engine.close()
    assert sorted(found, key=lambda each: each["n"]) == [
        {"n": n, "error": "LostLineError"} if n == 5 else {"n": n} for n in range(12)
    ]
    assert len(engine.warnings) == 3


def test_a_node_that_is_not_as_this_machine_is_refused_by_name(
    server: CountingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))
    with AgentApplication(server.config(), store=False) as app:
        from agent_host.places import config_folder

        lock = Path(config_folder(), "pylock.toml")
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text('lock-version = "1.0"\n')
        with pytest.raises(
            AgentError, match=r"node \S+ is not as this .* pylock.toml missing"
        ) as c:
            app.batch(["a"], engine="ray", engine_options=TWO).run()
    assert "plugins sync --frozen" in c.value.hint
    assert not server.asked


def begin(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "AGENT_HOST_HOME": str(folder / "home"), "PYTHONUTF8": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "agent_host", "batch", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_the_command_goes_on_after_it_was_killed_and_writes_elsewhere(
    server: CountingServer, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    # What a line may hold is not taken for its end.
    texts = [json.dumps({"id": f"i{n}", "prompt": f"p{n}\u2028"}, ensure_ascii=False)
             for n in range(300)]  # fmt: skip
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(texts[:100]) + "\n", "utf-8")
    (tmp_path / "in" / "b.jsonl").write_text("\n".join(["", *texts[100:]]) + "\n", "utf-8")
    (tmp_path / "c.json").write_text(json.dumps(server.config()))
    words = ("in", "--out", "out.parquet", "--config", "c.json", "--engine", "ray",
             "--engine-set", "workers=2", "--engine-set", "cpus_per_worker=0.5")  # fmt: skip
    with begin(tmp_path, *words) as process:
        server.wait_until(100)
        process.send_signal(signal.SIGKILL)
    whole = (tmp_path / "out.parquet.jsonl").read_bytes().rpartition(b"\n")[0].splitlines()
    finished = {f"p{json.loads(line)['id'][1:]}\u2028" for line in whole}
    before = {prompt: server.asked[prompt] for prompt in finished}
    with begin(tmp_path, *words) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert {prompt: server.asked[prompt] for prompt in finished} == before
    parquet: Any = import_module("pyarrow.parquet")
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert sorted(row["text"] for row in rows) == sorted(
        f"You said p{n}\u2028." for n in range(300)
    )
    assert b"300/300 lines" in said
    # Nothing of Ray's own is shown.
    assert not any(word in said for word in (b"INFO", b"WARN", b"pid=", b"Ray", b"Traceback")), said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrkers": 2}, "no setting wrkers"),
        ({"workers": 0}, "at least 1"),
        ({"block": 1.5}, "a whole number"),
        ({"start_seconds": "long"}, "'long'"),
        ({"address": "ray://127.0.0.1:10001"}, "Ray Client"),
        ({"address": "nowhere"}, "host:port"),
        ({"address": "127.0.0.1:1"}, "cannot be reached"),
        ({"cpus_per_worker": 64}, "no node of the cluster has 64 processors"),
    ],
)
def test_what_cannot_begin_says_why(options: dict[str, Any], message: str) -> None:
    with AgentApplication({}, store=False) as app, pytest.raises(AgentError) as caught:
        app.batch(["a"], provider="echo", engine="ray", engine_options=options).run()
    assert message in caught.value.explain()
    assert caught.value.hint


def test_files_that_are_not_there_or_of_no_known_form_say_so(tmp_path: Path) -> None:
    with AgentApplication({}, store=False) as app:
        for source in (f"{tmp_path}/", f"file://{tmp_path}/a.jsonl", "htp://a/b.parquet"):
            with pytest.raises(AgentError) as caught:
                app.batch(source, provider="echo", engine="ray", engine_options=TWO).run()
            assert caught.value.hint
