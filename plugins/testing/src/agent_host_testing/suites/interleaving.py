"""Checks that requests of one core know nothing of each other, however they run."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from agent_host.sessions.session import Session
from agent_host_testing.script import Call, Part, Reply, Text, Thought
from agent_host_testing.suites.beside import places_with, run_in_turns
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.hosting import PATIENCE, Host, Outcome, recording_tools
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.suites.tool_turns import offered_name
from agent_host_testing.violations import require

__all__ = ["InterleavingChecks"]

_WHERE = "docs/testing.md#requests-beside-each-other"
_TOOLS = "supports_tools"
_NAMES = ("north", "south", "east")


class InterleavingChecks(ProviderSuite):
    """Streams that take turns, threads, tasks, and what an instance keeps."""

    @pytest.mark.parametrize("way", ["taking turns", "threads", "tasks"])
    @check("concurrency", _WHERE)
    def test_requests_do_not_mix(self, way: str) -> None:
        """Requests that run beside each other on one core give what each gives by itself."""
        tools = [f"kit:{name}.look" for name in _NAMES]
        classes = [recording_tools([], tools)] if self.claims(_TOOLS) else []
        run = {"taking turns": _take_turns, "threads": self._in_threads, "tasks": _as_tasks}[way]
        with self.host(*classes) as host:
            asked = [self._asked(host, name) for name in _NAMES]
            outcomes = run(host, [(session, config) for session, config, _ in asked])
            for name, (_, _, wanted), outcome in zip(_NAMES, asked, outcomes, strict=True):
                require(outcome.error is None, f"{name}: {outcome.error!r}")
                found = _gist(outcome)
                require(found == wanted, f"{name} gives {found} instead of {wanted}")

    def _in_threads(self, host: Host, asked: Asked) -> list[Outcome]:
        """Each in a thread, where after each line of the package it is another's turn."""
        return run_in_turns(self.package, [partial(host.ask, *each) for each in asked])

    def _asked(self, host: Host, name: str) -> tuple[Session, dict[str, Any], Any]:
        """The session and config of a request, and what it gives if nobody disturbs it."""
        tool = f"kit:{name}.look"
        reply = self._reply(name, tool)
        more: dict[str, Any] = {"use_tools": [tool]} if self.claims(_TOOLS) else {}
        if self.claims("supports_reasoning"):
            more.update(self.reasoning_settings)
        server = None if self.wire is None else self.serve()
        config = self.request_config(server, **more)
        session = host.core.add_message(host.core.create_session(), "user", self.prompt_to(reply))
        if server is not None:
            server.queue(reply)
            host.ask(session, config).expect()
            if self.claims(_TOOLS):
                reply = self._reply(name, offered_name(server.format, server.requests[-1], tool))
            server.queue(reply, reply)
        wanted = _gist(host.ask(session, config).expect())
        return session, config, wanted

    def _reply(self, name: str, tool: str) -> Reply:
        parts: list[Part] = [Text(" ".join(f"{name}-{number}" for number in range(12)))]
        if self.claims("supports_reasoning"):
            thought = " ".join(f"thought-{name}-{number}" for number in range(6))
            parts.insert(0, Thought(thought, signature=f"c2lnbmVk{name.encode().hex()}AA=="))
        if self.claims(_TOOLS):
            parts += [Call(tool, {"place": f"{name}-{n}"}, id=f"call_{name}_{n}") for n in (1, 2)]
        return Reply(tuple(parts), fragments=8)

    @check("concurrency", _WHERE)
    def test_nothing_of_a_request_is_kept(self) -> None:
        """After a request neither plugin, class nor module of the package holds anything of it."""
        marker = "kept-marker-7b1e"
        parts: list[Part] = [Text(f"{marker}-text")]
        if self.claims(_TOOLS):
            parts.append(Call("weather", {"place": f"{marker}-place"}, id=f"call_{marker}"))
        if self.claims("supports_reasoning"):
            parts.insert(0, Thought(f"{marker}-thought", signature="c2lnbmVkLWtlcHQ="))
        reply = Reply(tuple(parts))
        for stream in (True, False):
            with self.talk(stream=stream, **self._reasoning_if_claimed()) as talk:
                talk.ask(reply, "" if self.wire is None else f"{marker}-question").expect()
                if talk.last.calls:
                    talk.run_calls()
                    if self.wire is not None:
                        talk.go_on(Reply((Text(f"{marker}-end"),))).expect()
                talk.session = talk.host.core.create_session()
                talk.last = Outcome(talk.session)
                plugins = talk.host.core.stacks.activator.loaded_plugins
                instances = [plugin.instance for plugin in plugins]
                found = places_with([marker], self.package, instances)
                require(not found, f"of the request there is something in {', '.join(found)}")

    def _reasoning_if_claimed(self) -> dict[str, Any]:
        return dict(self.reasoning_settings) if self.claims("supports_reasoning") else {}


def _gist(outcome: Outcome) -> Any:
    """What a caller saw of a request and what it left, without what a server counts on."""
    started = [(e["index"], e["id"], e["name"]) for e in outcome.of("tool_call_started")]
    return {
        "text": outcome.answer["content"],
        "shown": outcome.shown,
        "reasoning": outcome.metadata.get("reasoning"),
        "thoughts shown": "".join(event["text"] for event in outcome.of("reasoning")),
        "calls": [(call.name, call.arguments) for call in outcome.calls],
        "calls shown": [(index, name) for index, _, name in started],
        "ids agree": {i for _, i, _ in started} <= {call.id for call in outcome.calls},
    }


Asked = list[tuple[Session, dict[str, Any]]]


def _take_turns(host: Host, asked: Asked) -> list[Outcome]:
    """One event of each stream after the other, in one thread."""
    outcomes = [Outcome(session) for session, _ in asked]
    streams = [host.core.send_request_stream(session, config) for session, config in asked]
    waiting = list(range(len(streams)))
    try:
        while waiting:
            for number in list(waiting):
                try:
                    outcomes[number].events.append(next(streams[number]))  # type: ignore[arg-type]
                except StopIteration:
                    waiting.remove(number)
                except Exception as error:
                    outcomes[number].error = error
                    waiting.remove(number)
    finally:
        for outcome, stream in zip(outcomes, streams, strict=True):
            stream.close()
            outcome.session = stream.session
    return outcomes


def _as_tasks(host: Host, asked: Asked) -> list[Outcome]:
    outcomes = [Outcome(session) for session, _ in asked]

    async def one(outcome: Outcome, config: dict[str, Any]) -> None:
        try:
            async with host.core.asend_request_stream(outcome.session, config) as stream:
                async for event in stream:
                    outcome.events.append(event)  # type: ignore[arg-type]
                    await asyncio.sleep(0)
                outcome.session = stream.session
        except Exception as error:
            outcome.error = error

    async def all_() -> None:
        try:
            await asyncio.gather(*map(one, outcomes, (config for _, config in asked)))
        finally:
            await host.core.async_wire.aclose()

    asyncio.run(asyncio.wait_for(all_(), PATIENCE))
    return outcomes
