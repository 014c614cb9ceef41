"""Checks of tools: offered, called, answered, and sent back so that the API takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent_host_testing.script import Call, Reply, Text, call, say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.violations import require
from agent_host_testing.wire import Request, WireFormat

__all__ = ["ToolTurnChecks", "offered_name"]

_TOOLS = "supports_tools"
_ODD_NAME = "kit:weather.now"


class ToolTurnChecks(ProviderSuite):
    """Tools, parallel calls, malformed calls, names and exact arguments."""

    @check("tools", "docs/testing.md#tools", claim=_TOOLS)
    def test_tools_round_trip(self) -> None:
        """A call runs with its arguments, and the API takes call and result in the next turn."""
        with self.talk() as talk:
            outcome = talk.ask(call("weather", {"place": "Tromsø"}, id="call_first_1")).expect()
            (made,) = _require_count(outcome.calls, 1)
            require(made.name == "weather", f"the call is of {made.name!r}")
            require(json.loads(made.arguments) == {"place": "Tromsø"}, f"it has {made.arguments}")
            begun = [event["name"] for event in outcome.of("tool_call_started")]
            require(begun == ["weather"], f"the calls that were shown are {begun}")
            talk.run_calls()
            require(talk.noted == [("weather", {"place": "Tromsø"})], f"ran: {talk.noted}")
            final = talk.go_on(say("It rains.")).expect()
            if self.wire is not None:
                require(final.answer["content"] == "It rains.", f"said {final.answer['content']!r}")
                sent = talk.server.requests[-1].raw.decode()
                require("weather was asked" in sent, "the second request lacks the result")
                # Where the API gives calls no ids there is none to keep.
                given = "call_first_1" not in self.exchanges()[0].answer.decode()
                require(given or "call_first_1" in sent, "the second request lacks the call's id")

    @check("parallel calls", "docs/testing.md#tools", claim=_TOOLS)
    def test_parallel_calls(self) -> None:
        """Several calls of one turn stay apart, in order, and each gets its own result."""
        asked = [("weather", {"place": "Oslo"}), ("clock", {"place": "Oslo"}), ("weather", {})]
        with self.talk() as talk:
            ids = ("call_par_1", "call_par_2", "call_par_3")
            parts = [Call(name, p, id=i) for (name, p), i in zip(asked, ids, strict=True)]
            outcome = talk.ask(Reply(tuple(parts))).expect()
            made = _require_count(outcome.calls, 3)
            require(len({each.id for each in made}) == 3, f"the ids are {[c.id for c in made]}")
            found = [(each.name, json.loads(each.arguments)) for each in made]
            require(found == asked, f"the calls are {found}")
            talk.run_calls()
            require(talk.noted == asked, f"ran: {talk.noted}")
            talk.go_on(say("Rain at noon.")).expect()

    @check("tools", "docs/testing.md#tools", claim=_TOOLS)
    def test_text_beside_calls_is_kept(self) -> None:
        """What the model says beside its calls is in the message that has them."""
        with self.talk() as talk:
            outcome = talk.ask(Reply((Text("Let me look."), Call("weather", id="call_txt_1"))))
            outcome.expect()
            said = outcome.answer["content"]
            require(said == "Let me look.", f"the content beside the call is {said!r}")
            _require_count(outcome.calls, 1)

    @check("display", "docs/events.md#events", claim=_TOOLS)
    def test_calls_are_shown(self) -> None:
        """Calls are shown as they come: by the tool's own name, id and place, with arguments."""
        names = (_ODD_NAME, "kit:clock.now")
        with self.talk(tools=names) as talk:
            wire = list(names)
            if self.wire is not None:
                talk.ask(say("Hello.")).expect()
                request = talk.server.requests[-1]
                wire = [offered_name(talk.server.format, request, name) for name in names]
                talk.again()
            places = ("Oslo", "Bergen", "Ålesund")
            calls = [
                Call(wire[n % 2], {"place": place}, id=f"call_shown_{n}")
                for n, place in enumerate(places)
            ]
            outcome = talk.ask(Reply((Text("Let me look."), *calls))).expect()
            made = _require_count(outcome.calls, 3)
            started = outcome.of("tool_call_started")
            shown = [(event["index"], event["name"]) for event in started]
            wanted = [(n, names[n % 2]) for n in range(3)]
            require(shown == wanted, f"shown are {shown} instead of {wanted}")
            ids = [event["id"] for event in started]
            # Where the wire gives no ids, one may be made up only when the call is complete.
            agree = all(not one or one == two.id for one, two in zip(ids, made, strict=True))
            require(agree, f"shown are the ids {ids} of the calls {[each.id for each in made]}")
            for number, each in enumerate(made):
                deltas = [e for e in outcome.of("tool_call_delta") if e["index"] == number]
                written = "".join(event["arguments"] for event in deltas)
                require(
                    written and json.loads(written) == json.loads(each.arguments),
                    f"of the arguments {each.arguments} of call {number} it shows {written!r}",
                )
            roles = {event["message"].get("role") for event in outcome.of("partial")}
            require(roles <= {"assistant"}, f"what is shown is of {roles}")

    @check("malformed calls", "docs/testing.md#malformed-calls", claim=_TOOLS)
    def test_malformed_calls(self) -> None:
        """A call whose arguments are no JSON object is stored as {}, not run, and replays."""
        with self.talk() as talk:
            written = self.wire is None or self._arguments_are_text(talk)
            broken = Call("weather", '{"place": "Os', id="call_bad_1")
            outcome = talk.ask(Reply((broken,), fragments=1)).expect()
            (made,) = _require_count(outcome.calls, 1)
            require(made.arguments == "{}", f"the arguments are stored as {made.arguments!r}")
            # The host keeps no natives that nobody would take back.
            natives = json.dumps(outcome.natives[-1:])
            require("weather" in natives, "finalize leaves natives that cannot be sent again")
            talk.run_calls()
            require(not talk.noted, f"ran: {talk.noted}")
            result = talk.session.messages[-1]
            require(result["role"] == "tool", "the model is not told why nothing ran")
            # Where calls carry parsed objects, no API sends text in their place.
            if written:
                talk.go_on(say("I see.")).expect()

    def _arguments_are_text(self, talk: Talk) -> bool:
        """Whether the wire carries arguments as the text that a model writes, or parsed."""
        talk.ask(Reply((Call("weather", {"place": "Oslo"}, id="call_good_1"),), fragments=1))
        talk.again()
        return rb"\"place\"" in self.exchanges()[-1].answer

    @check("exact arguments", "docs/testing.md#exact-bytes", claim=_TOOLS)
    def test_arguments_are_replayed_exactly(self) -> None:
        """Arguments that are valid go back to the API as the text that the model wrote."""
        written = '{ "place":"Oslo" ,  "unit" : 1.0}'
        self.require_wire()
        with self.talk(stream=False) as talk:
            made = talk.ask(call("weather", written, id="call_exact_1")).expect().calls
            talk.run_calls()
            talk.go_on(say("Rain.")).expect()
            quoted = json.dumps(written)
            answer, sent = self.exchanges()[0].answer.decode(), self.exchanges()[1].body.decode()
            # Where calls carry parsed objects there is no text to keep.
            if quoted in answer:
                require(quoted in sent, f"the second request does not have {quoted}")
                kept = [each.arguments for each in made]
                require(kept == [written], f"the arguments {written!r} are kept as {kept}")

    @check("tool names", "docs/testing.md#tools", claim=_TOOLS)
    def test_tool_names_are_made_legal(self) -> None:
        """A tool whose name the API would refuse is offered, called and replayed all the same."""
        self.require_wire()
        with self.talk(tools=(_ODD_NAME,)) as talk:
            talk.ask(say("Hello.")).expect()
            wire_name = offered_name(talk.server.format, talk.server.requests[-1], _ODD_NAME)
            outcome = talk.ask(call(wire_name, {"place": "Oslo"}, id="call_odd_1")).expect()
            (made,) = _require_count(outcome.calls, 1)
            require(made.name == _ODD_NAME, f"the call of {wire_name!r} is stored as {made.name!r}")
            talk.run_calls()
            require(talk.noted == [(_ODD_NAME, {"place": "Oslo"})], f"ran: {talk.noted}")
            talk.go_on(say("Rain.")).expect()

    @check("tool names", "docs/testing.md#tools", claim=_TOOLS)
    def test_tool_names_are_legal_in_history(self) -> None:
        """Calls of other providers are sent by the names by which their tools are offered."""
        self.require_wire()
        function = {"name": _ODD_NAME, "arguments": '{"place": "Oslo"}'}
        made = {"id": "call_odd_2", "type": "function", "function": function}
        answered = {"tool_call_id": "call_odd_2", "tool_name": _ODD_NAME}
        with self.talk(tools=(_ODD_NAME,)) as talk:
            add = talk.host.core.add_message
            talk.say("How is the weather?")
            talk.session = add(talk.session, "assistant", "", {"tool_calls": [made]})
            envelope = {"type": "tool_result", "text": "Rain."}
            talk.session = add(talk.session, "tool", "Rain.", answered, toolResult=envelope)
            talk.go_on(say("It rains.")).expect()
            sent = talk.server.requests[-1]
            wire_name = offered_name(talk.server.format, sent, _ODD_NAME)
            require(
                wire_name == _ODD_NAME or not Carried(sent).has_value(_ODD_NAME),
                f"the tool is offered as {wire_name!r}, and its call is sent as {_ODD_NAME!r}",
            )


