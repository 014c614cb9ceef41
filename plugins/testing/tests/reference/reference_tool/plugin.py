"""Two tools that share a state: a list of notes, kept for as long as the stack that uses it."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Config, Context, State, ToolPlugin, UnknownToolError

__all__ = ["ReferenceTool"]


class ReferenceTool(ToolPlugin):
    """Notes: one tool writes them down, the other counts them."""

    name = "reference_tool"
    version = "1"
    label = "Reference tool"
    effects = {"note": "write", "count_notes": "read"}  # noqa: RUF012

    def init(self, config: Config) -> State:
        return {"notes": [], "open": True}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        text = {"type": "string", "description": "What to remember."}
        note = {"type": "object", "properties": {"text": text}, "required": ["text"]}
        nothing: dict[str, Any] = {"type": "object", "properties": {}}
        return [
            {"name": "note", "description": "Remember a text.", "parameters": note},
            {"name": "count_notes", "description": "How many there are.", "parameters": nothing},
        ]

    def execute_tool(self, tool_name: str, payload: Any, state: State, context: Context) -> str:
        if not state["open"]:
            raise RuntimeError("the notes are closed; make a new stack")
        if tool_name == "note":
            state["notes"].append(payload["text"])
        elif tool_name != "count_notes":
            raise UnknownToolError(f"there is no tool {tool_name!r}", tool=tool_name)
        return f"There are {len(state['notes'])} notes."

    def close(self, state: State) -> None:
        state["open"] = False
