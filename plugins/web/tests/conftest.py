"""The tool with settings that let it reach the servers of tests, and how pages are fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_host_web.plugin import WebTools


class Web:
    """The tool with its settings; it may reach this machine, at one address."""

    def __init__(self, **settings: Any) -> None:
        self.plugin = WebTools()
        self.state = self.plugin.init({"allowed_networks": ["127.0.0.1/32"], **settings})

    def result(
        self, url: str, *, cancelled: Callable[[], bool] = bool, **more: Any
    ) -> dict[str, Any]:
        payload = {"url": url, **more}
        return self.plugin.execute_tool("fetch_page", payload, self.state, {"cancelled": cancelled})

    def fetch(self, url: str, **more: Any) -> str:
        """What the model is told of a page."""
        text: str = self.result(url, **more)["text"]
        return text


@pytest.fixture
def open_web() -> Callable[..., Web]:
    return Web


@pytest.fixture
def web() -> Web:
    """The tool, for servers that have no rules for robots."""
    return Web(obey_robots=False)
