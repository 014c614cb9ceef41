"""What the engine can be told, with ``--engine-set`` or ``engine_options``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from agent_hookspecs.errors import ConfigError

__all__ = ["RaySettings", "read_settings"]


@dataclass(frozen=True, slots=True)
class RaySettings:
    """- ``address`` is that of a cluster: ``host:port``, ``auto`` for the one that runs on this
      machine, ``local`` for one of our own; by default what ``RAY_ADDRESS`` says, or else our own.
    - ``cpus`` and ``memory_mb`` bound our own cluster: how many processors it uses, and how large
      its store of objects is. By default it uses all processors.
    - ``workers`` is how many processes answer lines: by default one for eight lines at a time, but
      no more than there are processors. Each reserves ``cpus_per_worker``.
    - ``block`` is how many lines a worker has waiting, besides those that it answers.
    - ``start_seconds`` is how long the cluster and each worker may take to begin,
      ``lost_after_seconds`` how long a worker may be out of reach.
    """

    address: str | None = None
    cpus: int | None = None
    memory_mb: int = 256
    workers: int | None = None
    cpus_per_worker: float = 1.0
    block: int = 8
    start_seconds: float = 60.0
    lost_after_seconds: float = 10.0


#: The least that a number may be.
_LEAST: Final[Mapping[str, float]] = {
    "cpus": 1,
    "memory_mb": 80,
    "workers": 1,
    "cpus_per_worker": 0,
    "block": 1,
    "start_seconds": 1,
    "lost_after_seconds": 0,
}
_WHOLE: Final = frozenset({"cpus", "memory_mb", "workers", "block"})


def read_settings(config: Mapping[str, Any]) -> RaySettings:
    """The settings, checked."""
    names = [each.name for each in fields(RaySettings)]
    for name, value in config.items():
        if name not in names:
            raise _wrong(name, f"the engine ray has no setting {name}", f"one of {names}")
        if name == "address":
            _check_address(value)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _wrong(name, f"{name} is {value!r}", "give a number")
        elif value < _LEAST[name] or (name in _WHOLE and value != int(value)):
            kind = "a whole number" if name in _WHOLE else "a number"
            raise _wrong(name, f"{name} is {value}", f"give {kind} of at least {_LEAST[name]}")
    return RaySettings(**config)


def _check_address(value: object) -> None:
    hint = "give host:port, auto, or local"
    if not isinstance(value, str):
        raise _wrong("address", f"address is {value!r}", hint)
    if value.startswith("ray://"):
        raise _wrong(
            "address",
            f"address is {value!r}, which is Ray Client's",
            "begin the batch on a machine of the cluster, or as a job of it, with auto",
        )
    host, _, port = value.rpartition(":")
    if value not in ("auto", "local") and not (host and port.isdigit()):
        raise _wrong("address", f"address is {value!r}", hint)


def _wrong(name: str, message: str, hint: str) -> ConfigError:
    return ConfigError(message, key=f"engine_options.{name}", hint=hint)
