"""Checks that every setting of a request moves it, or that somebody is told that it does not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, ClassVar

from agent_hookspecs.authoring.knobs import EFFORTS, KNOBS
from agent_hookspecs.errors import AgentError
from agent_host_testing.script import say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.suites.tool_turns import offered_name
from agent_host_testing.violations import require

__all__ = ["KnobChecks"]

_WHERE = "docs/testing.md#settings"
_SCHEMA = {
    "type": "object",
    "properties": {"kit_colour": {"type": "string"}, "kit_size": {"type": "integer"}},
    "required": ["kit_colour", "kit_size"],
    "additionalProperties": False,
}
#: Values that nobody has as a default; and what of them has to be found in the request.
_VALUES: Mapping[str, tuple[Any, Any]] = {
    "temperature": (0.375, 0.375),
    "max_output_tokens": (7321, 7321),
    "stop": (["kit-stop-one", "kit-stop-two"], ["kit-stop-one", "kit-stop-two"]),
    "seed": (471147, 471147),
    "response_schema": (_SCHEMA, {"kit_colour": 0, "kit_size": 0}),
}
#: Values that are not nothing, although careless code takes them for it.
_LEAST: Mapping[str, Any] = {"temperature": 0, "seed": 0}
#: Settings that other checks are about, or that are the host's.
_ELSEWHERE = ("model", "base_url", "api_key", "attachments_root", "extra_body", "extra_headers")
_TOOL = "supports_tools"
_REASONING = "supports_reasoning"
_CHOICES = (None, "auto", "none", "required", "weather", "clock")


class _Sent:
    """A request as it arrived, and the warnings that its caller got."""

    def __init__(self, talk: Talk, settings: Mapping[str, Any]) -> None:
        before = talk.config
        talk.config = {**before, **settings}
        talk.again()
        try:
            outcome = talk.ask(say("Yes.")).expect()
        finally:
            talk.config = before
        self.carried = Carried(talk.server.requests[-1])
        self.warnings = [event["message"] for event in outcome.of("warning")]

    def warns_of(self, setting: str) -> bool:
        return any(setting in message for message in self.warnings)

    @property
    def wire(self) -> Any:
        """All that the API sees of it."""
        request = self.carried.request
        body = self.carried.body if self.carried.is_json else request.raw
        headers = {k: v for k, v in request.headers.items() if k not in ("content-length", "host")}
        return request.path, dict(request.query), headers, body


class KnobChecks(ProviderSuite):
    """Knobs, the choice of a tool, the model, and every other setting.

    ``quiet_settings`` are those that no single request shows, also if the model reasons, such as
    what is done with reasoning of earlier turns.
    """

    quiet_settings: ClassVar[Sequence[str]] = ()

    @check("knobs", _WHERE)
    def test_knobs_move_the_request(self) -> None:
        """A knob that is set stands in the request with its value, or a warning names it."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            plain = _Sent(talk, {})
            for knob, (value, found) in _VALUES.items():
                sent = _Sent(talk, {knob: value})
                _require_knob(knob, found, sent, plain)
            for knob, value in _LEAST.items():
                sent = _Sent(talk, {knob: value})
                require(
                    sent.wire != plain.wire or sent.warns_of(knob),
                    f"{knob} is {value}, which is a value, and the request is as without it",
                )

    @check("knobs", _WHERE)
    def test_knobs_go_together(self) -> None:
        """Knobs that are set at once all stand in the request, and none takes another's place."""
        self.require_wire()
        settings = {knob: value for knob, (value, _) in _VALUES.items()}
        modes: list[Mapping[str, Any]] = [{}]
        if self.claims(_REASONING):
            modes.append(self.reasoning_settings)
        with self.talk(tools=()) as talk:
            for more in modes:
                plain, sent = _Sent(talk, more), _Sent(talk, {**settings, **more})
                for knob, (_, found) in _VALUES.items():
                    _require_knob(knob, found, sent, plain)
                alone = _Sent(talk, {**more, "response_schema": _SCHEMA})
                lost = _lost(plain, alone)
                require(
                    not lost or alone.warnings,
                    f"with response_schema the request no longer has {lost}, and nobody is told",
                )

    @check("knobs", _WHERE, claim=_REASONING)
    def test_effort_moves_the_request(self) -> None:
        """Every effort makes another request than its neighbours, or a warning says why not."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            sent = {effort: _Sent(talk, {"effort": effort}) for effort in EFFORTS}
            unset = _Sent(talk, {})
            for one, two in combinations(EFFORTS, 2):
                told = any(sent[each].warns_of("effort") for each in (one, two))
                require(
                    told or sent[one].wire != sent[two].wire,
                    f"efforts {one!r} and {two!r} make the same request, and nobody is told",
                )
            moved = any(each.wire != unset.wire for each in sent.values())
            require(moved, "no effort makes another request than none at all")

    @check("tool choice", _WHERE, claim=_TOOL)
    def test_tool_choice(self) -> None:
        """The choices auto, none, required and a tool's name make different requests."""
        self.require_wire()
        self._compare_choices({})

    @check("tool choice", _WHERE, claim=_REASONING)
    def test_tool_choice_with_reasoning(self) -> None:
        """The choice of a tool counts also while the model reasons, or a warning says otherwise."""
        self.require_wire()
        if not self.claims(_TOOL):
            not_claimed("a choice is one of tools, and the tags do not have supports_tools")
        self._compare_choices(self.reasoning_settings)

    def _compare_choices(self, more: Mapping[str, Any]) -> None:
        with self.talk(**more) as talk:
            sent = {
                choice: _Sent(talk, {} if choice is None else {"tool_choice": choice})
                for choice in _CHOICES
            }
            for one, two in combinations(_CHOICES[1:], 2):
                told = any(sent[each].warns_of("tool_choice") for each in (one, two))
                require(
                    told or sent[one].wire != sent[two].wire,
                    f"tool_choice {one!r} and {two!r} make the same request, and nobody is told",
                )
            unset, none = sent[None], sent["none"]
            require(
                unset.wire != none.wire or none.warns_of("tool_choice"),
                "without a tool_choice the request is that of 'none': no tool can be called",
            )
            parallel = [_Sent(talk, {"parallel_tool_calls": on}) for on in (True, False)]
            require(
                parallel[0].wire != parallel[1].wire or parallel[1].warns_of("parallel_tool_calls"),
                "parallel_tool_calls true and false make the same request, and nobody is told",
            )

    @check("knobs", _WHERE, claim="supports_structured_output_with_tools")
    def test_a_schema_goes_with_tools(self) -> None:
        """An answer that has to follow a schema may come after calls: both are in the request."""
        self.require_wire()
        self.require_claim(_TOOL)
        with self.talk() as talk:
            sent = _Sent(talk, {"response_schema": _SCHEMA})
            schema = sent.carried.has_value({"kit_colour": 0, "kit_size": 0})
            require(schema, "beside tools the schema of the answer is not sent")
            for tool in ("weather", "clock"):
                offered_name(talk.server.format, talk.server.requests[-1], f"The {tool} of")

    @check("settings", _WHERE)
    def test_model_can_be_chosen(self) -> None:
        """The model of the request's config is the one that the API is asked for."""
        self.require_wire()
        model = self.settings.get("model")
        if not model:
            not_claimed("the suite's settings name no model")
        with self.talk(tools=()) as talk:
            chosen = f"{model}-other"
            sent = _Sent(talk, {"model": chosen})
            there = sent.carried.has_text(chosen) or chosen in sent.carried.request.path
            require(there, f"the request does not name the model {chosen!r}")

    @check("settings", _WHERE)
    def test_settings_move_the_request(self) -> None:
        """Every setting of the plugins that take part moves some request, warns or is refused."""
        self.require_wire()
        modes: list[Mapping[str, Any]] = [{}]
        if self.claims(_REASONING):
            modes.append(self.reasoning_settings)
        with self.talk(strict=False) as talk:
            schema = talk.host.core.get_config_schema(talk.config)
            own = [name for name in schema if name not in _ELSEWHERE and name not in KNOBS]
            plain = [(mode, _Sent(talk, mode)) for mode in modes]
            still = [name for name in own if not _moves(talk, name, schema[name], plain)]
            silent = [name for name in still if name not in self.quiet_settings]
            require(
                not silent,
                f"{', '.join(silent)} is set, the request is as without it, and nobody is told; "
                "a setting that no plain request can show stands in the suite's 'quiet_settings'",
            )
            loud = [name for name in self.quiet_settings if name in own and name not in still]
            require(
                not loud,
                f"{', '.join(loud)} moves a request, so it need not stand in 'quiet_settings'",
            )

    @check("settings", _WHERE)
    def test_additions_are_sent(self) -> None:
        """What the settings extra_body and extra_headers have is sent beside everything else."""
        self.require_wire()
        with self.talk(tools=(), strict=False) as talk:
            schema = talk.host.core.get_config_schema(talk.config)
            there = [name for name in ("extra_body", "extra_headers") if name in schema]
            if not there:
                not_claimed("it has neither the setting extra_body nor extra_headers")
            plain = _Sent(talk, {})
            if "extra_body" in there:
                sent = _Sent(talk, {"extra_body": {"kit_addition": {"kept": [1, "two"]}}})
                found = json.dumps(sent.carried.body.get("kit_addition"))
                require(found == '{"kept": [1, "two"]}', f"of extra_body it sends {found}")
                lost = _lost(plain, sent)
                require(not lost, f"with extra_body the request no longer has {lost}")
            if "extra_headers" in there:
                sent = _Sent(talk, {"extra_headers": {"X-Kit-Addition": "kept"}})
                value = sent.carried.request.header("x-kit-addition")
                require(value == "kept", f"of extra_headers it sends {value!r}")


