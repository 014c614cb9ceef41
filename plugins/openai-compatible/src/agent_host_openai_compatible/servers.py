"""What is particular to one server of the OpenAI chat format, as data.

Owns the row that a descriptor's ``options`` spell out, the way from a base URL to an endpoint, and
the quirks that are in force for a config. It must not know messages or streams: whoever shapes
those asks for a quirk by name, never for a server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_hookspecs import Config, ConfigError, ContractError
from agent_host_openai_compatible.azure import azure_endpoint, is_azure

__all__ = [
    "DEFAULT_EFFORT_BODY",
    "QUIRKS",
    "Server",
    "endpoint",
    "is_at_azure",
    "quirks_in_force",
    "replays_reasoning",
]

#: How a server may stray from the format, and what is done about it. Tags are ``quirk:NAME``.
QUIRKS: dict[str, str] = {
    "no_stream_options": "stream_options is not sent, so a stream may end without usage",
    "max_tokens": "max_output_tokens is sent as max_tokens",
    "no_parallel_tool_calls": "parallel_tool_calls is never sent",
    "no_strict_schemas": "response_format is sent without strict",
    "reasoning_content_required": "turns with tools carry their reasoning_content back",
    "replays_reasoning": "reasoning_details and extra_content go back as they came, signed or not",
    "short_call_ids": "ids of calls made elsewhere become nine letters and digits",
    "alternating_roles": "neighbouring messages of one role are joined",
    "bare_audio": "sounds are sent as bare text, base64 or a web address",
    "file_urls": "files may be given by web address",
}

#: What asking for an effort adds to the body; ``$effort`` stands for the effort.
DEFAULT_EFFORT_BODY: dict[str, dict[str, Any]] = {"*": {"reasoning_effort": "$effort"}}

_VERSIONED = re.compile(r"/v\d")
_ENDPOINT = "/chat/completions"
_ENDPOINTS = (_ENDPOINT, "/responses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One row. Everything but the name has the value that a plain server of the format needs.

    - ``base_url``: used as it is when the config names no other.
    - ``capabilities``: what its models can do unless listing or facts say otherwise: ``tools``,
      ``reasoning``, ``structured_output``, ``images``, ``documents``, ``audio``.
    - ``parameters``: the body key of a knob; null where the server has none.
    - ``effort_body``: what an effort, or any other (``*``), adds to the body.
    - ``efforts``: the efforts that its reasoning models know.
    - ``replayed``: keys of an assistant message, besides the format's own, that are sent back.
    - ``key_header`` and ``key_prefix``: how the key travels.
    - ``azure``: whether it is Azure at whatever address, behind a gateway for instance.
    - ``headers`` and ``body``: sent with every request, below what the config says.
    - ``models``: facts about its models that come before those of the package.
    - ``listing``: the path of the model list; empty where there is none.
    - ``telling``: whether the list says what models can do. If not, it is no use before a request.
    """

    name: str = ""
    label: str = ""
    base_url: str = ""
    quirks: Sequence[str] = ()
    tags: Sequence[str] = ()
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    effort_body: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: dict(DEFAULT_EFFORT_BODY)
    )
    efforts: Sequence[str] = ("low", "medium", "high")
    replayed: Sequence[str] = ("refusal",)
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    azure: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    models: Sequence[Mapping[str, Any]] = ()
    listing: str = "/models"
    telling: bool = True

    def with_options(self, options: Mapping[str, Any]) -> Server:
        """The row with a descriptor's options; a `ContractError` names what is no option."""
        known = {each.name for each in fields(self)}
        unknown = sorted(set(options) - known)
        quirks = sorted(set(options.get("quirks", ())) - set(QUIRKS))
        if unknown or quirks:
            what = f"options {', '.join(unknown)}" if unknown else f"quirks {', '.join(quirks)}"
            raise ContractError(
                f"server {options.get('name', self.name)!r} has the unknown {what}",
                plugin=str(options.get("name", self.name)) or None,
                hint=f"known are {', '.join(sorted(known if unknown else QUIRKS))}",
            )
        return replace(self, **options)


def quirks_in_force(server: Server, config: Config) -> frozenset[str]:
    """The server's quirks with those that the config adds or removes as tags."""
    quirks = set(server.quirks)
    quirks.update(_quirks(config.get("add_tags")))
    return frozenset(quirks.difference(_quirks(config.get("remove_tags"))))


def replays_reasoning(server: Server, config: Config) -> bool | None:
    """Whether reasoning is sent back; None for where the server has signed it.

    The setting ``replay_reasoning`` counts most, then what the config does with the quirk's tag.
    """
    quirk, wanted = "replays_reasoning", config.get("replay_reasoning")
    if isinstance(wanted, bool):
        return wanted
    if quirk in _quirks(config.get("remove_tags")):
        return False
    return True if quirk in quirks_in_force(server, config) else None


def _quirks(tags: object) -> list[str]:
    named = tags if isinstance(tags, (list, tuple)) else ()
    return [
        tag.removeprefix("quirk:")
        for tag in named
        if isinstance(tag, str) and tag.startswith("quirk:")
    ]


def endpoint(server: Server, config: Config, path: str = _ENDPOINT) -> str:
    """The address of ``path`` below the base URL; a query of the base URL stays at the end.

    A base URL with a version (``/v1``), one that ends with ``/openai`` and the address of an
    endpoint itself are kept, any other gets ``/v1``. Azure has addresses of its own.
    """
    given = config.get("base_url") or server.base_url
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(
            f"provider {server.name!r} has no base URL",
            key="base_url",
            hint="set base_url to the address of the server, such as http://localhost:8000/v1",
        )
    if is_at_azure(server, config):
        return azure_endpoint(given, path, config)
    return _below(given, path, versioned=given == server.base_url)


def is_at_azure(server: Server, config: Config) -> bool:
    """Whether requests go to Azure, by the server's row, the address or a setting of Azure's."""
    named = server.azure or bool(config.get("api_version"))
    return named or is_azure(config.get("base_url") or server.base_url)


@lru_cache(64)
def _below(base: str, path: str, *, versioned: bool) -> str:
    address = urlsplit(base.strip())
    root = address.path.rstrip("/")
    complete = next((each for each in _ENDPOINTS if root.endswith(each)), "")
    root = root.removesuffix(complete).rstrip("/")
    is_kept = versioned or complete or _VERSIONED.search(root) or root.endswith("/openai")
    root = root if is_kept else f"{root}/v1"
    return urlunsplit((address.scheme, address.netloc, root + path, address.query, ""))
