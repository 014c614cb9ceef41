"""Checks of how tools are offered to a model: whole, and each under a name of its own."""

from __future__ import annotations

from typing import Any

from agent_hookspecs.roles import ToolPlugin
from agent_host_testing.script import call, say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.suites.tool_turns import offered_name
from agent_host_testing.violations import require

__all__ = ["DeclaredToolChecks"]

_TOOLS = "supports_tools"
_STOPS = {
    "type": "array",
    "description": "kit-described stops",
    "items": {
        "type": "object",
        "properties": {"kit_stop": {"type": "string", "description": "kit-described stop"}},
        "required": ["kit_stop"],
    },
}
_UNIT = {
    "type": "string",
    "enum": ["kit-metric", "kit-imperial"],
    "description": "kit-described unit",
}
_TRAVEL = {
    "name": "kit_travel",
    "description": "kit-described travel",
    "parameters": {
        "type": "object",
        "properties": {"kit_unit": _UNIT, "kit_stops": _STOPS},
        "required": ["kit_unit"],
    },
}
_NOTHING = {
    "name": "kit_nothing",
    "description": "kit-described nothing",
    "parameters": {"type": "object", "properties": {}},
}
#: What of these tools a model has to be told, by what it is.
_TOLD: dict[str, tuple[str, ...]] = {
    "descriptions": (
        "kit-described travel",
        "kit-described unit",
        "kit-described stops",
        "kit-described stop",
        "kit-described nothing",
    ),
    "choices": ("kit-metric", "kit-imperial"),
    "required properties": ("kit_unit", "kit_stop"),
}
_PROPERTIES = ("kit_unit", "kit_stops", "kit_stop")
#: Names that careless code makes the same: by what it replaces, and by where it cuts.
_ALIKE = (
    ("kit:weather.now", "kit.weather:now"),
    (f"kit_{'long_' * 12}one", f"kit_{'long_' * 12}two"),
)


class DeclaredToolChecks(ProviderSuite):
    """Schemas of tools, and names that are alike."""

    @check("tools", "docs/testing.md#tools", claim=_TOOLS)
    def test_tools_are_declared_whole(self) -> None:
        """Of a tool's schema the API gets every description, choice and required property."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            talk.host.core.register_tool(_Declared)
            outcome = talk.ask(say("Yes.")).expect()
            if outcome.of("warning"):
                # Who warns has said that something is not sent, which is all that is asked.
                return
            sent = Carried(talk.server.requests[-1])
            if not sent.is_json:
                return
            for what, texts in _TOLD.items():
                lost = [text for text in texts if not sent.has_value(text)]
                require(not lost, f"of the {what} of tools the request lacks {', '.join(lost)}")
            lost = [name for name in _PROPERTIES if name not in sent.keys]
            require(not lost, f"of the properties of tools the request lacks {', '.join(lost)}")

    @check("tool names", "docs/testing.md#tools", claim=_TOOLS)
    def test_tool_names_stay_apart(self) -> None:
        """Tools whose names are alike are offered under two names, and each call finds its own."""
        self.require_wire()
        for names in _ALIKE:
            with self.talk(tools=names) as talk:
                talk.ask(say("Hello.")).expect()
                request = talk.server.requests[-1]
                offered = [offered_name(talk.server.format, request, name) for name in names]
                apart = offered[0] != offered[1]
                require(apart, f"{names[0]!r} and {names[1]!r} are both offered as {offered[0]!r}")
                for name, wire in zip(names, offered, strict=True):
                    talk.again()
                    outcome = talk.ask(call(wire, {"place": "Oslo"}, id="call_alike_1")).expect()
                    made = [each.name for each in outcome.calls]
                    require(made == [name], f"a call of {wire!r} is one of {made}, not of {name!r}")


class _Declared(ToolPlugin):
    """Two tools: one whose schema has a bit of everything, and one that takes nothing."""

    name = "conformance_declared"
    version = "1"
    effects = {"kit_travel": "read", "kit_nothing": "read"}  # noqa: RUF012

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [_TRAVEL, _NOTHING]

    def execute_tool(self, tool_name: str, payload: Any) -> str:
        return f"{tool_name} was asked"