def _require_count(calls: list[Any], count: int) -> list[Any]:
    require(len(calls) == count, f"there are {len(calls)} calls instead of {count}: {calls}")
    return calls


def offered_name(format: WireFormat, request: Request, tool: str) -> str:
    """The name under which the request offers the tool, which stands in its description."""
    try:
        offers = format.gist(request).offers
    except (KeyError, TypeError, AttributeError):
        # Nothing is lost: a format of an author's own need not know gists; then it is looked for.
        offers = ()
    named = [
        offer.name
        for offer in offers
        if any(tool in json.dumps(each) for each in _holders(request.body, offer.name))
    ]
    found = named or [*_names(request.body, tool)]
    require(
        found,
        f"no name in the request stands beside the description of {tool!r}: it is not offered, or "
        "the format needs a 'gist' that says what is",
    )
    return found[0]


def _holders(value: Any, name: str) -> Iterator[Any]:
    """Objects and lists in which the name is a value: one of them declares the tool."""
    items = [*value.values()] if isinstance(value, dict) else value
    if isinstance(items, list):
        if name in items:
            yield value
        for item in items:
            yield from _holders(item, name)


def _names(body: Any, tool: str) -> Iterator[str]:
    """The names in the body that could stand for the tool, by the description beside them."""
    if isinstance(body, dict):
        if any(isinstance(value, str) and tool in value for value in body.values()):
            named = [body.get(key) for key in ("name", "id", "tool", "function", "key")]
            yield from (each for each in named if isinstance(each, str))
        for value in body.values():
            yield from _names(value, tool)
    elif isinstance(body, list):
        for value in body:
            yield from _names(value, tool)
