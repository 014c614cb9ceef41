"""A key that a command prints or a file holds is got when needed, renewed, and never shown."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ConfigError
from agent_hookspecs.errors import AuthenticationError
from agent_hookspecs.logs import redact
from agent_host import AgentApplication
from agent_host.plugins.fresh_keys import FreshKeys
from agent_host.redaction import mask_config
from both_ways import BOTH_WAYS, hosted, sse, texts
from loopback import Peer, Request, serve
from openai_like import OpenAiLike

GOOD = sse(*texts("good"))


def counting_command(tmp_path: Path, shown: str = "f'key-number-{count}'") -> list[str]:
    """A command that prints another key each time it is run; ``count`` says how often it was."""
    counter = tmp_path / "count"
    code = (
        "import json, sys, time, pathlib\n"
        f"counter = pathlib.Path({str(counter)!r})\n"
        "count = len(counter.read_bytes()) + 1 if counter.exists() else 1\n"
        "counter.open('ab').write(b'x')\n"
        f"print({shown})\n"
    )
    return [sys.executable, "-c", code]


def runs(tmp_path: Path) -> int:
    counter = tmp_path / "count"
    return len(counter.read_bytes()) if counter.exists() else 0


def key_of(request: Request) -> str:
    return request.headers["authorization"].removeprefix("Bearer ")


def answer(peer: Peer, request: Request) -> None:
    peer.answer(GOOD)


def accepting(*accepted: str) -> Any:
    def play(peer: Peer, request: Request) -> None:
        if key_of(request) in accepted:
            peer.answer(GOOD)
        else:
            peer.answer(b'{"error": "no"}', status="401 Unauthorized")

    return play


def got(keys: FreshKeys, **config: Any) -> str:
    """The key as it is now, without a driver."""
    key = keys.of(config)
    assert key is not None
    steps = key.current()
    try:
        effect: Any = next(steps)
        while True:
            effect = steps.send(effect.function())
    except StopIteration as stop:
        return str(stop.value)


@BOTH_WAYS
def test_a_command_gives_the_key_of_several_requests(way: str, tmp_path: Path) -> None:
    command = counting_command(tmp_path)
    with serve(answer) as server, hosted(way) as host:
        for model in ("one", "two", "three"):
            outcome = host.stream(server.url, model=model, api_key_command=command).check()
            assert outcome.text == "good"
        assert {key_of(request) for request in server.requests} == {"key-number-1"}
    assert runs(tmp_path) == 1


@BOTH_WAYS
def test_a_refused_key_is_got_anew_once_and_that_is_told(way: str, tmp_path: Path) -> None:
    command = counting_command(tmp_path)
    with serve(accepting("key-number-2")) as server, hosted(way) as host:
        outcome = host.stream(server.url, api_key_command=command).check()
        assert outcome.text == "good"
        assert [key_of(each) for each in server.requests] == ["key-number-1", "key-number-2"]
        [warning] = outcome.of("warning")
        assert "trying again with another key" in warning["message"]
        # Whoever comes next begins with the one that was accepted.
        assert host.stream(server.url, api_key_command=command).of("warning") == []
    assert runs(tmp_path) == 2


@BOTH_WAYS
def test_a_second_refusal_is_the_error(way: str, tmp_path: Path) -> None:
    command = counting_command(tmp_path)
    with serve(accepting()) as server, hosted(way) as host:
        outcome = host.stream(server.url, api_key_command=command, retries=5).check()
        assert len(server.requests) == 2
    assert isinstance(outcome.error, AuthenticationError)
    assert runs(tmp_path) == 2


def test_a_refused_key_that_stays_the_same_is_not_tried_again(tmp_path: Path) -> None:
    command = counting_command(tmp_path, "'always-this-key'")
    with serve(accepting()) as server, hosted("sync") as host:
        outcome = host.stream(server.url, api_key_command=command).check()
        assert len(server.requests) == 1
    assert isinstance(outcome.error, AuthenticationError)
    assert runs(tmp_path) == 2


def test_a_key_in_the_config_is_never_got_anew() -> None:
    with serve(accepting()) as server, hosted("sync") as host:
        outcome = host.stream(server.url, api_key="given-key").check()
        assert len(server.requests) == 1
    assert isinstance(outcome.error, AuthenticationError)


@BOTH_WAYS
def test_a_file_is_read_again_when_it_has_changed(way: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first-key\n")
    with serve(answer) as server, hosted(way) as host:
        host.stream(server.url, api_key_file=str(file)).check()
        os.replace(_written(tmp_path / "next", "second-key"), file)
        host.stream(server.url, api_key_file=str(file)).check()
        assert [key_of(each) for each in server.requests] == ["first-key", "second-key"]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_says_when_it_ends_is_used_until_shortly_before(tmp_path: Path) -> None:
    for number, (expiry, count) in enumerate(
        [
            ("'expires_in': 3600", 1),
            ("'expires_in': 0", 2),
            ("'expires_on': int(time.time()) + 3600", 1),
            ("'expires_on': str(int(time.time()) - 5)", 2),
            ("'expires_at': '2999-01-01T00:00:00.123456789Z'", 1),
            ("'expires_at': '1999-01-01T00:00:00+02:00'", 2),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        shown = f"json.dumps({{'access_token': f'key-number-{{count}}', {expiry}}})"
        command = counting_command(folder, shown)
        keys = FreshKeys()
        assert got(keys, api_key_command=command) == "key-number-1"
        assert got(keys, api_key_command=command) == f"key-number-{count}", expiry


def test_a_lifetime_of_ones_own_holds_for_what_says_none(tmp_path: Path) -> None:
    command, keys = counting_command(tmp_path), FreshKeys()
    assert got(keys, api_key_command=command, api_key_seconds=1e-9) == "key-number-1"
    assert got(keys, api_key_command=command, api_key_seconds=1e-9) == "key-number-2"


def test_many_who_need_a_key_at_once_run_the_command_once(tmp_path: Path) -> None:
    command, keys = counting_command(tmp_path), FreshKeys()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(got(keys, api_key_command=command)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["key-number-1"] * 8


def test_a_text_is_split_into_words_and_no_shell_sees_it(tmp_path: Path) -> None:
    script = tmp_path / "print it.py"
    script.write_text("import sys\nprint(sys.argv[1].replace(' ', '-'))")
    command = f"{sys.executable} '{script}' '$HOME is; not `expanded`'"
    assert got(FreshKeys(), api_key_command=command) == "$HOME-is;-not-`expanded`"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.exit('log in again')", "failed with exit code 1: log in again"),
        ("print()", "gave nothing"),
        ("print('two words')", "gave several words"),
        ("print('{not json')", "gave something that begins like JSON and is none"),
        ("print('{\"name\": 1}')", "gave JSON without a key; it has name"),
        ('print(\'{"token": "abcdef", "expires_at": "soon"}\')', "gave expires_at as 'soon'"),
        ("print('x' * 100_000)", "printed 100001 bytes"),
    ],
)
def test_what_a_command_does_wrong_is_said_with_the_settings_name(code: str, says: str) -> None:
    with serve(answer) as server, hosted("sync") as host:
        outcome = host.stream(server.url, api_key_command=[sys.executable, "-c", code]).check()
        assert server.requests == []
    assert isinstance(outcome.error, ConfigError)
    assert outcome.error.key == "api_key_command"
    assert outcome.error.message.startswith("api_key_command `")
    assert says in outcome.error.message
    assert outcome.error.hint


def test_what_a_command_complains_about_is_shown_without_secrets() -> None:
    code = "import sys; sys.exit('bad api_key=abcdefghijklmnop for you')"
    with pytest.raises(ConfigError) as raised:
        got(FreshKeys(), api_key_command=[sys.executable, "-c", code])
    assert "abcdefghijklmnop" not in raised.value.message.partition("exit code")[2]
    assert "for you" in raised.value.message


def test_a_program_or_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(ConfigError, match=r"api_key_command `.*missing` cannot be run: No such"):
        got(FreshKeys(), api_key_command=[missing])
    with pytest.raises(ConfigError, match=r"api_key_file '.*missing' cannot be read: No such"):
        got(FreshKeys(), api_key_file=missing)


def test_a_command_that_waits_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "child"
    code = (
        "import subprocess, sys, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid))\n"
    )
    with pytest.raises(ConfigError, match="took longer than 2 s"):
        # The command itself ends, but what it has started holds on to its output.
        got(FreshKeys(patience=2), api_key_command=[sys.executable, "-c", code])
    child = int(note.read_text())
    end = time.monotonic() + 30
    while _is_running(child) and time.monotonic() < end:
        os.sched_yield()
    assert not _is_running(child)


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_an_event_loop_goes_on_while_a_command_runs(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = f"print(open({str(pipe)!r}).read())"

    async def read(stream: Any) -> list[Any]:
        return [event async for event in stream]

    async def talk(host: Any, url: str) -> None:
        config = host.config(url, {"api_key_command": [sys.executable, "-c", code]})
        stream = host.core.asend_request_stream(host.session, config)
        request = asyncio.ensure_future(read(stream))

        # The command waits for what only a loop that is not blocked can get to say.
        def say() -> None:
            with open(pipe, "w") as file:
                file.write("piped-key")

        await asyncio.sleep(0)
        await asyncio.to_thread(say)
        assert (await request)[-1]["type"] == "done"

    with serve(answer) as server, hosted("async") as host:
        host.run(talk(host, server.url))
        assert key_of(server.requests[0]) == "piped-key"


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"api_key": "k", "api_key_command": "c"}, "api_key_command"),
        ({"api_key_file": "f", "api_key_command": "c"}, "api_key_file"),
        ({"api_key_command": 3}, "api_key_command"),
        ({"api_key_command": "'"}, "api_key_command"),
        ({"api_key_command": " "}, "api_key_command"),
        ({"api_key_command": ["a", 1]}, "api_key_command"),
        ({"api_key_file": ["a"]}, "api_key_file"),
        ({"api_key_command": "c", "api_key_seconds": 0}, "api_key_seconds"),
        ({"api_key_command": "c", "api_key_seconds": "long"}, "api_key_seconds"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(config: dict[str, Any], key: str) -> None:
    with hosted("sync") as host:
        outcome = host.stream("http://127.0.0.1:9", **config).check()
    assert isinstance(outcome.error, ConfigError)
    assert outcome.error.key == key
    assert outcome.error.hint


def test_a_key_is_masked_wherever_it_appears_and_its_source_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    command = counting_command(tmp_path, "'hidden-value-of-a-key'")
    with (
        serve(
            lambda peer, request: peer.answer(b"hidden-value-of-a-key", status="400 No")
        ) as server,
        hosted("sync") as host,
    ):
        outcome = host.stream(server.url, api_key_command=command, debug_stream=True).check()
    assert "hidden-value" not in json.dumps(outcome.events)
    assert "hidden-value" not in caplog.text
    assert redact("hidden-value-of-a-key") == "[redacted]"
    shown = mask_config({"api_key_command": ["tool", "print"], "api_key_file": "~/key"})
    assert shown == {"api_key_command": ["tool", "print"], "api_key_file": "~/key"}


class Listing(OpenAiLike):
    """Has a list of models, which takes the key too."""

    name = "openai_like"

    def models_request(self, config: dict[str, Any]) -> dict[str, Any] | None:
        if config.get("model"):
            return None
        key = config.get("api_key", "none")
        return {
            "url": f"{config['base_url']}/models",
            "headers": {"authorization": f"Bearer {key}"},
        }

    def parse_models(self, body: Any) -> list[Any]:
        return list(body["data"])


def test_a_list_of_models_is_asked_for_with_the_key_too(tmp_path: Path) -> None:
    def play(peer: Peer, request: Request) -> None:
        if key_of(request) == "key-number-2":
            peer.answer(b'{"data": [{"id": "m1"}]}')
        else:
            peer.answer(b"{}", status="401 No")

    command = counting_command(tmp_path)
    with serve(play) as server, hosted("sync", providers=[Listing]) as host:
        config = host.config(server.url, {"api_key_command": command})
        assert host.core.get_models(config) == [{"id": "m1"}]
        assert [key_of(each) for each in server.requests] == ["key-number-1", "key-number-2"]


def test_no_command_runs_for_a_model_that_is_not_looked_up(tmp_path: Path) -> None:
    command = counting_command(tmp_path)
    with hosted("sync", providers=[Listing]) as host:
        host.core.resolution(
            host.config("http://127.0.0.1:9", {"model": "m", "api_key_command": command})
        )
    assert runs(tmp_path) == 0


def test_a_command_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))
    settings = {"provider": "echo", "api_key_file": str(tmp_path / "key")}
    with AgentApplication({"providers": {"main": settings}}) as app:
        config = app.request_config()
    assert "api_key" not in config
    assert config["api_key_file"] == settings["api_key_file"]
