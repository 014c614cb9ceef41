"""What a request carries, whatever its format: texts, numbers and keys, and where they stand.

Reads the JSON of a request as a tree and knows no vendor's words, so that one check serves every
format. It must not know what a check is about.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_host_testing.wire import Request

__all__ = ["Carried", "Leaf"]

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that holds no others, and where in the request it stands."""

    path: Path
    value: Any


class Carried:
    """The body of a request, to be asked what is in it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.body = request.body
        self.leaves = list(_leaves(request.body, ()))
        self.keys = {step for leaf in self.leaves for step in leaf.path if isinstance(step, str)}

    @property
    def is_json(self) -> bool:
        return isinstance(self.body, (dict, list))

    def places(self, text: str) -> list[Leaf]:
        """Every leaf with this text in it, to the letter, in the order of the request."""
        return [leaf for leaf in self.leaves if isinstance(leaf.value, str) and text in leaf.value]

    def has_text(self, text: str) -> bool:
        if not self.is_json:
            return text.encode() in self.request.raw
        return bool(self.places(text))

    def has_value(self, value: Any) -> bool:
        """Whether the value is a leaf; of a list all items, of a dict its keys in any place."""
        if isinstance(value, dict):
            return all(key in self.keys or self.has_value(key) for key in value)
        if isinstance(value, (list, tuple)):
            return all(self.has_value(item) for item in value)
        return any(type(leaf.value) is type(value) and leaf.value == value for leaf in self.leaves)

    def has_bytes(self, data: bytes) -> bool:
        """Whether the very bytes are there, as base64 in any text or as they are."""
        plain = base64.b64encode(data).decode("ascii").rstrip("=")
        urlsafe = base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
        return data in self.request.raw or any(map(self.has_text, (plain, urlsafe)))

    def owner_of(self, text: str, candidates: Iterable[str]) -> str | None:
        """Which of the candidates stands nearest to the text: in the smallest part that has one.

        None if no candidate stands anywhere near, or if several are equally near.
        """
        places = self.places(text)
        if not places:
            return None
        path = places[-1].path
        known = {each: [leaf.path for leaf in self._whole(each)] for each in candidates}
        for depth in range(len(path) - 1, 0, -1):
            part = path[:depth]
            inside = [each for each, at in known.items() if any(p[:depth] == part for p in at)]
            if inside:
                return inside[0] if len(inside) == 1 else None
        return None

    def _whole(self, text: str) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.value == text]

    def in_order(self, texts: Sequence[str]) -> list[str]:
        """The texts in the order in which the request has them; those it lacks are left out."""
        found = [
            (self.leaves.index(places[0]), places[0].value.index(text), text)
            for text in texts
            if (places := self.places(text))
        ]
        return [text for _, _, text in sorted(found)]

    def before(self, one: str, two: str) -> bool | None:
        """Whether one text stands before the other; None where no list says which is first."""
        if not (self.places(one) and self.places(two)):
            return None
        for left, right in zip(self.places(one)[0].path, self.places(two)[0].path, strict=False):
            if left != right:
                numbers = isinstance(left, int) and isinstance(right, int)
                return left < right if numbers else None  # type: ignore[operator]
        return None

    def list_of(self, text: str) -> Path:
        """The path of the outermost list in which the text stands; empty if it is in none."""
        for leaf in self.places(text)[:1]:
            for depth, step in enumerate(leaf.path):
                if isinstance(step, int):
                    return leaf.path[:depth]
        return ()


def _leaves(value: Any, path: Path) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    else:
        yield Leaf(path, value)
        # Arguments and results often travel as JSON in a text.
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except ValueError:  # Nothing is lost: then it is text.
                return
            yield from _leaves(inner, (*path, "json"))
