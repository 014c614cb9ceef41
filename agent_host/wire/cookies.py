"""Clients without cookies: one client serves all providers and accounts."""

from __future__ import annotations

from typing import Any

__all__ = ["client_class"]


class NoCookies:
    """Goes before the cookies of a library, which are then never taken from an answer."""

    def extract_cookies(self, response: Any) -> None:
        """Take none."""


def client_class(library: Any, *, is_async: bool) -> Any:
    """The class of clients of ``library``, but their cookies are always none."""
    base = library.AsyncClient if is_async else library.Client
    cookies = type("NoCookies", (NoCookies, library.Cookies), {})()
    return type(base.__name__, (base,), {"cookies": cookies})
