"""Where keys come from that are not in the config: a command, a file, or whoever has their name.

Owns running, reading and asking for what a setting names, and how long a key is used. It must not
know who is asked with the key, nor how, nor who has the keys that have names.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any, NoReturn, TypeVar

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact, remember_secrets
from agent_hookspecs.values import dataclass
from agent_host.drivers.effects import Call, Steps

__all__ = ["LIFETIME", "FreshKey", "make_source"]

T = TypeVar("T")

#: For how long what a command prints is used, if it does not say so itself.
LIFETIME = "api_key_seconds"

_MAX_BYTES = 64 << 10
#: How long the output of a command is used that does not say how long it holds.
_DEFAULT_SECONDS = 300.0
#: A key is replaced this long before it ends: the request has to arrive while it holds.
_MARGIN_SECONDS = 60.0
_MAX_SHOWN = 500

_TOKEN_NAMES = ("token", "access_token", "accessToken", "id_token", "api_key")
_EXPIRY_NAMES = ("expires_in", "expires_on", "expires_at")
_FRACTION = re.compile(r"\.\d+")


@dataclass(frozen=True, slots=True)
class _Key:
    """A key, and until when by the monotonic clock it may be used."""

    text: str = field(repr=False)
    until: float


class FreshKey(ABC):
    """The key of a config, as it is now. Safe to share between threads; only drivers wait for it.

    ``setting`` is the one that says where it comes from.
    """

    setting: str

    def __init__(self, seconds: float = math.inf) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._known: _Key | None = None

    def current(self) -> Steps[str]:
        """The key to ask with."""
        known = self._known
        if known is not None and time.monotonic() < known.until and not self._must_look():
            text: str = known.text
        else:
            text = yield Call(self._renew)
        # Again every time, because the oldest are forgotten.
        remember_secrets([text])
        return text

    def after_refusal(self, refused: str) -> Steps[str]:
        """The key after somebody was refused with one; the same if there is no other."""
        text: str = yield Call(partial(self._renew, refused))
        remember_secrets([text])
        return text

    def _renew(self, refused: str | None = None) -> str:
        with self._lock:
            known = self._known
            # Of many that find a key to be old, the first gets a new one for all.
            is_fresh = known is not None and time.monotonic() < known.until
            if known is None or not is_fresh or known.text == refused or self._has_changed():
                known = self._known = self._read_key(self._read())
            return known.text

    def _must_look(self) -> bool:
        """Whether only a look at the source tells that what is known still holds."""
        return False

    def _has_changed(self) -> bool:
        return False

    @abstractmethod
    def _read(self) -> bytes:
        """What the source has now."""

    def _read_key(self, data: bytes) -> _Key:
        text = data.decode("utf-8-sig", "replace").strip()
        left = self._seconds
        if text.startswith("{"):
            text, left = self._read_object(text)
        if not text or len(text.split()) > 1:
            what = "nothing" if not text else "several words"
            self._fail(f"gave {what}", f"{self.setting} has to give a key, or a JSON object")
        remember_secrets([text])
        return _Key(text, time.monotonic() + left)

    def _read_object(self, text: str) -> tuple[str, float]:
        """The key in a JSON object, and for how many seconds it is to be used."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            # Nothing is lost: the words are those of the error.
            self._fail("gave something that begins like JSON and is none", "look at what it gives")
        token = next((found[name] for name in _TOKEN_NAMES if found.get(name)), None)
        if not isinstance(token, str):
            self._fail(
                f"gave JSON without a key; it has {', '.join(map(str, found)) or 'nothing'}",
                f"the key is looked for under {', '.join(_TOKEN_NAMES)}",
            )
        remember_secrets([token])
        for name in _EXPIRY_NAMES:
            if found.get(name) is not None:
                left = _seconds_left(name, found[name])
                if left is None:
                    self._fail(
                        f"gave {name} as {found[name]!r}",
                        "give seconds, or a date with its time zone such as 2026-01-31T12:00:00Z",
                    )
                # One that ends soon anyway is used for half of its time.
                return token, max(left - _MARGIN_SECONDS, left / 2)
        return token, self._seconds

    def _fail(self, what: str, hint: str, cause: Exception | None = None) -> NoReturn:
        raise ConfigError(
            redact(f"{self.setting} {self._name()} {what}"), key=self.setting, hint=redact(hint)
        ) from cause

    @abstractmethod
    def _name(self) -> str:
        """The source, as it is called in messages."""


