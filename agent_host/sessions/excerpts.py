"""What stands for the messages of a session in its requests: some of them, others in their place.

A session keeps every message; an excerpt in its metadata says which of them are sent from now on,
and what is sent for the rest, such as a summary. It holds for as long as the messages it was made
of are the first ones. It knows nothing of natives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_hookspecs.errors import SessionError
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.values import dataclass
from agent_host.sessions.frozen import freeze
from agent_host.sessions.session import Session, check_message

__all__ = ["EXCERPT", "Excerpt", "excerpt_items", "find_excerpt", "make_excerpt", "with_excerpt"]

#: The key of a session's metadata.
EXCERPT = "excerpt"

#: The place of a message that is sent as it is, or a message in the place of others.
Item = int | CoreMessage


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is sent for the first ``covered`` messages of a session."""

    covered: int
    items: Sequence[Item]

    def messages(self, session: Session) -> list[CoreMessage]:
        """What is sent for the first messages."""
        every = session.messages
        return [every[item] if isinstance(item, int) else item for item in self.items]


def find_excerpt(session: Session) -> Excerpt | None:
    """The excerpt that a session has, if it is still of this session's messages."""
    match session.metadata.get(EXCERPT):
        case {"covered": int(covered), "digest": str(digest), "messages": list(items)} if (
            0 <= covered <= session.count
            and session.digest(covered) == digest
            and all(_is_item(item, covered) for item in items)
        ):
            return Excerpt(covered, items)
    return None


def _is_item(item: object, covered: int) -> bool:
    """Whether an item can be sent; sessions are also read from files that anybody may have made."""
    if isinstance(item, dict):
        return {"role", "content", "metadata"} <= item.keys()
    return type(item) is int and 0 <= item < covered


def excerpt_items(session: Session) -> list[Item]:
    """What is sent for all messages of a session, item by item."""
    excerpt = find_excerpt(session)
    if excerpt is None:
        return [*range(session.count)]
    return [*excerpt.items, *range(excerpt.covered, session.count)]


def make_excerpt(session: Session, items: Sequence[object], retained: int) -> Excerpt:
    """The excerpt of these items; raises `SessionError` if they are none of this session.

    Messages behind the first ``retained``, of which there are no natives yet, are left to the
    request that makes them, if they stay as they are.
    """
    checked = [_check_item(item, number, session.count) for number, item in enumerate(items)]
    places = [item for item in checked if isinstance(item, int)]
    if places != sorted(set(places)):
        raise SessionError(
            "the places in the excerpt are not in order", hint="name each message once, in order"
        )
    covered = session.count
    while checked and checked[-1] == covered - 1 >= retained:
        checked.pop()
        covered -= 1
    return Excerpt(covered, checked)


def _check_item(item: object, number: int, count: int) -> Item:
    if isinstance(item, Mapping):
        return check_message(item, number)
    if not isinstance(item, int) or isinstance(item, bool) or not 0 <= item < count:
        raise SessionError(
            f"item {number} of the excerpt is {item!r}",
            hint=f"give messages, or places of messages from 0 to {count - 1}",
        )
    return item


def with_excerpt(session: Session, excerpt: Excerpt) -> Session:
    """The session with another excerpt."""
    covered = excerpt.covered
    described = {
        "covered": covered,
        "digest": session.digest(covered),
        "messages": cast("list[Any]", freeze(list(excerpt.items))),
    }
    return session.with_metadata({EXCERPT: described})
