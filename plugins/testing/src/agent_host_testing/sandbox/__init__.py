"""Plugins at work in a process of their own, where everything they do to the world is seen.

Owns the way there and back. What is tried there is said by `tool_trial` and `feature_trial`, what
counts as the world by `watch`. The process is left to itself after a while, so that a plugin that
hangs is a finding.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent_host_testing.violations import require

__all__ = ["Order", "try_in_sandbox"]

#: Seconds until a trial that does not end is given up.
_PATIENCE = 300
#: What the child writes before its findings, because plugins may print as well.
MARK = "agent_host_testing.sandbox:"


@dataclass(frozen=True, slots=True)
class Order:
    """What to try: a plugin of packages, with a config, in a folder that is its world.

    ``samples`` are the payloads of a tool's suite, ``parameters`` the schemas of those that are
    objects, and ``effects`` what each says that it does; a feature has none.
    """

    kind: Literal["tool", "feature"]
    plugin: str
    packages: Sequence[str]
    folder: str
    enabled: Sequence[str]
    config: Mapping[str, Any]
    world: str
    samples: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    effects: Mapping[str, str] = field(default_factory=dict)

    @property
    def confined(self) -> list[str]:
        """The tools that can be kept in the sandbox; only they get payloads nobody has seen."""
        return [name for name in self.samples if self.effects.get(name) in ("read", "write")]


def try_in_sandbox(order: Order) -> dict[str, Any]:
    """What the trial found, as its module says."""
    try:
        ordered = pickle.dumps(order)
    except Exception as error:
        require(False, f"the settings cannot be given to another process: {error}")
    search = os.pathsep.join(path for path in (*sys.path, os.getcwd()) if path)
    with tempfile.TemporaryDirectory(prefix="scratch-") as scratch:
        # Scratch files are no change of the world; compiled modules are none either, with -B.
        there = dict.fromkeys(("TMPDIR", "TEMP", "TMP", "HYPOTHESIS_STORAGE_DIRECTORY"), scratch)
        # What other packages add to hypothesis is of no use here, and takes longer to import.
        there["HYPOTHESIS_NO_PLUGINS"] = "1"
        try:
            done = subprocess.run(
                [sys.executable, "-B", "-m", "agent_host_testing.sandbox"],
                input=ordered,
                cwd=Path(order.world),
                env={**os.environ, **there, "PYTHONPATH": search},
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # Nothing is lost: this is a finding.
            require(False, f"what its samples start has not ended after {_PATIENCE} s")
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    found = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    if not found:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        require(False, f"the process that runs it ends with {done.returncode}: {said[-1]}")
    findings: dict[str, Any] = json.loads(found[-1])
    require("problem" not in findings, str(findings.get("problem")))
    return findings
