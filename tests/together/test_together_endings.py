"""Every ending of the table happens as the table says, to a person and to a program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
from endings import ENDINGS, Ending
from stops import TOOL_BUNDLES, stop

from agent_hookspecs import errors
from agent_hookspecs.messages import Finish, Limit
from agent_host import AgentApplication
from agent_host.cli.app import EXIT_CODES
from agent_host_testing import (
    Call,
    Failure,
    FakeServer,
    Reply,
    Reset,
    Stall,
    Truncate,
    call,
    empty_body,
    html_page,
    rate_limited,
    say,
)
from agent_host_testing.faults import Fault
from agent_host_testing.script import Answer

TOOLS = """
from agent_hookspecs.authoring import tool, tools


@tool(effect="read")
def look() -> str:
    \"\"\"Look out of the window.\"\"\"
    return "a tree"


@tool(effect="read")
def fall() -> str:
    \"\"\"Fail.\"\"\"
    raise RuntimeError("out of order")


@tool(effect="write")
def push(metres: int) -> str:
    \"\"\"Push something.\"\"\"
    return "pushed"


Plugin = tools(look, fall, push, name="window")
"""

RAISING = """
from agent_hookspecs import FeaturePlugin


class Plugin(FeaturePlugin):
    name = "raising"

    def init(self, config, state):
        raise ValueError("of its own")
