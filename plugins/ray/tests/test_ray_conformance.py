"""The engine passes the suite for engines, on a real cluster of one node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[data]'")

from agent_host_testing import BatchEngineConformance


class TestRay(BatchEngineConformance):
    plugin = "ray"
    options = {"workers": 2, "cpus": 2}
