"""What ``tox.ini`` cannot say: the matrix, and where this machine keeps its Pythons.

The distributions come from the folders that are there, so a new plugin joins without an edit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tox.plugin import impl

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / ".ci"))

from wheelhouse import distributions  # noqa: E402

if TYPE_CHECKING:
    from tox.config.cli.parser import ToxParser
    from tox.config.sets import ConfigSet, EnvConfigSet
    from tox.session.state import State

PYTHONS = ("310", "311", "312", "313")
OLDEST, NEWEST = PYTHONS[0], PYTHONS[-1]

DISTRIBUTIONS = distributions(ROOT)
PLUGINS = [name for name, distribution in DISTRIBUTIONS.items() if distribution.is_plugin]
MATRIX = {f"py{python}-{name}": name for name in DISTRIBUTIONS for python in PYTHONS}


#: What CI runs of the matrix: host and contract on the oldest and the newest Python, and on the
#: newest all plugins in one environment. That each plugin does with what it depends on, and does so
#: on every Python, is for the matrix itself.
CI_MATRIX = [
    *(
        f"py{python}-{name}"
        for python in (OLDEST, NEWEST)
        for name, each in DISTRIBUTIONS.items()
        if not each.is_plugin
    ),
    f"py{NEWEST}-plugins",
]

#: Environments outside the matrix that test less than everything, and where their tests are.
_TESTED = {
    "plugins": PLUGINS,
    **{f"py{python}-plugins": PLUGINS for python in PYTHONS},
    "sdk": ["testing", "gateway", "anthropic", "google", "openai"],
    "matrix": ["host"],
}
_FOLDERS = {
    "httpx2": ROOT,
    "together": ROOT / "tests" / "together",
    "sdk": ROOT / "plugins" / "testing" / "tests" / "sdk",
}

#: Tests of the host that ``together`` runs with all there is, where nothing of them is skipped.
_RUN_TOGETHER = (
    "test_docs.py",
    "test_tutorials.py",
    "test_template.py",
    "test_benchmarks.py",
    "test_typed_programs.py",
)
#: What CI tries on the newest Python alone: it starts many processes, and takes long. On the oldest
#: ``together`` uses the command line, too.
_RUN_ONCE = ("test_chat*.py", "test_cli_*.py", "test_distributions*.py", "test_matrix.py")


def _left_out(environment: str) -> list[str]:
    """The names of tests that another environment runs; ``conftest.py`` leaves them out."""
    if MATRIX.get(environment) != "host":
        return []
    is_ci = os.environ.get("CI", "").lower() == "true"
    once = _RUN_ONCE if is_ci and environment == f"py{OLDEST}-host" else ()
    return [*_RUN_TOGETHER, *once]


def _tested_by(environment: str) -> list[str]:
    if environment in MATRIX:
        return [MATRIX[environment]]
    return _TESTED.get(environment, list(DISTRIBUTIONS))


@impl
def tox_add_option(parser: ToxParser) -> None:
    """Let tox find the Pythons of pyenv, whose shims answer only for the selected versions."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [str(folder) for folder in sorted(pyenv.glob("versions/3.*/bin"), reverse=True)]
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:
    core_conf.add_constant("matrix", "every distribution on every Python", ", ".join(MATRIX))
    core_conf.add_constant("ci_matrix", "what CI runs of it", ", ".join(CI_MATRIX))
    core_conf.add_constant(
        "may_skip_pythons",
        "whether a missing Python is skipped: not in CI, where it would hide a failure",
        str(os.environ.get("CI", "").lower() != "true"),
    )


@impl
def tox_add_env_config(env_conf: EnvConfigSet, state: State) -> None:
    names = _tested_by(env_conf.name)
    several = DISTRIBUTIONS[names[0]].tests if len(names) == 1 else ROOT / "plugins"
    tests = _FOLDERS.get(env_conf.name, several)
    env_conf.add_constant("distributions", "the distributions under test", ",".join(names))
    env_conf.add_constant("test_folder", "their tests", str(tests))
    env_conf.add_constant("left_out", "what another runs", " ".join(_left_out(env_conf.name)))
