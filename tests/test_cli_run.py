"""`agent-host run` in a process of its own: what goes where, what scripts get, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from making import full, write_package

SLOW = """
import threading
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "slow"

    def init(self, config):
        return {"config": config, "request": {}, "partial": None}

    def stream_api(self, native_messages, state):
        yield {"text": "A beginning"}
        threading.Event().wait(60)

    def process_chunk(self, native_chunk, native_messages, state, event):
        return [{"role": "assistant", "content": native_chunk["text"]}], [], native_messages, state
"""

TOOLS = """
from agent_hookspecs.authoring import tool, tools


@tool(effect="write")
def save(text: str) -> str:
    \"\"\"Save a text.\"\"\"
    return "saved " + text


@tool(effect="execute")
def explode() -> str:
    \"\"\"Fail.\"\"\"
    raise RuntimeError("out of order")


Plugin = tools(save, explode, name="workbench")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a config in it that has a slow provider and two tools."""
    write_package(
        tmp_path / "slow", "slow_pkg", descriptor=full("slow_pkg", "provider", "slow"), source=SLOW
    )
    described = full(
        "bench_pkg", "tool", "workbench", tools={"save": "write", "explode": "execute"}
    )
    write_package(tmp_path / "tools", "bench_pkg", descriptor=described, source=TOOLS)
    sources, allowed = ["path:slow", "path:tools"], ["echo", "slow_pkg", "bench_pkg"]
    config = {"plugins": sources, "allowed_plugins": allowed}
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def environment(place: Path, *, debug: bool = False) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_HOST_", "NO_COLOR"))}
    return {
        **kept,
        "AGENT_HOST_HOME": str(place / "home"),
        "PYTHONUTF8": "1",
        **({"AGENT_HOST_DEBUG": "1"} if debug else {}),
    }


def run(
    place: Path,
    *arguments: str,
    stdin: bytes | None = None,
    provider: str | None = "echo",
    debug: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    named = ["--provider", provider] if provider and "--provider" not in arguments else []
    return subprocess.run(
        [sys.executable, "-m", "agent_host", "run", *named, *arguments],
        capture_output=True,
        cwd=place,
        env=environment(place, debug=debug),
        stdin=subprocess.DEVNULL if stdin is None else None,
        input=stdin,
        timeout=60,
        check=False,
    )


def lines(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


CALL = '/call save {"text": "x"}'


def test_only_the_answer_is_on_standard_output(place: Path) -> None:
    prompt = f"/think Hm.\nAnd now:\n{CALL}"
    done = run(place, "--config", "c.json", "--yes", prompt)
    assert done.returncode == 0
    assert done.stdout.decode() == "save returned: saved x\n"
    assert done.stderr.decode() == 'Hm.\nAnd now:\n→ save(text="x")\n← save: saved x\n'


@pytest.mark.parametrize(
    ("arguments", "stdin", "answer"),
    [
        (["Hello there"], None, "Hello there\n"),
        ([], b"from a pipe\n", "from a pipe\n"),
        (["-"], b"from a pipe\r\n", "from a pipe\n"),
        ([], b"not \xff UTF-8", "not � UTF-8\n"),
        (["--model", "echo-1", "/think no\nyes"], None, "yes\n"),
        (["--set", "reasoning=false", "/think no\nyes"], None, "yes\n"),
    ],
)
def test_a_prompt_comes_from_the_command_line_or_a_pipe(
    place: Path, arguments: list[str], stdin: bytes | None, answer: str
) -> None:
    done = run(place, *arguments, stdin=stdin)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, answer, b"")


@pytest.mark.parametrize(
    ("arguments", "stdin", "prompt"),
    [
        (["Sum this up:"], b"one\ntwo\n", "Sum this up:\n\n<input>\none\ntwo\n</input>\n"),
        (["Sum this up:"], b" \n", "Sum this up:\n"),
        (["-"], b"one\ntwo\n", "one\ntwo\n"),
        ([], b"one\ntwo\n", "one\ntwo\n"),
    ],
)
def test_what_is_piped_in_stands_below_the_prompt(
    place: Path, arguments: list[str], stdin: bytes, prompt: str
) -> None:
    done = run(place, *arguments, stdin=stdin)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, prompt, b"")


def test_input_that_does_not_come_is_said_to_be_waited_for(place: Path) -> None:
    with running(place, "--provider", "echo", "Hello", stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"waiting for standard input" in process.stderr.readline()
        out, _ = process.communicate(timeout=30)
    assert out == b"Hello\n"


def test_who_answers_is_said_where_nobody_is_named_and_nobody_has_a_key(place: Path) -> None:
    done = run(place, "--config", "c.json", "--model", "gpt-5", "Hello", provider=None)
    assert (done.returncode, done.stdout) == (0, b"Hello\n")
    (said,) = done.stderr.decode().splitlines()
    assert said.startswith("warning: no provider is named and none has a key, so 'echo' answers")
    assert "run agent-host keys set PROVIDER" in said


def test_a_setting_that_nobody_knows_is_told_with_what_was_meant(place: Path) -> None:
    done = run(place, "--set", "reasonin=true", "--set", "temperature=1", "Hello")
    assert (done.returncode, done.stdout) == (0, b"Hello\n")
    assert done.stderr.decode().splitlines() == [
        "warning: the setting 'reasonin' is ignored: no plugin knows it; did you mean 'reasoning'?",
        "warning: 'temperature' is set, but echo has no use for it with the model 'echo-reasoner'; "
        "it was not sent",
    ]


RAISING = """
from agent_hookspecs import FeaturePlugin
from agent_hookspecs.errors import ConfigError


