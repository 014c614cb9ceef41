"""A feature in the sandbox: a request with it, and each of its actions, while somebody looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_host_testing.sandbox import Order
from agent_host_testing.sandbox.watch import Kind, Watch
from agent_host_testing.suites.hosting import Host
from agent_host_testing.suites.loading import catalog_of

__all__ = ["try_feature"]

#: What a feature must leave alone; whom it asks over the network is its own business.
_KEPT: tuple[Kind, ...] = ("files", "environment", "working folder", "processes")


def try_feature(order: Order) -> dict[str, Any]:
    """``changes``: what was done to the world, each with what was going on."""
    watch = Watch(Path(order.world))
    host = Host(catalog_of(order.packages, folder=order.folder, enabled=order.enabled))
    config = dict(order.config)
    changes: list[tuple[str, str]] = []
    session = host.core.add_message(host.core.create_session(), "user", "Hello")
    with watch.looking() as seen:
        session = host.ask(session, config).expect().session
    changes += [("in a request", what) for kind, what in seen if kind in _KEPT]
    for action in host.core.get_actions(config):
        inputs = action.get("inputs") or {}
        if any(spec.get("required") for spec in inputs.values() if isinstance(spec, dict)):
            continue
        with watch.looking() as seen:
            host.core.execute_session_action(session, action["id"], config)
        during = f"in the action {action['id']!r}"
        changes += [(during, what) for kind, what in seen if kind in _KEPT]
    host.close()
    return {"changes": [*dict.fromkeys(changes)]}
