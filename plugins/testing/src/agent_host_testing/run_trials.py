"""What runs must survive: processes that are killed while an agent works, and are resumed.

Run in a process of its own, as `store_trials` are: ``python -m agent_host_testing.run_trials runs
URL OPTIONS AMOUNT``. Every message that an event announced must be there, no call that must not be
repeated may run twice, and none whose result was announced may run again at all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hookspecs import ProviderPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin, accumulate_tool_calls, tool
from agent_host import AgentApplication
from agent_host_testing.store_trials import listen, say

__all__: list[str] = []

#: How many turns with calls a run has.
_TURNS = 6


class _Worker(AccumulatorStreamingMixin, ProviderPlugin):
    """A model that calls two tools in every turn, one that writes and one that reads."""

    name = "worker"

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config, "request": {}, "partial": None}

    def to_native_messages(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{"role": message["role"], "content": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Sequence[Any]) -> list[dict[str, Any]]:
        return [
            {
                "role": "assistant",
                "content": native.get("content") or "",
                "metadata": {"tool_calls": native["tool_calls"]}
                if native.get("tool_calls")
                else {},
            }
            for native in native_messages
        ]

    def stream_api(self, native_messages: list[Any]) -> Iterator[dict[str, Any]]:
        done = sum(native["role"] == "assistant" for native in native_messages)
        yield {"choices": [{"delta": {"content": f"turn {done} "}, "finish_reason": None}]}
        yield {"choices": [{"delta": {"content": "x" * 100}, "finish_reason": None}]}
        if done < _TURNS:
            for index, name in enumerate(("work", "look")):
                function = {"name": name, "arguments": json.dumps({"number": done})}
                call = {"index": index, "id": f"{name}-{done}", "function": function}
                yield {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": None}]}
        finish = "tool_calls" if done < _TURNS else "stop"
        yield {"choices": [{"delta": {}, "finish_reason": finish}]}

    def process_delta(self, delta: Any, accumulated: Any) -> Any:
        fragment, message = super().process_delta(delta, accumulated)
        patch, message = accumulate_tool_calls(delta, message)
        return ({**(fragment or {}), **patch} if patch else fragment), message


@dataclass(slots=True)
class _Run:
    """A run that processes work on one after the other, and what their events have said."""

    folder: Path
    id: str | None = None
    messages: dict[int, str] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)
    is_over: bool = False

    @property
    def diary(self) -> Path:
        return self.folder / "diary"

    def calls(self) -> Counter[str]:
        """How often each call has run."""
        text = self.diary.read_text("utf-8") if self.diary.exists() else ""
        return Counter(text.split())

    def make_tools(self) -> list[Any]:
        diary = self.diary

        def note(call: str) -> str:
            with diary.open("a", encoding="utf-8") as file:
                file.write(f"{call}\n")
            return f"{call} done"

        @tool(effect="write")
        def work(number: int) -> str:
            """Do what must not be done twice."""
            return note(f"work-{number}")

        @tool(effect="read")
        def look(number: int) -> str:
            """Do what may be done again."""
            return note(f"look-{number}")

        return [work, look]

    def carry_out(self, config: Mapping[str, Any], report: Callable[[str], None]) -> None:
        """What a process does until it is killed."""
        with AgentApplication(config, tools=self.make_tools()) as app:
            app.core.register_provider(_Worker)
            if self.id is not None and app.runs.find(self.id).state == "succeeded":
                # Whoever was here before was killed between the end and saying so.
                report("over")
                return
            stream = (
                app.stream("go", provider="worker")
                if self.id is None
                else app.resume_stream(self.id)
            )
            with stream:
                for event in stream:
                    if event["type"] == "request_started":
                        report(f"run {stream.run_id}")
                    elif event["type"] == "final":
                        place = len(event["session"].messages) - 1
                        report(f"message {place} {event['messages'][-1]['content'][:20]}")
                    elif event["type"] == "tool_result":
                        place = stream.session.count - 1
                        report(f"message {place} {event['message']['content']}")
                        report(f"result {event['id']}")
            report("over")

    def take_in(self, said: bytes) -> None:
        # The last line may have been cut off.
        for line in said.decode().split("\n")[:-1]:
            word, _, rest = line.partition(" ")
            assert word != "failed", rest.replace("\\n", "\n")
            if word == "run":
                self.id = rest
            elif word == "message":
                place, _, content = rest.partition(" ")
                self.messages[int(place)] = content
            elif word == "result":
                self.results.add(rest)
            elif word == "over":
                self.is_over = True


def _kill_runs(url: str, options: Mapping[str, Any], amount: int) -> str:
    chance = random.Random(os.getpid())
    config = {
        "store": url,
        "store_options": dict(options),
        "tools": {"effects": {"write": "allow"}},
    }
    # Once before the forks, so that processes find everything imported.
    with AgentApplication(config) as app:
        app.sessions.list()
    killed, resumed = 0, 0
    with tempfile.TemporaryDirectory() as name:
        runs = [_Run(Path(name))]
        first, whole = _measure(runs[0], config)
        while killed < amount:
            run = runs[-1]
            if run.is_over:
                run = _Run(Path(name) / str(len(runs)))
                run.folder.mkdir()
                runs.append(run)
            resumed += run.id is not None
            before, known = run.calls(), set(run.results)
            # At any moment from shortly before it begins to its end, which few will see.
            run.take_in(_kill_after(run, config, chance.uniform(0.7 * first, whole)))
            killed += not run.is_over
            _check_calls(run, before, known)
        if not runs[-1].is_over:
            runs[-1].take_in(_kill_after(runs[-1], config, None))
            assert runs[-1].is_over, "the last process did not come to its end"
        _check_runs(runs, config)
    return f"{killed} processes were killed, {resumed} resumed a run, {len(runs)} runs"


def _measure(run: _Run, config: Mapping[str, Any]) -> tuple[float, float]:
    """How long a process takes until it says something, and until its end."""
    begun = time.monotonic()
    reader, process = _fork_process(run, config)
    said = listen(reader, 1, None)
    first = time.monotonic() - begun
    run.take_in(said + listen(reader, sys.maxsize, None))
    os.waitpid(process, 0)
    os.close(reader)
    return first, time.monotonic() - begun


def _kill_after(run: _Run, config: Mapping[str, Any], seconds: float | None) -> bytes:
    """What a process says that carries out the run, until it is killed or ends."""
    reader, process = _fork_process(run, config)
    said = listen(reader, sys.maxsize, seconds)
    if seconds is not None:
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    said += listen(reader, sys.maxsize, None)
    os.close(reader)
    return said


def _fork_process(run: _Run, config: Mapping[str, Any]) -> tuple[int, int]:
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return reader, process
    os.close(reader)
    try:
        run.carry_out(config, lambda said: say(writer, said))
    except BaseException:  # Nothing is lost: the parent is told.
        say(writer, "failed " + traceback.format_exc().replace("\n", "\\n"))
    finally:
        os._exit(1)


def _check_calls(run: _Run, before: Counter[str], known: set[str]) -> None:
    calls = run.calls()
    for call, times in calls.items():
        assert times == 1 or call.startswith("look"), f"{call} ran {times} times"
        if call in known:
            assert times == before[call], f"{call} ran again though its result was announced"


def _check_runs(runs: list[_Run], config: Mapping[str, Any]) -> None:
    with AgentApplication(config) as app:
        unfinished = app.runs.list(states=("pending", "running"))
        assert not unfinished, f"{unfinished} are still at work"
        for run in runs:
            assert run.id is not None, "a run is over that never began"
            stored = app.runs.find(run.id)
            assert stored.state == "succeeded", stored
            messages = app.sessions.load(stored.session).messages
            for place, content in run.messages.items():
                assert messages[place]["content"].startswith(content), f"{place}: {content}"
            _check_history(messages)
            wanted = {f"{name}-{n}" for name in ("work", "look") for n in range(_TURNS)}
            assert wanted - _interrupted(messages) <= set(run.calls()) <= wanted, run.calls()


def _check_history(messages: Sequence[Mapping[str, Any]]) -> None:
    """Every call has one result, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["metadata"]["tool_call_id"])
            continue
        assert not waiting, f"{waiting} have no result"
        assert not message["metadata"].get("partial"), "a broken answer was left in the history"
        waiting = [call["id"] for call in message["metadata"].get("tool_calls") or ()]
    assert not waiting, f"{waiting} have no result"
    assert [message["role"] for message in messages].count("assistant") == _TURNS + 1


def _interrupted(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """The calls that were begun, and of which nobody knows how far they came."""
    return {
        message["metadata"]["tool_call_id"]
        for message in messages
        if message["role"] == "tool" and "interrupted" in message["content"]
    }


if __name__ == "__main__":
    _, _, _url, _options, _amount = sys.argv
    sys.stdout.write(f"{_kill_runs(_url, json.loads(_options), int(float(_amount)))}\n")
