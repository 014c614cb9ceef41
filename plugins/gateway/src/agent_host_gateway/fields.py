"""`Fields`: what a client has sent, read field by field; whatever is left over is refused.

Nothing of a request is dropped in silence: a door takes what it understands, and `refuse_rest`
names the first field that nobody took.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from agent_host_gateway.refusals import Refused

__all__ = ["Fields"]

T = TypeVar("T")

_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


class Fields:
    """An object of a request, ``where`` says which; a field that is null counts as left out."""

    def __init__(self, value: object, where: str = "") -> None:
        self.where = where
        if not isinstance(value, dict):
            raise Refused(f"{where or 'the body'} is not an object", param=where or None)
        self._left: dict[str, Any] = {k: v for k, v in value.items() if v is not None}

    def path(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def __contains__(self, name: object) -> bool:
        return name in self._left

    def take(self, name: str, kind: type[T]) -> T | None:
        """The field if it is there; refused if it is not of that kind."""
        if name not in self._left:
            return None
        value = self._left.pop(name)
        # To Python a truth value is a number, and 1 a floating one.
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise Refused(f"{self.path(name)} is not {_WORDS[kind]}", param=self.path(name))
        return value  # type: ignore[no-any-return]

    def need(self, name: str, kind: type[T]) -> T:
        value = self.take(name, kind)
        if value is None:
            raise Refused(f"{self.path(name)} is missing", param=self.path(name))
        return value

    def take_any(self, name: str) -> Any:
        """The field, whatever it is; its reader looks at it."""
        return self._left.pop(name, None)

    def objects(self, name: str) -> Iterator[Fields]:
        """The objects of a list."""
        for place, each in enumerate(self.take(name, list) or ()):
            yield Fields(each, f"{self.path(name)}[{place}]")

    def child(self, name: str) -> Fields | None:
        value = self.take(name, dict)
        return None if value is None else Fields(value, self.path(name))

    def drop(self, *names: str) -> None:
        """Leave out fields that say nothing about the answer."""
        for name in names:
            self._left.pop(name, None)

    def leave_rest(self, warnings: list[str]) -> None:
        """Leave out what nobody took, and say so: for what clients repeat and do not wish for."""
        for name in self._left:
            told = f"{name!r} of an earlier answer is not passed on"
            if told not in warnings:
                warnings.append(told)
        self._left.clear()

    def refuse(self, name: str, why: str) -> Refused:
        return Refused(f"{self.path(name)} {why}", param=self.path(name))

    def refuse_rest(self, harmless: Mapping[str, tuple[Any, ...]] | None = None) -> None:
        """Refuse what nobody took, but for fields that say what happens anyway."""
        for name, value in self._left.items():
            if any(value is each or value == each for each in (harmless or {}).get(name, ())):
                continue
            raise Refused(
                f"{self.path(name)} is not supported by this gateway, so it is refused and not "
                "ignored; leave it out",
                param=self.path(name),
                code="unsupported_parameter",
            )
