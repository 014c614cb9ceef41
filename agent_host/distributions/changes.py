"""What a change of an environment would do, and what speaks against it, before anything is done."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from importlib_metadata import distributions
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from agent_hookspecs.values import dataclass
from agent_host.distributions.contents import Fetched
from agent_host.distributions.pins import Pin
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.catalog import PluginRecord, build_catalog
from agent_host.plugins.discover import discover

__all__ = ["Change", "Objection", "compare_pins", "find_objections", "installed_versions"]

Kind = Literal["add", "upgrade", "downgrade", "replace", "remove"]


@dataclass(frozen=True, slots=True)
class Change:
    """One distribution that comes, goes or changes, and because of what."""

    kind: Kind
    name: str
    before: str = ""
    after: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Objection:
    """What speaks against a change.

    A ``problem`` forbids it, a ``question`` is for a person to decide, a ``warning`` to know.
    """

    level: Literal["problem", "question", "warning"]
    distribution: str
    message: str


def installed_versions() -> dict[str, str]:
    """The installed distributions of this environment by name; of several the first on the path."""
    found: dict[str, str] = {}
    for distribution in distributions():
        name, version = _read_identity(distribution)
        if name:
            found.setdefault(canonical_name(name), version)
    return found


def _read_identity(distribution: Any) -> tuple[str, str]:
    """Name and version; the rest of the metadata, a README among it, takes long to parse."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    told: dict[str, str] = {}
    for line in text.splitlines():
        if not line or len(told) == 2:
            break
        key, _, value = line.partition(":")
        if key in ("Name", "Version"):
            told[key] = value.strip()
    return told.get("Name", ""), told.get("Version", "")


def compare_pins(
    pins: Mapping[str, Pin],
    installed: Mapping[str, str],
    *,
    gone: Iterable[str] = (),
    changed: Iterable[str] = (),
    reasons: Mapping[str, str] | None = None,
) -> list[Change]:
    """The changes that make an environment hold these pins, and not what is ``gone``.

    ``changed`` are those whose content is to change under the same version.
    """
    anew, why = {*changed}, reasons or {}
    changes = []
    for name, pin in sorted(pins.items()):
        before = installed.get(name, "")
        if not before:
            changes.append(Change("add", name, "", pin.version, why.get(name, "")))
        elif before != pin.version or name in anew:
            kind = _direction(before, pin.version)
            changes.append(Change(kind, name, before, pin.version, why.get(name, "")))
    removed = sorted(name for name in {*gone} if name in installed and name not in pins)
    changes += [Change("remove", name, installed[name], "", why.get(name, "")) for name in removed]
    return changes


def _direction(before: str, after: str) -> Kind:
    try:
        old, new = Version(before), Version(after)
    except InvalidVersion:
        # Nothing is lost: the change is told, without its direction.
        return "replace"
    return "upgrade" if new > old else "downgrade" if new < old else "replace"


def find_objections(
    changes: Iterable[Change],
    pins: Mapping[str, Pin],
    fetched: Mapping[str, Fetched],
    *,
    cooldown: timedelta,
    exact: Iterable[str] = (),
) -> Iterator[Objection]:
    """What speaks against the changes; ``exact`` names what was asked for at just this version."""
    asked, coming = {*exact}, [each.name for each in changes if each.kind != "remove"]
    for name in coming:
        pin, found = pins[name], fetched.get(name)
        if pin.yanked and name not in asked:
            yield Objection("problem", name, f"{pin.version} was withdrawn by its author (yanked)")
        yield from _object_to_age(pin, cooldown)
        if found is None:
            yield Objection("problem", name, "what was fetched does not hold it")
            continue
        yield from _object_to_fetched(found)
    yield from _object_to_plugins(coming, [c.name for c in changes if c.kind == "remove"], fetched)


def _object_to_age(pin: Pin, cooldown: timedelta) -> Iterator[Objection]:
    if pin.uploaded is None or not cooldown:
        return
    age = datetime.now(timezone.utc) - pin.uploaded.astimezone(timezone.utc)
    if age < cooldown:
        yield Objection(
            "problem",
            pin.name,
            f"{pin.version} is {_show_age(age)} old, younger than the cooldown of "
            f"{_show_age(cooldown)} (ask for {pin.name}<{pin.version}, wait, or --cooldown 0)",
        )


def _show_age(age: timedelta) -> str:
    hours = max(age, timedelta()) // timedelta(hours=1)
    return f"{hours // 24} days" if hours >= 48 else f"{hours} hours"


def _object_to_fetched(found: Fetched) -> Iterator[Objection]:
    if found.starters:
        named = ", ".join(found.starters)
        yield Objection(
            "warning", found.name, f"brings {named}, which Python runs whenever it starts"
        )
    plugins = [bundle for bundle in found.bundles if bundle.descriptor or bundle.problem]
    if found.scripts and plugins:
        named = ", ".join(found.scripts)
        yield Objection("warning", found.name, f"brings the commands {named}")
    try:
        fits = SpecifierSet(found.python).contains(".".join(map(str, sys.version_info[:3])))
    except InvalidSpecifier:
        # Nothing is lost: the installer has read it, too, and would have refused.
        fits = True
    if not fits:
        yield Objection("problem", found.name, f"needs Python {found.python}")


def _object_to_plugins(
    coming: Iterable[str], going: Iterable[str], fetched: Mapping[str, Fetched]
) -> Iterator[Objection]:
    """What the host would say of the plugins when all are there."""
    new = {*coming}
    absent = {*going, *new}
    stay = [b for b in discover() if canonical_name(b.distribution) not in absent]
    arrive = [bundle for name in new if name in fetched for bundle in fetched[name].bundles]
    present, afterwards = build_catalog(discover()), build_catalog([*stay, *arrive])
    before = {_identify(r) for r in present if not r.usable}
    for record in afterwards:
        name = canonical_name(record.bundle.distribution)
        if record.state in ("failed", "incompatible") and _identify(record) not in before:
            yield Objection("problem", name or record.bundle.name, record.reason)
    lacking = {(record.key, needed) for record, needed in present.unmet_needs()}
    for record, needed in afterwards.unmet_needs():
        if (record.key, needed) not in lacking:
            message = f"{record.key} needs {needed}, which will not be there: it takes no part"
            yield Objection("warning", record.bundle.owner, message)


def _identify(record: PluginRecord) -> tuple[str, str, str]:
    return record.bundle.distribution, record.key, record.reason
