"""Gemini on Vertex: its addresses by project and region, and access tokens in place of keys.

Owns what differs there from Google AI; requests and answers are the same.
"""

from __future__ import annotations

import re
from typing import Any

from agent_hookspecs import Config, ConfigError

__all__ = ["VERTEX_SETTINGS", "key_header", "vertex_base"]

_WHOLE = re.compile(r"/projects/[^/]+/locations/[^/]+")
_FORM = "https://HOST/v1/projects/PROJECT/locations/REGION/publishers/google"
#: How keys begin that are no access tokens.
_KEYS = ("AIza", "AQ.")
_TOKENS = "ya29."

VERTEX_SETTINGS: dict[str, dict[str, Any]] = {
    "vertex_project": {
        "type": "string",
        "description": "The Google Cloud project whose Vertex is asked in place of Google AI.",
        "required": False,
    },
    "vertex_region": {
        "type": "string",
        "description": "The region of Vertex, such as europe-west1; global unless set.",
        "required": False,
    },
}


def vertex_base(config: Config) -> str | None:
    """The address below which Vertex has its models; None if Google AI is to be asked."""
    base = str(config.get("base_url") or "").strip().rstrip("/")
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
        return base if is_whole else None
    region = str(region or "global")
    return (
        f"{base or _host(region)}/v1beta1/projects/{project}/locations/{region}/publishers/google"
    )


def _host(region: str) -> str:
    if region == "global":
        return "https://aiplatform.googleapis.com"
    if region in ("us", "eu"):
        # Regions that span several places have a domain of their own.
        return f"https://aiplatform.{region}.rep.googleapis.com"
    return f"https://{region}-aiplatform.googleapis.com"


def key_header(key: str, at_vertex: bool) -> dict[str, str]:
    """The header of a key, or of an access token; both are told apart by how they begin."""
    if key.startswith(_TOKENS) or (at_vertex and not key.startswith(_KEYS)):
        return {"authorization": f"Bearer {key}"}
    return {"x-goog-api-key": key}
