"""The contexts plugins are given, in layers: the core's own, the application's, the caller's.

Callers may add keys. Keys the host owns keep the host's value, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Context
from agent_host.plugins.model_facts import read_facts
from agent_host.plugins.stack import Stack
from agent_host.sessions.excerpts import excerpt_items
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.sessions.session import Session

__all__ = [
    "RESERVED",
    "Warn",
    "action_context",
    "caller_keys",
    "request_context",
    "tool_context",
]

#: Says a sentence to whoever runs the request, in the name of a plugin.
Warn = Callable[[str, str | None], None]

log = get_logger(__name__)

#: Keys that the core or the application owns.
RESERVED = frozenset(
    {
        "core",
        "config",
        "deferred_tools",
        "excerpt",
        "refusal",
        "tools",
        "tool_interop",
        "trigger_source",
        "session",
        "lifecycle",
        "request_context",
        "request_runtime",
        "app",
        "application",
        "agent",
        "ask_person",
        "base_config",
        "call_id",
        "cancelled",
        "deps",
        "model",
        "retained",
        "run_path",
        "tags",
        "warn",
        "window",
    }
)


def _add_caller_keys(owned: Context, added: Mapping[str, Any] | None) -> Context:
    """``owned`` with the caller's keys added; a reserved key is refused with a warning."""
    if not added:
        return owned
    refused = sorted(RESERVED.intersection(added))
    if refused:
        log.warning("reserved_context_keys_ignored", names=", ".join(refused))
    return {**caller_keys(added), **owned}


def caller_keys(added: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a caller may add to a context."""
    return {key: value for key, value in (added or {}).items() if key not in RESERVED}


def request_context(
    core: object,
    stack: Stack,
    added: Mapping[str, Any] | None,
    layer: Mapping[str, Any] | None = None,
    warn: Warn | None = None,
) -> Context:
    """What ``initialize_request``, ``build_request`` and ``finalize`` get.

    ``layer`` is the application's, ``added`` the caller's. The config is a copy: what a plugin does
    to it ends with the request. ``tags`` are those of the stack; ``model`` is what the listing says
    of the selected one, if it does. ``warn`` is there while a run listens to it.
    """
    owned = {
        "core": core,
        "trigger_source": "core",
        **(layer or {}),
        "config": plain_copy(stack.config),
        "model": None if stack.model is None else {**stack.model},
        "tags": stack.resolution.tags,
        "tools": stack.descriptors,
        "tool_interop": _interop(stack),
        **({"warn": warn} if warn is not None else {}),
    }
    return _add_caller_keys(owned, added)


def tool_context(
    stack: Stack,
    added: Mapping[str, Any] | None,
    cancelled: Callable[[], bool] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Context:
    """What tools get besides their own ``config``; the core, and so all secrets, is not in it.

    ``cancelled()`` says whether anybody still waits for the result; ``given`` is what the program
    has for its tools; ``tools`` are all that are on offer.
    """
    owned = {
        "cancelled": cancelled or _is_never_cancelled,
        "tool_interop": _interop(stack),
        # Copies: no tool may change what another one says of itself.
        "tools": [replace(each, schema=plain_copy(each.schema)) for each in stack.descriptors],
    }
    return _add_caller_keys({**owned, **(given or {})}, added)


def _interop(stack: Stack) -> dict[str, Any]:
    return {
        "registry": stack.registry,
        "schema_target_formats": list(stack.schema_target_formats),
    }


def _is_never_cancelled() -> bool:
    return False


def action_context(
    stack: Stack, request: Context, session: Session, known: Mapping[str, Any]
) -> Context:
    """What ``execute_action`` gets: the request's context and what an action can work with.

    ``known`` are the keys of a trigger.
    """
    features = [plugin.instance for plugin in stack.resolution.plugins["feature"]]
    return {
        **request,
        "session": session.shared_dict(),
        "excerpt": excerpt_items(session),
        "window": read_facts(stack.model).window if stack.model is not None else None,
        "request_context": request,
        "request_runtime": {"provider": stack.provider.instance, "features": features},
        **known,
    }
