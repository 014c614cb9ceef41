"""Checks of providers that search deferred tools themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from agent_hookspecs.roles import FeaturePlugin
from agent_hookspecs.tool_interop import ToolDescriptor
from agent_host_testing.script import Reply, Search, Text, call, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.suites.tool_turns import offered_name
from agent_host_testing.violations import require

__all__ = ["ToolSearchChecks"]

_SEARCHES = "supports_tool_search"
_WHERE = "docs/testing.md#tools-that-the-provider-searches"
_TOOL, _OTHER = "kit:clock.now", "weather"


class _Deferring(FeaturePlugin):
    """Leaves every tool to the provider's search."""

    name = "conformance_deferring"
    version = "1"

    def select_tools(self, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return [replace(tool, deferred=True) for tool in tools]


class ToolSearchChecks(ProviderSuite):
    """Deferred tools: declared, found, called, and found still when the search is over."""

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @check("tool search", _WHERE, claim=_SEARCHES)
    def test_deferred_tools_are_found_and_stay_found(self, stream: bool) -> None:
        """What the provider's search has found can be called, also turns later, unsearched."""
        with self._deferring(stream) as (talk, name):
            found = Reply((Text("Let me see."), Search(name), *call(name, {"place": "Oslo"}).parts))
            outcome = talk.ask(found).expect()
            require([each.name for each in outcome.calls] == [_TOOL], f"calls: {outcome.calls}")
            told = outcome.metadata.get("found_tools") or []
            require(_TOOL in told, f"found_tools of the metadata are {told}, without {_TOOL!r}")
            require(outcome.answer["content"] == "Let me see.", "the text beside it is lost")
            require(bool(outcome.metadata.get("usage")), "the usage of the answer is lost")
            talk.run_calls()
            talk.go_on(say("Noon.")).expect()
            # No model can call what its server does not know to be found.
            talk.ask(call(name, {"place": "Bergen"})).expect()
            talk.run_calls()
            ran = [(_TOOL, {"place": place}) for place in ("Oslo", "Bergen")]
            require(talk.noted == ran, f"ran: {talk.noted}")
            talk.go_on(say("Noon as well.")).expect()
            declared = [request.body.get("tools") for request in talk.server.requests]
            same = all(tools == declared[0] for tools in declared)
            require(same, "the declarations, with which every request begins, have changed")

    @check("tool search", _WHERE, claim=_SEARCHES)
    def test_tools_found_elsewhere_stay_found(self) -> None:
        """What was found in messages that are not sent as they came can be called unsearched."""
        with self._deferring() as (talk, name):
            talk.say("What time is it?")
            add = talk.host.core.add_message
            talk.session = add(talk.session, "assistant", "I see.", {"found_tools": [_TOOL]})
            talk.ask(call(name, {"place": "Oslo"})).expect()
            talk.run_calls()
            talk.go_on(say("Noon.")).expect()
            require(talk.noted == [(_TOOL, {"place": "Oslo"})], f"ran: {talk.noted}")

    @check("tool search", _WHERE, claim=_SEARCHES)
    def test_a_search_that_was_cut_off_does_no_harm(self) -> None:
        """After an answer that ended within a search the conversation goes on."""
        with self._deferring() as (talk, name):
            talk.ask(Reply((Search(name, cut=True),), finish="length"))
            talk.ask(say("Once more, then.")).expect()

    @contextmanager
    def _deferring(self, stream: bool = True) -> Iterator[tuple[Talk, str]]:
        """A conversation with tools that are all deferred, and the wire name of one."""
        self.require_wire()
        with self.talk(stream=stream, tools=(_TOOL, _OTHER)) as talk:
            talk.host.core.register_feature(_Deferring)
            talk.ask(say("Hello.")).expect()
            name = offered_name(talk.server.format, talk.server.requests[-1], _TOOL)
            talk.again()
            yield talk, name
