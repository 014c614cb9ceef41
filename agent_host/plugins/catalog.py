"""Every plugin the host knows of, each in a state with a reason.

`build_catalog` is pure: the same bundles and settings give the same catalog, in whatever order the
bundles were found. One broken package is one failed record and no concern of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from agent_hookspecs._version import API_VERSION
from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import PluginError, UnknownPluginError
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest_name
from agent_host.plugins.bundle import Bundle

__all__ = [
    "Catalog",
    "LoaderSettings",
    "PluginRecord",
    "PluginState",
    "UnknownName",
    "build_catalog",
    "complete_catalog",
]

PluginState = Literal["discovered", "incompatible", "disabled", "gated", "loaded", "failed"]


@dataclass(frozen=True, slots=True)
class LoaderSettings:
    """What the user decides about plugins.

    ``sources`` are ``path:``, ``pkg:`` and ``git+`` strings. ``allow`` (None: everything) and
    ``deny`` name bundles. ``enabled`` names plugins that are off by default, ``forced`` those that
    take part whatever the tags say. ``prefer`` settles collisions: from ``role:name`` (or
    ``tool-name:wire name``, ``bundle:name``) to the distribution or source that wins.
    ``denied_by_others`` are those of ``deny`` that somebody else has put there: they cannot make
    another provider the one that answers if none is named.
    """

    sources: tuple[str, ...] = ()
    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()
    forced: frozenset[str] = frozenset()
    prefer: Mapping[str, str] = field(default_factory=dict)
    denied_by_others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """One plugin class, or a bundle that cannot be read (then ``entry`` is None).

    ``described`` is False for a short form: what its entry says was asked of the imported class.
    """

    bundle: Bundle
    entry: Entry | None
    state: PluginState = "discovered"
    reason: str = ""
    described: bool = True

    @property
    def role(self) -> PluginRole | None:
        return self.entry.role if self.entry else None

    @property
    def name(self) -> str:
        """The plugin id; until a short-form class is imported, its path; else the bundle."""
        entry = self.entry
        return self.bundle.name if entry is None else entry.name or entry.entry

    @property
    def key(self) -> str:
        role = self.entry.role if self.entry else None
        return f"{role or 'unknown'}:{self.name}"

    @property
    def usable(self) -> bool:
        return self.state in ("discovered", "gated", "loaded")


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name in one of the loader's settings that nothing has: what is wrong, and the way out."""

    setting: str
    what: str
    hint: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """The records in a fixed order: by role, name, then bundle."""

    records: tuple[PluginRecord, ...]
    settings: LoaderSettings = LoaderSettings()
    #: What was asked for before, because every run asks for the same.
    _usable: dict[tuple[PluginRole | None, ...], list[PluginRecord]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __iter__(self) -> Iterator[PluginRecord]:
        return iter(self.records)

    def usable(self, *roles: PluginRole | None) -> list[PluginRecord]:
        """The records of these roles that nothing speaks against; None asks for short forms."""
        if roles not in self._usable:
            self._usable[roles] = [r for r in self.records if r.usable and r.role in roles]
        return [*self._usable[roles]]

    def find(self, name: str) -> list[PluginRecord]:
        """Everything that goes by a plugin id, bundle, distribution or ``role:name``."""
        return [
            r for r in self.records if name in (r.name, r.key, r.bundle.name, r.bundle.distribution)
        ]

    def unknown_names(self) -> Iterator[UnknownName]:
        """The names in the settings that allow, deny or prefer nothing."""
        settings = self.settings
        for setting, what, names in (
            ("deny", "bundle", settings.deny),
            ("allow", "bundle", settings.allow),
            ("prefer", "distribution", settings.prefer.values()),
        ):
            if not names:
                continue
            bundles = [record.bundle for record in self]
            known = {each.name if what == "bundle" else each.owner for each in bundles}
            for name in sorted({*names} - known):
                found = {record.bundle.name for record in self.find(name)}
                hint = f"it is in the bundle {found.pop()!r}" if len(found) == 1 else ""
                text = f"there is no {what} {name!r}"
                yield UnknownName(setting, text, hint or suggest_name(name, known))

    def unmet_needs(self) -> Iterator[tuple[PluginRecord, str]]:
        """The usable plugins that need one which nothing here can be, and its name."""
        usable = [record for record in self if record.usable]
        names = {name for record in usable for name in (record.name, record.key)}
        for record in usable:
            for needed in record.entry.required_plugins if record.entry else ():
                if needed not in names:
                    yield record, needed

    def provider(self, name: str | None) -> PluginRecord:
        """The provider of that name; if none is given, the fallback or the only one there is."""
        usable = self.usable("provider")
        if name is None:
            candidates = [*usable, *self._denied_providers()]
            fallbacks = [r for r in candidates if r.entry is not None and r.entry.fallback]
            if len(fallbacks) == 1 or len(candidates) == 1:
                chosen = (fallbacks or candidates)[0]
                if chosen.usable:
                    return chosen
                raise UnknownPluginError(
                    f"no provider was named, and the usual one, {chosen.name!r}, is denied",
                    plugins=(chosen.name,),
                    hint="the config of the folder denies it; name a provider with --provider",
                )
            raise UnknownPluginError(
                "no provider was named and "
                + ("several say they are the fallback" if fallbacks else "there is no fallback"),
                plugins=tuple(r.name for r in fallbacks),
                hint=f"name one of: {', '.join(r.name for r in usable) or 'none is installed'}",
            )
        for record in usable:
            if record.name == name:
                return record
        for record in self.records:
            if record.name == name and record.role in ("provider", None):
                raise UnknownPluginError(
                    f"provider {name!r} is {record.state}: {record.reason}",
                    plugins=(name,),
                    hint="agent-host plugins doctor says more",
                )
        known = [record.name for record in usable]
        raise UnknownPluginError(
            f"there is no provider {name!r}",
            plugins=(name,),
            hint=suggest_name(name, known) + self._broken_hint(),
        )

    def _denied_providers(self) -> list[PluginRecord]:
        """The providers that could be used if it were for the user alone."""
        others = self.settings.denied_by_others
        denied = [r for r in self.records if r.role == "provider" and r.bundle.name in others]
        return [r for r in denied if r.state == "disabled"]

    def _broken_hint(self) -> str:
        """Where to look for a plugin whose name is not known because its package is broken."""
        broken = any(record.state in ("failed", "incompatible") for record in self)
        return "; agent-host plugins doctor says what cannot be used" if broken else ""


def build_catalog(bundles: Iterable[Bundle], settings: LoaderSettings | None = None) -> Catalog:
    """Give every entry of every bundle its state."""
    settings = settings or LoaderSettings()
    return _judge_together(
        [
            _judge_record(
                PluginRecord(bundle, entry, described=entry is None or not entry.short), settings
            )
            for bundle in _drop_doubles(bundles)
            for entry in (bundle.descriptor.entries if bundle.descriptor else (None,))
        ],
        settings,
    )


def complete_catalog(catalog: Catalog, identify: Callable[[PluginRecord], Entry]) -> Catalog:
    """The catalog with every short form identified, and if any was not yet, judged anew."""
    changed: dict[int, PluginRecord] = {}
    for place, record in enumerate(catalog):
        if not record.described and record.usable and record.entry is not None:
            try:
                entry = identify(record)
                if entry is not record.entry:
                    changed[place] = replace(record, entry=entry)
            except PluginError as error:
                changed[place] = replace(record, state="failed", reason=error.explain())
    if not changed:
        return catalog
    records = [changed.get(place, record) for place, record in enumerate(catalog)]
    return _judge_together(records, catalog.settings)


def _judge_together(records: list[PluginRecord], settings: LoaderSettings) -> Catalog:
    records = sorted(records, key=_rank)
    for kind, claims in _CLAIMS.items():
        records = _fail_collisions(records, settings, kind, claims)
    return Catalog(tuple(_fail_cross_role(records)), settings)


#: The order of the roles; what has none comes last.
_RANKS: dict[PluginRole | None, int] = {
    role: rank for rank, role in enumerate((*PLUGIN_ROLES, None))
}


def _drop_doubles(bundles: Iterable[Bundle]) -> list[Bundle]:
    """One of those that lead to the same descriptor: an installed package may be a source too."""
    unique: dict[str, Bundle] = {}
    ranked = sorted(bundles, key=lambda b: (b.origin != "installed", b.name, b.source, b.owner))
    for number, bundle in enumerate(ranked):
        known = bundle.file if bundle.file and bundle.descriptor else f"#{number}"
        unique.setdefault(known, bundle)
    return list(unique.values())


def _rank(record: PluginRecord) -> tuple[int, str, str, str]:
    bundle = record.bundle
    return _RANKS[record.role], record.name, bundle.name, bundle.owner


def _judge_record(record: PluginRecord, settings: LoaderSettings) -> PluginRecord:
    bundle, descriptor = record.bundle, record.bundle.descriptor
    if bundle.name in settings.deny:
        return replace(record, state="disabled", reason=f"bundle {bundle.name!r} is denied")
    if settings.allow is not None and bundle.name not in settings.allow:
        reason = f"bundle {bundle.name!r} is not on the allow list"
        return replace(record, state="disabled", reason=reason)
    if bundle.problem:
        return replace(record, state="failed", reason=bundle.problem)
    if descriptor and not descriptor.supports(API_VERSION):
        needs = f"made for contract {descriptor.api}, this host has {API_VERSION}"
        reason = f"{needs} (upgrade {bundle.owner} or the host)"
        return replace(record, state="incompatible", reason=reason)
    return record


Claims = Callable[[PluginRecord], Iterable[str]]

#: What two plugins may not both have, in the order in which it is looked at.
_CLAIMS: dict[str, Claims] = {
    "bundle": lambda record: (record.bundle.name,),
    "plugin": lambda record: (record.key,) if record.role else (),
    "tool-name": lambda record: record.entry.tools if record.entry else (),
}


def _fail_collisions(
    records: list[PluginRecord], settings: LoaderSettings, kind: str, claims: Claims
) -> list[PluginRecord]:
    """Fail every record whose claim another one shares, unless a preference settles it."""
    claimed: dict[str, list[PluginRecord]] = {}
    for record in records:
        for claim in claims(record) if record.usable else ():
            claimed.setdefault(claim, []).append(record)
    losers: dict[int, str] = {}
    for claim, rivals in claimed.items():
        if len(rivals) == 1:
            continue
        owners = Counter(rival.bundle.owner for rival in rivals)
        # The plugins of a distribution share its bundle; any other claim each makes for itself.
        shared = kind == "bundle"
        if shared and len(owners) == 1:
            continue
        setting = claim if kind == "plugin" else f"{kind}:{claim}"
        winner = settings.prefer.get(setting, "")
        for rival in rivals:
            if rival.bundle.owner == winner and (shared or owners[winner] == 1):
                continue
            among = [winner] if rival.bundle.owner == winner else sorted(owners)
            losers[id(rival)] = _collision_reason(claim, kind, among, setting, winner)
    return [
        replace(record, state="failed", reason=losers[id(record)])
        if id(record) in losers
        else record
        for record in records
    ]


def _collision_reason(
    claim: str, kind: str, owners: Sequence[str], setting: str, winner: str
) -> str:
    what = {"bundle": f"bundle {claim!r}", "plugin": claim, "tool-name": f"tool {claim!r}"}[kind]
    if len(owners) == 1:
        return f"{owners[0]} registers {what} twice (rename one of them in its descriptor)"
    if winner in owners:
        return f"{winner} is preferred for {what}"
    return (
        f"{what} is claimed by {' and by '.join(owners)} (uninstall one, or put "
        f'"{setting}": "{owners[0]}" under prefer_plugins in the config)'
    )


def _fail_cross_role(records: Sequence[PluginRecord]) -> Iterator[PluginRecord]:
    """Fail the records that want to come before or after a plugin of another role alone."""
    roles: dict[str, set[str]] = {}
    for record in records:
        if record.usable and record.role:
            roles.setdefault(record.name, set()).add(record.role)
    for record in records:
        entry = record.entry if record.usable else None
        named = (*entry.before, *entry.after) if entry else ()
        elsewhere = [n for n in named if n in roles and record.role not in roles[n]]
        if elsewhere:
            others = ", ".join(f"{name!r} ({'/'.join(sorted(roles[name]))})" for name in elsewhere)
            reason = f"before and after work within role {record.role}, but it names {others}"
            yield replace(record, state="failed", reason=f"{reason} (remove it)")
        else:
            yield record
