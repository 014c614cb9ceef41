"""The five hook specifications and one way to look at them as data."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Literal

from agent_hookspecs.markers import Combining, combining_of
from agent_hookspecs.specs.additions import ExtensionSpec, FeatureSpec
from agent_hookspecs.specs.host import HostSpec
from agent_hookspecs.specs.provider import ProviderSpec
from agent_hookspecs.specs.tool import ToolSpec
from agent_hookspecs.values import dataclass

__all__ = [
    "SPECS",
    "ExtensionSpec",
    "FeatureSpec",
    "Hook",
    "HostSpec",
    "ProviderSpec",
    "SpecRole",
    "ToolSpec",
    "hooks_of",
]

SpecRole = Literal["provider", "extension", "feature", "tool", "host"]

SPECS: Mapping[SpecRole, type] = {
    "provider": ProviderSpec,
    "extension": ExtensionSpec,
    "feature": FeatureSpec,
    "tool": ToolSpec,
    "host": HostSpec,
}


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook of one role: its name, its arguments in order, and how results combine."""

    role: SpecRole
    name: str
    args: tuple[str, ...]
    combining: Combining
    signature: str
    doc: str


@cache
def hooks_of(role: SpecRole) -> Mapping[str, Hook]:
    """The hooks of a role by name, in the order in which the specification lists them."""
    found: dict[str, Hook] = {}
    for owner in reversed(SPECS[role].__mro__):
        for name, function in vars(owner).items():
            combining = combining_of(function)
            if combining is not None:
                found[name] = _hook(role, name, function, combining)
    return found


def _hook(role: SpecRole, name: str, function: object, combining: Combining) -> Hook:
    declared = inspect.signature(function)  # type: ignore[arg-type]
    parameters = [p for p in declared.parameters.values() if p.name != "self"]
    shown = declared.replace(parameters=parameters)
    return Hook(
        role=role,
        name=name,
        args=tuple(p.name for p in parameters),
        combining=combining,
        signature=f"{name}{shown}".replace("'", ""),
        doc=inspect.getdoc(function) or "",
    )
