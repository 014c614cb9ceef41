"""In which way a model is told what shape its answer must have, chosen by the request's tags."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

__all__ = ["MODES", "OutputMode", "choose_mode", "describe_mode"]

#: ``schema``: the provider holds the answer to the schema. ``tool``: the model must call a tool
#: whose arguments are the answer. ``prompt``: it is asked to, and nothing else.
OutputMode = Literal["schema", "tool", "prompt"]
MODES: tuple[OutputMode, ...] = get_args(OutputMode)


def choose_mode(tags: Collection[str], *, has_tools: bool) -> OutputMode:
    """The surest way that the tags allow.

    Many who hold an answer to a schema cannot call tools at the same time, so that this has a tag
    of its own.
    """
    if "supports_structured_output" in tags and (
        not has_tools or "supports_structured_output_with_tools" in tags
    ):
        return "schema"
    return "tool" if "supports_tools" in tags else "prompt"


def describe_mode(mode: OutputMode) -> str:
    """How answers of a type are got, in words."""
    return {
        "schema": "by the provider's structured output",
        "tool": "by a call that has to be made",
        "prompt": "by the prompt alone",
    }[mode]