"""

HALF = "Half an answer"


@dataclass(frozen=True)
class Scene:
    """How an ending is brought about: what the server does, and what is configured."""

    answers: Sequence[Answer] = ()
    fault: Fault | None = None
    stop: str = "custom"
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[str] = ("window",)
    prompt: str = "Well?"
    #: Whether nobody listens at the address.
    deserted: bool = False


def failing(kind: Any, **settings: Any) -> Scene:
    return Scene([Failure(kind)], settings=settings)


LOOK = [call("look")]
SAW = say("I see.")


def beyond_budget(limit: str) -> Scene:
    """A request that would cost more than there is, which is counted in a store."""
    config = {"tools": {limit: 0.01}, "prices": {"*/*": {"input": 10_000, "output": 0}}}
    return Scene([say("Yes.")], config={**config, "store": ":memory:"})


SCENES: dict[str, Scene] = {
    "the answer is whole": Scene([say("Yes.")]),
    "there was no room for the rest": Scene([say("Half an", finish="length")]),
    "the model declines": Scene([say("I would rather not.", finish="refusal")], stop="openai-chat"),
    "the provider withholds the rest": Scene([say("Half an", finish="blocked")]),
    "the answer is empty": Scene([Reply()]),
    "the provider pauses, and is asked to go on": Scene(
        [say("One.", finish="pause"), say("Two.")], stop="anthropic"
    ),
    "a try fails, and the next succeeds": Scene(
        [rate_limited(seconds=0.01), say("Yes.")], settings={"retries": 1}
    ),
    "the most turns (`max_turns`)": Scene(LOOK, config={"tools": {"max_turns": 1}}),
    "the most tool calls (`max_tool_calls`)": Scene(LOOK, config={"tools": {"max_tool_calls": 1}}),
    "the most tokens (`max_tokens`)": Scene(LOOK, config={"tools": {"max_tokens": 1}}),
    "the longest time (`max_seconds`)": Scene(LOOK, config={"tools": {"max_seconds": 0}}),
    "the budget of the run (`max_cost`)": beyond_budget("max_cost"),
    "the budget of the session (`max_session_cost`)": beyond_budget("max_session_cost"),
    "the budget of the account for the day (`max_key_cost`)": beyond_budget("max_key_cost"),
    "the budget of the day (`max_day_cost`)": beyond_budget("max_day_cost"),
    "a tool is used": Scene([*LOOK, say("A tree.")]),
    "a tool fails": Scene([call("fall"), SAW]),
    "a call is denied": Scene([call("push", {"metres": 1}), SAW]),
    "a call has arguments that do not fit": Scene([call("push", {"metres": "far"}), SAW]),
    "a tool is called that is not there": Scene([call("pull"), SAW]),
    "the key is wrong": failing("authentication"),
    "the request is refused": failing("invalid_request"),
    "there is no such model": failing("model_not_found"),
    "the conversation is too long": failing("context_length"),
    "too many requests, also after the retries": Scene(
        [rate_limited(seconds=0.01), rate_limited(seconds=0.01)], settings={"retries": 1}
    ),
    "the provider is busy": failing("overloaded"),
    "the provider fails": failing("server"),
    "the provider fails in the middle": Scene(
        [say("Half an", fragments=1, failure=Failure("server"))]
    ),
    "the provider withholds everything": Scene([Reply(finish="blocked")], stop="google"),
    "the provider gives up on a call": Scene(
        [Reply((Call("look"),), finish="malformed_call")], stop="google"
    ),
    "nobody listens there": Scene(deserted=True),
    "the answer does not come in time": Scene(
        [say("Yes.")], Stall(head=False), settings={"timeout": {"first_byte": 0.2}}
    ),
    "the answer is cut": Scene([say("Half an answer", fragments=2)], Truncate(-60)),
    "the connection is reset": Scene([say("Yes.")], Reset()),
    "the body is empty": Scene([empty_body()]),
    "a web page answers": Scene([html_page()]),
    "the answer is too large": Scene([say("word " * 100)], settings={"max_answer_bytes": 500}),
    "the config is wrong": Scene(config={"agents": {"default": {"sytem": "Be brief."}}}),
    "a key is missing": Scene(stop="openai-chat", settings={"api_key": ""}),
    "there is no such provider": Scene(settings={"provider": "nobody"}),
    "a plugin raises": Scene(sources=["raising"]),
    "the command line is wrong": Scene(prompt=""),
    "it is interrupted": Scene([say(HALF, fragments=2)], Stall(-60)),
    "whoever reads the output has seen enough": Scene([say(f"{HALF} " * 20_000, fragments=2_000)]),
    "a fault of agent-host itself": Scene([say("Yes.")]),
}

#: Faults of packages that end no run: they are set aside, refused at start-up, or told a model.
_NO_ENDINGS = {
    "AgentError": "the root of all",
    "BindingError": "a plugin that is set aside",
    "CollisionError": "plugins that are set aside",
    "ContractError": "a plugin that is set aside",
    "DescriptorError": "a package that is set aside",
    "GatingError": "plugins that contradict each other, as a ConfigError would be",
    "HookResultError": "as a HookError",
    "IncompatibleError": "a package that is set aside",
    "LoadError": "a plugin that is set aside",
    "OrderingError": "plugins that contradict each other, as a ConfigError would be",
    "PluginError": "the root of those of plugins",
    "ProviderError": "the root of those of providers",
    "ResolutionError": "the root of those of stacks",
    "SessionError": "a session that cannot be read, before there is a run",
    "SourceError": "a package that is set aside",
    "ToolArgumentsError": "a result that the model reads",
    "ToolRetry": "a result that the model reads",
    "ToolError": "a result that the model reads",
    "TransportError": "the root of those of the wire",
    "UnknownPluginError": "as a ConfigError",
    "UnknownToolError": "a result that the model reads",
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written once, because a process imports a package from one place only."""
    folder = tmp_path_factory.mktemp("packages")
    tools = {"look": "read", "fall": "read", "push": "write"}
    for name, role, source, more in (
        ("window", "tool", TOOLS, {"tools": tools}),
        ("raising", "feature", RAISING, {}),
    ):
        package = folder / name / f"ending_{name}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("", encoding="utf-8")
        (package / "plugin.py").write_text(source, encoding="utf-8")
        entry = {"entry": f"ending_{name}.plugin:Plugin", "role": role, "name": name, **more}
        descriptor = {"api": ">=1,<2", "entries": [entry]}
        (package / "agent_plugin.json").write_text(json.dumps(descriptor), encoding="utf-8")
    return folder


@contextmanager
def staged(scene: Scene, packages: Path, folder: Path) -> Iterator[Path]:
    """The config file of a scene, while its server is there."""
    place = stop(scene.stop)
    with place.serve() as server:
        server.queue(*scene.answers[:1], fault=scene.fault)
        server.queue(*scene.answers[1:])
        settings = place.config(server, model=place.bare)
        settings = {k: v for k, v in settings.items() if k not in place.settings}
        settings |= {"timeout": 20, **scene.settings}
        if scene.deserted:
            settings["base_url"] = closed_address()
        config = {
            "plugins": [f"path:{packages / name}" for name in scene.sources],
            "denied_plugins": [*TOOL_BUNDLES, "context"],
            "providers": {"main": settings},
            "agents": {"default": {"provider": "main"}},
            **scene.config,
        }
        tools = {"effects": {"read": "allow"}, **config.pop("tools", {})}
        tools["rules"] = [{"tool": name, "decision": "allow"} for name in ("look", "fall")]
        if "window" in scene.sources:
            config["tools"] = tools
        file = folder / "agent-host.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        yield file


def closed_address() -> str:
    server = FakeServer("openai.chat")
    with server:
        return server.base_url


