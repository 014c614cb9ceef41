"""Headers that plugins add to a request: asked of those that take part in it, but of no tool.

They add and replace nothing: what says who is asking, and what belongs to the connection, is the
provider's and the wire's. The trace that a caller is in is passed on where no plugin puts a span of
its own into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import AgentError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Context
from agent_hookspecs.roles import PluginRole
from agent_host.plugins.implementation import describe_failure
from agent_host.wire.request import WireRequest, is_header, without_userinfo

if TYPE_CHECKING:
    from agent_host.plugins.activate import LoadedPlugin
    from agent_host.plugins.resolve import Resolution
    from agent_host.plugins.stack import Stack

__all__ = [
    "TRACE_CONTEXT",
    "add_outgoing_headers",
    "call_trace",
    "header_plugins",
    "trace_headers",
]

log = get_logger(__name__)

_HOOK = "outgoing_headers"
_ASKED: tuple[PluginRole, ...] = ("provider", "extension", "feature")
#: The key of the context under which callers say, and tools are told, which trace they are in.
TRACE_CONTEXT = "trace_context"
#: The headers of the W3C that make a trace context; the second means nothing without the first.
_TRACE = ("traceparent", "tracestate")
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


def header_plugins(resolution: Resolution) -> tuple[LoadedPlugin, ...]:
    """Those of a resolution that may add headers; tools are none of them."""
    return tuple(
        plugin
        for role in _ASKED
        for plugin in resolution.plugins[role]
        if plugin.host_manager is not None and plugin.host_manager.implements(_HOOK)
    )


def add_outgoing_headers(
    stack: Stack, request: WireRequest, context: Context, warn: Callable[[str, str], None]
) -> WireRequest:
    """The request with what plugins add to its headers; ``warn`` is told of what is left out."""
    added: dict[str, str] = {}
    taken = {name.lower() for name in request.headers}
    for name, value in _ask_plugins(stack, request.method, request.url, context, taken, warn):
        added[name] = value
    if "traceparent" not in taken:
        added.update(trace_headers(context))
    return replace(request, headers={**request.headers, **added}) if added else request


def call_trace(stack: Stack, known: Mapping[str, Any], tool: str, call_id: str) -> dict[str, str]:
    """The trace that a tool call is in, for a tool that asks somebody else; empty for none.

    ``known`` is what plugins are told of the run.
    """
    context = {**known, "call_id": call_id}
    found = dict(_ask_plugins(stack, "CALL", f"tool:{tool}", context, set(), _log_objection))
    own = {name.lower(): value for name, value in found.items()}
    return trace_headers({TRACE_CONTEXT: own}) or trace_headers(context)


def trace_headers(context: Mapping[str, Any]) -> dict[str, str]:
    """The trace that a context says its caller is in, as headers; none if they are not sound."""
    trace = context.get(TRACE_CONTEXT)
    if not isinstance(trace, Mapping) or "traceparent" not in trace:
        return {}
    given = {name: trace[name] for name in _TRACE if name in trace}
    return given if all(is_header(*each) for each in given.items()) else {}


def _ask_plugins(
    stack: Stack,
    method: str,
    url: str,
    context: Context,
    taken: set[str],
    warn: Callable[[str, str], None],
) -> Iterator[tuple[str, str]]:
    """What plugins add, each header once; ``taken`` are the names that there are."""
    for plugin in stack.header_plugins:
        told = {"method": method, "url": _bare_address(url)}
        try:
            found = plugin.ask_host(_HOOK, request=told, context=context) or {}
        except AgentError as error:
            warn(
                f"plugin {plugin.name!r} adds no headers: {describe_failure(error)}",
                plugin.name,
            )
            continue
        for name, value in found.items():
            objection = _objection(name, value, taken)
            if objection is None:
                taken.add(name.lower())
                yield name, value
            else:
                what = f"plugin {plugin.name!r}: the header {name!r} was not added: {objection}"
                warn(what, plugin.name)


def _objection(name: Any, value: Any, taken: set[str]) -> str | None:
    if not is_header(name, value):
        return "HTTP allows no such header"
    if name.lower() in _RESERVED:
        return "it is not for plugins to set"
    return "the request has one already" if name.lower() in taken else None


def _log_objection(what: str, plugin: str) -> None:
    log.warning("header_not_added", reason=what, plugin=plugin)


def _bare_address(url: str) -> str:
    """Where it goes, without what may be a key."""
    return without_userinfo(url).partition("?")[0]
