"""The plugin: it opens the engine ``ray`` of batches, and takes no part in requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.batch import BatchEngine

__all__ = ["RayEngines"]


class RayEngines(FeaturePlugin):
    """Batches on a Ray cluster."""

    name = "ray"
    label = "Batches on Ray"
    default_enabled = False

    def open_batch_engine(self, name: str, config: Mapping[str, Any]) -> BatchEngine | None:
        if name != self.name:
            return None
        from agent_host_ray.errors import ClusterError
        from agent_host_ray.settings import read_settings

        settings = read_settings(config)
        try:
            # Not above: it brings Ray, and most processes only list the plugin.
            from agent_host_ray.engine import RayEngine
        except ImportError as error:
            raise ClusterError(
                f"Ray cannot be imported: {error}",
                hint="pip install 'agent-host-ray[data]' in this environment",
            ) from error
        return RayEngine(settings)
