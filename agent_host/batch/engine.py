"""The engine of a batch by its name, through pluggy: ours answer in this process or by batches of
the providers, others are plugins'.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_hookspecs.batch import BatchEngine, BatchWorkers
from agent_hookspecs.errors import ConfigError, HookResultError
from agent_host.batch.errors import BatchError
from agent_host.plugins.offers import manager_of_offers

if TYPE_CHECKING:
    from agent_host.batch.progress import BatchProgress
    from agent_host.plugins.activate import Activator
    from agent_host.plugins.catalog import Catalog

__all__ = ["LocalEngine", "OwnEngines", "open_engine"]

_HOOK = "open_batch_engine"
_BUILT_IN = "host:engines"
#: All that an engine has to have.
_OFFERED = [name for name in vars(BatchEngine) if not name.startswith("_")]


class OwnEngines:
    """The host's own implementation of `open_batch_engine`, registered as that of any plugin.

    ``out`` is the file of results, if there is one, begun anew if ``fresh``. What an engine knows
    of batches that wait it tells to ``progress``.
    """

    def __init__(
        self,
        out: Path | None = None,
        progress: BatchProgress | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        self._fresh = fresh
        self._out = out
        self._progress = progress

    def open_batch_engine(self, name: str, config: Mapping[str, Any]) -> BatchEngine | None:
        if name == "provider":
            return self._open_provider_engine(config)
        if name != "local":
            return None
        if config:
            raise ConfigError(
                f"the engine {name!r} has no setting {', '.join(sorted(config))}",
                key="engine_options",
                hint="leave it out",
            )
        return LocalEngine()

    def _open_provider_engine(self, config: Mapping[str, Any]) -> BatchEngine:
        # Here, because most batches do without.
        from agent_host.batch.provider_engine import EngineSettings, ProviderEngine

        settings = EngineSettings.of(config)
        if self._out is None or self._progress is None:
            raise BatchError(
                "a batch of a provider's own outlives the process, and has to be noted somewhere",
                hint="name a file of results with --out (out=…)",
            )
        return ProviderEngine(settings, self._out, self._progress, fresh=self._fresh)


class LocalEngine:
    """Answers all lines in the running event loop, by one worker."""

    warnings: Sequence[str] = ()

    async def results(
        self, lines: Iterable[Mapping[str, Any]], open_worker: BatchWorkers, concurrency: int
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """See `agent_hookspecs.batch.BatchEngine`."""
        worker = open_worker(open_worker.open_limits())
        waiting = iter(lines)
        # Bounded, so that nothing is asked for whose answers nobody takes.
        results: asyncio.Queue[Mapping[str, Any] | Exception | None] = asyncio.Queue(concurrency)

        async def work() -> None:
            try:
                for line in waiting:
                    await results.put(await worker.answer(line))
                await results.put(None)
            except Exception as error:
                await results.put(error)

        tasks = [asyncio.create_task(work()) for _ in range(concurrency)]
        try:
            working = concurrency
            while working:
                result = await results.get()
                if isinstance(result, Exception):
                    raise result
                if result is None:
                    working -= 1
                else:
                    yield result
        finally:
            for task in tasks:
                task.cancel()
            # Whoever ends a batch early wants nothing more of what they come to.
            await asyncio.gather(*tasks, return_exceptions=True)
            await worker.aclose()

    def close(self) -> None:
        """See `agent_hookspecs.batch.BatchEngine`."""


def open_engine(
    name: str,
    config: Mapping[str, Any],
    catalog: Catalog,
    activator: Activator,
    own: OwnEngines | None = None,
) -> BatchEngine:
    """The engine of a name; ``config`` is what the caller has set for it."""
    manager = manager_of_offers(
        catalog, activator, lambda entry: name in entry.engines, own or OwnEngines(), _BUILT_IN
    )
    engine = manager.hook.open_batch_engine(name=name, config=dict(config))
    if engine is None:
        raise ConfigError(
            f"no plugin has a batch engine called {name!r}",
            key="engine",
            hint="install the plugin that does, or use local",
        )
    missing = [name for name in _OFFERED if not hasattr(engine, name)]
    if missing:
        raise HookResultError(
            f"what {_HOOK!r} gave ({type(engine).__name__}) has no {', '.join(missing)}",
            plugin=type(engine).__module__,
            hook=_HOOK,
            hint="BatchEngineConformance of agent-host-testing checks an engine",
        )
    checked: BatchEngine = engine
    return checked