def pattern(text: str) -> re.Pattern[str]:
    """The words of the table, in which dots stand for any text of a line."""
    return re.compile(
        "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", text))
    )


def environment(folder: Path) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("AGENT_HOST_") and not key.endswith("_API_KEY")
    }
    return {
        **kept,
        "AGENT_HOST_HOME": str(folder / "home"),
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
    }


FAULTY = """
import sys
from agent_host import application, cli

class Faulty(application.AgentApplication):
    def stream(self, prompt, **options):
        raise ZeroDivisionError("of our own")

application.AgentApplication = Faulty
sys.exit(cli.main(sys.argv[1:]))
"""


def seen_by_a_person(
    ending: Ending, scene: Scene, file: Path, folder: Path
) -> tuple[str, str, int]:
    """Standard output, standard error and the exit code of a command."""
    program = ["-c", FAULTY] if ending.code == 70 else ["-m", "agent_host"]
    command = [sys.executable, *program, "run", "--config", str(file), scene.prompt]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(folder),
    )
    with process:
        try:
            out = b""
            if ending.part == "people" and ending.out:
                assert process.stdout is not None
                assert process.stderr is not None
                out = process.stdout.read(len("Half"))
                if ending.code == 130:
                    process.send_signal(signal.SIGINT)
                else:
                    process.stdout.close()
                    return out.decode(), process.stderr.read().decode(), process.wait(60)
            rest, err = process.communicate(timeout=60)
            return (out + rest).decode(), err.decode(), process.returncode
        finally:
            process.kill()


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda each: each.name)
def test_a_person_sees_how_a_run_ends(ending: Ending, packages: Path, tmp_path: Path) -> None:
    scene = SCENES[ending.name]
    with staged(scene, packages, tmp_path) as file:
        out, err, code = seen_by_a_person(ending, scene, file, tmp_path)
    assert code == ending.code, err
    assert pattern(ending.out).fullmatch(out.removesuffix("\n")), out
    assert pattern(ending.err).fullmatch(err.removesuffix("\n")), err


@pytest.mark.parametrize(
    "ending", [each for each in ENDINGS if each.gets != "–"], ids=lambda each: each.name
)
def test_a_program_gets_how_a_run_ends(
    ending: Ending, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SCENES[ending.name]
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    with staged(scene, packages, tmp_path) as file, AgentApplication(file) as app:
        if ending.gets == "cancelled":
            with app.stream(scene.prompt) as stream:
                next(event for event in stream if event["type"] == "partial")
            assert stream.state == "cancelled"
            assert stream.session.messages[-1]["metadata"] == {"partial": True}
        elif ending.raises:
            with pytest.raises(errors.AgentError) as caught:
                app.run(scene.prompt)
            assert type(caught.value).__name__ == ending.gets
        else:
            answer = app.run(scene.prompt)
            assert answer.finish == ending.gets
            assert (answer.limit is not None) == (ending.gets == "limit")


#: What is refused before there is a stream has no events.
_HAS_EVENTS = [
    each
    for each in ENDINGS
    if each.part not in ("before", "people") or each.name in ("a key is missing", "a plugin raises")
]


@pytest.mark.parametrize("ending", _HAS_EVENTS, ids=lambda each: each.name)
def test_the_last_event_says_how_a_run_ends(
    ending: Ending, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SCENES[ending.name]
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    events: list[Any] = []
    with staged(scene, packages, tmp_path) as file, AgentApplication(file) as app:
        with (
            pytest.raises(errors.AgentError) if ending.raises else nullcontext(),
            app.stream(scene.prompt) as stream,
        ):
            events.extend(stream)
        assert stream.state == ("failed" if ending.raises else "succeeded")
    last = events[-1]
    if ending.raises:
        assert (last["type"], last["error"]["type"]) == ("error", ending.gets)
    else:
        assert (last["type"], last["finish"]) == ("done", ending.gets)


def test_the_table_has_every_ending() -> None:
    assert [ending.name for ending in ENDINGS] == [*SCENES]
    gets = {ending.gets for ending in ENDINGS}
    # A paused answer goes on, calls are run, and an error is raised.
    assert gets >= {*get_args(Finish)} - {"pause", "tool_calls", "error"}
    assert gets >= {*errors.__all__} - _NO_ENDINGS.keys()
    assert not gets & _NO_ENDINGS.keys()
    assert {ending.code for ending in ENDINGS} == EXIT_CODES.keys()
    limits = [ending.name for ending in ENDINGS if ending.gets == "limit"]
    assert all(any(f"`{limit}`" in name for name in limits) for limit in get_args(Limit))
