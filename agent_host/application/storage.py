"""Where an application stores its sessions and runs, if anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.store.protocol import SessionStore

if TYPE_CHECKING:
    from agent_host.plugins.stacks import Stacks
    from agent_host.runs.storage import Storage

__all__ = ["choose_storage"]

#: What a config gives in the place of a URL if nothing is to be stored.
_NO_STORE = "none"


def choose_storage(
    given: str | bool | SessionStore | None, values: Mapping[str, Any], stacks: Stacks
) -> Storage | None:
    """The storage that the caller names, or else the config with these values; None: there is none.

    True is the user's own file if the config names none. Nothing is opened.
    """
    named = values.get("store")
    if given is False or (given is None and not named):
        return None
    # Here, because most programs store nothing.
    from agent_host.plugins.stores import check_store, open_store
    from agent_host.runs.storage import Storage
    from agent_host.store.plugin import DEFAULT_URL, database_files

    if given is True or given is None:
        given = named or DEFAULT_URL
    if given == _NO_STORE:
        return None
    if not isinstance(given, str):
        made = given
        return Storage(lambda: made)
    where, options = given, values.get("store_options", {})
    stacks.protect(*database_files(where))
    return Storage(
        lambda: open_store(where, options, stacks.catalog, stacks.activator),
        lambda: check_store(where, stacks.catalog),
    )
