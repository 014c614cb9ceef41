"""The command line. This module must stay light: it runs before anything else does."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]

_VERSION = frozenset({"--version", "-V"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``agent-host`` and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if set(given) <= {*_VERSION, "--json"} and not _VERSION.isdisjoint(given):
        # This is answered before click is imported, which alone takes longer than all of this.
        from agent_hookspecs._version import API_VERSION
        from agent_host._version import __version__

        python = sys.version.split()[0]
        if "--json" in given:
            import json

            known = {"agent_host": __version__, "contract": API_VERSION, "python": python}
            print(json.dumps(known))
        else:
            print(f"agent-host {__version__} (contract {API_VERSION}, Python {python})")
        return 0
    from agent_host.cli.app import run

    if arguments is None:
        _relieve_collector()
    return run(given)


def _relieve_collector() -> None:
    """Let the collector of circles look less often, where the process is ours alone.

    What is imported by now stays to the end, and hardly any of the thousands of records that a
    command makes is in a circle. Looking at them all takes a tenth of a long list.
    """
    gc.freeze()
    gc.set_threshold(50_000)
