"""The distributions of this repository, their wheels, and how an environment gets them.

Knows where each distribution lives and what its wheel says about itself; knows nothing of tox or of
what is run afterwards. Standard library only, for it runs in the bare environment it fills.

A wheel is built once for each state of its sources, under a lock, into a folder named after a
fingerprint of them, so that any number of environments, in any number of processes, share it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
HOST = "host"
CONTRACT = "hookspecs"
#: Wheels of sources that have changed since are kept this long: another process may be using them.
KEEP_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Distribution:
    """One distribution of the repository; ``name`` is its part in an environment's name."""

    name: str
    folder: Path
    package_folder: Path
    tests: Path
    is_plugin: bool
    #: Folders from elsewhere that the wheel has too, by their place in it.
    shipped: tuple[tuple[str, Path], ...] = ()

    def sources(self) -> Iterator[Path]:
        """Every file that can change what is in the wheel."""
        for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
            yield self.folder / name
        yield ROOT / ".gitignore"
        for folder in (self.package_folder, *(folder for _, folder in self.shipped)):
            for path in sorted(folder.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield path

    def fingerprint(self) -> str:
        """A digest of the names and contents of `sources`."""
        digest = hashlib.sha256()
        for path in self.sources():
            content = path.read_bytes() if path.exists() else b""
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:16]


def _plugin(folder: Path) -> Distribution:
    if folder.name in (HOST, CONTRACT):
        raise SystemExit(
            f"plugins/{folder.name}: the name is taken by the {folder.name}; rename the folder"
        )
    return Distribution(folder.name, folder, folder / "src", folder / "tests", is_plugin=True)


def distributions(root: Path = ROOT) -> dict[str, Distribution]:
    """By name: the contract, the host, every folder in ``plugins/`` with a ``pyproject.toml``."""
    contract = root / "hookspecs"
    template = ("agent_host/_template", root / "template-python-provider")
    host = (root, root / "agent_host", root / "tests")
    found = [
        Distribution(CONTRACT, contract, contract / "src", contract / "tests", is_plugin=False),
        Distribution(HOST, *host, is_plugin=False, shipped=(template,)),
        *(_plugin(path.parent) for path in sorted(root.glob("plugins/*/pyproject.toml"))),
    ]
    return {distribution.name: distribution for distribution in found}


@dataclass(frozen=True, slots=True)
class Wheel:
    """A built wheel and what its metadata declares."""

    path: Path
    project: str
    version: str
    #: Projects it needs, as `(project, only for an extra)`.
    requires: tuple[tuple[str, bool], ...]
    extras: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Wheel:
        with zipfile.ZipFile(path) as archive:
            name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            metadata = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
        requires = tuple(
            (normalized(re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0]), "extra ==" in line)
            for line in metadata.get_all("Requires-Dist", [])
        )
        return cls(
            path=path,
            project=normalized(metadata["Name"]),
            version=metadata["Version"],
            requires=requires,
            extras=tuple(metadata.get_all("Provides-Extra", [])),
        )

    @property
    def pin(self) -> str:
        """The requirement that this wheel alone meets."""
        return f"{self.project}=={self.version}"


def normalized(project: str) -> str:
    """The project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", project).lower()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file at ``path`` for this process alone; the system lets go if the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as handle:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(0)
            while True:
                try:
                    msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:
                    continue
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(wanted: Iterable[Distribution], wheelhouse: Path) -> dict[str, Wheel]:
    """The wheels of ``wanted`` by name of the distribution, building those that are not there."""
    wheels: dict[str, Wheel] = {}
    with locked(wheelhouse / "lock"):
        for distribution in wanted:
            folder = wheelhouse / f"{distribution.name}-{distribution.fingerprint()}"
            if not folder.exists():
                _build_into(folder, distribution)
            wheels[distribution.name] = Wheel.read(next(folder.glob("*.whl")))
        _forget_old(wheelhouse, {wheel.path.parent for wheel in wheels.values()})
    return wheels


def _build_into(folder: Path, distribution: Distribution) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        pip("wheel", "--no-deps", "--wheel-dir", scratch, str(distribution.folder))
        # A folder is there only when it is complete: a build that is stopped leaves none behind.
        finished = Path(scratch, "finished")
        finished.mkdir()
        for wheel in Path(scratch).glob("*.whl"):
            wheel.rename(finished / wheel.name)
        finished.rename(folder)


def _forget_old(wheelhouse: Path, used: set[Path]) -> None:
    for folder in wheelhouse.iterdir():
        if folder.is_dir() and folder not in used:
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > KEEP_SECONDS:
                    shutil.rmtree(folder)
    for folder in used:
        os.utime(folder)


def pip(*arguments: str, python: str = sys.executable) -> None:
    """Run pip, silent unless it fails."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}")


def needed(subjects: Sequence[str], wheels: dict[str, Wheel]) -> list[Wheel]:
    """The wheels of ``subjects`` and, of ours, those they need; extras count for subjects only.

    Where one of them is a plugin the host is needed too: plugins are tested beside one.
    """
    by_project = {wheel.project: wheel for wheel in wheels.values()}
    under_test = [wheels[name] for name in subjects]
    queue = list(under_test)
    if any(name not in (HOST, CONTRACT) for name in subjects):
        queue.append(wheels[HOST])
    chosen: dict[str, Wheel] = {}
    while queue:
        wheel = queue.pop()
        if wheel.project not in chosen:
            chosen[wheel.project] = wheel
            queue += [
                by_project[project]
                for project, for_extra in wheel.requires
                if project in by_project and (wheel in under_test or not for_extra)
            ]
    return sorted(chosen.values(), key=lambda wheel: wheel.project)


def install(
    subjects: Sequence[str], wheels: dict[str, Wheel], python: str = sys.executable
) -> None:
    """Install what `needed` says from our wheels, and the rest, with extras, from the index.

    Ours never come from an index, where somebody else may own the name: the first call cannot
    reach one, and the second finds them installed and held to their versions.
    """
    ours = needed(subjects, wheels)
    under_test = [wheels[name] for name in subjects]
    links = [option for wheel in ours for option in ("--find-links", str(wheel.path.parent))]
    pip(
        *("install", "--no-index", "--no-deps", "--force-reinstall"),
        *links,
        *(wheel.pin for wheel in ours),
        python=python,
    )
    with tempfile.TemporaryDirectory() as scratch:
        constraints = Path(scratch, "constraints.txt")
        constraints.write_text("\n".join(wheel.pin for wheel in wheels.values()), encoding="utf-8")
        requirements = [
            f"{wheel.project}[{','.join(wheel.extras)}]" if wheel in under_test else wheel.project
            for wheel in ours
        ]
        pip("install", "--constraint", str(constraints), *requirements, python=python)
    pip("check", python=python)


def main() -> None:
    parser = argparse.ArgumentParser(description="Install distributions of this repository.")
    parser.add_argument("--wheelhouse", type=Path, required=True, help="where wheels are kept")
    parser.add_argument("subjects", help="host, hookspecs or plugin folders, with commas between")
    options = parser.parse_args()
    subjects = options.subjects.split(",")
    known = distributions()
    for name in subjects:
        if name not in known:
            raise SystemExit(f"no distribution named {name!r}; there are: {', '.join(known)}")
    wheels = build(known.values(), options.wheelhouse.resolve())
    stamp = Path(sys.prefix, "installed-wheels.json")
    state = json.dumps([str(wheel.path) for wheel in needed(subjects, wheels)])
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == state):
        stamp.unlink(missing_ok=True)
        install(subjects, wheels)
        stamp.write_text(state, encoding="utf-8")


if __name__ == "__main__":
    main()