def _moves(
    talk: Talk,
    name: str,
    about: Mapping[str, Any],
    plain: Sequence[tuple[Mapping[str, Any], _Sent]],
) -> bool:
    """Whether some value of a setting makes another request or is warned of, or all are refused.

    ``plain`` has the requests without it, each with the settings that it was made with.
    """
    taken = 0
    for (mode, without), value in product(plain, _possible(about)):
        count = len(talk.server.requests)
        try:
            sent = _Sent(talk, {**mode, name: value})
        except AgentError:
            # Nothing is lost: not every value that fits the schema is one that this API answers.
            if len(talk.server.requests) > count:
                return True
            continue
        taken += 1
        if sent.wire != without.wire or sent.warns_of(name):
            return True
    return not taken


def _possible(about: Mapping[str, Any]) -> list[Any]:
    """Values that a setting may have, by its schema; other ones than its default among them."""
    if about.get("enum"):
        return list(about["enum"])
    examples: dict[str, list[Any]] = {
        "string": ["kit-value"],
        "integer": [4711],
        "number": [0.375],
        "boolean": [True, False],
        "array": [["kit-value"], [{"type": "kit-value"}]],
        "object": [{"kit_setting": "kit-value"}],
    }
    return examples.get(str(about.get("type")), ["kit-value"])


def _require_knob(knob: str, found: Any, sent: _Sent, plain: _Sent) -> None:
    if sent.warns_of(knob):
        return
    moved = sent.wire != plain.wire
    require(moved, f"{knob} is set, the request is as without it, and no warning names it")
    if sent.carried.is_json:
        told = json.dumps(found) if not isinstance(found, dict) else ", ".join(found)
        require(
            sent.carried.has_value(found),
            f"{knob} is set, but its value ({told}) is not in the request, and no warning names it",
        )


def _lost(plain: _Sent, sent: _Sent) -> str:
    """What of the plain request is missing in the other; empty if nothing is."""
    there = {(leaf.path, repr(leaf.value)) for leaf in sent.carried.leaves}
    lost = [leaf for leaf in plain.carried.leaves if (leaf.path, repr(leaf.value)) not in there]
    return ", ".join(".".join(map(str, leaf.path)) for leaf in lost)