class Plugin(FeaturePlugin):
    name = "raising"

    def init(self, config, state):
        raise %s
"""


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "raised", ["ValueError('of its own')", "ConfigError('of its own', hint='a way out')"]
)
def test_a_traceback_of_what_a_plugin_raised_is_shown_if_that_is_wanted(
    place: Path, monkeypatch: pytest.MonkeyPatch, raised: str, as_json: bool
) -> None:
    described = full("raising_pkg", "feature", "raising")
    write_package(place / "raising", "raising_pkg", descriptor=described, source=RAISING % raised)
    (place / "c.json").write_text(json.dumps({"plugins": ["path:raising"]}), encoding="utf-8")
    options = ["--config", "c.json", *(["--json"] if as_json else []), "Hello"]
    quiet = run(place, *options)
    assert (quiet.returncode, b"Traceback" in quiet.stderr) == (1, False)
    loud = run(place, *options, debug=True).stderr.decode()
    assert 'plugin.py", line 10, in init' in loud
    assert "of its own" in loud
    if not as_json:
        assert loud.count("hint:") == quiet.stderr.decode().count("hint:")


def test_a_traceback_of_a_tool_that_failed_is_shown_if_that_is_wanted(place: Path) -> None:
    done = run(place, "--config", "c.json", "--yes", "/call explode", debug=True)
    assert re.search(r'plugin.py", line \d+, in explode\n', done.stderr.decode())
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "error", "hint"),
    [
        ([""], 2, "the prompt is empty", ""),
        ([" \n"], 2, "the prompt is empty", ""),
        ([], 2, "the prompt is empty", ""),
        (["--yes", "--deny", "x"], 2, "--yes and --deny exclude each other", ""),
        (["--tools", "a", "--no-tools", "x"], 2, "--tools and --no-tools exclude", ""),
        (["--set", "nonsense", "x"], 2, "write it as KEY=VALUE", ""),
        (["--provider", "ecko", "x"], 1, "there is no provider 'ecko'", "did you mean 'echo'?"),
        (["--agent", "nobody", "x"], 1, "there is no agent 'nobody'", "there are none"),
        (["--config", "missing.json", "x"], 1, "missing.json cannot be read", "check its path"),
        (["/fail auth Wrong key"], 1, "Wrong key", "take the /fail line out"),
        (["Half an answer\n/fail server Broken"], 1, "Broken", ""),
    ],
)
def test_what_goes_wrong_is_said_with_a_hint_and_an_exit_code(
    place: Path, arguments: list[str], code: int, error: str, hint: str
) -> None:
    done = run(place, *arguments)
    said = done.stderr.decode()
    assert done.returncode == code
    assert said.startswith("error: ")
    assert error in said
    assert hint in said
    assert "Traceback" not in said
    assert done.stdout in (b"", b"Half an answer\n")


def test_json_is_one_event_a_line(place: Path) -> None:
    done = run(place, "--config", "c.json", "--json", "--yes", f"Ä\n{CALL}")
    events = lines(done)
    assert done.stdout.isascii()
    assert (done.returncode, done.stderr) == (0, b"")
    assert [e["type"] for e in events if e["type"] not in ("partial", "tool_call_delta")] == [
        "request_started",
        "tool_call_started",
        "tool_call",
        "usage",
        "final",
        "approval_required",
        "tool_started",
        "tool_result",
        "turn_end",
        "request_started",
        "usage",
        "final",
        "turn_end",
        "done",
    ]
    finals = [event for event in events if event["type"] == "final"]
    assert finals[-1]["session"]["messages"][-1]["content"] == "save returned: saved x"


@pytest.mark.parametrize(
    ("arguments", "kind", "count"),
    [
        (["x\n/fail rate_limit Slow down"], "RateLimitError", 3),
        (["--agent", "nobody", "x"], "ConfigError", 1),
        (["--config", "missing.json", "x"], "ConfigError", 1),
    ],
)
def test_under_json_the_last_line_is_the_error(
    place: Path, arguments: list[str], kind: str, count: int
) -> None:
    done = run(place, "--json", *arguments)
    events = lines(done)
    assert (done.returncode, done.stderr) == (1, b"")
    assert len(events) == count
    assert [event["type"] == "error" for event in events] == [*[False] * (count - 1), True]
    assert events[-1]["error"]["type"] == kind


@pytest.mark.parametrize(
    ("options", "result"),
    [
        (["--yes"], "saved x"),
        (["--deny"], "Tool call denied: effect write, and nobody can be asked."),
        ([], "Tool call denied: effect write, and nobody can be asked."),
        (["--tools", "s*", "--yes"], "saved x"),
    ],
)
def test_calls_are_denied_where_nobody_can_be_asked(
    place: Path, options: list[str], result: str
) -> None:
    done = run(place, "--config", "c.json", *options, CALL)
    assert (done.returncode, done.stdout.decode()) == (0, f"save returned: {result}\n")


@pytest.mark.parametrize("options", [["--no-tools"], ["--tools", "other*"]])
def test_tools_that_are_not_wanted_are_not_offered(place: Path, options: list[str]) -> None:
    done = run(place, "--config", "c.json", "--yes", *options, CALL)
    assert done.stdout.decode() == "Cannot call save: no tool is on offer.\n"


def test_a_tool_that_fails_is_a_short_line_and_the_run_goes_on(place: Path) -> None:
    done = run(place, "--config", "c.json", "--yes", "/call explode")
    assert done.returncode == 0
    assert "← explode: Tool 'explode' failed: RuntimeError: out of order" in done.stderr.decode()


def test_a_limit_is_named(place: Path) -> None:
    config = {"plugins": ["path:tools"], "tools": {"max_turns": 1}}
    (place / "short.json").write_text(json.dumps(config), encoding="utf-8")
    done = run(place, "--config", "short.json", "--yes", CALL)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode().endswith("stopped: max_turns was reached\n")


@pytest.mark.parametrize(
    ("prompt", "code", "stdout", "stderr"),
    [
        ("/refuse I would rather not.", 3, "", "refused: I would rather not.\n"),
        (
            "half\n/end length",
            3,
            "half\n",
            "cut off: there was no room for the rest of the answer\n",
        ),
        (
            "half\n/end content_filter",
            3,
            "half\n",
            "blocked: the provider withheld the rest of the answer (content_filter)\n",
        ),
        ("half\n/end pause", 0, "half\nhalf\n", ""),
    ],
)
def test_an_answer_that_is_not_whole_is_told_from_one_that_is(
    place: Path, prompt: str, code: int, stdout: str, stderr: str
) -> None:
    done = run(place, prompt)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (code, stdout, stderr)
    *_, last = run(place, "--json", prompt).stdout.splitlines()
    assert run(place, "--json", prompt).returncode == code
    assert (json.loads(last)["finish"] == "stop") is (code == 0)


def test_the_text_of_a_model_cannot_move_the_cursor(place: Path) -> None:
    done = run(place, "red \x1b[31m bell \x07 \u202e tab\tend")
    assert done.stdout.decode() == "red ␛[31m bell ␇ <U+202E> tab\tend\n"


def test_an_untrusted_folder_is_refused_until_it_is_trusted(place: Path) -> None:
    (place / "c.json").rename(place / "agent-host.json")
    refused = run(place, "--yes", CALL)
    assert refused.returncode == 1
    assert "its folder is not trusted" in refused.stderr.decode()
    assert "agent-host config trust" in refused.stderr.decode()
    subprocess.run(
        [sys.executable, "-m", "agent_host", "config", "trust"],
        cwd=place,
        env=environment(place),
        check=True,
        capture_output=True,
    )
    assert run(place, "--yes", CALL).stdout == b"save returned: saved x\n"


@contextmanager
def running(
    place: Path, *arguments: str, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_host", "run", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        env=environment(place),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_an_interrupt_ends_a_run_at_the_start_of_a_line(place: Path) -> None:
    with running(place, "--config", "c.json", "--provider", "slow", "--no-tools", "x") as process:
        assert process.stdout is not None
        begun = process.stdout.read(len("A beginning"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (begun + out).decode() == "A beginning\n"
    assert err.decode() == "interrupted\n"


def test_a_reader_that_has_seen_enough_is_no_error(place: Path) -> None:
    with running(place, "--provider", "echo", "/repeat 99999 many words") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(4) == b"many"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


# --trace-hooks ------------------------------------------------------------------------------------

KEYED = """
from agent_hookspecs import ProviderExtensionPlugin


