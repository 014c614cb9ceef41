"""Runs the suites of a source tree with the kit, in a process of its own, and reads its tier.

It must not know the kit but by its options: the host does without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from agent_hookspecs.errors import SourceError
from agent_host.plugins.inspect.conformance import CONFORMANCE_NAME, Conformance, read_conformance

__all__ = ["try_tree"]


def try_tree(tree: Path) -> tuple[Conformance | None, bool]:
    """What the suites in a source tree's ``tests`` come to, and whether all tests there passed.

    None if they reach no tier. What pytest prints goes to standard error, so that whoever waits
    sees it.
    """
    if find_spec("agent_host_testing") is None:
        raise SourceError(
            "the conformance kit is not installed here, so no tier can be tried",
            hint="pip install agent-host-testing",
        )
    if not (tree / "tests").is_dir():
        raise SourceError(
            f"there is no folder tests in {tree}, so no tier can be tried",
            hint="write a suite: docs/testing.md; agent-host plugins new makes a package with one",
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, CONFORMANCE_NAME)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        # As validate looks at it: the package in the tree, whether it is installed or not.
        path = [str(tree / "src"), str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
        done = subprocess.run(
            [*command, "--conformance-tier", str(file), "tests"],
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            check=False,
        )
        return read_conformance(file), done.returncode == 0
