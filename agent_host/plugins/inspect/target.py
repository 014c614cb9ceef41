"""What a command is pointed at: a source folder, a single file, a wheel, or a distribution."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent_hookspecs.errors import UnknownPluginError
from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.catalog import Catalog, build_catalog
from agent_host.plugins.discover import discover
from agent_host.plugins.load import load_catalog
from agent_host.plugins.sources import bundles_of_sources

__all__ = ["Target", "open_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """The plugins of one package; ``tree`` is its source folder, ``file`` its only file, if any."""

    catalog: Catalog
    tree: Path | None = None
    file: Path | None = None


@contextmanager
def open_target(target: str) -> Iterator[Target]:
    """The package at a path, or installed as a distribution, ready to be imported.

    A wheel is looked at as if it was installed. Raises `UnknownPluginError` if there is neither.
    """
    path = Path(target)
    if path.suffix == ".whl" and path.is_file():
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder)
            root = Path(folder).resolve()
            with _put_first_on_path(root):
                yield Target(_catalog_of_wheel(root))
    elif path.is_dir():
        root = path.resolve()
        with _put_first_on_path(root):
            yield Target(_catalog_of_path(root), root)
    elif path.suffix == ".py" and path.is_file():
        file = path.resolve()
        with _put_first_on_path(file.parent):
            yield Target(_catalog_of_path(file), file=file)
    else:
        yield Target(_catalog_of_distribution(target))


@contextmanager
def _put_first_on_path(root: Path) -> Iterator[None]:
    """With what is in ``root`` before all that is installed, even of the same name."""
    before = list(sys.path)
    sys.path[:0] = [str(root / "src"), str(root)]
    try:
        yield
    finally:
        sys.path[:] = before


def _catalog_of_path(path: Path) -> Catalog:
    return build_catalog(bundles_of_sources([f"path:{path}"], base=path.parent, cache=None))


def _catalog_of_wheel(folder: Path) -> Catalog:
    """What the entry points of an unpacked wheel announce; without any, what lies in it."""
    return build_catalog(found) if (found := discover([str(folder)])) else _catalog_of_path(folder)


def _catalog_of_distribution(name: str) -> Catalog:
    wanted = canonical_name(name)
    catalog = load_catalog()
    records = tuple(r for r in catalog if canonical_name(r.bundle.distribution) == wanted)
    if not records:
        known = sorted({r.bundle.distribution for r in catalog if r.bundle.distribution})
        raise UnknownPluginError(
            f"{name!r} is neither a folder, nor a file, nor a wheel, nor an installed distribution "
            "of plugins",
            plugins=(name,),
            hint=f"installed are {', '.join(known)}",
        )
    return replace(catalog, records=records)
