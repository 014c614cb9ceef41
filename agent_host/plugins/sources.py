"""Plugins named by ``path:``, ``pkg:`` and ``git+`` sources instead of an entry point.

A source is data until its plugins are activated: folders are searched for descriptors, nothing in
them is imported and ``sys.path`` stays as it is. Whatever is wrong with a source becomes the
problem of its bundle.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, Descriptor, Entry, split_entry
from agent_hookspecs.errors import PluginError, SourceError
from agent_hookspecs.logs import redact
from agent_host.plugins.bundle import Bundle, Origin
from agent_host.plugins.clones import check_out_commit, parse_git
from agent_host.plugins.descriptor import read_descriptor
from agent_host.plugins.discover import CLASS_PATH, top_level_spec
from agent_host.plugins.project import announced_plugins, read_project_file
from agent_host.plugins.single_file import read_plugin_file

__all__ = ["bundles_of_sources"]


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
        checkout = check_out_commit(git, cache)
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
