"""What an index says of the distributions that would come, and what speaks against it.

Their age and whether they were withdrawn, where the installer did not tell it; their publishers, of
whom the first is trusted and a change is asked about. It must not know how an index is read.
Whatever asks one is imported when there is something to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from agent_host.distributions.changes import Objection
from agent_host.distributions.pins import Pin

if TYPE_CHECKING:
    from agent_host.distributions.attestations import Attested
    from agent_host.distributions.index_pages import FileFacts

__all__ = ["EXTRA", "can_verify", "look_up_published"]

#: What to install so that attestations can be verified.
EXTRA = "agent-host-core[attestations]"
_FEW = 3


def can_verify() -> bool:
    """Whether what verifies attestations is installed."""
    return find_spec("pypi_attestations") is not None


def look_up_published(
    coming: Iterable[Pin],
    locked: Mapping[str, Pin],
    find_indexes: Callable[[], Sequence[str]],
    *,
    with_age: bool,
) -> tuple[dict[str, Pin], list[Objection]]:
    """The pins with their publishers, by name, and what speaks against them.

    ``with_age``: and with their ages, which the installer does not tell. Of files that are locked
    nothing is asked.
    """
    pins = [pin for pin in coming if pin.is_on_index and not _is_locked(pin, locked)]
    undated = [pin for pin in pins if with_age and pin.uploaded is None]
    verifies = can_verify()
    wanted = pins if verifies else undated
    if not wanted:
        return {}, [*_object_to_unchecked(pins, locked)]
    from agent_host.distributions.attestations import check_attestations
    from agent_host.distributions.index_pages import find_facts
    from agent_host.distributions.web import open_reader

    with open_reader() as reader:
        facts = find_facts(wanted, find_indexes(), reader)
        attested = check_attestations(pins, facts, reader) if verifies else []
    # What could not be found out leaves the publisher of the version before in the lock.
    publishers = {each.distribution: each.publisher for each in attested if each.state != "unknown"}
    known = {
        pin.name: replace(
            pin,
            uploaded=pin.uploaded or facts[pin.name].uploaded,
            # Not every pip tells it.
            yanked=pin.yanked or facts[pin.name].yanked,
            publisher=publishers.get(pin.name, _publisher_before(pin.name, locked)),
        )
        for pin in wanted
    }
    objections = [
        *_object_to_unknown_age([known[pin.name] for pin in undated], facts),
        *(each for one in attested for each in _object_to_publisher(one, locked)),
        *(() if verifies else _object_to_unchecked(pins, locked)),
    ]
    return known, objections


def _is_locked(pin: Pin, locked: Mapping[str, Pin]) -> bool:
    return pin.name in locked and locked[pin.name].sha256 == pin.sha256


def _publisher_before(name: str, locked: Mapping[str, Pin]) -> str:
    return locked[name].publisher if name in locked else ""


def _object_to_unknown_age(
    pins: Iterable[Pin], facts: Mapping[str, FileFacts]
) -> Iterator[Objection]:
    """One line for all of them: where an index says nothing, it says nothing of any."""
    found = [pin for pin in pins if pin.uploaded is None]
    if found:
        names = ", ".join(pin.name for pin in found[:_FEW])
        more = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
        why = facts[found[0].name].reason or "the index does not say"
        message = f"how old {names}{more} is, is not known, and no cooldown holds: {why}"
        yield Objection("warning", found[0].name, message)


def _object_to_publisher(attested: Attested, locked: Mapping[str, Pin]) -> Iterator[Objection]:
    name = attested.distribution
    before = _publisher_before(name, locked)
    if attested.state == "failed":
        message = f"the attestation of {attested.version} does not hold: {attested.reason}"
        yield Objection("problem", name, message)
    elif before and attested.publisher != before:
        now = f"is published by {attested.publisher}"
        if attested.state != "verified":
            now = "has no attestation that says who published it"
        yield Objection("question", name, f"was published by {before}; {attested.version} {now}")


def _object_to_unchecked(pins: Iterable[Pin], locked: Mapping[str, Pin]) -> Iterator[Objection]:
    for pin in pins:
        before = _publisher_before(pin.name, locked)
        if before:
            message = (
                f"was published by {before}; whether {pin.version} is, cannot be checked "
                f"without {EXTRA}"
            )
            yield Objection("warning", pin.name, message)
