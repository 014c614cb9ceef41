"""The built-in engine of batches passes the suite for engines."""

from __future__ import annotations

from agent_host_testing import BatchEngineConformance


class TestLocal(BatchEngineConformance):
    plugin = "local"
