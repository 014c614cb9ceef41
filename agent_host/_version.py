"""The version of the host, read by the build and by ``agent-host --version``."""

from __future__ import annotations

__version__ = "0.1.0"
