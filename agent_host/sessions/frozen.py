"""Dicts and lists that cannot be changed, for values that several sessions share.

They are real dicts and lists to everyone who reads them, JSON and ``==`` included. Whoever wants to
change one copies it first: every way of copying gives a plain one.
"""

from __future__ import annotations

from typing import Any, NoReturn

from agent_hookspecs.errors import SessionError

__all__ = [
    "FrozenDict",
    "FrozenList",
    "freeze",
    "plain_copy",
    "refuse_foreign",
    "too_deep_error",
]


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(
        "what a session holds cannot be changed in place: copy it, change the copy, and hand that "
        "on; session.with_messages(…) makes a new session of changed messages"
    )


class FrozenDict(dict[str, Any]):
    """A dict that refuses to be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    copy = __copy__

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        plain: dict[str, Any] = plain_copy(self)
        return plain

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses to be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    copy = __copy__

    def __deepcopy__(self, memo: object) -> list[Any]:
        plain: list[Any] = plain_copy(self)
        return plain

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


#: Most of what there is; looked at where it stands, because a call takes longer.
_PLAIN = frozenset({str, int, float, bool, type(None)})
_UNCHANGEABLE = _PLAIN | {FrozenDict, FrozenList}


def freeze(value: Any) -> Any:
    """``value`` with every dict and list in it frozen; what is frozen already is not copied.

    Raises `SessionError` if it is nested too deeply, or contains itself.
    """
    try:
        return _freeze(value)
    except RecursionError as error:
        raise too_deep_error() from error


def too_deep_error() -> SessionError:
    return SessionError(
        "the data is nested too deeply to be held in a session",
        hint="store what is nested that deeply as text, for instance as JSON",
    )


def _freeze(value: Any) -> Any:
    if isinstance(value, (FrozenDict, FrozenList)):
        return value
    if isinstance(value, dict):
        frozen = FrozenDict(value)
        for key, item in frozen.items():
            if type(item) not in _UNCHANGEABLE:
                dict.__setitem__(frozen, key, _freeze(item))
        return frozen
    if isinstance(value, (list, tuple)):
        items = FrozenList(value)
        for place, item in enumerate(items):
            if type(item) not in _UNCHANGEABLE:
                list.__setitem__(items, place, _freeze(item))
        return items
    return value


def plain_copy(value: Any) -> Any:
    """A plain copy of ``value``, all the way down."""
    if isinstance(value, dict):
        return {k: item if type(item) in _PLAIN else plain_copy(item) for k, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _PLAIN else plain_copy(item) for item in value]
    return value


def refuse_foreign(value: Any) -> None:
    """Raise a TypeError if JSON has no form for anything in ``value``.

    Texts are not read for it, however long: whoever wrote them out would hold up all others.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) not in _PLAIN:
                raise TypeError(f"{type(key).__name__} is no key that JSON has")
            if type(item) not in _PLAIN:
                refuse_foreign(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            if type(item) not in _PLAIN:
                refuse_foreign(item)
    elif not isinstance(value, (str, int, float, type(None))):
        raise TypeError(f"{type(value).__name__} is nothing that JSON has")
