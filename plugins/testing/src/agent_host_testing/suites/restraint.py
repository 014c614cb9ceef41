"""Checks that a provider adds nothing of its own to a request, and takes nothing away."""

from __future__ import annotations

from typing import Any

import pytest

from agent_host_testing.script import say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.leftovers import left_behind
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.violations import require

__all__ = ["RestraintChecks"]

#: Knobs that no API needs, with values that nobody has as a default.
_KNOBS: dict[str, Any] = {"temperature": 0.375, "seed": 471147, "stop": ["kit-stop-alone"]}
_EDGES = "  two blanks before and a line behind\n"


class RestraintChecks(ProviderSuite):
    """Knobs that nobody set, white space at the edges, and what is left in the process."""

    @check("knobs", "docs/testing.md#settings")
    def test_knobs_nobody_set_are_not_sent(self) -> None:
        """A knob that nobody set is not in the request: the API's own default holds."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            talk.ask(say("Yes.")).expect()
            plain = Carried(talk.server.requests[-1])
            before = talk.config
            for knob, value in _KNOBS.items():
                talk.config = {**before, knob: value}
                talk.again()
                talk.ask(say("Yes.")).expect()
                wanted = value[0] if isinstance(value, list) else value
                leaves = Carried(talk.server.requests[-1]).leaves
                for path in (leaf.path for leaf in leaves if leaf.value == wanted):
                    there = [leaf.value for leaf in plain.leaves if leaf.path == path]
                    require(
                        not there,
                        f"{knob!r} is not set, and the request has {there[0] if there else None!r} "
                        f"at {'.'.join(map(str, path))}",
                    )

    @check("process", "docs/testing.md#what-is-left-in-the-process")
    def test_nothing_is_left_in_the_process(self, capfd: pytest.CaptureFixture[str]) -> None:
        """A request prints nothing, leaves no thread and no file, and changes no setting of all."""
        with self.talk() as talk:
            answer = say("Yes.")

            def request() -> None:
                talk.again()
                talk.ask(answer).expect()

            found = left_behind(request, capfd)
            require(not found, "; ".join(found))

    @check("exact text", "docs/testing.md#exact-text")
    def test_edges_are_sent(self) -> None:
        """White space before and behind what a user or the instructions say is sent, too."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            for role in ("system", "user"):
                talk.again()
                if role == "system":
                    talk.say(_EDGES, role)
                    talk.say("Yes?")
                else:
                    talk.say(_EDGES)
                talk.go_on(say("Yes.")).expect()
                sent = Carried(talk.server.requests[-1])
                found = [leaf.value for leaf in sent.places(_EDGES.strip())]
                require(sent.has_text(_EDGES), f"of {role} {_EDGES!r} it sends {found}")
