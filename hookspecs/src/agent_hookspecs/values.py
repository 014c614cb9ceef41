"""Dataclasses with slots that cost little to declare.

For each class `dataclasses.dataclass` compiles up to eight methods, which takes longer than all the
rest of importing its module. Here the methods are shared by all classes, and only ``__init__`` is
compiled, when the first value is made. They are used as those of the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from dataclasses import MISSING, FrozenInstanceError, fields
    from functools import cache
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(*, slots, frozen=False, kw_only=False):
        """As `dataclasses.dataclass`, for classes that have slots and inherit no fields."""
        assert slots, "any other is the standard library's to make"
        return lambda declared: _made(declared, frozen, kw_only)

    def _made(declared, frozen, kw_only):
        make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)
        made = make(declared)
        # For classes that derive from it, which must be frozen too or neither.
        made.__dataclass_params__.frozen = frozen

        def __init__(self, *args, **more):
            made.__init__ = _initialiser(made)
            made.__init__(self, *args, **more)

        made.__init__ = __init__
        made.__hash__ = None
        for method in _SHARED + _FROZEN if frozen else _SHARED:
            if method.__name__ not in declared.__dict__:
                setattr(made, method.__name__, method)
        return made

    def _initialiser(made):
        known = {"_unset": MISSING}
        parameters, lines = ["self"], []
        for each in sorted(fields(made), key=lambda each: each.kw_only):
            if not each.init:
                # It is for ``__post_init__`` to set.
                continue
            name, value = each.name, each.name
            if each.kw_only and "*" not in parameters:
                parameters.append("*")
            if each.default is not MISSING:
                known[f"_{name}_default"] = each.default
                parameters.append(f"{name}=_{name}_default")
            elif each.default_factory is not MISSING:
                known[f"_{name}_made"] = each.default_factory
                parameters.append(f"{name}=_unset")
                value = f"_{name}_made() if {name} is _unset else {name}"
            else:
                parameters.append(name)
            # Straight into the slot, because the class lets nobody set an attribute.
            known[f"_set_{name}"] = getattr(made, name).__set__
            lines.append(f"_set_{name}(self, {value})")
        if hasattr(made, "__post_init__"):
            lines.append("self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known)
        return known["__init__"]

    @cache
    def _compared(made):
        return attrgetter("__class__", *(each.name for each in fields(made) if each.compare))

    def __eq__(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        compared = _compared(self.__class__)
        return compared(self) == compared(other)

    def __hash__(self):
        return hash(_compared(self.__class__)(self))

    @recursive_repr()
    def __repr__(self):
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def __setattr__(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self):
        return [getattr(self, each.name) for each in fields(self)]

    def __setstate__(self, state):
        for each, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)

    _SHARED = (__eq__, __repr__)
    _FROZEN = (__hash__, __setattr__, __delattr__, __getstate__, __setstate__)
