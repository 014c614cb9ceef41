"""Keys that are not in the config: those of one core, each with where it comes from.

Owns which of the settings ``api_key_command``, ``api_key_file`` and ``api_key_name`` counts, and
that configs which name the same share what it gave.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.messages import Config
from agent_host.plugins.access import KEY_SETTINGS
from agent_host.plugins.keys import data_key

if TYPE_CHECKING:
    from agent_host.plugins.key_sources import FreshKey

__all__ = ["FreshKeys"]

#: Gives the key of a name, or None.
Resolve = Callable[[str, Config], "str | None"]

_MAX_KEYS = 64
_COMMAND_SECONDS = 30.0


class FreshKeys:
    """The keys of one core: configs that name the same source share what it gave.

    ``patience`` is how long a command may take; ``resolve`` gives the key of a name, with the
    config of the request that wants it.
    """

    def __init__(
        self, patience: float = _COMMAND_SECONDS, resolve: Resolve = lambda name, config: None
    ) -> None:
        self._patience = patience
        self._resolve = resolve
        self._lock = threading.Lock()
        self._known: OrderedDict[str, FreshKey] = OrderedDict()

    def of(self, config: Config) -> FreshKey | None:
        """Where the key of a config comes from; None if it is in the config, or nowhere."""
        named = [key for key in KEY_SETTINGS if config.get(key) not in (None, "", [])]
        if len(named) > 1:
            raise ConfigError(
                f"{' and '.join(named)} are both set",
                key=named[1],
                hint="leave one of them; set what a default brings to null",
            )
        if named in ([], ["api_key"]):
            return None
        # Here, because most keys are in the config or the environment.
        from agent_host.plugins.key_sources import LIFETIME, make_source

        # With the name of the setting: a file may be called as a command is.
        text = data_key([named, *(config.get(key) for key in (*named, LIFETIME))])
        with self._lock:
            found = self._known.get(text)
            if found is None:
                found = self._known[text] = make_source(
                    config,
                    named[0],
                    patience=self._patience,
                    ask=partial(self._resolve_for, dict(config)),
                )
            self._known.move_to_end(text)
            while len(self._known) > _MAX_KEYS:
                self._known.popitem(last=False)
            return found

    def _resolve_for(self, config: Config, name: str) -> str | None:
        return self._resolve(name, config)
