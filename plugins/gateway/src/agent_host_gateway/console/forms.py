"""Forms for settings, from what the plugins of a model or agent suggest.

A page can set what its form has, and nothing else. What says where a request goes and with which
key is the server's alone, also where a plugin suggests to ask for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from agent_host_gateway.access import Caller
from agent_host_gateway.console.bodies import Row
from agent_host_gateway.refusals import Refused
from agent_host_gateway.server import Gateway

__all__ = ["Forms", "request_options"]

#: Settings that lead a request elsewhere, whoever suggests them.
_OF_THE_SERVER = ("base_url", "headers", "provider", "model")


def request_options(gateway: Gateway, caller: Caller, model: str) -> dict[str, Any]:
    """The options of a run that asks a model or an agent."""
    target, *_ = gateway.upstream.find_targets(model)
    if not caller.may_use(model):
        raise Refused(f"the key {caller.name!r} does not allow {model!r}", kind="permission")
    if target.agent:
        return {"agent": target.agent}
    return {"provider": target.provider, "model": target.model or None}


class Forms:
    """The forms of one application."""

    def __init__(self, gateway: Gateway, application: Any) -> None:
        self._gateway = gateway
        self._application = application

    def routes(self) -> list[Row]:
        return [("GET", "settings", self._tell_form)]

    def check_settings(self, settings: Any, options: dict[str, Any]) -> None:
        """Refuse what the form of these options does not let a page set; it blocks."""
        if not isinstance(settings, Mapping):
            raise Refused("'settings' is no object", param="settings")
        if not settings:
            return
        fields = self._make_form(options)["fields"]
        allowed = {field["key"] for field in fields if not field["locked"]}
        for key in settings:
            if key not in allowed:
                known = ", ".join(sorted(allowed)) or "nothing"
                raise Refused(
                    f"{key[:100]!r} cannot be set from a page; what can be: {known}",
                    kind="permission",
                    param=key,
                )

    async def _tell_form(self, request: Request, caller: Caller) -> Any:
        options = request_options(self._gateway, caller, request.query_params.get("model", ""))
        return await asyncio.to_thread(self._make_form, options)

    def _make_form(self, options: dict[str, Any]) -> Any:
        config = self._application.request_config(**options)
        core = self._application.core
        schema = core.get_config_schema(config)
        fields = []
        for element in core.get_ui_elements(config):
            key = element.get("key")
            if not isinstance(key, str):
                continue
            described = schema.get(key) or {}
            is_secret = bool(described.get("secret")) or element.get("type") == "password"
            is_locked = is_secret or key in _OF_THE_SERVER
            fields.append(
                {
                    **_plain_element(element),
                    "description": str(described.get("description") or ""),
                    "schema": {} if is_locked else _plain_schema(described),
                    "locked": is_locked,
                    "value": None if is_locked else config.get(key, described.get("default")),
                }
            )
        return {"fields": fields}


def _plain_element(element: Mapping[str, Any]) -> dict[str, Any]:
    options = [
        {"value": option["value"], "label": str(option.get("label") or option["value"])}
        for option in element.get("options") or ()
        if isinstance(option, Mapping) and "value" in option
    ]
    return {
        "key": element["key"],
        "type": str(element.get("type") or "text"),
        "label": str(element.get("label") or element["key"]),
        "options": options,
    }


def _plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a form checks by itself; all the rest is checked by the run."""
    known = ("type", "minimum", "maximum", "enum")
    return {key: schema[key] for key in known if key in schema}
