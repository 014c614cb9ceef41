"""How many connections a process may hold: as many as the system lets it."""

from __future__ import annotations

import contextlib

__all__ = ["lift_file_limit"]


def lift_file_limit() -> None:
    """A thousand streams and what else is open come near the usual limit of files."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
