"""Claude on Google's Vertex: another address, another kind of key, and the model out of the body.

Owns what differs there from Anthropic's own API; the messages and answers are the same.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from agent_hookspecs import Config, ConfigError

__all__ = ["VERTEX_SETTINGS", "at_vertex", "vertex_base", "vertex_body", "vertex_headers"]

_VERSION = "vertex-2023-10-16"
_WHOLE = re.compile(r"/projects/[^/]+/locations/[^/]+")
_PUBLISHER = "/publishers/anthropic"
_FORM = "https://HOST/v1/projects/PROJECT/locations/REGION/publishers/anthropic"

VERTEX_SETTINGS: dict[str, dict[str, Any]] = {
    "vertex_project": {
        "type": "string",
        "required": False,
        "description": "The Google Cloud project whose Vertex is asked in place of Anthropic.",
    },
    "vertex_region": {
        "type": "string",
        "required": False,
        "description": "The region of Vertex, such as us-east5; global unless set.",
    },
}


def vertex_base(config: Config, usual: str) -> str | None:
    """The address below which Vertex has its models; None if another API is to be asked.

    ``usual`` is the address that a config has when it names none.
    """
    base = str(config.get("base_url") or usual).strip().rstrip("/")
    project, region = config.get("vertex_project"), config.get("vertex_region")
    is_whole = _WHOLE.search(base) is not None
    if is_whole and (project or region):
        raise ConfigError(
            "base_url names a project and region of Vertex, and so do the settings",
            key="vertex_project" if project else "vertex_region",
            hint="leave vertex_project and vertex_region out, or base_url",
        )
    if region and not project:
        raise ConfigError(
            "vertex_region is set without vertex_project",
            key="vertex_project",
            hint=f"set vertex_project too, or base_url to the whole of {_FORM}",
        )
    if is_whole or not project:
        return base.partition(_PUBLISHER)[0] + _PUBLISHER if is_whole else None
    region = str(region or "global")
    host = _host(region) if base == usual else base.removesuffix("/v1")
    return f"{host}/v1/projects/{project}/locations/{region}{_PUBLISHER}"


def _host(region: str) -> str:
    if region == "global":
        return "https://aiplatform.googleapis.com"
    if region in ("us", "eu"):
        # Regions that span several places have a domain of their own.
        return f"https://aiplatform.{region}.rep.googleapis.com"
    return f"https://{region}-aiplatform.googleapis.com"


def at_vertex(base: str, model: object, stream: bool) -> str:
    """The address of a model's method; names of versions, as in ``claude-x@20250219``, stay."""
    method = "streamRawPredict" if stream else "rawPredict"
    return f"{base}/models/{quote(str(model or ''), safe='@')}:{method}"


def vertex_headers(config: Config) -> dict[str, str]:
    """The access token; a key of Anthropic's is not shown to Google."""
    key = str(config.get("api_key") or "")
    if key.startswith("sk-ant-"):
        raise ConfigError(
            "the key is one of Anthropic's, and Vertex takes access tokens of Google Cloud",
            key="api_key",
            hint='set api_key_command to ["gcloud", "auth", "print-access-token"]',
        )
    return {"authorization": f"Bearer {key}"} if key else {}


def vertex_body(body: dict[str, Any], version: object, usual: str) -> dict[str, Any]:
    """The body without its model, which is in the address, and with the version in it.

    ``version`` is what the config says, ``usual`` what it says unless somebody has set it.
    """
    named = str(version or usual)
    if named != usual and not named.startswith("vertex-"):
        raise ConfigError(
            f"anthropic_version is {named}, which Vertex does not know",
            key="anthropic_version",
            hint=f"leave it out; Vertex gets {_VERSION}",
        )
    rest = {key: value for key, value in body.items() if key != "model"}
    return {"anthropic_version": _VERSION if named == usual else named, **rest}
