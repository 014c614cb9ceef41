"""Answers of a type that the program names: how they are asked for, checked and asked for again.

`shape` is what a type asks of an answer, `mode` the way in which a model is told, `expected` what
one run expects and has got, and `errors` what there is in place of an answer.
"""

from __future__ import annotations

from agent_host.output.errors import (
    OutputCutError,
    OutputError,
    OutputInvalidError,
    OutputRefusedError,
)
from agent_host.output.expected import ExpectedOutput
from agent_host.output.mode import OutputMode, choose_mode, describe_mode

__all__ = [
    "ExpectedOutput",
    "OutputCutError",
    "OutputError",
    "OutputInvalidError",
    "OutputMode",
    "OutputRefusedError",
    "choose_mode",
    "describe_mode",
]
