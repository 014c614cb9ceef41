"""Plugins named by ``path:``, ``pkg:`` and ``git+`` sources instead of an entry point.

A source is data until its plugins are activated: folders are searched for descriptors, nothing in
them is imported and ``sys.path`` stays as it is. Whatever is wrong with a source becomes the
problem of its bundle.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, Descriptor, Entry, split_entry
from agent_hookspecs.errors import PluginError, SourceError
from agent_hookspecs.logs import redact
from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import Bundle, Origin
from agent_host.plugins.descriptor import read_descriptor
from agent_host.plugins.discover import CLASS_PATH, top_level_spec
from agent_host.plugins.project import announced_plugins, read_project_file
from agent_host.plugins.single_file import read_plugin_file
from agent_host.private import make_private_folder

__all__ = ["GitSource", "bundles_of_sources", "parse_git"]

_GIT = re.compile(
    r"git\+(?P<url>(https|ssh)://[^#]+?)@(?P<commit>[0-9a-fA-F]+)"
    r"(#subdirectory=(?P<subdirectory>[^#&]+))?"
)
_AUTHORITY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?")
_FULL_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_GIT_SECONDS = 300
_GIT_PLACES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)


def bundles_of_sources(sources: Sequence[str], *, base: Path, cache: Path | None) -> list[Bundle]:
    """The bundles the sources lead to; relative paths start at ``base``."""
    bundles: list[Bundle] = []
    for source in sources:
        shown = redact(source)
        try:
            bundles += _find_bundles(source, base, cache)
        except (PluginError, OSError, RuntimeError, ValueError) as error:
            # File systems refuse in many ways: names too long, links in a circle, no permission.
            problem = f"{shown} cannot be read: {error} (correct the source)"
            if isinstance(error, PluginError):
                problem = error.explain()
            bundles.append(Bundle(shown, _origin(source), shown, problem=problem))
    return bundles


def _origin(source: str) -> Origin:
    return "git" if source.startswith("git+") else "pkg" if source.startswith("pkg:") else "path"


def _find_bundles(source: str, base: Path, cache: Path | None) -> list[Bundle]:
    kind, _, value = source.partition(":")
    if kind == "path" and value:
        path = Path(base, os.path.expanduser(value))
        if path.suffix == ".py" and path.is_file():
            return [_read_file_bundle(source, path.resolve())]
        return _find_in_folder(source, path)
    if kind == "pkg" and value:
        return [_find_in_package(source, value)]
    if source.startswith("git+"):
        git = parse_git(source)
        checkout = _check_out_commit(git, cache)
        root = _resolve_inside(checkout, checkout / git.subdirectory, "subdirectory")
        shown = redact(source)
        return [replace(b, origin="git", source=shown) for b in _find_in_folder(source, root)]
    raise SourceError(
        f"{redact(source)!r} is not a plugin source",
        hint="use path:FOLDER, path:FILE.py, pkg:PACKAGE or git+https://HOST/REPO@COMMIT",
    )


def _find_in_package(source: str, package: str) -> Bundle:
    spec = top_level_spec(package.partition(".")[0])
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder, *package.split(".")[1:], DESCRIPTOR_NAME)
        if file.is_file():
            return Bundle(package, "pkg", source, file=str(file), descriptor=read_descriptor(file))
    raise SourceError(
        f"package {package!r} "
        + (f"has no {DESCRIPTOR_NAME}" if spec else "cannot be found on sys.path"),
        hint="install it, or name its folder with path:",
    )


def _find_in_folder(source: str, folder: Path) -> list[Bundle]:
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder", hint=f"correct the source {source!r}")
    root = folder.resolve()
    files = [root / DESCRIPTOR_NAME]
    if not files[0].is_file():
        below = [*root.glob(f"*/{DESCRIPTOR_NAME}"), *root.glob(f"src/*/{DESCRIPTOR_NAME}")]
        files = sorted(file for file in below if file.is_file())
    if not files:
        return _announced_bundles(source, root)
    return [_read_bundle(source, root, file) for file in files]


def _announced_bundles(source: str, root: Path) -> list[Bundle]:
    """The classes that a project without a descriptor names as its entry points."""
    points: dict[str, str] = {}
    if (root / "pyproject.toml").is_file():
        try:
            points = announced_plugins(read_project_file(root))
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{root / 'pyproject.toml'} cannot be read: {error}", hint="correct the file"
            ) from None
    classes = {name: value for name, value in points.items() if CLASS_PATH.fullmatch(value)}
    if not classes:
        raise SourceError(
            f"there is no {DESCRIPTOR_NAME} in {root} or in a package under it, and no entry point "
            "in its pyproject.toml that names a class",
            hint="add one, or correct the path",
        )
    bundles = []
    for name, value in classes.items():
        descriptor, bundle = Descriptor((Entry.of_class(value),)), Bundle(name, "path", source)
        bundles.append(_with_plugins(bundle, root, root, descriptor))
    return bundles


def _read_file_bundle(source: str, file: Path) -> Bundle:
    bundle = Bundle(file.stem, "path", source)
    return _with_plugins(bundle, file.parent, file.parent, read_plugin_file(file))


def _with_plugins(bundle: Bundle, root: Path, place: Path, descriptor: Descriptor) -> Bundle:
    """The bundle with its plugins, which are imported from below ``place``, or with a problem."""
    try:
        import_root = _import_root(root, place, descriptor)
        _refuse_shadowing(descriptor, import_root)
    except PluginError as error:
        return replace(bundle, problem=error.explain())
    return replace(bundle, descriptor=descriptor, import_root=str(import_root))


def _read_bundle(source: str, root: Path, file: Path) -> Bundle:
    name = file.parent.name
    bundle = Bundle(name, "path", source, file=str(file))
    try:
        _resolve_inside(root, file, DESCRIPTOR_NAME)
        descriptor = read_descriptor(file)
    except PluginError as error:
        return replace(bundle, problem=error.explain())
    return _with_plugins(bundle, root, file.parent, descriptor)


def _import_root(root: Path, folder: Path, descriptor: Descriptor) -> Path:
    """The folder whose packages the entries of what was found in ``folder`` name.

    A descriptor inside its package lies one below it. One at the root of a project says where with
    ``subdirectory``; a src layout is recognised.
    """
    packages = _package_names(descriptor)
    declared = _resolve_inside(root, folder / descriptor.subdirectory, "subdirectory")
    for candidate in (declared, declared / "src", folder.parent):
        if any(_has_package(candidate, package) for package in packages):
            for package in packages:
                _resolve_inside(root, candidate / package, f"package {package!r}")
            return _resolve_inside(root, candidate, "subdirectory")
    raise SourceError(
        f"package {' or '.join(map(repr, packages))} is not in {declared}",
        hint="let subdirectory name the folder that holds the package",
    )


def _package_names(descriptor: Descriptor) -> list[str]:
    return sorted({split_entry(e.entry)[0].partition(".")[0] for e in descriptor.entries})


def _has_package(folder: Path, package: str) -> bool:
    return (folder / package).is_dir() or (folder / f"{package}.py").is_file()


def _resolve_inside(root: Path, path: Path, what: str) -> Path:
    """``path`` with symlinks resolved, which must not lead out of ``root``."""
    resolved = path.resolve()
    if not resolved.is_relative_to(root.resolve()):
        raise SourceError(
            f"{what} of {root} leads out of it, to {resolved}",
            hint="keep everything a source names inside its folder",
        )
    return resolved


def _refuse_shadowing(descriptor: Descriptor, import_root: Path) -> None:
    for package in _package_names(descriptor):
        spec = top_level_spec(package)
        if spec is None:
            continue
        places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else [])]
        if not any(Path(place).resolve().is_relative_to(import_root) for place in places):
            raise SourceError(
                f"package {package!r} of {import_root} would shadow the one that is "
                + (f"at {places[0]}" if places else "installed"),
                hint="rename the package, or uninstall the other one",
            )


@dataclass(frozen=True, slots=True)
class GitSource:
    """A repository at one commit."""

    url: str
    commit: str
    subdirectory: str = "."


def parse_git(source: str) -> GitSource:
    """Parse ``git+https://HOST/REPO@COMMIT#subdirectory=FOLDER``; anything unsafe is refused."""
    match = _GIT.fullmatch(source)
    shown = redact(source)
    if match is None:
        raise SourceError(
            f"{shown!r} is not a git source that can be used",
            hint="write git+https://HOST/REPO@COMMIT or git+ssh://USER@HOST/REPO@COMMIT",
        )
    if not _AUTHORITY.fullmatch(urlsplit(match["url"]).netloc):
        raise SourceError(
            f"the host in {shown!r} is not one that can be used",
            hint="leave passwords to git's own credential helpers",
        )
    commit = match["commit"].lower()
    if not _FULL_COMMIT.fullmatch(commit):
        raise SourceError(
            f"{shown!r} is not pinned to a commit",
            hint="give the full commit id of 40 hexadecimal digits",
        )
    return GitSource(match["url"], commit, match["subdirectory"] or ".")


