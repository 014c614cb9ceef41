"""What providers said their models are when they were last asked, in the user's cache.

For who wants names at once: completion, and a model that is named by a part of its id. A request
asks its provider itself. What cannot be read is no list; nothing here imports a plugin.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from agent_hookspecs.messages import ModelInfo
from agent_hookspecs.values import dataclass
from agent_host.places import cache_folder

__all__ = ["LIST_SECONDS", "ModelList", "read_any_list", "read_list", "write_list"]

#: How long a list is used that is in the cache.
LIST_SECONDS = 24 * 3600.0
_MAX_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models of a provider, and when by the clock it named them."""

    models: tuple[ModelInfo, ...]
    asked: float

    @property
    def age(self) -> float:
        """In seconds."""
        return max(time.time() - self.asked, 0.0)

    @property
    def is_fresh(self) -> bool:
        """Whether it is young enough to be used without asking."""
        return self.age < LIST_SECONDS

    @property
    def ids(self) -> list[str]:
        return [model["id"] for model in self.models]


def read_list(name: str, address: str) -> ModelList | None:
    """The list of a provider, by what the config calls it and the address that it has there."""
    return _read(name, address)


def read_any_list(name: str) -> ModelList | None:
    """The list of a provider, of whichever address it is: for who may be wrong."""
    return _read(name, None)


def _read(name: str, address: str | None) -> ModelList | None:
    file = _file(name)
    if file is None:
        return None
    try:
        with open(file, "rb") as handle:
            found = os.fstat(handle.fileno())
            if found.st_size > _MAX_BYTES or not _is_ours(found):
                return None
            stored = json.loads(handle.read())
        if address is not None and stored["address"] != address:
            return None
        models = tuple(each for each in stored["models"] if isinstance(each["id"], str))
        return ModelList(models, float(stored["asked"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # Nothing is lost: a list that cannot be read is asked for again.
        return None


def write_list(name: str, address: str, models: Sequence[Mapping[str, Any]]) -> ModelList:
    """Keep what a provider has just said."""
    listed = ModelList(tuple(dict(model) for model in models), time.time())  # type: ignore[misc]
    file = _file(name)
    if file is not None:
        from agent_host.private import make_private_folder, replace_private

        document = {"address": address, "asked": listed.asked, "models": listed.models}
        try:
            make_private_folder(os.path.dirname(file))
            replace_private(file, json.dumps(document, default=str).encode())
        except OSError:
            # Nothing is lost: a list that cannot be kept is asked for again.
            pass
    return listed


def _file(name: str) -> str | None:
    folder = cache_folder()
    return (
        None if folder is None else os.path.join(folder, "models", f"{quote(name, safe='')}.json")
    )


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
