"""Whether every node of a cluster has what this process has, before a worker is opened there."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from agent_hookspecs.batch import BatchWorkers
from agent_host_ray.errors import ClusterError
from agent_host_ray.library import ray

__all__ = ["check_nodes", "difference_error", "usable_nodes"]

strategies: Any = import_module("ray.util.scheduling_strategies")


def usable_nodes(cpus: float) -> list[dict[str, Any]]:
    """The nodes that are there and could have a worker."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    return [node for node in nodes if node["Resources"].get("CPU", 0) >= cpus]


async def check_nodes(open_worker: BatchWorkers, cpus: float, seconds: float) -> None:
    """Refuse a node that could have a worker and would answer lines in another way."""
    nodes = usable_nodes(cpus)
    if not nodes:
        raise ClusterError(
            f"no node of the cluster has {cpus:g} processors for a worker",
            hint="set cpus_per_worker to what a node has, or add a node",
        )
    expected = dict(open_worker.find_environment())
    find_environment = pickle.dumps(open_worker.find_environment)
    look = ray.remote(_make_look())
    begun = [
        look.options(
            num_cpus=0,
            max_retries=1,
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(
                node["NodeID"], soft=False
            ),
        ).remote(find_environment)
        for node in nodes
    ]
    for node, reference in zip(nodes, begun, strict=True):
        name = node["NodeManagerHostname"]
        try:
            found, problem = await asyncio.wait_for(_result_of(reference), seconds)
        except asyncio.TimeoutError as error:
            raise ClusterError(
                f"node {name} did not say for {seconds:g} s what is installed there",
                hint="look at its log, or raise start_seconds",
            ) from error
        except ray.exceptions.RayError as error:
            if node["NodeID"] not in {each["NodeID"] for each in usable_nodes(cpus)}:
                # It was gone already, which the cluster had yet to notice.
                continue
            raise ClusterError(
                f"node {name} cannot say what is installed there: {type(error).__name__}",
                hint="look at its log, or take it out of the cluster",
            ) from error
        if problem:
            raise ClusterError(
                f"node {name} has no Agent Host: {problem}",
                hint="install there what is installed here: `agent-host plugins sync --frozen`",
            )
        if found != expected:
            raise difference_error(name, found, expected)


async def _result_of(reference: Any) -> Any:
    return await reference


def _make_look() -> Callable[[bytes], tuple[Mapping[str, str], str]]:
    # A function within a function is sent as it is, so that it needs none of our packages there.
    def look(find_environment: bytes) -> tuple[Mapping[str, str], str]:
        import pickle

        try:
            return dict(pickle.loads(find_environment)()), ""
        except ImportError as error:
            return {}, str(error)

    return look


def difference_error(
    node: str, found: Mapping[str, str], expected: Mapping[str, str]
) -> ClusterError:
    """What a node has in another version than this process, and the way out."""
    different = [
        f"{name} {found.get(name, 'missing')} there, {expected.get(name, 'missing')} here"
        for name in sorted({*found, *expected})
        if found.get(name) != expected.get(name)
    ]
    more = f" (and {len(different) - 3} more)" if len(different) > 3 else ""
    return ClusterError(
        f"node {node} is not as this machine: {'; '.join(different[:3])}{more}",
        hint="give it the same plugins.txt and pylock.toml, and run "
        "`agent-host plugins sync --frozen` there",
    )