class Plugin(ProviderExtensionPlugin):
    name = "keyed"

    def is_enabled(self, config):
        return True

    def init(self, config, state):
        return {**state, "config": {**state["config"], "pass_phrase": "brought-along-later"}}
"""


def traced_calls(text: str) -> list[str]:
    """The calls whose beginning is in a trace, as ``role: hook``."""
    lines = [line for line in text.splitlines() if line.endswith(" [hook]")]
    return [line.removesuffix(" [hook]") for line in lines if ": finish " not in line]


def test_the_trace_has_every_hook_call_and_leaves_the_answer_alone(place: Path) -> None:
    done = run(place, "--config", "c.json", "--yes", "--trace-hooks", CALL)
    assert (done.returncode, done.stdout.decode()) == (0, "save returned: saved x\n")
    said = done.stderr.decode()
    calls = traced_calls(said)
    wanted = ["provider: init", "provider: stream_api", "provider: finalize", "tool: execute_tool"]
    assert [call for call in calls if call in wanted] == [
        *wanted,
        *("provider: init", "provider: stream_api", "provider: finalize"),
    ]
    assert calls[-1] == "tool: close"
    assert not [call for call in calls if "process_chunk" in call or "observe_event" in call]
    # Before the event that a call has led to.
    assert said.index("tool: finish execute_tool") < said.index("← save: saved x")


def test_under_json_the_trace_is_on_standard_error(place: Path) -> None:
    done = run(place, "--config", "c.json", "--json", "--trace-hooks", "Hello")
    assert done.returncode == 0
    assert lines(done)[-1]["type"] == "done"
    assert "provider: finalize" in traced_calls(done.stderr.decode())


def test_a_run_that_fails_has_its_trace_too(place: Path) -> None:
    done = run(place, "--trace-hooks", "/fail auth Wrong key")
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "provider: stream_api" in traced_calls(said)
    assert said.index("provider: stream_api") < said.index("error: ")


def test_no_secret_and_no_control_character_is_in_the_trace(place: Path) -> None:
    secret = {"type": "string", "required": False, "secret": True}
    described = full(
        "keyed_pkg",
        "extension",
        "keyed",
        dynamic=["is_enabled"],
        config_schema={"door_code": secret, "pass_phrase": secret},
    )
    write_package(place / "keyed", "keyed_pkg", descriptor=described, source=KEYED)
    config = {"plugins": ["path:keyed"], "allowed_plugins": ["echo", "keyed_pkg"]}
    (place / "keyed.json").write_text(json.dumps(config), encoding="utf-8")
    options = ["--set", "door_code=under-the-mat", "--set", "api_key=hidden-api-key"]
    done = run(place, "--config", "keyed.json", "--trace-hooks", *options, "red \x1b[31m \x07")
    said = done.stderr.decode()
    assert done.returncode == 0
    assert "extension: is_enabled" in traced_calls(said)
    for value in ("under-the-mat", "hidden-api-key", "brought-along-later"):
        assert value not in said
    assert "'door_code': '[redacted]'" in said
    assert said.replace("\n", "").isprintable()


def test_a_long_line_of_the_trace_is_cut_and_says_so(place: Path) -> None:
    done = run(place, "--trace-hooks", "word " * 1000)
    long = [line for line in done.stderr.decode().splitlines() if len(line) > 200]
    assert long
    for line in long:
        shown, _, more = line.rpartition("… (")
        assert len(shown) == 200
        assert int(more.removesuffix(" more characters)")) > 0


def test_the_help_has_an_example_of_the_trace(place: Path) -> None:
    assert (
        "agent-host run --trace-hooks 'Hello' 2> trace.txt" in run(place, "--help").stdout.decode()
    )


FINISHING = """
from agent_hookspecs import FeaturePlugin


