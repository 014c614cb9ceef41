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
        return lambda declared: _make_class(declared, frozen, kw_only)

    def _make_class(declared, frozen, kw_only):
        for base in declared.__mro__[1:]:
            if hasattr(base, "__dataclass_fields__"):
                raise _refusal(declared, f"inherits the fields of {base.__qualname__}")
        # Else one is made of the signature, which takes longer than all the rest.
        declared.__doc__ = declared.__doc__ or declared.__name__
        make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)
        made = make(declared)
        _check_fields(made)
        # For classes that derive from it, which must be frozen too or neither.
        made.__dataclass_params__.frozen = frozen

        def __init__(self, *args, **more):
            made.__init__ = _initialiser(made)
            made.__init__(self, *args, **more)

        made.__init__ = __init__
        own = declared.__dict__
        # Python itself sets it to None for a class that says when its values are equal.
        if own.get("__hash__") is None and ("__hash__" not in own or "__eq__" in own):
            made.__hash__ = __hash__ if frozen else None
        for method in _SHARED + _FROZEN if frozen else _SHARED:
            if method.__name__ not in own:
                setattr(made, method.__name__, method)
            elif method in _REFUSING:
                raise _refusal(declared, f"is frozen and has its own {method.__name__}")
        return made

    def _check_fields(made):
        """Refuse what would go wrong when the first value is made, or unseen."""
        default = None
        stored = {each.name for each in fields(made)}
        for each in made.__dataclass_fields__.values():
            # Of what is declared and not stored, the others are variables of the class.
            if each.name not in stored and "InitVar" in str(each.type):
                raise _refusal(made, f"has {each.name!r}, which is an InitVar")
        for each in fields(made):
            if each.init and not each.kw_only:
                if each.default is not MISSING or each.default_factory is not MISSING:
                    default = each.name
                elif default is not None:
                    raise TypeError(
                        f"non-default argument {each.name!r} of {made.__qualname__} follows "
                        f"default argument {default!r}"
                    )

    def _refusal(made, what):
        return TypeError(f"{made.__qualname__} {what}; use dataclasses.dataclass for that")

    def _initialiser(made):
        known = {"_unset": MISSING}
        names = {each.name for each in fields(made)}
        itself = "self" if "self" not in names else "_itself"
        positional, by_name, lines = [itself], [], []
        for each in fields(made):
            name, value = each.name, each.name
            parameters = by_name if each.kw_only else positional
            if each.default is not MISSING:
                known[f"_{name}_default"] = each.default
                parameter = f"{name}=_{name}_default"
                value = name if each.init else f"_{name}_default"
            elif each.default_factory is not MISSING:
                known[f"_{name}_made"] = each.default_factory
                parameter = f"{name}=_unset"
                value = f"_{name}_made()"
                if each.init:
                    value += f" if {name} is _unset else {name}"
            elif each.init:
                parameter = name
            else:
                # It is for ``__post_init__`` to set.
                continue
            if each.init:
                parameters.append(parameter)
            if made.__dataclass_params__.frozen:
                # Straight into the slot, because the class lets nobody set an attribute.
                known[f"_set_{name}"] = getattr(made, name).__set__
                lines.append(f"_set_{name}({itself}, {value})")
            else:
                lines.append(f"{itself}.{name} = {value}")
        if hasattr(made, "__post_init__"):
            lines.append(f"{itself}.__post_init__()")
        signature = ", ".join([*positional, *(["*", *by_name] if by_name else ())])
        exec(f"def __init__({signature}):\n " + "\n ".join(lines or ["pass"]), known)
        initialiser = known["__init__"]
        # What is said of wrong arguments begins with it.
        initialiser.__qualname__ = f"{made.__qualname__}.__init__"
        return initialiser

    @cache
    def _fields_to_compare(made):
        return attrgetter("__class__", *(each.name for each in fields(made) if each.compare))

    @cache
    def _fields_to_hash(made):
        names = [f.name for f in fields(made) if (f.compare if f.hash is None else f.hash)]
        return attrgetter("__class__", *names)

    def __eq__(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _fields_to_compare(self.__class__)
        return values(self) == values(other)

    def __hash__(self):
        return hash(_fields_to_hash(self.__class__)(self))

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
    _REFUSING = (__setattr__, __delattr__)
    _FROZEN = (*_REFUSING, __getstate__, __setstate__)
