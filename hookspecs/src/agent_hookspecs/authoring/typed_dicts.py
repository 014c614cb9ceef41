"""Typed dicts of `typing` as pydantic reads them, for types from which schemas are made.

It must not know what the schemas are for.
"""

from __future__ import annotations

import sys
from operator import is_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["readable_type"]


def readable_type(kind: Any, inside: tuple[Any, ...] = ()) -> Any:
    """The type as pydantic reads it: before 3.12, only the newer form of typed dicts."""
    if sys.version_info >= (3, 12):
        return kind
    from typing import is_typeddict

    if is_typeddict(kind):
        if kind in inside:
            raise TypeError(f"{kind.__name__} is a typing.TypedDict that has itself in it")
        return _newer_typed_dict(kind, (*inside, kind))
    origin: Any = get_origin(kind)
    args = get_args(kind)
    if origin is Literal:
        return kind
    read = tuple(readable_type(each, inside) for each in args)
    if all(map(is_, read, args)):
        return kind
    if origin is Annotated:
        origin, read = Annotated, (read[0], *kind.__metadata__)
    elif origin is UnionType:
        origin = Union
    return origin[read]


def _newer_typed_dict(kind: Any, inside: tuple[Any, ...]) -> Any:
    """A ``typing.TypedDict`` as one of ``typing_extensions``, with the same keys."""
    from typing_extensions import NotRequired, Required, TypedDict

    hints: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        # Neither alone tells it: the older form does not see what is only in the annotation.
        if get_origin(hint) in (NotRequired, Required):
            presence, (hint,) = get_origin(hint), get_args(hint)
        else:
            presence = Required if name in kind.__required_keys__ else NotRequired
        hints[name] = presence[readable_type(hint, inside)]
    make: Any = TypedDict
    made = make(kind.__name__, hints)
    made.__doc__, made.__module__ = kind.__doc__, kind.__module__
    return made
