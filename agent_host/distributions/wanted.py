"""The list of distributions that the user wants beside the host: requirements, one in each line.

The file is the user's own: comments, blank lines and the order are kept. Installers are asked for
exactly what stands there; whether it can be had is theirs to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from agent_hookspecs.values import dataclass
from agent_host.distributions.errors import DistributionError, LockError
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.project import read_project_file
from agent_host.private import make_private_folder, replace_private

__all__ = ["HOST", "Wanted", "WantedList", "parse_wanted", "read_wanted"]

HOST = "agent-host-core"
_HEADER = "# Plugins of agent-host: agent-host plugins add and remove change this list.\n"
_GIT = re.compile(r"git\+(https|ssh)://\S+@(?P<commit>[0-9a-f]{40})(#subdirectory=\S+)?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One distribution that is asked for: its canonical name, and the requirement."""

    name: str
    requirement: str

    @property
    def file(self) -> Path | None:
        """The wheel or folder that it comes from, if it comes from this machine."""
        url = urlsplit(self.requirement.partition(" @ ")[2].strip())
        return Path(unquote(url.path)) if url.scheme == "file" else None


@dataclass(frozen=True, slots=True)
class WantedList:
    """The lines of the file, and what they ask for."""

    file: Path
    lines: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, Wanted]:
        found = {}
        for number, line in enumerate(self.lines, 1):
            text = line.partition(" #")[0].strip()
            if text and not text.startswith("#"):
                try:
                    wanted = parse_wanted(text)
                except DistributionError as error:
                    raise LockError(
                        f"{self.file}, line {number}: {error}", file=str(self.file), hint=error.hint
                    ) from None
                found[wanted.name] = wanted
        return found

    def with_wanted(self, added: Iterable[Wanted]) -> WantedList:
        """The list with these in it; one of the same name is replaced in its place."""
        lines, rest = [*self.lines], {each.name: each.requirement for each in added}
        for number, line in enumerate(lines):
            name = self._name_in(line)
            if name in rest:
                lines[number] = rest.pop(name)
        return WantedList(self.file, (*lines, *rest.values()))

    def without_names(self, names: Iterable[str]) -> WantedList:
        gone = {*names}
        return WantedList(self.file, tuple(x for x in self.lines if self._name_in(x) not in gone))

    def _name_in(self, line: str) -> str:
        text = line.partition(" #")[0].strip()
        return parse_wanted(text).name if text and not text.startswith("#") else ""

    def write(self) -> None:
        make_private_folder(self.file.parent)
        text = "".join(f"{line}\n" for line in self.lines)
        if not text.startswith("#"):
            text = _HEADER + text
        replace_private(self.file, text.encode())


def read_wanted(file: Path) -> WantedList:
    """The list in a file; an empty one if there is none."""
    try:
        return WantedList(file, tuple(file.read_text(encoding="utf-8").splitlines()))
    except FileNotFoundError:
        # Nothing is lost: nothing is wanted yet.
        return WantedList(file)
    except (OSError, ValueError) as error:
        raise LockError(f"{file} cannot be read: {error}", file=str(file)) from None


def parse_wanted(text: str) -> Wanted:
    """What a person names: a requirement, a wheel, a folder, or ``NAME @ git+https://…@COMMIT``."""
    path = Path(text).expanduser()
    if text.endswith(".whl") and " @ " not in text:
        return _parse_wheel(path)
    is_path = "/" in text and " @ " not in text and not text.startswith("git+")
    if is_path or text in (".", ".."):
        return _parse_folder(path)
    if text.startswith("git+"):
        raise DistributionError(
            f"{text!r} does not say how the distribution is called",
            hint=f"write NAME @ {text if _GIT.fullmatch(text) else 'git+https://HOST/REPO@COMMIT'}",
        )
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise DistributionError(
            f"{text!r} is no requirement: {str(error).splitlines()[0]}",
            hint="name a distribution, a wheel, a folder or NAME @ git+https://HOST/REPO@COMMIT",
        ) from None
    url = requirement.url or ""
    if url.startswith("git+") and not _GIT.fullmatch(url):
        raise DistributionError(
            f"{text!r} is not pinned: what a branch or a tag names can change",
            hint="give the full commit id of 40 hexadecimal digits after the @",
        )
    return Wanted(canonical_name(requirement.name), str(requirement))


def _parse_wheel(path: Path) -> Wanted:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    if not path.is_file():
        raise DistributionError(f"there is no wheel {path}", hint="correct the path")
    try:
        name = parse_wheel_filename(path.name)[0]
    except InvalidWheelFilename as error:
        raise DistributionError(f"{path} is no wheel: {error}", hint="build it anew") from None
    return Wanted(name, f"{name} @ {path.resolve().as_uri()}")


def _parse_folder(path: Path) -> Wanted:
    if not (path / "pyproject.toml").is_file():
        raise DistributionError(
            f"there is no project in {path}", hint="name a folder with a pyproject.toml"
        )
    try:
        name = str(read_project_file(path)["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DistributionError(
            f"{path / 'pyproject.toml'} does not name its distribution: {error!r}",
            hint="give it a [project] table with a name",
        ) from None
    return Wanted(canonical_name(name), f"{canonical_name(name)} @ {path.resolve().as_uri()}")
