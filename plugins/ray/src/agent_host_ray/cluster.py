"""A connection to a Ray cluster, one that is there or one of our own, and its end.

Our own ends with us: its processes are told to die with the thread that began them, which therefore
stays until the end. It must not know what is done on the cluster.
"""

from __future__ import annotations

import logging
import os
import socket
import threading

from agent_host_ray.errors import ClusterError
from agent_host_ray.library import ray, setting
from agent_host_ray.settings import RaySettings, read_settings

__all__ = ["Cluster"]


#: How long it may take to end.
_END_SECONDS = 20.0
#: How long a machine may take to say that it is there.
_PROBE_SECONDS = 5.0
_WAY_OUT = (
    "begin a cluster with `ray start --head`, name another address, or leave it out for one of "
    "your own on this machine"
)


class Cluster:
    """Connects when it is first needed. What a program has connected itself is used as it is."""

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def connect(self) -> None:
        """Be connected, or raise what is in the way; it may block for as long as it may take."""
        with self._lock:
            if self._thread is not None or ray.is_initialized():
                return
            address = self._settings.address or os.environ.get("RAY_ADDRESS") or "local"
            # What the environment says was not checked with the settings.
            read_settings({"address": address})
            if ":" in address:
                _probe(address)
            self._begin(address)

    def _begin(self, address: str) -> None:
        connected = threading.Event()
        problems: list[Exception] = []

        def stay() -> None:
            try:
                self._initialize(address)
            except Exception as error:
                problems.append(error)
                return
            finally:
                connected.set()
            self._ended.wait()
            ray.shutdown()

        thread = threading.Thread(target=stay, name="ray", daemon=True)
        thread.start()
        if not connected.wait(self._settings.start_seconds):
            # Should it come about yet, it ends at once.
            self._ended.set()
            raise ClusterError(
                f"{_describe(address)} did not answer for {self._settings.start_seconds:g} s",
                hint=f"{_WAY_OUT}; start_seconds is how long to wait",
            )
        if problems:
            what = (str(problems[0]).strip() or type(problems[0]).__name__).splitlines()[-1]
            raise ClusterError(
                f"{_describe(address)} cannot be used: {what}", hint=_WAY_OUT
            ) from problems[0]
        self._thread = thread

    def _initialize(self, address: str) -> None:
        settings = self._settings
        # What its processes print belongs in its own files, and no report goes to anybody.
        quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address != "local":
            ray.init(address=address, **quiet)
            return
        with setting("RAY_USAGE_STATS_ENABLED", "0"):
            ray.init(
                address="local",
                num_cpus=settings.cpus,
                object_store_memory=settings.memory_mb * 1024 * 1024,
                include_dashboard=False,
                **quiet,
            )

    def close(self) -> None:
        """Disconnect, and end the cluster if it is our own."""
        with self._lock:
            self._ended.set()
            if self._thread is not None:
                self._thread.join(_END_SECONDS)
                self._thread = None


def _describe(address: str) -> str:
    return "a local Ray cluster" if address == "local" else f"the Ray cluster {address!r}"


def _probe(address: str) -> None:
    """Refuse an address that nobody answers at, which Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _PROBE_SECONDS):
            return
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"{_describe(address)} cannot be reached: {error}", hint=_WAY_OUT
        ) from error
