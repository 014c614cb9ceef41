"""What it costs to make a stack for a config that was not seen before, and to find it again.

The plugins are installed packages; they are imported once, by the first request, which is not
counted. Every further config misses the cache: gating, ordering, compiling hooks, settings. One
that was seen before only has to be recognised.
"""

from __future__ import annotations

import json
from functools import partial

from benchmarks.measure import Samples, Table, Task, interleaved, progress, show
from benchmarks.packages import PROVIDER, install
from benchmarks.processes import Place, place

PLUGINS = (10, 50, 200)
JUDGED = 50
MISSES, HITS = 50, 1_000
ROUNDS = 9

_RESOLVING = f"""\
import json, sys, time
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
new = (time.process_time() - started) / {MISSES}
stack(0)
started = time.process_time()
for _ in range({HITS}):
    stack(0)
print(json.dumps([new, (time.process_time() - started) / {HITS}]))
"""


def run(quick: bool) -> list[Table]:
    made = Table("A stack for a new config (ms)", name="new")
    known = Table("The stack of a known config (µs)", name="known")
    counts = (JUDGED,) if quick else PLUGINS
    with place() as at:
        environments = {}
        for count in counts:
            tree = at.folder / f"plugins{count}"
            install(tree, count, with_code=True)
            environments[count] = at.environment(f"home{count}", [tree])
        progress("resolving stacks")
        recognising: dict[int, list[float]] = {count: [] for count in counts}
        tasks: dict[str, Task] = {
            str(count): partial(_resolve, at, count, environments[count], recognising[count])
            for count in counts
        }
        found = interleaved(tasks, 1 if quick else ROUNDS)
    base = counts[0]
    for count in counts:
        making = found[str(count)].times(1e3)
        made.add(f"{count} plugins", making, found[str(base)].times(1e3))
        # The first round only warmed up.
        finding = {each: Samples(tuple(recognising[each][1:])).times(1e6) for each in (base, count)}
        known.add(f"{count} plugins", finding[count], finding[base])
        if count == JUDGED:
            made.goals["resolution"] = [making.least]
            known.goals["known_config"] = [finding[count].least]
    return [made, known]


def _resolve(at: Place, count: int, environment: dict[str, str], recognising: list[float]) -> float:
    """The time for a new config; that for a known one is noted on the side."""
    new, known = json.loads(at.output(["-c", _RESOLVING, str(count)], environment))
    recognising.append(float(known))
    return float(new)


if __name__ == "__main__":
    show(run(quick=False))
