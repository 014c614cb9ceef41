"""A cookie jar that keeps nothing: one client serves all providers and accounts."""

from __future__ import annotations

from http.cookiejar import CookieJar
from typing import Any

__all__ = ["NoCookies"]


class NoCookies(CookieJar):
    """Takes no cookie from an answer and adds none to a request."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Take none."""

    def add_cookie_header(self, request: Any) -> None:
        """Add none."""
