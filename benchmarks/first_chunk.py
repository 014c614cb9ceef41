"""From a cold process to the first streamed chunk, as a person at a terminal waits for it.

Ours is a whole application: installed plugins, a tool on offer, the provider with its extensions
for tools and reasoning, policy and tool loop. The base is the shortest script with httpx.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from benchmarks.cases import WIRES, Case, body_of
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Table, interleaved, progress, show
from benchmarks.peers.installed import PEERS, is_installed, python_of
from benchmarks.processes import Place, place
from benchmarks.server import ROOT, running
from benchmarks.team import BASE, OURS, PEER_ROUNDS, Team, spoken_wires

RUNS = 9

_OURS = """\
import json, sys
from agent_host import AgentApplication
from agent_hookspecs import ToolPlugin


class SaveDocument(ToolPlugin):
    name = "benchmark_tool"
    effect = "write"

    def get_tool_schemas(self):
        return [{"name": "save_document", "description": "Save.", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name):
        return "done"


options = json.loads(sys.argv[1])
with AgentApplication({}, tools=[SaveDocument]) as app:
    provider, model = options.pop("provider"), options.pop("model")
    for event in app.stream("Go on.", provider=provider, model=model, settings=options):
        if event["type"] == "partial" and event["message"].get("content"):
            print(event["message"]["content"], flush=True)
            break
"""
_HTTPX = """\
import json, sys
import httpx

url, body = sys.argv[1:]
with httpx.Client() as client, client.stream("POST", url, json=json.loads(body)) as response:
    for line in response.iter_lines():
        if "token" in line:
            print(json.loads(line.removeprefix("data: ")), flush=True)
            break
"""
_PEER = """\
import sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
from benchmarks.cases import Case

driver = import_module("benchmarks.peers." + sys.argv[2]).Driver(sys.argv[3])
print(driver.stream(Case(sys.argv[4], "text", 1)), flush=True)
"""


def run(quick: bool) -> list[Table]:
    table = Table("From a cold process to the first streamed chunk (ms)")
    with running() as server, place() as at:
        team = Team(server, [OURS])
        wires = spoken_wires(table, team)
        team.close()
        environment = at.environment()
        at.warm(environment)
        for name in wires[:1] if quick else wires:
            progress(f"cold processes, {name}")
            tasks = _tasks(at, environment, server, name)
            fewer = dict.fromkeys(filter(PEERS.__contains__, tasks), PEER_ROUNDS)
            found = interleaved(dict(tasks), 1 if quick else RUNS, fewer=fewer)
            base = found[BASE].times(1000)
            for who, samples in found.items():
                goal = "first_chunk" if who == OURS else None
                table.add(f"{WIRES[name].label}: {who}", samples.times(1000), base, goal=goal)
    return [table]


def _tasks(
    at: Place, environment: dict[str, str], server: str, name: str
) -> dict[str, Callable[[], float]]:
    case = Case(name, "text", 20)
    ours = ["-c", _OURS, json.dumps(config_of(case, server))]
    base = ["-c", _HTTPX, case.url(server), json.dumps(body_of(case))]
    tasks: dict[str, Callable[[], float]] = {
        OURS: partial(at.until_first_line, ours, environment),
        BASE: partial(at.until_first_line, base, environment),
    }
    for peer, about in PEERS.items():
        if is_installed(peer) and name in about.wires:
            arguments = ["-c", _PEER, str(ROOT), peer, server, name]
            tasks[peer] = partial(at.until_first_line, arguments, environment, python_of(peer))
    return tasks


if __name__ == "__main__":
    show(run(quick=False))
