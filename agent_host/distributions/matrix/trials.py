"""Tries the cells of a matrix, each in a fresh environment that tox makes and runs.

Owns the generated ``tox.ini``, the processes, and what their ends mean: that it does not fit, that
it failed, or that it could not be tested. Whatever was made is removed again.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from xml.etree import ElementTree

from agent_hookspecs.logs import redact
from agent_host.distributions.errors import DistributionError
from agent_host.distributions.matrix.cells import CONTRACT, KIT, Cell, Outcome, Release
from agent_host.distributions.matrix.releases import Releases, unpack_tests
from agent_host.distributions.wanted import HOST
from agent_host.places import cache_folder

__all__ = ["Trials", "read_refusal", "require_tox", "work_folder"]

#: As much of what a cell printed as a person can use.
_LAST_CHARACTERS = 20_000
_NAME = "cell"
#: What pip prints where it cannot reach an index.
_UNREACHED = (
    "newconnectionerror",
    "failed to establish a new connection",
    "connection refused",
    "connection reset",
    "name resolution",
    "max retries exceeded",
    "read timed out",
    "proxyerror",
    "sslerror",
    "remotedisconnected",
    "protocolerror",
    "network is unreachable",
)
_UNKNOWN = re.compile(r"satisfies the requirement (\S+).*\(from versions: none\)")
_MISFITS = (
    "resolutionimpossible",
    "conflict",
    "no matching distribution",
    "requires a different python",
)
_CONFLICT = re.compile(r"The conflict is caused by:\n((?: {4}.+\n)+)")
_ABSENT = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([^']+)'")

_INI = """\
[tox]
env_list = {name}
no_package = true
work_dir = {{tox_root}}/work

[testenv:{name}]
base_python = {python}
package = skip
deps =
    -r {{tox_root}}/requirements.txt
    -c {{tox_root}}/constraints.txt
pass_env = ALL_PROXY, CI, PIP_*, REQUESTS_CA_BUNDLE, SSL_CERT_*
set_env =
    AGENT_HOST_HOME = {{env_tmp_dir}}/home
    PYTHONPATH =
change_dir = {{tox_root}}/run
ignore_errors = true
commands =
{commands}
"""
_SUITE = """\
class Test{number}(PackageConformance):
    package = {package!r}
    role = {role!r}
    plugin = {plugin!r}
    also = ("agent_host_echo",)
