"""Which calls that wait a package makes in the thread of an event loop.

Owns what counts as waiting. It looks at no clock, and must not know any role or check.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["blocking_calls"]

_SOCKET_CALLS = ("accept", "connect", "recv", "recv_into", "send", "sendall", "sendto")
_MODULE_CALLS = {
    ("time", "sleep"),
    ("_socket", "getaddrinfo"),
    ("_socket", "gethostbyname"),
    ("select", "select"),
    ("_posixsubprocess", "fork_exec"),
    ("posix", "system"),
    ("posix", "open"),
    ("nt", "open"),
    ("_io", "open"),
    ("io", "open"),
}


_IMPORTING = ("importlib._bootstrap", "importlib._bootstrap_external", "_frozen_importlib")


@contextmanager
def blocking_calls(package: str) -> Iterator[list[str]]:
    """The calls that block and were made, in this thread, by code of the package."""
    found: list[str] = []

    def profile(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and _may_block(called):
            place = _within(frame, package)
            if place:
                found.append(f"{called.__name__} in {place}")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)
        found[:] = dict.fromkeys(found)


def _may_block(called: Any) -> bool:
    owner: Any = getattr(called, "__self__", None)
    if called.__name__ in _SOCKET_CALLS and hasattr(owner, "gettimeout"):
        return bool(owner.gettimeout() != 0)
    return (getattr(called, "__module__", None), called.__name__) in _MODULE_CALLS


def _within(frame: FrameType | None, package: str) -> str:
    """The function of the package from which a call was made, directly or not; else empty."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module in _IMPORTING:
            # A module that is imported late is read once in a process.
            return ""
        if module == package or module.startswith(f"{package}."):
            return f"{module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return ""
