"""The user's own keys: in the system's keyring where there is one, else in a file for them alone.

`KeyStore` implements `resolve_secret` as a plugin may. The file says which keys there are, because
a keyring cannot be asked for that. It must not know what the keys are for. Whoever only wants their
names pays for no library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.values import dataclass
from agent_host.places import HOME_VARIABLE, config_folder

if TYPE_CHECKING:
    from pathlib import Path

    from agent_host.key_file import Key

__all__ = ["TOOL_PREFIX", "KeyStore", "StoredKey", "ToolKeys", "stored_names"]

_FILE = "keys.json"
_SERVICE = "agent-host"
#: Before the names of tools that keep keys themselves, which no provider is given.
TOOL_PREFIX = "tool:"
#: Without waiting for what is no file.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key by its name: the plugin id of the provider that it is for, and where it is."""

    name: str
    provider: str
    place: Literal["keyring", "file"]


def stored_names() -> dict[str, str]:
    """The names of the keys, each with the provider that it is for.

    A file that cannot be used has none here; whoever needs a key from it is told what is wrong.
    """
    try:
        with open(os.open(os.path.join(config_folder(), _FILE), _READ), "rb") as handle:
            found = json.load(handle)["keys"]
        return {name: key["provider"] for name, key in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Nothing is lost: most have no such file, and of a broken one `KeyStore` tells.
        return {}


class KeyStore:
    """Reads and changes the keys; every value that passes is kept out of logs and messages."""

    name = "keys"

    def resolve_secret(self, name: str, config: Mapping[str, Any]) -> str | None:
        """The key of a name; None if there is none."""
        from agent_host.key_file import read_keys

        found = read_keys(_file()).get(name)
        if found is None or found.provider.startswith(TOOL_PREFIX):
            return None
        return self._read(name, found)

    def _read(self, name: str, found: Key) -> str | None:
        key = found.key if found.place == "file" else _ask_keyring(name, "get_password")
        return None if key is None else _remembered(str(key))

    def read_of_tool(self, name: str, tool: str) -> str | None:
        """What a tool itself has kept under a name; None if there is nothing of its own."""
        from agent_host.key_file import read_keys

        found = read_keys(_file()).get(name)
        return self._read(name, found) if found is not None and found.provider == tool else None

    def list_keys(self) -> list[StoredKey]:
        """What there is, by name."""
        from agent_host.key_file import read_keys

        keys = sorted(read_keys(_file()).items())
        return [StoredKey(name, key.provider, key.place) for name, key in keys]

    def write(self, name: str, provider: str, key: str) -> StoredKey:
        """Keep a key under a name, in place of one that was there."""
        from agent_host.key_file import Key, read_keys, write_keys

        _remembered(key)
        keys = read_keys(_file())
        stored = StoredKey(name, provider, "keyring" if _put_in_keyring(name, key) else "file")
        own = key if stored.place == "file" else None
        keys[name] = Key(provider=provider, place=stored.place, key=own)
        write_keys(_file(), keys)
        return stored

    def remove(self, name: str) -> bool:
        """Forget a key; False if there was none."""
        from agent_host.key_file import read_keys, write_keys

        keys = read_keys(_file())
        found = keys.pop(name, None)
        if found is None:
            return False
        if found.place == "keyring":
            _ask_keyring(name, "delete_password")
        write_keys(_file(), keys)
        return True


class ToolKeys:
    """What a tool plugin keeps in the user's key store, such as logins: its own and no other's.

    A tool finds it under ``plugin_keys`` in its config.
    """

    def __init__(self, plugin: str) -> None:
        self._owner = f"{TOOL_PREFIX}{plugin}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._owner!r})"

    def read(self, name: str) -> str | None:
        """What was kept under a name; None if there is nothing."""
        return KeyStore().read_of_tool(self._name(name), self._owner)

    def write(self, name: str, secret: str) -> None:
        """Keep a secret under a name, in place of what was there."""
        KeyStore().write(self._name(name), self._owner, secret)

    def mask(self, *secrets: str | None) -> None:
        """Keep these out of logs and messages, as everything is that is read or written here."""
        from agent_hookspecs.logs import remember_secrets

        remember_secrets(secrets)

    def remove(self, name: str) -> bool:
        """Forget what is kept under a name; False if there was nothing."""
        return self.read(name) is not None and KeyStore().remove(self._name(name))

    def _name(self, name: str) -> str:
        return f"{self._owner}:{name}"


def _file() -> Path:
    from pathlib import Path

    return Path(config_folder(), _FILE)


def _remembered(key: str) -> str:
    """The key, which is a secret from now on."""
    from agent_hookspecs.logs import remember_secrets

    remember_secrets([key])
    return key


def _service() -> str:
    """Whose keys they are: a home of its own has keys of its own."""
    return f"{_SERVICE}:{config_folder()}" if os.environ.get(HOME_VARIABLE) else _SERVICE


def _open_keyring() -> Any:
    """The library, if it is installed and finds a keyring on this system; else None."""
    try:
        keyring = import_module("keyring")
    except ImportError:
        # Nothing is lost: the file does as well.
        return None
    # Those that only stand in for one, and keep nothing, rank so low.
    return keyring if keyring.get_keyring().priority > 0 else None


def _put_in_keyring(name: str, key: str) -> bool:
    keyring = _open_keyring()
    if keyring is None:
        return False
    try:
        keyring.set_password(_service(), name, key)
    except keyring.errors.KeyringError:
        # Nothing is lost: the file keeps it, and whoever sets it is told where it is.
        return False
    return True


def _ask_keyring(name: str, method: Literal["get_password", "delete_password"]) -> Any:
    keyring = _open_keyring()
    if keyring is None:
        raise ConfigError(
            f"the key {name!r} is in the system's keyring, which cannot be reached from here",
            key="api_key_name",
            hint=f"install agent-host-core[chat] and unlock it, or run: agent-host keys set {name}",
        )
    try:
        return getattr(keyring, method)(_service(), name)
    except keyring.errors.PasswordDeleteError:
        # Nothing is lost: it is not there any more.
        return None
    except keyring.errors.KeyringError as error:
        raise ConfigError(
            f"the keyring refuses the key {name!r}: {type(error).__name__}",
            key="api_key_name",
            hint=f"unlock it, or run: agent-host keys set {name}",
        ) from error
