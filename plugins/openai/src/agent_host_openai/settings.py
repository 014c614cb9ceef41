"""The settings of the provider ``openai``, and where and as whom its requests go."""

from __future__ import annotations

from typing import Any, Literal, cast

from agent_hookspecs import Config, ConfigError
from agent_host_openai_compatible.azure import API_VERSION
from agent_host_openai_compatible.requests import request_headers
from agent_host_openai_compatible.servers import Server

__all__ = ["APIS", "SERVER", "Api", "api_of", "headers_for", "own_settings"]

Api = Literal["chat", "responses"]
APIS: tuple[Api, ...] = ("responses", "chat")

SERVER = Server(name="openai", label="OpenAI", base_url="https://api.openai.com/v1")

_ACCOUNTS = {"organization": "OpenAI-Organization", "project": "OpenAI-Project"}


def api_of(config: Config) -> Api:
    """Which of the two APIs the config asks for."""
    api = config.get("api") or APIS[0]
    if api not in APIS:
        raise ConfigError(
            f"api of the provider 'openai' is {api!r}",
            key="api",
            hint=f"use {' or '.join(APIS)}",
        )
    return cast(Api, api)


def headers_for(config: Config) -> dict[str, str]:
    """Headers of every request; those of ``extra_headers`` stand above the provider's own."""
    accounts = {
        header: value
        for key, header in _ACCOUNTS.items()
        if isinstance(value := config.get(key), str) and value
    }
    return {**accounts, **request_headers(SERVER, config)}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "required": False, "description": description, **more}


def own_settings() -> dict[str, Any]:
    """The settings beyond those of every provider of the chat format."""
    return {
        "api": _text("Which API to speak.", enum=[*APIS], default=APIS[0]),
        "api_version": API_VERSION,
        "organization": _text("The organization that pays, if the key has several."),
        "project": _text("The project that pays, if the key has several."),
        "service_tier": _text("How fast and how dear: auto, default, flex, priority."),
        "prompt_cache_key": _text("Requests with equal keys are likelier to share a cache."),
        "safety_identifier": _text("A stable, anonymous id of the end user."),
        "verbosity": _text("How long answers should be.", enum=["low", "medium", "high"]),
        "store": {
            "type": "boolean",
            "required": False,
            "default": False,
            "description": "Let the provider keep the conversation.",
        },
        "builtin_tools": {
            "type": "array",
            "required": False,
            "description": "Tools that the provider runs, as the Responses API declares them.",
        },
        "include": {
            "type": "array",
            "required": False,
            "description": "What else the Responses API should put into its answer.",
        },
    }
