"""Many prompts at once: what lines may say, what results are, and going on after any end."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_host import AgentApplication, AgentError
from agent_host.batch import BatchError
from agent_host.batch.lines import read_lines
from batching import RepeatingServer, read_results, repeating_server, write_lines
from making import run_host

#: With it as many lines and kills as the claim has; else few of both.
IS_LONG = os.environ.get("AGENT_HOST_LONG_TRIALS", "") not in ("", "0")


@pytest.fixture
def server() -> Iterator[RepeatingServer]:
    with repeating_server() as made:
        yield made


@pytest.fixture
def app(server: RepeatingServer) -> Iterator[AgentApplication]:
    with server.open_application() as made:
        yield made


# Lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{", "line 1: it is no JSON", "a line is an object"),
        ("[]", "line 1: the document is", "an object"),
        ('{"promt": "x"}', "there is no key 'promt'", "did you mean 'prompt'?"),
        ('{"id": "a"}', "neither prompt nor messages", "one of them"),
        ('{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}', "both", "one of"),
        ('{"prompt": 1}', "prompt is 1", "a string"),
        ('{"messages": [{"role": "assistant", "content": "b"}]}', "last message", "the user"),
    ],
)
def test_a_wrong_line_says_which_what_and_the_way_out(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    (line,) = read_lines(write_lines(tmp_path / "in.jsonl", text))
    assert line.error is not None
    assert line.error.line == 1
    assert message in line.error.message
    assert hint in line.error.hint


def test_an_id_stands_for_one_line_alone(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "in", {"id": 1, "prompt": "a"}, "", {"id": "1", "prompt": "b"})
    first, second = read_lines(file)
    assert first.error is None
    assert second.error is not None
    assert "that of line 1" in second.error.message
    assert second.number == 3


# Results ------------------------------------------------------------------------------------------


def test_every_line_has_a_result_and_a_wrong_one_does_not_stop_the_others(
    app: AgentApplication, tmp_path: Path
) -> None:
    lines: list[Any] = [
        "one",
        {"id": "b", "prompt": "two", "metadata": {"mine": 1}},
        {"nonsense": True},
        {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"},
                      {"role": "user", "content": "three"}]},
    ]  # fmt: skip
    batch = app.batch(lines, ordered=True)
    results = list(batch)
    assert [result["line"] for result in results] == [1, 2, 3, 4]
    said = ["You said one.", "You said two.", None, "You said three."]
    assert [result.get("text") for result in results] == said
    assert results[1]["id"] == "b"
    assert results[1]["metadata"] == {"mine": 1}
    assert results[2]["error"]["type"] == "LineError"
    assert (batch.progress.done, batch.progress.failed, batch.progress.total) == (4, 1, 4)


def test_the_async_form_gives_the_same(app: AgentApplication) -> None:
    async def answer() -> list[Any]:
        async with app:
            return [result async for result in app.abatch(["a", "b"], ordered=True)]

    results = asyncio.run(answer())
    assert [result.get("text") for result in results] == ["You said a.", "You said b."], results


def test_no_more_lines_are_answered_at_a_time_than_was_said(
    app: AgentApplication, server: RepeatingServer
) -> None:
    assert app.batch([f"p{n}" for n in range(30)], concurrency=3).run().done == 30
    assert server.most <= 3


def test_options_are_for_lines_that_do_not_say_so_themselves(app: AgentApplication) -> None:
    lines = [{"prompt": "a", "provider": "nobody"}, {"prompt": "b"}]
    first, second = app.batch(lines, provider="main", ordered=True)
    assert first["error"]["type"] == "ConfigError"
    assert second["status"] == "succeeded"


def test_a_line_with_a_schema_has_data_or_an_error_that_says_why(app: AgentApplication) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    (result,) = app.batch([{"prompt": "a", "output_schema": schema}])
    assert result["status"] == "failed"
    assert result["error"]["type"] == "OutputInvalidError"
    assert result["text"].startswith("You said")


def test_strict_refuses_before_anything_is_asked(
    app: AgentApplication, server: RepeatingServer
) -> None:
    with pytest.raises(BatchError, match="line 2"):
        app.batch(["a", {"no": 1}], strict=True).run()
    assert not server.asked


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["a", {"no": 1}], {"strict": True}),
        ("missing.jsonl", {}),
        (["a"], {"engine": "none"}),
    ],
)
def test_a_batch_that_does_not_begin_leaves_the_results_alone(
    app: AgentApplication, tmp_path: Path, lines: Any, options: Any
) -> None:
    out = tmp_path / "out.jsonl"
    app.batch(["a"], out=out).run()
    before = out.read_bytes()
    with pytest.raises(AgentError):
        app.batch(lines, out=out, fresh=True, **options).run()
    assert out.read_bytes() == before


def test_a_batch_that_is_left_early_cancels_what_is_being_answered(
    app: AgentApplication, server: RepeatingServer
) -> None:
    batch = app.batch([f"p{n}" for n in range(200)], concurrency=2)
    next(iter(batch))
    batch.close()
    assert len(server.asked) < 200


# Going on -----------------------------------------------------------------------------------------


def test_a_second_batch_asks_only_what_is_missing(
    app: AgentApplication, server: RepeatingServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    app.batch(["a", "b"], out=out).run()
    progress = app.batch(["a", "b", "c"], out=out).run()
    assert (progress.done, progress.resumed) == (3, 2)
    assert server.asked == {"a": 1, "b": 1, "c": 1}
    assert sorted(result["line"] for result in read_results(out)) == [1, 2, 3]


def test_a_half_written_result_is_cut_off_and_told(
    app: AgentApplication, server: RepeatingServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    app.batch(["a", "b"], out=out).run()
    whole = out.read_bytes()
    out.write_bytes(whole[:-7])
    batch = app.batch(["a", "b"], out=out)
    batch.run()
    assert "half-written" in batch.warnings[0]
    assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())
    assert sorted(server.asked.values()) == [1, 2]


@pytest.mark.parametrize("content", ["no results", "no results\n", '{"prompt": "a"}\n', '{"a": 1}'])
def test_a_file_that_has_no_results_is_not_touched(
    app: AgentApplication, tmp_path: Path, content: str
) -> None:
    out = tmp_path / "notes"
    out.write_text(content)
    with pytest.raises(BatchError, match="is no result"):
        app.batch(["a"], out=out).run()
    assert out.read_text() == content


def test_the_file_of_the_lines_is_not_taken_for_the_results(
    app: AgentApplication, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "in.jsonl", {"prompt": "a"})
    with pytest.raises(BatchError, match="has the lines"):
        app.batch(file, out=file, fresh=True).run()
    # Also where an engine would write it at the end, without a word of whether there is one.
    for source, named in ((tmp_path / "a.parquet", tmp_path / "a.parquet"),
                          (tmp_path, f"{tmp_path}/"), ("s3://b/c/", "s3://b/c")):  # fmt: skip
        with pytest.raises(BatchError, match="has the lines"):
            app.batch(source, out=named).run()
    with pytest.raises(BatchError, match="neither reads nor writes") as caught:
        app.batch(["a"], out="s3://me:swordfish@b/c/").run()
    assert "swordfish" not in caught.value.explain()


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["a", "changed"], {}, "line 2 is not the one"),
        (["a"], {}, "1 lines that are not there"),
        (["a", "b"], {"system": "Be brief."}, "settings or the config"),
        (["a", "b"], {"settings": {"temperature": 1}}, "settings or the config"),
    ],
)
def test_other_lines_or_settings_are_refused_unless_it_begins_anew(
    app: AgentApplication, tmp_path: Path, lines: list[str], options: Any, message: str
) -> None:
    out = tmp_path / "out.jsonl"
    app.batch(["a", "b"], out=out).run()
    before = out.read_bytes()
    with pytest.raises(BatchError, match=message):
        app.batch(lines, out=out, **options).run()
    assert out.read_bytes() == before
    assert app.batch(lines, out=out, fresh=True, **options).run().resumed == 0


def test_one_batch_writes_to_a_file_at_a_time(app: AgentApplication, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with out.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BatchError, match="another batch"):
            app.batch(["a"], out=out).run()


def test_what_has_failed_is_asked_again_only_if_that_is_wanted(tmp_path: Path) -> None:
    def refuse(prompt: str, times: int) -> tuple[str, str] | None:
        return ("400 Bad Request", "") if prompt == "b" and times == 1 else None

    out = tmp_path / "out.jsonl"
    with repeating_server(refuse) as server:
        with server.open_application() as app:
            assert app.batch(["a", "b", "c"], out=out).run().failed == 1
            assert app.batch(["a", "b", "c"], out=out).run().resumed == 3
            assert app.batch(["a", "b", "c"], out=out, retry_failed=True).run().failed == 0
        assert server.asked == {"a": 1, "b": 2, "c": 1}
    assert [result["line"] for result in read_results(out)] == [1, 2, 3]


def test_results_are_put_in_order_at_the_end(app: AgentApplication, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    app.batch([f"p{n}" for n in range(40)], out=out, ordered=True, concurrency=8).run()
    assert [result["line"] for result in read_results(out)] == list(range(1, 41))


def begin(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "AGENT_HOST_HOME": str(folder / "home"), "PYTHONUTF8": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "agent_host", "batch", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_batch_that_is_killed_again_and_again_is_as_one_that_was_not(
    server: RepeatingServer, tmp_path: Path
) -> None:
    count, kills = (10_000, 20) if IS_LONG else (120, 2)
    server.describe_in(tmp_path)
    lines = ({"id": f"i{n}", "prompt": f"p{n}"} for n in range(count))
    file = write_lines(tmp_path / "in.jsonl", *lines)
    out, undisturbed = tmp_path / "out.jsonl", tmp_path / "undisturbed.jsonl"
    words = (file.name, "--config", "c.json", "--concurrency", "8", "--out")
    chance = random.Random(7)
    asked_before: dict[str, int] = {}
    for kill in range(kills):
        # Somewhere in the next part of the batch, never at the same place within it.
        part = count // (kills + 1)
        with begin(tmp_path, *words, out.name) as process:
            server.wait_until(kill * part + 1 + chance.randrange(part))
            process.send_signal(signal.SIGKILL)
        # What was finished before this process began was not asked for again.
        assert {prompt: server.asked[prompt] for prompt in asked_before} == asked_before
        whole = out.read_bytes().rpartition(b"\n")[0].splitlines()
        finished = [f"p{json.loads(line)['id'][1:]}" for line in whole]
        asked_before = {prompt: server.asked[prompt] for prompt in finished}
    with begin(tmp_path, *words, out.name) as process:
        assert process.wait() == 0, process.communicate()
    assert {prompt: server.asked[prompt] for prompt in asked_before} == asked_before
    with begin(tmp_path, *words, undisturbed.name) as process:
        assert process.wait() == 0, process.communicate()
    assert sorted(out.read_bytes().splitlines()) == sorted(undisturbed.read_bytes().splitlines())
    assert len(read_results(out)) == count


def test_an_interrupted_batch_says_how_to_go_on(tmp_path: Path) -> None:
    def refuse(prompt: str, times: int) -> tuple[str, str] | None:
        # Held up for longer than anybody waits here.
        return ("429 Too Many Requests", "Retry-After: 500\r\n") if prompt == "b" else None

    with repeating_server(refuse) as server:
        server.describe_in(tmp_path)
        write_lines(tmp_path / "in.jsonl", {"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"})
        words = ("in.jsonl", "--out", "out.jsonl", "--config", "c.json", "--concurrency", "1")
        with begin(tmp_path, *words) as process:
            server.wait_until(2)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
    assert process.returncode == 130
    done = len(read_results(tmp_path / "out.jsonl"))
    assert f"interrupted: {done} of 3 lines are done; the same command goes on" in said.decode()


# The command --------------------------------------------------------------------------------------


def test_the_command_reads_and_writes_standard_streams(
    server: RepeatingServer, tmp_path: Path
) -> None:
    server.describe_in(tmp_path)
    with begin(tmp_path, "-", "--config", "c.json") as process:
        out, said = process.communicate(b'{"prompt": "a"}\n{"prompt": 1}\n')
    assert process.returncode == 1
    assert {json.loads(line)["status"] for line in out.splitlines()} == {"succeeded", "failed"}
    assert b"line 2: prompt is 1" in said
    assert b"2 lines" in said


def test_the_command_tells_what_happens_as_events(server: RepeatingServer, tmp_path: Path) -> None:
    server.describe_in(tmp_path)
    write_lines(tmp_path / "in.jsonl", {"prompt": "a"})
    run = run_host(
        "batch", "in.jsonl", "--out", "o", "--config", "c.json", "--json",
        cwd=tmp_path, home=tmp_path / "home",
    )  # fmt: skip
    events = [json.loads(line) for line in run.out.splitlines()]
    assert [event["type"] for event in events] == ["batch_started", "batch_result", "done"]
    assert events[-1]["progress"]["done"] == 1
    assert run.code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["in.jsonl", "--json"], "--json and --out - exclude each other"),
        (["in.jsonl", "--out", "o", "--fresh", "--retry-failed"], "exclude each other"),
        (["missing.jsonl", "--out", "o"], "missing.jsonl cannot be read"),
        (["in.jsonl", "--out", "o", "--engine", "none"], "no plugin has a batch engine"),
        (["in.jsonl", "--out", "no/such/folder"], "cannot be written"),
    ],
)
def test_what_cannot_begin_says_why(tmp_path: Path, words: list[str], message: str) -> None:
    write_lines(tmp_path / "in.jsonl", {"prompt": "a"})
    run = run_host("batch", *words, cwd=tmp_path, home=tmp_path / "home")
    assert run.code in (1, 2)
    assert message in (run.err + run.out)
