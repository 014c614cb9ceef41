"""`ToolContext`: what a tool made of a function may know of the run that calls it.

It is a view of the context that `execute_tool` gets, with types. It must not know the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

from agent_hookspecs.errors import ToolError
from agent_hookspecs.messages import Config, Context

__all__ = ["ToolContext"]

Deps = TypeVar("Deps")


class ToolContext(Generic[Deps]):
    """A parameter of this type is filled by the host and not shown to the model.

    ``ToolContext[Deps]`` says of which type the ``deps`` are that ``run(deps=…)`` is given.
    """

    __slots__ = ("_tool", "context")

    def __init__(self, context: Context, tool: str = "") -> None:
        self.context = context
        self._tool = tool

    @property
    def deps(self) -> Deps:
        """What the program gave the run; a `ToolError` if it gave nothing."""
        if "deps" not in self.context:
            raise ToolError(
                "the run was given nothing for its tools",
                tool=self._tool,
                hint="pass deps=… to run, stream, arun or astream",
            )
        return cast(Deps, self.context["deps"])

    @property
    def config(self) -> Config:
        """The settings, without the secrets of others."""
        return cast(Config, self.context.get("config") or {})

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return str(self.context.get("call_id") or "")

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""
        is_cancelled: Any = self.context.get("cancelled")
        return bool(is_cancelled and is_cancelled())

    def ask_person(self, question: str, choices: Sequence[str] = ()) -> str:
        """What a person answers; it blocks. A `ToolError` if nobody does."""
        ask: Any = self.context.get("ask_person")
        if ask is None:
            raise ToolError("there is nobody to ask", tool=self._tool)
        return str(ask(question, choices))
