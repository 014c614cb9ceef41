"""The process of a trial: an order comes in, the findings go out as one marked line."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

from agent_host_testing.sandbox import MARK, Order


def main() -> None:
    order: Order = pickle.loads(sys.stdin.buffer.read())
    try:
        findings = _try_tools(order) if order.kind == "tool" else _try_feature(order)
    except Exception as error:
        findings = {"problem": f"{type(error).__name__}: {error}"}
    sys.stdout.write(f"\n{MARK}{json.dumps(findings)}\n")
    sys.stdout.flush()


def _try_tools(order: Order) -> dict[str, Any]:
    made_up = {}
    if order.confined:
        # Before anything else is imported: hypothesis reads the source of every module that is not
        # installed for good, which takes longer than all calls.
        from agent_host_testing.sandbox.payloads import make_up_payloads

        for name in order.confined:
            made_up[name] = make_up_payloads(order.parameters.get(name), order.samples[name])
    from agent_host_testing.sandbox.tool_trial import try_tools

    return try_tools(order, made_up)


def _try_feature(order: Order) -> dict[str, Any]:
    from agent_host_testing.sandbox.feature_trial import try_feature

    return try_feature(order)


main()
