"""The process of a trial: an order comes in, the findings go out as one marked line."""

from __future__ import annotations

import json
import pickle
import sys

from agent_host_testing.sandbox import MARK, Order


def main() -> None:
    order: Order = pickle.loads(sys.stdin.buffer.read())
    if order.kind == "tool":
        from agent_host_testing.sandbox.tool_trial import try_tools as attempt
    else:
        from agent_host_testing.sandbox.feature_trial import try_feature as attempt
    try:
        findings = attempt(order)
    except Exception as error:
        findings = {"problem": f"{type(error).__name__}: {error}"}
    sys.stdout.write(f"\n{MARK}{json.dumps(findings)}\n")
    sys.stdout.flush()


main()