"""


def require_tox() -> None:
    """Refuse to begin without tox."""
    if find_spec("tox") is None:
        raise DistributionError(
            "tox is not installed here, which makes the environments",
            hint="pip install 'agent-host-core[matrix]'",
        )


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder of this run's own below the cache; those of runs that were killed are removed."""
    base = Path(cache_folder() or mkdtemp()) / "matrix"
    base.mkdir(parents=True, exist_ok=True)
    for left in base.iterdir():
        if left.name.isdigit() and not _is_alive(int(left.name)):
            shutil.rmtree(left, ignore_errors=True)
    folder = base / str(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        # Nothing is lost: it has ended, which is what was asked.
        return False
    except OSError:
        # Nothing is lost: it is somebody else's, and so alive.
        return True
    return True


class Trials:
    """Tries cells one after another in ``folder``, each for at most ``seconds``."""

    def __init__(self, folder: Path, releases: Releases, seconds: float) -> None:
        self._folder = folder
        self._releases = releases
        self._seconds = seconds
        self._sources: dict[str, Path | None] = {}
        self._pythons: dict[str, str] = {}

    def try_cell(self, cell: Cell, tell: Callable[[str], None]) -> Outcome:
        """What comes of it. ``tell`` is told what goes on."""
        begun = time.monotonic()
        outcome = self._try(cell, tell)
        return replace(outcome, seconds=round(time.monotonic() - begun, 1))

    def _try(self, cell: Cell, tell: Callable[[str], None]) -> Outcome:
        if cell.release.problem:
            return Outcome(cell, "not tested", cell.release.problem)
        if misfit := cell.find_misfit():
            return Outcome(cell, "does not fit", misfit)
        python = self._find_python(cell.python)
        if not python:
            return Outcome(cell, "not tested", f"there is no Python {cell.python} on this machine")
        place = self._folder / _NAME
        try:
            notes = self._prepare(cell, python, place)
            tell("installing")
            code, log = self._tox(place, "--notest")
            if code:
                return read_refusal(cell, log)
            if misfit := self._find_incompatible(cell.release, place):
                return Outcome(cell, "does not fit", misfit, log=_cut(log))
            tell("testing")
            code, log = self._tox(place, "--skip-pkg-install")
            return _read_results(cell, place, code, log, notes)
        except subprocess.TimeoutExpired:
            # Nothing is lost: it is what came of the cell.
            return Outcome(cell, "failed", f"it has not ended after {self._seconds:.0f} s")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _prepare(self, cell: Cell, python: str, place: Path) -> tuple[str, ...]:
        """Write what tox is to do; gives what to know of the outcome."""
        release, run = cell.release, place / "run"
        shutil.rmtree(place, ignore_errors=True)
        run.mkdir(parents=True)
        pytest = "python -m pytest -p no:cacheprovider --junit-xml={tox_root}/results"
        commands, notes = [], []
        if self._unpack_tests(release, run / "own"):
            commands.append(f"{pytest}/own.xml --rootdir={{tox_root}}/run/own own")
        else:
            notes.append("no sdist with tests: tried by the kit's checks of packages alone")
        (run / "kit").mkdir()
        suites = [
            _SUITE.format(number=number, package=package, role=role, plugin=plugin)
            for number, (package, role, plugin) in enumerate(release.plugins, 1)
        ]
        head = "from agent_host_testing.suites.package import PackageConformance\n\n\n"
        (run / "kit" / "test_package.py").write_text(head + "\n\n".join(suites), "utf-8")
        (run / "kit" / "pytest.ini").write_text("[pytest]\n", "utf-8")
        commands.append(f"{pytest}/kit.xml --rootdir={{tox_root}}/run/kit kit")
        text = _INI.format(
            name=_NAME, python=python, commands="\n".join(f"    {each}" for each in commands)
        )
        (place / "tox.ini").write_text(text, encoding="utf-8")
        (place / "requirements.txt").write_text(self._requirements(cell), encoding="utf-8")
        versions = {release.name: release.version, HOST: cell.host, CONTRACT: cell.contract}
        pins = self._releases.pin_local(versions)
        (place / "constraints.txt").write_text("".join(f"{each}\n" for each in pins), "utf-8")
        return tuple(notes)

    def _requirements(self, cell: Cell) -> str:
        release, options = cell.release, self._releases.options
        extra = "[test]" if "test" in release.extras else ""
        lines = [
            *(" ".join(pair) for pair in zip(options[::2], options[1::2], strict=True)),
            f"{release.name}{extra}=={release.version}",
            f"{HOST}=={cell.host}",
            f"{CONTRACT}=={cell.contract}",
            KIT,
        ]
        return "".join(f"{line}\n" for line in lines)

    def _unpack_tests(self, release: Release, folder: Path) -> bool:
        if release.name not in self._sources:
            self._sources[release.name] = self._releases.fetch_sdist(release)
        source = self._sources[release.name]
        return source is not None and unpack_tests(source, folder)

    def _find_python(self, version: str) -> str:
        if version not in self._pythons:
            found = (each for each in _candidates(version) if _is_python(each, version))
            self._pythons[version] = next(found, "")
        return self._pythons[version]

    def _tox(self, place: Path, *how: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "tox", "run", "-c", str(place / "tox.ini"), "-e", _NAME]
        return _run_group([*command, "--colored", "no", *how], place, self._seconds)

    def _find_incompatible(self, release: Release, place: Path) -> str:
        """Why the host in the cell does not take the plugins, if it is because of the contract."""
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        python = place / "work" / _NAME / scripts / "python"
        packages = sorted({package for package, _, _ in release.plugins})
        code = (
            "from agent_host.plugins.load import load_catalog\n"
            "for r in load_catalog():\n"
            f"    if r.bundle.source in {packages!r} and r.state == 'incompatible':\n"
            "        print(r.reason)\n"
        )
        _, said = _run_group([str(python), "-I", "-c", code], place, self._seconds)
        return next((line for line in said.splitlines() if "contract" in line), "")


def _candidates(version: str) -> Iterator[str]:
    """Where a Python of a version may be: on the path, at pyenv's, at uv's."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        yield sys.executable
    yield shutil.which(f"python{version}") or ""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True))
    if uv := shutil.which("uv"):
        command = [uv, "python", "find", "--no-python-downloads", "--no-project", version]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        yield done.stdout.strip()


def _is_python(path: str, version: str) -> bool:
    if not path:
        return False
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [path, "-c", code], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        # Nothing is lost: what cannot be run is none, and the next one is asked.
        return False
    return done.stdout.strip() == version


def _run_group(command: Sequence[str], place: Path, seconds: float) -> tuple[int, str]:
    """How a process ended, and what it printed; with us ends all that it has started."""
    log = place / "log.txt"
    variables = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TOX_", "PYTEST_", "COV_", "VIRTUAL_ENV", "PYTHONPATH"))
    }
    variables |= {"AGENT_HOST_HOME": str(place / "home"), "NO_COLOR": "1"}
    with (
        open(log, "wb") as output,
        subprocess.Popen(
            command,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(seconds)
        except BaseException:
            _end_group(process)
            raise
    return process.returncode, redact(log.read_text(encoding="utf-8", errors="replace"))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except AttributeError:
        # Nothing is lost: where processes have no groups, tox ends what it has started.
        process.terminate()
    except ProcessLookupError:
        # Nothing is lost: it has ended by itself.
        return


def read_refusal(cell: Cell, log: str) -> Outcome:
    """What an installation that failed means, by what pip printed."""
    said, conflict, unknown = log.lower(), _CONFLICT.search(log), _UNKNOWN.search(log)
    lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    reason = (lines or ["the environment could not be made"])[0].removeprefix("ERROR: ")
    if conflict:
        reason = "; ".join(map(str.strip, conflict[1].splitlines()))
    found = Outcome(cell, "not tested", reason, log=_cut(log))
    if any(each in said for each in _UNREACHED):
        return replace(found, reason=f"an index was not reached: {reason}")
    if unknown:
        return replace(found, reason=f"no index has {unknown[1]}")
    return replace(found, status="does not fit") if any(map(said.__contains__, _MISFITS)) else found


def _read_results(cell: Cell, place: Path, code: int, log: str, notes: tuple[str, ...]) -> Outcome:
    """What a run of the tests means."""
    failures, counts = [], [0, 0, 0]
    for name in ("own", "kit"):
        file = place / "results" / f"{name}.xml"
        for case in ElementTree.parse(file).iter("testcase") if file.is_file() else ():
            broken = (
                case.find("failure") if case.find("failure") is not None else case.find("error")
            )
            skipped = case.find("skipped") is not None
            counts[1 if broken is not None else 2 if skipped else 0] += 1
            if broken is not None:
                title = f"{case.get('classname') or ''} {case.get('name') or ''}".strip()
                failures.append((title, f"{broken.get('message') or ''}\n{broken.text or ''}"))
    found = Outcome(cell, "passed", notes=notes, counts=(counts[0], counts[1], counts[2]))
    if not code:
        return found
    found = replace(found, log=_cut(log))
    absent = {match[1] for _, said in failures if (match := _ABSENT.search(said))}
    packages = {package.split(".")[0] for package, _, _ in cell.release.plugins}
    if failures and len(absent) > 0 and all(_ABSENT.search(said) for _, said in failures):
        strange = sorted(name for name in absent if name.split(".")[0] not in packages)
        if strange:
            reason = f"its tests need what nothing installs: {', '.join(strange)}"
            return replace(found, status="not tested", reason=reason)
    if not failures:
        last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
        return replace(found, status="failed", reason=f"tox ended with {code}: {last}")
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return replace(found, status="failed", reason=f"{failures[0][0]}{more}")


def _cut(log: str) -> str:
    return log[-_LAST_CHARACTERS:]