class _CommandKey(FreshKey):
    """What a command prints, run without a shell, and again when its key is old or refused."""

    setting = "api_key_command"

    def __init__(self, arguments: list[str], seconds: float, patience: float) -> None:
        super().__init__(seconds)
        self._patience = patience
        self._arguments = [os.path.expanduser(arguments[0]), *arguments[1:]]

    def _name(self) -> str:
        return f"`{shlex.join(self._arguments)}`"

    def _read(self) -> bytes:
        try:
            process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # So that all of it can be ended, and a Ctrl-C at the terminal is ours alone.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._fail(
                f"cannot be run: {reason}",
                "the program is looked for on the PATH; no shell takes part, so that pipes and "
                'variables need one: ["sh", "-c", "…"]',
                error,
            )
        try:
            output, said = process.communicate(timeout=self._patience)
        except BaseException as error:
            _end_all(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            self._fail(
                f"took longer than {self._patience:g} s",
                "run it yourself: it may wait for an answer, which nobody can give it here",
                error,
            )
        if process.returncode:
            words = " ".join(said.decode("utf-8", "replace").split())
            words = redact(words)[-_MAX_SHOWN:] or "it said nothing"
            self._fail(
                f"failed with exit code {process.returncode}: {words}",
                "run it yourself; often one has to log in again",
            )
        if len(output) > _MAX_BYTES:
            self._fail(f"printed {len(output)} bytes", "it has to print a key and nothing else")
        return output


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it has started and still holds its output."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            # Nothing is lost: its group is gone once nobody is in it any more.
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


class _FileKey(FreshKey):
    """What a file holds. It is looked at every time, and read again when it has changed."""

    setting = "api_key_file"

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = os.path.expanduser(path)
        self._version: tuple[int, ...] | None = None

    def _name(self) -> str:
        return repr(self._path)

    def _must_look(self) -> bool:
        return True

    def _has_changed(self) -> bool:
        return self._stat() != self._version

    def _stat(self) -> tuple[int, ...]:
        return self._try(lambda: _version_of(os.stat(self._path)))

    def _read(self) -> bytes:
        self._version, data = self._try(self._open)
        return data

    def _open(self) -> tuple[tuple[int, ...], bytes]:
        with open(self._path, "rb") as file:
            version = _version_of(os.fstat(file.fileno()))
            return version, file.read(_MAX_BYTES)

    def _try(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._fail(f"cannot be read: {reason}", "check the path and who may read it", error)


class _NamedKey(FreshKey):
    """What is kept under a name, by whoever is asked for names."""

    setting = "api_key_name"

    def __init__(self, name: str, provider: str, ask: Callable[[], str | None]) -> None:
        super().__init__()
        self._key_name = name
        self._provider = provider
        self._ask = ask

    def _name(self) -> str:
        return repr(self._key_name)

    def _read(self) -> bytes:
        found = self._ask()
        if found is None:
            self._fail(
                "is the name of no key" + (f" for {self._provider!r}" if self._provider else ""),
                f"run: agent-host keys set {self._key_name}",
            )
        return found.encode()


def _version_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _seconds_left(name: str, value: object) -> float | None:
    """The seconds until what stands under a name of `_EXPIRY_NAMES`; None if it says no time."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            # Nothing is lost: what is no number is read as a moment.
            return _seconds_until(str(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if name == "expires_in" else float(value) - time.time()


def _seconds_until(date: str) -> float | None:
    from datetime import datetime

    try:
        # Before 3.11 Python knows neither the letter nor every fraction of a second.
        moment = datetime.fromisoformat(_FRACTION.sub("", date).replace("Z", "+00:00"))
    except ValueError:
        # Nothing is lost: a moment that cannot be read is none; the key holds for the usual time.
        return None
    return None if moment.tzinfo is None else moment.timestamp() - time.time()


def make_source(
    config: Mapping[str, Any],
    setting: str,
    *,
    patience: float,
    ask: Callable[[str], str | None],
) -> FreshKey:
    """The source that a setting of the config names.

    ``patience`` is how long a command may take, and ``ask`` gives the key of a name.
    """
    value = config[setting]
    if setting == "api_key_command":
        return _command_key(setting, config, patience)
    if not isinstance(value, str):
        what = "the path of a file" if setting == "api_key_file" else "the name of a key"
        raise ConfigError(f"{setting} is {type(value).__name__}", key=setting, hint=f"give {what}")
    if setting == "api_key_file":
        return _FileKey(value)
    return _NamedKey(value, str(config.get("provider") or ""), partial(ask, value))


def _command_key(setting: str, config: Mapping[str, Any], patience: float) -> FreshKey:
    value = config[setting]
    try:
        arguments = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ConfigError(
            f"{setting} cannot be split into words: {error}",
            key=setting,
            hint="give a list: the program and its arguments",
        ) from error
    is_list = isinstance(arguments, (list, tuple)) and len(arguments) > 0
    if not is_list or not all(isinstance(each, str) for each in arguments):
        raise ConfigError(
            f"{setting} is no command", key=setting, hint="give a text, or a list of texts"
        )
    return _CommandKey([*arguments], _lifetime(config), patience)


def _lifetime(config: Mapping[str, Any]) -> float:
    seconds = config.get(LIFETIME)
    if seconds is None:
        return _DEFAULT_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0:
        raise ConfigError(
            f"{LIFETIME} is {seconds!r}", key=LIFETIME, hint="give seconds, more than 0"
        )
    return float(seconds)