class Finishing(FeaturePlugin):
    name = "finishing"

    def finalize(self, final_messages, native_messages, state):
        final = final_messages[-1]
        final["content"] = CHANGED.format(final["content"])
        return final_messages, native_messages, state
"""


@pytest.mark.parametrize(
    ("changed", "out", "words"),
    [
        ("{}", "Hello\n", ""),
        ("{}, and more", "Hello, and more\n", ""),
        ("better: {}", "Hello\nbetter: Hello\n", "changed when it was finished"),
        ("", "Hello\n", "taken back when it was finished"),
    ],
)
def test_what_is_made_of_an_answer_when_it_is_finished_is_shown(
    place: Path, changed: str, out: str, words: str
) -> None:
    source = FINISHING.replace("CHANGED", repr(changed))
    (place / "finishing.py").write_text(source, encoding="utf-8")
    config = {"plugins": ["path:finishing.py"]}
    (place / "f.json").write_text(json.dumps(config), encoding="utf-8")
    done = run(place, "--config", "f.json", "--provider", "echo", "--no-tools", "Hello")
    assert (done.returncode, done.stdout.decode()) == (0, out)
    assert words in done.stderr.decode()
    assert bool(words) == ("when it was finished" in done.stderr.decode())


LATE = """
from agent_host.cli.screen import Screen

