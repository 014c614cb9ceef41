"""What servers want to know of a person, put as questions that the host can ask.

A form becomes one question for each of its fields. It must not know where the person is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mcp_types as types

from agent_hookspecs import ToolError
from agent_host_mcp.approvals import spell_out

__all__ = ["answer_question"]

#: Asks a person: the question, and the answers to choose from if there are only some.
Ask = Callable[[str, Sequence[str]], str]

_MAX_FIELDS = 20
_ANSWER, _DECLINE, _DONE = "answer", "decline", "done"


def answer_question(server: str, params: Any, ask: Ask | None) -> types.ElicitResult:
    """What a person answers; that they declined, or that nobody was there to ask."""
    if ask is None:
        return types.ElicitResult(action="cancel")
    message = spell_out(params.message)
    try:
        if isinstance(params, types.ElicitRequestURLParams):
            text = f"The MCP server {server!r} wants you to open an address: {message}\n"
            text += f"{spell_out(str(params.url))}\nOpen it yourself if you trust it."
            said = ask(text, [_DONE, _DECLINE])
            return types.ElicitResult(action="accept" if said == _DONE else "decline")
        fields = _fields(params.requested_schema)
        names = ", ".join(fields) or "nothing more"
        text = f"The MCP server {server!r} asks: {message}\nIt wants to know: {names}."
        if ask(text, [_ANSWER, _DECLINE]) != _ANSWER:
            return types.ElicitResult(action="decline")
        content = {}
        for name, schema in fields.items():
            value = _ask_field(server, name, schema, ask)
            if value is not None:
                content[name] = value
        return types.ElicitResult(action="accept", content=content)
    except ToolError:
        # Nothing is lost: the server is told that nobody has answered, and says what follows.
        return types.ElicitResult(action="cancel")


def _fields(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    properties = schema.get("properties")
    required = schema.get("required") or ()
    if not isinstance(properties, Mapping) or len(properties) > _MAX_FIELDS:
        raise ToolError("the server asks for something that is no form")
    return {
        spell_out(str(name)): {**each, "required": name in required}
        for name, each in properties.items()
        if isinstance(each, Mapping)
    }


def _ask_field(server: str, name: str, schema: Mapping[str, Any], ask: Ask) -> Any:
    """A value for one field; None for one that may be left out and is."""
    described = spell_out(str(schema.get("description") or schema.get("title") or ""))
    kind, required = schema.get("type"), schema["required"]
    text = f"{server}: {name}" + (f" ({described})" if described else "")
    choices = [str(each) for each in schema.get("enum") or ()]
    if kind == "boolean":
        return ask(text, ["yes", "no"]) == "yes"
    if choices:
        return ask(text, choices)
    hint = "" if required else "; leave it empty to say nothing"
    while True:
        said = ask(f"{text}: {kind or 'text'}{hint}", [])
        if not said.strip() and not required:
            return None
        try:
            if kind == "integer":
                return int(said)
            if kind == "number":
                return float(said)
        except ValueError:
            # Nothing is lost: the person is asked again, and told why.
            text = f"{said!r} is no {kind}. {server}: {name}"
            continue
        return said
