"""What it costs to make a stack for a config that was not seen before, with many plugins active.

The plugins are installed packages; they are imported once, by the first request, which is not
counted. Every further config misses the cache: gating, ordering, compiling hooks, settings.
"""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Table, interleaved, progress, show
from benchmarks.packages import PROVIDER, install
from benchmarks.processes import Place, place

PLUGINS = (10, 50, 200)
JUDGED = 50
MISSES = 50
ROUNDS = 9

_RESOLVING = f"""\
import sys, time
from agent_host import AgentCore
from agent_host.plugins.load import load_catalog

plugins = int(sys.argv[1])
core = AgentCore(catalog=load_catalog())
def stack(number):
    config = {{"provider": {PROVIDER!r}, "model": "m", "number": number, "use_tools": []}}
    return core.resolution(config)
names = [plugin.name for role in stack(0).plugins.values() for plugin in role]
active = [name for name in names if name.startswith("bench")]
assert len(active) == plugins, (len(active), plugins)
started = time.process_time()
for number in range(1, {MISSES} + 1):
    stack(number)
print((time.process_time() - started) / {MISSES})
"""


def run(quick: bool) -> list[Table]:
    table = Table("A stack for a new config (ms)")
    counts = (JUDGED,) if quick else PLUGINS
    with place() as at:
        environments = {}
        for count in counts:
            tree = at.folder / f"plugins{count}"
            install(tree, count, with_code=True)
            environments[count] = at.environment(f"cache{count}", [tree])
        progress("resolving stacks")
        tasks = {
            str(count): partial(_resolve, at, count, environment)
            for count, environment in environments.items()
        }
        found = interleaved(dict(tasks), 1 if quick else ROUNDS)
    first = found[str(counts[0])].times(1000)
    for count in counts:
        samples = found[str(count)].times(1000)
        table.add(f"{count} plugins", samples, first)
        if count == JUDGED:
            table.goals["resolution"] = [samples.least]
    return [table]


def _resolve(at: Place, count: int, environment: dict[str, str]) -> float:
    return float(at.output(["-c", _RESOLVING, str(count)], environment))


if __name__ == "__main__":
    show(run(quick=False))