def _check_out_commit(source: GitSource, cache: Path | None) -> Path:
    """The folder with the commit's files, fetched if it is not in the cache yet."""
    if cache is None:
        raise SourceError("there is no cache folder to clone into", hint="set AGENT_HOST_HOME")
    digest = hashlib.sha256(source.url.encode()).hexdigest()[:16]
    folder = cache / "git" / f"{digest}-{source.commit}"
    if folder.is_dir():
        _check_clone(folder, source)
        return folder
    make_private_folder(folder.parent)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix="clone-"))
    try:
        _run_git(source, temporary, "init", "--quiet")
        _run_git(source, temporary, "fetch", "--quiet", "--depth=1", "--no-recurse-submodules",
             "--no-tags", "--", source.url, source.commit)  # fmt: skip
        _run_git(source, temporary, "checkout", "--quiet", "--detach", source.commit)
        try:
            os.replace(temporary, folder)
        except OSError:
            # Another process was faster; its clone of the same commit is as good.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _check_clone(folder: Path, source: GitSource) -> None:
    """Refuse a clone in the cache that somebody else made, or that is at another commit."""
    head = folder / ".git" / "HEAD"
    wrong = ""
    try:
        if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
            wrong = "belongs to another user"
        elif head.read_text(encoding="utf-8").strip() != source.commit:
            wrong = f"is not at commit {source.commit[:12]}"
    except (OSError, ValueError) as error:
        wrong = f"cannot be read: {error}"
    if wrong:
        raise SourceError(
            f"the clone of {source.url} at {folder} {wrong}",
            hint="delete that folder, and it is cloned anew",
        )


def _run_git(source: GitSource, folder: Path, *arguments: str) -> None:
    settings = ("-c", "core.hooksPath=/dev/null", "-c", "submodule.recurse=false",
                "-c", "protocol.ext.allow=never")  # fmt: skip
    # Without what git sets in its hooks, which would outweigh our folder.
    environment = {key: value for key, value in os.environ.items() if key not in _GIT_PLACES}
    try:
        subprocess.run(
            ["git", *settings, "-C", str(folder), *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_GIT_SECONDS,
            env={**environment, "GIT_TERMINAL_PROMPT": "0"},
        )
    except FileNotFoundError:
        raise SourceError(
            "git is not installed", hint="install it, or use a path: source"
        ) from None
    except subprocess.TimeoutExpired:
        raise SourceError(
            f"{source.url} did not answer within {_GIT_SECONDS} s", hint="try again later"
        ) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise SourceError(
            f"git could not fetch {source.commit[:12]} of {source.url}: {lines[-1]}",
            hint="check the address and that the commit was pushed",
        ) from None
