"""Changes of an environment from the wish to the end: resolve, look, object, carry out, lock.

Nothing is installed before all of it was resolved and looked at; what fails in the middle is
undone; list and lock are written when the environment is what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from importlib_metadata import PackageNotFoundError, distribution
from packaging.requirements import InvalidRequirement, Requirement

from agent_hookspecs.values import dataclass
from agent_host.distributions.changes import (
    Change,
    Objection,
    compare_pins,
    find_objections,
    installed_versions,
)
from agent_host.distributions.contents import Fetched, digest_contents, read_fetched
from agent_host.distributions.drift import lock_file, wanted_file
from agent_host.distributions.environment import Environment
from agent_host.distributions.errors import (
    ConflictError,
    DistributionError,
    LockError,
    OtherPythonError,
)
from agent_host.distributions.installers import Installer, Resolving, open_installer
from agent_host.distributions.journal import (
    change_files,
    end_change,
    find_unfinished,
    hold_environment,
    open_stage,
    undo_change,
)
from agent_host.distributions.pins import Pin, read_lock, write_lock
from agent_host.distributions.published import look_up_published
from agent_host.distributions.wanted import HOST, Wanted, WantedList, read_wanted
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.discover import discover

__all__ = ["COOLDOWN", "Manager", "Plan", "open_manager"]

#: Most of what is published with bad intent is found and withdrawn within days.
COOLDOWN = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Plan:
    """A change that was resolved and looked at; `Manager.carry_out` makes it true."""

    changes: tuple[Change, ...]
    objections: tuple[Objection, ...]
    pins: dict[str, Pin]
    wanted: WantedList

    @property
    def is_forbidden(self) -> bool:
        return any(each.level == "problem" for each in self.objections)

    def questions(self, accepted: Iterable[str]) -> list[Objection]:
        """What a person has to decide, but for what was accepted beforehand, by distribution."""
        known = {*map(canonical_name, accepted)}
        found = (each for each in self.objections if each.level == "question")
        return [each for each in found if each.distribution not in known]


@contextmanager
def open_manager(
    environment: Environment, folder: Path, tell: Callable[[str], None]
) -> Iterator[Manager]:
    """Whoever changes the environment, alone, for as long as the block lasts.

    ``folder`` holds list and lock. What an earlier change left half done is undone first.
    """
    with hold_environment(environment) as held:
        unfinished = find_unfinished(environment)
        if unfinished is not None:
            undo_change(environment, unfinished)
            tell("a change that was interrupted has been undone")
        with open_stage(environment) as stage:
            yield Manager(environment, open_installer(environment, held), folder, stage, tell)


class Manager:
    """Plans changes and carries them out."""

    def __init__(
        self,
        environment: Environment,
        installer: Installer,
        folder: Path,
        stage: Path,
        tell: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._installer = installer
        self._wanted = read_wanted(wanted_file(folder))
        self._lock_file = lock_file(folder)
        self._locked: dict[str, Pin] = {}
        self._other: OtherPythonError | None = None
        try:
            self._locked = read_lock(self._lock_file)
        except OtherPythonError as error:
            # Nothing is lost: its versions count, and whoever must not change it is told.
            self._other = error
        self._stage = stage
        self._tell = tell

    def plan_add(self, added: Sequence[Wanted], cooldown: timedelta) -> Plan:
        """To have these besides, and all that they need."""
        wanted = self._wanted.with_wanted(added)
        return self._plan(wanted, free={each.name for each in added}, cooldown=cooldown)

    def plan_remove(self, names: Iterable[str]) -> Plan:
        """To have these no longer, nor what they alone needed."""
        named = {*map(canonical_name, names)}
        for missing in sorted(named - {*self._wanted.by_name}):
            raise DistributionError(
                f"{missing} is not in {self._wanted.file}",
                hint="that lists: " + (", ".join(self._wanted.by_name) or "nothing"),
            )
        wanted = self._wanted.without_names(named)
        asked = [each.requirement for each in wanted.by_name.values()]
        needed = _find_needed([HOST, *_editable_names(), *asked])
        if needed is None or not needed <= {*self._locked}:
            return self._plan(wanted, free=set(), gone=named)
        # What stays is there already, so that nobody need be asked what fits.
        pins = {name: pin for name, pin in self._locked.items() if name in needed}
        return self._compare(wanted, pins, gone={*self._locked, *named} - needed)

    def plan_upgrade(self, names: Iterable[str], cooldown: timedelta) -> Plan:
        """To have the newest that fits of these, or of all that are wanted and the host."""
        named = {*map(canonical_name, names)}
        known = {*self._wanted.by_name, *self._locked, HOST}
        for missing in sorted(named - known):
            raise DistributionError(
                f"{missing} is neither wanted nor locked", hint=f"add it: plugins add {missing}"
            )
        return self._plan(self._wanted, free=named or known, cooldown=cooldown)

    def plan_lock(self, cooldown: timedelta) -> Plan:
        """To have what is wanted, locked as it is."""
        return self._plan(self._wanted, free=set(), cooldown=cooldown)

    def plan_sync(self, *, frozen: bool) -> Plan:
        """To have what is locked; ``frozen``: without ever making a lock."""
        missing = sorted({*self._wanted.by_name} - {*self._locked})
        if frozen and self._other is not None:
            raise self._other
        if missing or not self._locked:
            if frozen:
                raise LockError(
                    f"{self._lock_file} does not hold " + (", ".join(missing) or "anything"),
                    file=str(self._lock_file),
                    hint="run agent-host plugins lock, and keep the file",
                )
            return self._plan(self._wanted, free=set(), cooldown=timedelta())
        announced = {canonical_name(bundle.distribution) for bundle in discover()}
        return self._compare(self._wanted, self._locked, gone=announced - {*self._locked})

    def _plan(
        self,
        wanted: WantedList,
        *,
        free: set[str],
        gone: Iterable[str] = (),
        cooldown: timedelta = timedelta(),
    ) -> Plan:
        """Resolve what is wanted; what is not ``free`` stays as it is, if that is possible."""
        self._tell("resolving")
        requirements = [*self._host_requirements(free), *wanted.by_name.values()]
        asked = tuple(each.requirement for each in requirements)
        current = {name: pin.version for name, pin in self._locked.items()}
        current = current or (self._other.versions if self._other else installed_versions())
        fixed = tuple(f"{name}=={version}" for name, version in current.items() if name not in free)
        try:
            pins = self._installer.resolve(Resolving(asked, fixed))
        except ConflictError:
            # Nothing is lost: with what is there it does not fit; the changes say what must move.
            pins = self._installer.resolve(Resolving(asked))
        pins = {name: pin if name in free else self._as_built(pin) for name, pin in pins.items()}
        left = {*self._locked, *gone} - {*pins}
        return self._compare(wanted, pins, gone=left, cooldown=cooldown)

    def _host_requirements(self, free: set[str]) -> Iterator[Wanted]:
        """The host, and what comes from folders because somebody works on it there."""
        for name in (HOST, *_editable_names()):
            found = _find_installed(name)
            origin = found.origin if found is not None else None
            if found is None or (name != HOST and origin is None):
                continue
            url = getattr(origin, "url", "")
            exact = "" if name in free else f"=={found.version}"
            yield Wanted(name, f"{name} @ {url}" if url else f"{name}{exact}")

    def _compare(
        self,
        wanted: WantedList,
        pins: Mapping[str, Pin],
        *,
        gone: Iterable[str],
        cooldown: timedelta = timedelta(),
    ) -> Plan:
        installed = installed_versions()
        editable = {name for name in pins if _is_editable(_find_installed(name))}
        altered = {name for name, pin in pins.items() if not pin.version or _is_altered(pin)}

        def compare() -> list[Change]:
            changeable = {name: pin for name, pin in pins.items() if name not in editable}
            return compare_pins(changeable, installed, gone=gone, changed=altered)

        changes = compare()
        fetched: dict[str, Fetched] = {}
        if wanting := [pins[each.name] for each in changes if each.kind != "remove"]:
            self._tell(f"fetching {', '.join(pin.name for pin in wanting)}")
            self._installer.stage(wanting, self._stage)
            fetched = read_fetched(self._stage)
        # uv does not tell which version it would build; now it has.
        versions = {name: installed[name] for name in editable} | {
            name: each.version for name, each in fetched.items()
        }
        pins = {
            name: replace(pin, version=pin.version or versions.get(name, ""))
            for name, pin in pins.items()
        }
        changes = compare()
        coming = [pins[each.name] for each in changes if each.kind != "remove"]
        known, told = look_up_published(
            coming,
            self._locked,
            self._installer.find_indexes,
            with_age=bool(cooldown) and not self._installer.tells_age,
        )
        pins = {name: known.get(name) or self._as_locked(pin) for name, pin in pins.items()}
        reasons = _reasons(wanted, fetched)
        exact = {n for n, each in wanted.by_name.items() if "==" in each.requirement}
        objections = [
            *self._object_to_contents(coming, fetched),
            *find_objections(changes, pins, fetched, cooldown=cooldown, exact=exact),
            *told,
        ]
        full = {name: _with_contents(pin, fetched.get(name)) for name, pin in pins.items()}
        return Plan(
            tuple(replace(each, why=reasons.get(each.name, "")) for each in changes),
            tuple(objections),
            full,
            wanted,
        )

    def _as_built(self, pin: Pin) -> Pin:
        """With the version that was built of the same source, where the installer tells none."""
        locked = self._locked.get(pin.name)
        if pin.version or locked is None or (locked.url, locked.commit) != (pin.url, pin.commit):
            return pin
        return replace(pin, version=locked.version)

    def _as_locked(self, pin: Pin) -> Pin:
        """With the publisher that the lock has, which no installer tells."""
        locked = self._locked.get(pin.name)
        return replace(pin, publisher=locked.publisher) if locked else pin

    def _object_to_contents(
        self, coming: Iterable[Pin], fetched: Mapping[str, Fetched]
    ) -> Iterator[Objection]:
        """Of what is locked, what was fetched must be the same."""
        for pin in coming:
            locked, found = self._locked.get(pin.name), fetched.get(pin.name)
            if (
                locked is not None
                and found is not None
                and (locked.version, locked.kind) == (pin.version, pin.kind)
                and locked.contents not in ("", found.contents)
                and pin.kind in ("wheel", "archive")
            ):
                yield Objection(
                    "problem",
                    pin.name,
                    f"{pin.version} is not what it was when it was locked: somebody has changed it",
                )

    def carry_out(self, plan: Plan) -> None:
        """Change the environment, then list and lock; or leave all as it was."""
        try:
            if plan.changes:
                is_removal = all(each.kind == "remove" for each in plan.changes)
                self._tell("removing" if is_removal else "installing")
                names = [each.name for each in plan.changes]
                change_files(self._environment, names, self._stage)
            plan.wanted.write()
            write_lock(self._lock_file, plan.pins.values())
        except BaseException as error:
            journal = find_unfinished(self._environment)
            if journal is not None:
                undo_change(self._environment, journal)
            if isinstance(error, OSError):
                raise DistributionError(
                    f"the change cannot be carried out: {error}",
                    hint="nothing was changed; correct what it says",
                ) from error
            raise
        # Written last: whoever is killed before it finds the environment of the old lock.
        end_change(self._environment)


def _find_installed(name: str) -> Any:
    try:
        return distribution(name)
    except PackageNotFoundError:
        # Nothing is lost: the caller tells what is missing.
        return None


def _find_needed(requirements: Iterable[str]) -> set[str] | None:
    """What these name and all that it needs, of what is installed; None if some is missing."""
    needed: dict[str, set[str]] = {}
    waiting = [*map(Requirement, requirements)]
    while waiting:
        wanted = waiting.pop()
        name = canonical_name(wanted.name)
        if name in needed and wanted.extras <= needed[name]:
            continue
        needed[name] = needed.get(name, set()) | wanted.extras
        found = _find_installed(name)
        if found is None:
            return None
        for text in found.requires or ():
            try:
                asked = Requirement(text)
            except InvalidRequirement:
                # Nothing is lost: the installer is asked, which reads it in its own way.
                return None
            if asked.marker is None or any(
                asked.marker.evaluate({"extra": extra}) for extra in ("", *needed[name])
            ):
                waiting.append(asked)
    return {*needed}


def _is_editable(found: Any) -> bool:
    about = getattr(found.origin, "dir_info", None) if found is not None else None
    return bool(getattr(about, "editable", False))


def _editable_names() -> list[str]:
    return sorted(name for name in installed_versions() if _is_editable(_find_installed(name)))


def _is_altered(pin: Pin) -> bool:
    """Whether what is installed says that it is another wheel than the one that is pinned."""
    found = _find_installed(pin.name) if pin.contents else None
    return found is not None and digest_contents(found) != pin.contents


def _with_contents(pin: Pin, fetched: Fetched | None) -> Pin:
    if fetched is not None:
        return replace(pin, contents=fetched.contents)
    found = _find_installed(pin.name)
    return replace(pin, contents=pin.contents or digest_contents(found)) if found else pin


def _reasons(wanted: WantedList, fetched: Mapping[str, Fetched]) -> dict[str, str]:
    """Why each distribution is there: it is wanted, or somebody needs it."""
    reasons: dict[str, str] = {}
    needs = {name: each.requires for name, each in fetched.items()}
    for name, requires in sorted(needs.items()):
        for text in requires:
            try:
                needed = canonical_name(Requirement(text).name)
            except InvalidRequirement:
                # Nothing is lost: the installer has read it in its own way; this is only the why.
                continue
            reasons.setdefault(needed, f"needed by {name}")
    return reasons | dict.fromkeys(wanted.by_name, "wanted")
