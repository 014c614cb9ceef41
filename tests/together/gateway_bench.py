"""Fake providers, and the config of a gateway in front of them, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cohere_api import WIRE

from agent_host_testing import FakeServer
from agent_host_testing.formats import wire_format
from agent_host_testing.improvisation import Improviser

__all__ = ["MODELS", "Upstreams"]

#: For each fake API: the provider that speaks it, and a model that thinks.
MODELS = {
    "anthropic.messages": ("anthropic", "claude-sonnet-4-5"),
    "openai.responses": ("openai", "gpt-5"),
    "openai.chat": ("custom", "fake-model"),
    "google.generate": ("google", "gemini-3-pro-preview"),
    "ollama.chat": ("ollama", "fake-model"),
    "cohere.v2": ("cohere", "command-a-03-2025"),
}
#: Formats that the kit does not have.
_OTHERS = {WIRE.name: WIRE}


class Upstreams:
    """Fake providers that make their answers up, and the config that names them."""

    def __init__(self, *formats: str, store: Path | None = None, **gateway: Any) -> None:
        self._formats = formats or tuple(MODELS)
        self._store = store
        self._gateway = gateway
        self.servers: dict[str, FakeServer] = {}

    def __enter__(self) -> Upstreams:
        for name in self._formats:
            made = _OTHERS.get(name) or wire_format(name)
            model = MODELS[name][1]
            server = FakeServer(made, models=(model,), rest=Improviser(made))
            self.servers[name] = server.start()
        return self

    def __exit__(self, *error: object) -> None:
        for server in self.servers.values():
            server.close()

    @property
    def config(self) -> dict[str, Any]:
        providers = {
            name.partition(".")[0] + "-" + name.partition(".")[2]: {
                "provider": MODELS[name][0],
                "base_url": server.base_url,
                "api_key": "upstream-secret",
                "model": MODELS[name][1],
            }
            for name, server in self.servers.items()
        }
        made: dict[str, Any] = {"providers": providers}
        if self._store is not None:
            made["store"] = f"sqlite:///{self._store}"
        if self._gateway:
            made["request_defaults"] = {"gateway": self._gateway}
        return made

    def model(self, name: str) -> str:
        return name.replace(".", "-")
