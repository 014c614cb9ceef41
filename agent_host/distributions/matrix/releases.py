"""What is released of a distribution: its versions, wheels and sdists, as pip finds them.

pip is asked in an environment of its own, with the user's settings, so that indexes and logins are
those that any installation would use. A wheel is read as data. It must not know what is tried.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error as ConfigError
from email.parser import HeaderParser
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_hookspecs.errors import PluginError
from agent_hookspecs.logs import redact
from agent_host.distributions.errors import DistributionError, InstallerError
from agent_host.distributions.matrix.cells import Release
from agent_host.distributions.wanted import parse_wanted
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.descriptor import decode_descriptor
from agent_host.plugins.discover import GROUP

__all__ = ["Releases", "unpack_tests"]

_SECONDS = 600
_AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_MAX_BYTES = 200 << 20


class Releases:
    """The releases that indexes and folders offer. ``folder`` is where files are put."""

    def __init__(self, folder: Path, *, find_links: Sequence[str], index_url: str | None) -> None:
        self._folder = folder
        self._find_links = [*find_links]
        self._index_url = index_url
        self._python = ""

    @property
    def options(self) -> list[str]:
        """How pip is told where to look."""
        found = ["--index-url", self._index_url] if self._index_url else []
        return [*found, *(part for each in self._find_links for part in ("--find-links", each))]

    @property
    def local(self) -> dict[str, dict[str, list[Path]]]:
        """The wheels in the folders, by name and version."""
        found: dict[str, dict[str, list[Path]]] = {}
        for folder in filter(Path.is_dir, map(Path, self._find_links)):
            for file in sorted(folder.glob("*.whl")):
                try:
                    name, version, *_ = parse_wheel_filename(file.name)
                except InvalidWheelFilename:
                    # Nothing is lost: installers would not see it either.
                    continue
                found.setdefault(name, {}).setdefault(str(version), []).append(file)
        return found

    def pin_local(self, versions: Mapping[str, str]) -> list[str]:
        """Constraints that keep what is in the folders from coming from anywhere else.

        Of what ``versions`` names, that version; of the rest, what is there in one version alone.
        An index may have the same name from somebody else.
        """
        pinned = []
        for name, found in sorted(self.local.items()):
            version = versions.get(name) or (next(iter(found)) if len(found) == 1 else "")
            files = found.get(version, [])
            if len(files) == 1:
                pinned.append(f"{name} @ {files[0].resolve().as_uri()}")
        return pinned

    def find_versions(self, name: str) -> list[str]:
        """All that is released of a distribution, whatever Python it is for.

        What a folder has is not looked for on the index.
        """
        if local := self.local.get(canonical_name(name)):
            return [*local]
        said = self._pip("index", "versions", "--pre", "--ignore-requires-python", name)
        found = _AVAILABLE.search(said)
        return [each.strip() for each in found[1].split(",")] if found else []

    def fetch(self, asked: str) -> Release:
        """The newest release that is asked for: a requirement, or a wheel on this machine."""
        wanted = parse_wanted(asked)
        requirement = Requirement(wanted.requirement)
        if wanted.file is not None:
            if not wanted.file.is_file():
                raise DistributionError(
                    f"{asked} is no release", hint="build a wheel of it, and name that"
                )
            self._find_links.append(str(wanted.file.parent))
            version = str(parse_wheel_filename(wanted.file.name)[1])
            return _read_wheel(wanted.name, version, wanted.file)
        released = self.find_versions(wanted.name)
        fitting = [*requirement.specifier.filter(released)]
        if not fitting:
            raise DistributionError(
                f"no release of {wanted.name} is {asked}",
                hint=f"released are: {', '.join(released)}",
            )
        version = str(max(map(Version, fitting)))
        if local := self.local.get(wanted.name, {}).get(version):
            return _read_wheel(wanted.name, version, local[0])
        place = self._folder / "wheels" / wanted.name
        self._pip(
            *("download", "--quiet", "--no-deps", "--only-binary", ":all:"),
            *("--ignore-requires-python", "--dest", str(place), f"{wanted.name}=={version}"),
        )
        (wheel,) = place.glob("*.whl")
        return _read_wheel(wanted.name, version, wheel)

    def fetch_sdist(self, release: Release) -> Path | None:
        """The source of a release; None if there is none, or pip cannot get it."""
        for folder in filter(Path.is_dir, map(Path, self._find_links)):
            for file in folder.glob("*.tar.gz"):
                if _is_sdist_of(file.name, release):
                    return file
        place = self._folder / "sdists" / release.name
        asked = f"{release.name}=={release.version}"
        try:
            self._pip(
                *("download", "--quiet", "--no-deps", "--no-binary", release.name),
                *("--ignore-requires-python", "--dest", str(place), asked),
            )
        except InstallerError:
            # Nothing is lost: that there are no tests is told with the outcome.
            return None
        return next(place.glob("*.tar.gz"), None)

    def _pip(self, *arguments: str) -> str:
        if not self._python:
            self._python = self._make_environment()
        # Not among those of its environment: which versions there are does not depend on it.
        command = [self._python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        done = _run([*command, *arguments, *self.options])
        if done.returncode:
            lines = [line for line in redact(done.stderr).splitlines() if line.strip()]
            raise InstallerError(
                f"pip cannot find {arguments[-1]}; it says:\n" + "\n".join(lines[-5:]),
                output=done.stderr,
                hint="check the name, --index-url and --find-links",
            )
        return done.stdout

    def _make_environment(self) -> str:
        place = self._folder / "pip"
        done = _run([sys.executable, "-m", "virtualenv", "--quiet", str(place)])
        if done.returncode:
            raise InstallerError(
                f"no environment could be made: {done.stderr.strip()[-500:]}",
                output=done.stderr,
                hint="is virtualenv there? it comes with tox",
            )
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        return str(place / scripts / "python")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
    )


def _is_sdist_of(name: str, release: Release) -> bool:
    try:
        found, version = parse_sdist_filename(name)
    except InvalidSdistFilename:
        # Nothing is lost: another file lies there.
        return False
    return found == canonical_name(release.name) and version == Version(release.version)


def _read_wheel(name: str, version: str, file: Path) -> Release:
    """What a wheel says of itself; what cannot be read is a problem of the release."""
    try:
        with ZipFile(file) as archive:
            metadata = HeaderParser().parsestr(_read_info(archive, "METADATA"))
            plugins = tuple(_read_plugins(archive))
        python = metadata.get("Requires-Python") or ""
        requires = tuple(metadata.get_all("Requires-Dist") or ())
        # Whoever cannot read these could not install it either.
        _ = SpecifierSet(python), [Requirement(each) for each in requires]
    except (BadZipFile, InvalidWheelFilename, KeyError, ValueError, ConfigError) as error:
        return Release(name, version, "", (), (), (), problem=f"its wheel cannot be read: {error}")
    except PluginError as error:
        return Release(name, version, "", (), (), (), problem=error.explain())
    return Release(
        name,
        version,
        python=python,
        requires=requires,
        extras=tuple(metadata.get_all("Provides-Extra") or ()),
        plugins=plugins,
        problem="" if plugins else "its wheel announces no plugins",
    )


def _read_info(archive: ZipFile, name: str) -> str:
    for path in archive.namelist():
        folder, _, rest = path.partition("/")
        if folder.endswith(".dist-info") and rest == name:
            return archive.read(path).decode()
    return ""


def _read_plugins(archive: ZipFile) -> list[tuple[str, str, str]]:
    """The plugins that a wheel announces, as package, role and name; of classes alone, none."""
    points = ConfigParser(delimiters=("=",), interpolation=None)
    points.read_string(_read_info(archive, "entry_points.txt"))
    found: list[tuple[str, str, str]] = []
    for _, package in points.items(GROUP) if points.has_section(GROUP) else ():
        path = f"{package.strip().replace('.', '/')}/{DESCRIPTOR_NAME}"
        if path in archive.namelist():
            descriptor = decode_descriptor(archive.read(path), path)
            found += [
                (package.strip(), each.role, each.name)
                for each in descriptor.entries
                if each.role is not None and each.name is not None
            ]
    return found


def unpack_tests(sdist: Path, folder: Path) -> bool:
    """Put the tests of an sdist into a folder, without the code that the wheel brings.

    False if it has none.
    """
    has_tests = False
    with tarfile.open(sdist) as archive:
        for member in archive:
            _, _, path = member.name.partition("/")
            top = path.split("/")[0]
            is_test = top in ("tests", "test")
            # Files that tests read, such as a README, but no modules, which the wheel brings.
            is_beside = top == path and (path == "conftest.py" or not path.endswith(".py"))
            if not member.isfile() or not (is_test or is_beside):
                continue
            target = (folder / path).resolve()
            if not target.is_relative_to(folder.resolve()) or member.size > _MAX_BYTES:
                continue
            source = archive.extractfile(member)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((source or io.BytesIO()).read())
            has_tests = has_tests or is_test
    if not has_tests:
        shutil.rmtree(folder, ignore_errors=True)
    return has_tests
