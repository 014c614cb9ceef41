"""Requests that are wrong in one place, and requests that were recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"

Body = dict[str, Any]
Change = Callable[[Body], object]


def set_to(path: str, value: Any) -> Change:
    """A change: the field at the path, such as ``messages/0/role``, gets the value."""

    def change(body: Body) -> None:
        target, last = _at(body, path)
        target[last] = value

    return change


def without(path: str) -> Change:
    """A change: the field at the path is gone."""

    def change(body: Body) -> None:
        target, last = _at(body, path)
        del target[last]

    return change


def _at(body: Any, path: str) -> tuple[Any, Any]:
    *way, last = (int(step) if step.isdigit() else step for step in path.split("/"))
    for step in way:
        body = body[step]
    return body, last


def any_change(body: Body, *names: str) -> st.SearchStrategy[Change]:
    """Changes of any one place of the body; objects that are put there have fields so named."""
    leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3)
    values = st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(names), inner, max_size=3)
        ),
        max_leaves=6,
    )
    return st.builds(set_to, st.sampled_from(_paths(body)), values)


def _paths(value: Any) -> list[str]:
    """The way to every value inside a value."""
    if not isinstance(value, dict | list):
        return []
    children = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, child in children:
        found += [str(key), *(f"{key}/{inner}" for inner in _paths(child))]
    return found


def recordings(folder: str) -> list[Body]:
    """The recordings in a folder of the corpus, in order; none where there is no corpus."""
    files = sorted(_CORPUS.glob(f"{folder}/*.json"))
    return [json.loads(file.read_text("utf-8")) for file in files]
