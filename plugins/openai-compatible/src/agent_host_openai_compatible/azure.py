"""The addresses under which Azure serves the OpenAI formats, and how a key travels there.

Three forms of address are in use, and which one is meant is told from the base URL and the version
of the API. It must not know requests or answers: they are those of every other server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from agent_hookspecs import Config, ConfigError

__all__ = ["API_VERSION", "azure_endpoint", "azure_headers", "is_azure"]

_CHAT, _RESPONSES = "/chat/completions", "/responses"
_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_FOUNDRY_HOST = ".services.ai.azure.com"
_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+$")
_V1 = re.compile(r"/v\d+$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
#: An access token of Entra ID is a JSON web token; keys have no dots.
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
_FORMS = (
    "the forms are https://RESOURCE.openai.azure.com/openai/v1 (no api_version), "
    "https://RESOURCE.openai.azure.com/openai/deployments/NAME (with api_version) and "
    "https://RESOURCE.services.ai.azure.com/models (with api_version)"
)


#: The setting that only Azure has.
API_VERSION: dict[str, Any] = {
    "type": "string",
    "required": False,
    "description": "Version of Azure's API, such as 2024-10-21; the v1 API has none.",
}


def is_azure(base_url: object) -> bool:
    """Whether an address is one of Azure's: by its host, a deployment, or the version it names."""
    return isinstance(base_url, str) and _is_azure(base_url)


@lru_cache(64)
def _is_azure(base_url: str) -> bool:
    try:
        address = urlsplit(base_url.strip())
        host = address.hostname or ""
    except ValueError:
        # Nothing is lost: an address that cannot be read is refused before it is used.
        return False
    named = "/openai/deployments/" in address.path or "api-version=" in address.query
    return named or host.endswith(_HOSTS)


def azure_headers(key: str) -> dict[str, str]:
    """The header of a key, or of an access token of Entra ID."""
    if _TOKEN.fullmatch(key):
        return {"Authorization": f"Bearer {key}"}
    return {"api-key": key}


def azure_endpoint(base_url: str, path: str, config: Config) -> str:
    """The address of ``path`` at Azure; a `ConfigError` says which combination would do."""
    address = urlsplit(base_url.strip())
    root = address.path.rstrip("/")
    complete = next((each for each in (_CHAT, _RESPONSES) if root.endswith(each)), "")
    root = root.removesuffix(complete)
    query, version = _read_query(address, config)
    if _DEPLOYMENT.search(root) or root.endswith("/models"):
        _refuse_other_than_chat(path, complete, root)
        _require_version(version)
    elif _V1.search(root):
        _refuse_dated(version)
    elif complete and complete != path and _CHAT in (complete, path):
        _fail("base_url", f"base_url is the address of {complete[1:]}", _other_api(path))
    elif not complete:
        root = _usual_root(address, root, path, config, version)
    if path == "/models":
        root = _listing_root(root)
    if version:
        query = [*query, ("api-version", version)]
    return urlunsplit((address.scheme, address.netloc, root + path, urlencode(query), ""))


def _usual_root(
    address: SplitResult, root: str, path: str, config: Config, version: str | None
) -> str:
    """What is meant by the address of a resource alone."""
    above = root.removesuffix("/openai")
    if version is None or not _DATE.match(version):
        return f"{above}/openai/v1"
    if path == _RESPONSES:
        return f"{above}/openai"
    if (address.hostname or "").endswith(_FOUNDRY_HOST):
        return f"{above}/models"
    # Whoever names a version and no deployment has called the deployment like its model.
    return f"{above}/openai/deployments/{quote(str(config.get('model') or ''), safe='')}"


def _listing_root(root: str) -> str:
    """Models are listed for the resource, not for a deployment; beside others there is no list."""
    if root.endswith("/models"):
        _fail("model", "this address of Azure has no list of models", "name the model by its id")
    return _DEPLOYMENT.sub("/openai", root)


def _read_query(
    address: SplitResult, config: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], str | None]:
    """What else the query says, and the version that it or the config names."""
    pairs = parse_qsl(address.query, keep_blank_values=True)
    named = next((value for name, value in pairs if name == "api-version" and value), None)
    told = config.get("api_version") or None
    if told is not None and not isinstance(told, str):
        _fail("api_version", f"api_version is {type(told).__name__}", "give a text, 2024-10-21")
    if named and told and named != told:
        _fail(
            "api_version",
            f"base_url names the API version {named} and api_version is {told}",
            "leave one of them out",
        )
    return [pair for pair in pairs if pair[0] != "api-version"], named or told


def _refuse_other_than_chat(path: str, complete: str, root: str) -> None:
    if _RESPONSES in (path, complete):
        form = "a deployment" if _DEPLOYMENT.search(root) else "/models"
        _fail(
            "base_url",
            f"base_url is the address of {form}, where Azure has no Responses API",
            "set api to chat, or base_url to https://RESOURCE.openai.azure.com/openai/v1",
        )


def _require_version(version: str | None) -> None:
    if version is None:
        _fail(
            "api_version",
            "this address of Azure needs a version of the API",
            f"set api_version, such as 2024-10-21, or end base_url with ?api-version=…; {_FORMS}",
        )


def _refuse_dated(version: str | None) -> None:
    if version is not None and _DATE.match(version):
        _fail(
            "api_version",
            f"the v1 API of Azure takes no dated version, and api_version is {version}",
            f"leave the version out, or use another address: {_FORMS}",
        )


def _other_api(path: str) -> str:
    if path == _CHAT:
        return "use the provider openai with api responses, or the address of chat completions"
    return "set api to chat, or give the address of the resource alone"


def _fail(key: str, what: str, hint: str) -> NoReturn:
    raise ConfigError(what, key=key, hint=hint)
