"""How content is written and addressed, the same in every store.

What is stored is the JSON text of an item, byte for byte: keys in their order, numbers as Python
writes them, and half surrogates, which UTF-8 does not know, in their three bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, overload

from agent_hookspecs.store.errors import StoreError

__all__ = ["StoredItems", "content_digest", "decode_item", "decode_items", "encode_item"]

#: An item that contains itself fails as one that is nested too deeply.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_HINT = "store text, numbers, lists and objects only, for instance bytes as base64"


def encode_item(item: Any) -> bytes:
    """The JSON text of an item; a `StoreError` if it has none."""
    try:
        return _ENCODER.encode(item).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise StoreError(f"this cannot be written as JSON: {error}", hint=_HINT) from error
    except RecursionError as error:
        raise StoreError("this is nested too deeply to be written as JSON", hint=_HINT) from error


def decode_item(data: bytes) -> Any:
    """What `encode_item` was given."""
    return json.loads(_text(data))


def decode_items(items: Sequence[bytes] | Iterable[bytes]) -> list[Any]:
    """What `encode_item` was given, for many: one text is read faster than many."""
    found: list[Any] = json.loads(_text(b"[" + b",".join(items) + b"]"))
    return found


class StoredItems(Sequence[Any]):
    """Items that `encode_item` was given, each decoded when somebody looks at it."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._texts = list(texts)

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return decode_items(self._texts[place])
        return decode_item(self._texts[place])

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (StoredItems, list)):
            return NotImplemented
        return len(self) == len(other) and self[:] == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self[:])


def content_digest(data: bytes) -> bytes:
    """What stored content is found by; the same bytes are stored once."""
    return blake2b(data, digest_size=16).digest()


def _text(data: bytes) -> str:
    return bytes(data).decode("utf-8", "surrogatepass")
