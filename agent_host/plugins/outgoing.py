"""Headers that plugins add to a request: asked of those that take part in it, but of no tool.

They add and replace nothing: what says who is asking, and what belongs to the connection, is the
provider's and the wire's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import AgentError
from agent_hookspecs.messages import Context
from agent_host.plugins.implementation import describe_failure
from agent_host.wire.request import WireRequest, is_header, without_userinfo

if TYPE_CHECKING:
    from agent_host.plugins.stack import Stack

__all__ = ["add_outgoing_headers"]

_HOOK = "outgoing_headers"
#: Who asks, where and how: not for plugins to say.
_RESERVED = frozenset(
    {
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def add_outgoing_headers(
    stack: Stack, request: WireRequest, context: Context, warn: Callable[[str, str], None]
) -> WireRequest:
    """The request with what plugins add to its headers; ``warn`` is told of what is left out."""
    added: dict[str, str] = {}
    for role in ("provider", "extension", "feature"):
        for plugin in stack.resolution.plugins[role]:
            manager = plugin.host_manager
            if manager is None or not manager.implements(_HOOK):
                continue
            told = {"method": request.method, "url": _bare_address(request.url)}
            try:
                found = plugin.ask_host(_HOOK, request=told, context=context) or {}
            except AgentError as error:
                warn(
                    f"plugin {plugin.name!r} adds no headers: {describe_failure(error)}",
                    plugin.name,
                )
                continue
            taken = {name.lower() for name in (*request.headers, *added)}
            for name, value in found.items():
                objection = _objection(name, value, taken)
                if objection is None:
                    added[name] = value
                else:
                    what = f"plugin {plugin.name!r}: the header {name!r} was not added: {objection}"
                    warn(what, plugin.name)
    return replace(request, headers={**request.headers, **added}) if added else request


def _objection(name: Any, value: Any, taken: set[str]) -> str | None:
    if not is_header(name, value):
        return "HTTP allows no such header"
    if name.lower() in _RESERVED:
        return "it is not for plugins to set"
    return "the request has one already" if name.lower() in taken else None


def _bare_address(url: str) -> str:
    """Where it goes, without what may be a key."""
    return without_userinfo(url).partition("?")[0]
