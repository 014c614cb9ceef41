"""Says which copy of our packages the tests run against, and lets them be interrupted.

In a tox environment that must be the installed wheel; the tree's own copy would hide what the wheel
lacks.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
PACKAGES = (
    "agent_hookspecs",
    "agent_host",
    *(path.parent.name for path in sorted(ROOT.glob("plugins/*/src/*/__init__.py"))),
)


def _folders() -> dict[str, Path]:
    specs = ((name, find_spec(name)) for name in PACKAGES)
    return {name: Path(spec.origin).parent for name, spec in specs if spec and spec.origin}


def pytest_report_header() -> list[str]:
    return [f"{name}: {folder}" for name, folder in _folders().items()]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what another environment of tox runs, by the names that ``toxfile.py`` gives."""
    names = os.environ.get("AGENT_HOST_LEFT_OUT", "").split()
    return True if any(fnmatch(collection_path.name, name) for name in names) else None


def pytest_sessionstart() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Whoever is started in the background inherits this, and would hand it on to the processes
        # that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "AGENT_HOST_HOME" not in os.environ:
        # What a test stores is nobody's session; the folder is removed with those of the tests.
        home = Path(tempfile.mkdtemp(prefix="agent-host-tests-"))
        # A file in its place, so that no cache is made that another test would find.
        (home / "cache").touch()
        os.environ["AGENT_HOST_HOME"] = str(home)
    # Whom a test asks must not depend on whose machine it is: no keys, no keyring, no server.
    for name in [*os.environ]:
        if name.endswith(("_API_KEY", "_TOKEN")) or name == "AGENT_HOST_MODEL":
            del os.environ[name]
    os.environ["OLLAMA_HOST"] = "127.0.0.1:9"
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    environment = os.environ.get("TOX_ENV_DIR")
    if environment is None:
        return
    for name, folder in _folders().items():
        if not folder.is_relative_to(Path(environment).resolve()):
            raise pytest.UsageError(
                f"{name} comes from {folder}, not from the environment {environment}; "
                "call pytest from a folder that is not on its path"
            )


def pytest_runtest_teardown(item: pytest.Function) -> None:
    """Forget the modules that a test imported from its own folder.

    The next test may make a package of the same name, which would be refused as a shadow of this.
    """
    folder = item.funcargs.get("tmp_path")
    for name, module in [*sys.modules.items()] if isinstance(folder, Path) else []:
        if str(getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[name]