screen = Screen()
screen.show({"type": "partial", "message": {"role": "assistant", "content": "An answer"}})
screen.show({"type": "warning", "message": "too late", "plugin": None})
screen.end_line()
"""


def test_a_late_warning_begins_a_line_of_its_own_where_both_streams_are_one() -> None:
    apart = subprocess.run([sys.executable, "-c", LATE], capture_output=True, check=True)
    assert (apart.stdout, apart.stderr) == (b"An answer\n", b"warning: too late\n")
    one: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    together = subprocess.run([sys.executable, "-c", LATE], check=True, **one)
    assert together.stdout == b"An answer\nwarning: too late\n"


def test_a_budget_ends_a_run_before_the_request_that_would_pass_it(place: Path) -> None:
    file = place / "c.json"
    prices = {"echo/*": {"input": 0, "output": 1_000_000}}
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "prices": prices}), "utf-8")
    within = run(place, "--config", "c.json", "--budget", "2", "--usage", "one")
    assert (within.returncode, within.stdout) == (0, b"one\n")
    assert b"$1.0000" in within.stderr
    calls = run(place, "--config", "c.json", "--budget", "2", "--yes", CALL)
    assert calls.returncode == 3
    assert "max_cost is $2, and $" in calls.stderr.decode()
    assert "stopped: max_cost was reached" in calls.stderr.decode()
