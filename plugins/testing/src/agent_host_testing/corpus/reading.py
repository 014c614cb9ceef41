"""What the readers of recorded requests have in common: keys that become knobs, and what is left.

Owns nothing of a protocol but the settings that all of them have under some name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent_host_testing.corpus.entries import Answer, Block, Entry

__all__ = [
    "answered",
    "data_url",
    "function_schema",
    "left",
    "media",
    "model_in",
    "signature",
    "strict_schema",
    "user_entries",
    "without_unset",
]


_MODEL_IN_URL = re.compile(r"/(?:models?|deployments)/([^/:?]+)")


def without_unset(**values: Any) -> dict[str, Any]:
    """Those of the values that are set."""
    return {key: value for key, value in values.items() if value is not None}


def left(body: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Any]:
    """What the config's ``extra_body`` has to say: all that nothing else stands for."""
    names = set(taken)
    rest = {k: v for k, v in body.items() if k not in names and v not in (None, "")}
    return {"extra_body": rest} if rest else {}


def media(kind: str, **places: Any) -> Block:
    """A picture, sound or file, and where it is."""
    return Block("media", {"kind": kind, **without_unset(**places)})


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def function_schema(declared: Mapping[str, Any], parameters: str = "parameters") -> dict[str, Any]:
    """A tool as its author would write it, from the object that names it."""
    return {
        "name": declared["name"],
        "description": declared.get("description") or "",
        "parameters": declared.get(parameters) or {"type": "object", "properties": {}},
    }


def strict_schema(declared: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of an API that may be told to hold calls to its schema."""
    return {**function_schema(declared), **({"strict": True} if declared.get("strict") else {})}


def signature(value: Any) -> str | None:
    """A signature as it was written; None where there is none."""
    return value if isinstance(value, str) and value else None


def answered(history: Mapping[str, Any], citations: Iterable[Any] = ()) -> Answer:
    """An answer without the citations that say nothing."""
    return Answer(history, tuple(citation for citation in citations if citation))


def model_in(url: str) -> str | None:
    """The model's name, where an API has it in the address."""
    found = _MODEL_IN_URL.search(url)
    return found[1] if found else None


def user_entries(blocks: Sequence[Block]) -> Iterator[Entry]:
    """What stands in a user's message: results of tools first, then what the user says."""
    results = tuple(block for block in blocks if block.kind == "result")
    spoken = tuple(block for block in blocks if block.kind != "result")
    if results:
        yield Entry("tool", results)
    if spoken or not results:
        yield Entry("user", spoken)
