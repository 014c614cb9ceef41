"""One core message of what a run is given: text, or text and files in any order.

Text at the beginning is the message's content, where everybody looks for it; whatever comes after
is its ``multipartContent``, in order. Nothing is left out: what cannot be used is an `InputError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from agent_hookspecs.messages import CoreMessage, MultipartContent
from agent_hookspecs.tool_interop.contents import content_part
from agent_host.input.errors import InputError
from agent_host.input.files import File

__all__ = ["Part", "Prompt", "make_message"]

#: A piece of a prompt: text, a file, the path or the data of one, or a part that somebody has made.
Part: TypeAlias = "str | File | os.PathLike[str] | bytes | MultipartContent"
#: What a run is given.
Prompt: TypeAlias = "Part | Sequence[Part]"


def make_message(prompt: Prompt) -> CoreMessage:
    """The user's message for a prompt; reads the files in it."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise _empty()
        return {"role": "user", "content": prompt, "metadata": {}}
    pieces = [prompt] if isinstance(prompt, (File, os.PathLike, bytes, Mapping)) else prompt
    if not isinstance(pieces, Sequence):
        raise _unusable(prompt)
    texts: list[str] = []
    parts: list[MultipartContent] = []
    for piece in pieces:
        if isinstance(piece, str) and not parts:
            texts.append(piece)
        else:
            parts.append(_part_of(piece))
    message: CoreMessage = {"role": "user", "content": "\n".join(texts), "metadata": {}}
    if parts:
        message["multipartContent"] = parts
    elif not message["content"].strip():
        raise _empty()
    return message


def _part_of(piece: Part) -> MultipartContent:
    if isinstance(piece, str):
        return content_part("text", {"text": piece})
    if isinstance(piece, File):
        return piece.to_part()
    if isinstance(piece, (bytes, os.PathLike)):
        return File(piece).to_part()
    if (
        isinstance(piece, Mapping)
        and isinstance(piece.get("type"), str)
        and isinstance(piece.get("content"), Mapping)
    ):
        return piece
    raise _unusable(piece)


def _empty() -> InputError:
    return InputError("the prompt is empty", hint="give some text, or a file")


def _unusable(piece: object) -> InputError:
    return InputError(
        f"a prompt cannot hold {type(piece).__name__}",
        hint="give text, a path, bytes, File(…), Image(…) or Audio(…), or a list of them",
    )
