"""`ExpectedOutput`: what one run expects of its answer, and what it has got.

It says what is special about each request, looks at every answer, and has the words with which a
model is asked again. When turns follow each other is the affair of the tool loop.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.messages import CoreMessage, Finish, Limit
from agent_host.output.errors import (
    OutputCutError,
    OutputError,
    OutputInvalidError,
    OutputRefusedError,
)
from agent_host.output.mode import OutputMode, choose_mode
from agent_host.output.shape import MismatchError, OutputShape, shape_of

if TYPE_CHECKING:
    from agent_host.turn.calls import ToolCall

__all__ = ["ANSWER_TOOL", "RETRIES", "ExpectedOutput"]

#: The tool whose arguments are the answer; it exists in requests alone.
ANSWER_TOOL = "give_answer"
#: How often a model is asked again unless the caller says otherwise.
RETRIES = 2

_TOOL_TEXT = "Give your final answer by calling this tool, once, with the answer as its arguments."
_TAKEN = "The answer was taken."
_UNSET: Any = object()


class ExpectedOutput:
    """The answer of a run that is to have the type ``output_type``."""

    def __init__(self, output_type: Any, retries: int | None = None) -> None:
        self.shape: OutputShape = shape_of(output_type)
        self.mode: OutputMode = "prompt"
        self._retries = RETRIES if retries is None else retries
        if not isinstance(self._retries, int) or self._retries < 0:
            raise ConfigError(
                f"output_retries is {retries!r}",
                key="output_retries",
                hint="it must be a whole number of at least 0",
            )
        self._asked_again = 0
        self._value: Any = _UNSET
        self._problem = ""
        self._fragments: list[str] = []

    def begin(self, tags: Collection[str], *, has_tools: bool) -> None:
        """Decide how the model is told."""
        self.mode = choose_mode(tags, has_tools=has_tools)

    def turn_settings(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a request besides those of its config."""
        self._fragments.clear()
        if self.mode == "schema":
            return {"response_schema": self.shape.schema}
        if self.mode == "tool":
            others = list(config.get("tools") or ())
            declared = {
                "name": ANSWER_TOOL,
                "description": _TOOL_TEXT,
                "parameters": self.shape.schema,
            }
            return {
                "tools": [*others, declared],
                "tool_choice": "required" if others else ANSWER_TOOL,
            }
        return {}

    @property
    def instructions(self) -> str:
        """What stands with the system prompt; empty where the model is told otherwise."""
        if self.mode != "prompt":
            return ""
        schema = json.dumps(self.shape.schema)
        return f"Answer with one JSON object that fits this JSON Schema, and nothing else: {schema}"

    @property
    def is_given(self) -> bool:
        return self._value is not _UNSET

    @property
    def problem(self) -> str:
        """What is wrong with the latest answer."""
        return self._problem

    # --- what a model says -----------------------------------------------------------------------

    def accepts(self, finals: Sequence[CoreMessage]) -> bool:
        """Whether an answer without calls is one, or no more is to be asked."""
        text = "".join(message["content"] for message in finals)
        try:
            self._value = self.shape.read_text(text)
            self._problem = ""
        except MismatchError as error:
            self._problem = str(error)
        return self.is_given or self._asked_again >= self._retries

    def is_answer_call(self, call: ToolCall) -> bool:
        return self.mode == "tool" and call.name == ANSWER_TOOL

    def take_call(self, call: ToolCall) -> str:
        """The answer in a call, kept; gives the result that the model reads."""
        try:
            if call.problem is not None:
                raise MismatchError(call.problem)
            self._value = self.shape.read_payload(call.payload)
            self._problem = ""
            return _TAKEN
        except MismatchError as error:
            self._problem = str(error)
            return self.complaint

    def ask_again(self) -> str | None:
        """Count another try; what to tell whoever watches, None if there is to be none."""
        if self._asked_again >= self._retries:
            return None
        self._asked_again += 1
        return (
            f"the answer does not fit, and is asked for again "
            f"({self._asked_again} of {self._retries}): {self._problem}"
        )

    @property
    def complaint(self) -> str:
        """What a model is told whose answer does not fit."""
        how = f"Call {ANSWER_TOOL} with" if self.mode == "tool" else "Give"
        return (
            f"This does not fit what was asked for: {self._problem}. {how} the whole answer again."
        )

    # --- what a program gets ---------------------------------------------------------------------

    def add_fragment(self, arguments: str) -> None:
        """Note what has arrived of the arguments of a call."""
        if self.mode == "tool":
            self._fragments.append(arguments)

    def partial(self, text: str) -> Any:
        """The data as far as it has arrived, as plain JSON; None before there is any."""
        from pydantic_core import from_json

        if self.is_given:
            return self._value
        arrived = "".join(self._fragments) if self.mode == "tool" else text
        try:
            return self.shape.unwrap_partial(from_json(arrived, allow_partial=True))
        except ValueError:
            # Nothing is lost: it is words, or nothing, so far.
            return None

    def data(self, finish: Finish, limit: Limit | None, text: str, refusal: str) -> Any:
        """The data of the answer; raises the `OutputError` that says why there is none."""
        if self.is_given:
            return self._value
        if finish in ("refusal", "blocked"):
            said = refusal or text
            raise OutputRefusedError(f"the model gave no answer: {said or finish}", text=said)
        if finish in ("length", "limit", "pause"):
            raise OutputCutError(
                f"the answer was cut ({limit or finish})",
                text=text,
                hint="raise max_output_tokens, or the limit that was reached",
            )
        if finish == "stop":
            raise OutputInvalidError(
                f"the model's answer does not fit what was asked for: {self._problem}",
                text=text,
                hint="use a more able model, a simpler type, or more output_retries",
            )
        raise OutputError("there is no answer yet: the run waits", text=text)
