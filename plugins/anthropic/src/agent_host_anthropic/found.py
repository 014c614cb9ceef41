"""Searches of tools that the API has run, as they stand in its answers and go back to it.

A search is a ``server_tool_use`` and, with the same id, a result that refers to the tools it found.
While the references go back, the API shows those tools to the model without another search.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

__all__ = ["found_names", "is_result", "with_known_references", "without_open_searches"]

Block = dict[str, Any]

_CALL = re.compile(r"tool_search_tool_[a-z0-9]+")
#: Some servers name the kind of the search in the type, which nobody takes back so.
_RESULT = re.compile(r"tool_search_tool_(?:[a-z0-9]+_tool_)?result")
_TYPE = "tool_search_tool_result"


def is_result(block: Mapping[str, Any]) -> bool:
    """Whether the block is what a search of tools gave."""
    return _RESULT.fullmatch(str(block.get("type"))) is not None


def found_names(blocks: Iterable[Mapping[str, Any]]) -> list[str]:
    """The wire names of the tools that searches have found, each once, in order."""
    found = (reference.get("tool_name") for block in blocks for reference in _references(block))
    return list(dict.fromkeys(name for name in found if isinstance(name, str)))


def _references(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = block.get("content") if is_result(block) else None
    listed = content.get("tool_references") if isinstance(content, Mapping) else None
    return [each for each in listed or () if isinstance(each, Mapping)]


def with_known_references(blocks: Sequence[Block], known: Collection[str]) -> list[Block]:
    """The blocks without references to tools that are not ``known``, which the API refuses."""
    return [_known(block, known) if is_result(block) else block for block in blocks]


def _known(block: Block, known: Collection[str]) -> Block:
    references = _references(block)
    left = [each for each in references if each.get("tool_name") in known]
    if len(left) == len(references):
        return block if block["type"] == _TYPE else {**block, "type": _TYPE}
    return {**block, "type": _TYPE, "content": {**block["content"], "tool_references": left}}


def without_open_searches(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without searches that came to no end; the API refuses one without its result."""
    ended = {block.get("tool_use_id") for block in blocks if is_result(block)}
    return [block for block in blocks if not _is_search(block) or block.get("id") in ended]


def _is_search(block: Block) -> bool:
    kind, name = block.get("type"), str(block.get("name"))
    return kind == "server_tool_use" and _CALL.fullmatch(name) is not None
