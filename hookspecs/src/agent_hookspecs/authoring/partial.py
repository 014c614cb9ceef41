"""The shared streaming accumulator: a dict whose text fields grow in constant time.

Owns `Partial`, the type of ``state["partial"]``, `plain`, which turns what was accumulated into
ordinary dicts and lists, and the one rule for how much of an answer is kept besides its text. It
must not know any wire format, nor what the keys mean.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, SupportsIndex, TypeVar

from agent_hookspecs.errors import AnswerTooLargeError

__all__ = ["Partial", "plain"]

T = TypeVar("T")

#: How many values are kept of an answer at most: numbers, texts, lists, objects and keys. Each
#: takes up to a hundred bytes of memory and as few as two of the wire, so that a limit of the bytes
#: of an answer does not bound them.
MAX_ANSWER_VALUES = 200_000
#: As how many values what holds them counts besides: the block it is, and where it is remembered.
_HOLDER_VALUES = 8
#: How many fragments are joined at a time.
_BLOCK = 1024

# These run for every fragment of a stream, where looking up `super()` would be half of the cost.
_get = dict.get
_set = dict.__setitem__
_read = dict.__getitem__


class Allowance:
    """How many values of an answer are kept, and may be."""

    __slots__ = ("count", "limit")

    def __init__(self) -> None:
        self.count, self.limit = 0, MAX_ANSWER_VALUES

    def take(self, value: object) -> None:
        """Count a value with all that it holds; AnswerTooLargeError if that is too much."""
        count = _HOLDER_VALUES
        todo = [value]
        while todo:
            each = todo.pop()
            count += 1
            if isinstance(each, dict):
                count += len(each)
                todo += each.values()
            elif isinstance(each, list):
                todo += each
        self.count += count
        if self.count > self.limit:
            raise AnswerTooLargeError(
                f"the answer has more than {self.limit} values besides its text",
                limit="max_answer_values",
                hint="set max_answer_values higher if answers of this size are expected, or ask "
                "for less: fewer log probabilities, for one",
            )


class Partial(dict[str, Any]):
    """A dict that joins text when it is read, not when it is appended.

    It behaves as a dict under every operation of the language and the standard library: ``{**p}``,
    ``dict(p)``, ``|``, ``==``, ``match``, ``json.dumps``, views kept while it grows. Copies are
    plain dicts: ``p.copy()``, ``copy.copy``, ``copy.deepcopy`` and pickle never give a `Partial`.
    Code that reads a dict's memory from C without asking its type (orjson, msgpack,
    ``dict.items(p)``) sees text as it was at the last read; give it ``plain(p)``.

    Not thread-safe while it is written to: one belongs to one request.
    """

    __slots__ = ("_allowance", "_pending")

    _allowance: Allowance | None
    #: Text that was appended and not read yet. Its keys always stand in the dict too, with the text
    #: up to the last read, so that length, membership and order need no care. It is held as blocks
    #: and the latest fragments: a small string costs several times its text, so not many are kept.
    _pending: dict[str, tuple[list[str], list[str]]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Partial:
        self = super().__new__(cls, *args, **kwargs)
        self._pending = {}
        self._allowance = None
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self.update(*args, **kwargs)

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> Partial:
        """``value`` itself if it is a `Partial`, else a `Partial` with the same items."""
        if isinstance(value, Partial):
            return value
        return cls(value) if value else cls()

    @classmethod
    def of_answer(
        cls, config: Mapping[str, Any], value: Mapping[str, Any] | None = None
    ) -> Partial:
        """A `Partial` as `of` gives it, which keeps as many values as the request's config says."""
        self = cls.of(value)
        limit = config.get("max_answer_values")
        if type(limit) is int:
            self.allowance.limit = limit
        return self

    @property
    def allowance(self) -> Allowance:
        """What the answer may keep; those who merge parts of it count in the same place."""
        if self._allowance is None:
            self._allowance = Allowance()
        return self._allowance

    def keep(self, value: T) -> T:
        """``value`` itself, counted as one more thing that is kept of the answer.

        Whatever a server can send without end, and is not text that grows by `append_text`, goes
        through here when it is kept: blocks, parts, items, citations, log probabilities, keys.
        AnswerTooLargeError once it is too much.
        """
        self.allowance.take(value)
        return value

    def append_text(self, key: str, fragment: str) -> None:
        """Append to the text at ``key``; a missing or None value counts as empty text.

        Raises TypeError when the value at ``key``, or the fragment, is not text.
        """
        if type(fragment) is not str and not isinstance(fragment, str):
            raise TypeError(
                f"cannot append {type(fragment).__name__} to {key!r} of a partial: "
                "only text can be appended; assign other values"
            )
        pending = self._pending.get(key)
        if pending is None:
            current = _get(self, key)
            if current is None:
                _set(self, key, "")
            elif not isinstance(current, str):
                raise TypeError(
                    f"cannot append text to {key!r} of a partial: its value is "
                    f"{type(current).__name__}, not text; assign a string first"
                )
            pending = self._pending[key] = ([], [])
        blocks, latest = pending
        latest.append(fragment)
        if len(latest) == _BLOCK:
            blocks.append("".join(latest))
            latest.clear()

    def has_anything(self, key: str) -> bool:
        """Whether the value at ``key`` is neither missing nor empty; no text is joined for that."""
        return bool(_get(self, key)) or any(map(any, self._pending.get(key, ())))

    def _join(self, key: str) -> None:
        blocks, latest = self._pending.pop(key)
        _set(self, key, "".join((_read(self, key), *blocks, *latest)))

    def _join_all(self) -> None:
        for key in tuple(self._pending):
            self._join(key)

    # Reading.

    def __getitem__(self, key: str) -> Any:
        if key in self._pending:
            self._join(key)
        return _read(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        if key in self._pending:
            self._join(key)
        return _get(self, key, default)

    def __iter__(self) -> Iterator[str]:
        # CPython copies a dict subclass past its methods, unless it has an `__iter__` of its own.
        return super().__iter__()

    # A live view has to join what was appended after it was made; the built-in views cannot.
    def values(self) -> _Values:  # type: ignore[override]
        return _Values(self)

    def items(self) -> _Items:  # type: ignore[override]
        return _Items(self)

    def __repr__(self) -> str:
        self._join_all()
        return super().__repr__()

    def __eq__(self, other: object) -> bool:
        self._join_all()
        if isinstance(other, Partial):
            other._join_all()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return dict, (), None, None, iter(self.items())

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    # Writing.

    def __setitem__(self, key: str, value: Any) -> None:
        _set(self, key, value)
        if self._pending:
            self._pending.pop(key, None)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._pending.pop(key, None)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Partial:  # type: ignore[override]
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key in self._pending:
            self._join(key)
        return super().setdefault(key, default)

    def pop(self, key: str, /, *default: Any) -> Any:
        if key in self._pending:
            self._join(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        self._join_all()
        return super().popitem()

    def clear(self) -> None:
        super().clear()
        self._pending.clear()


class _Values(ValuesView[Any]):
    _mapping: Partial

    def __reversed__(self) -> Iterator[Any]:
        return (self._mapping[key] for key in reversed(self._mapping))

    def __repr__(self) -> str:
        return f"dict_values({list(self)!r})"


class _Items(ItemsView[str, Any]):
    _mapping: Partial

    def __reversed__(self) -> Iterator[tuple[str, Any]]:
        return ((key, self._mapping[key]) for key in reversed(self._mapping))

    def __repr__(self) -> str:
        return f"dict_items({list(self)!r})"


def plain(value: Any) -> Any:
    """``value`` with every dict and list in it, of whatever subclass, rebuilt as a plain one.

    Other values are passed on as they are, so nothing that was accumulated needs to be copyable.
    """
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if type(value) is tuple:
        return tuple(plain(item) for item in value)
    return value
