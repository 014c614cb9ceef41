"""``python -m catalog build --out FOLDER WHAT…``: pages and an index from wheels and names."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from agent_host.cli.outside import clean_text
from agent_host.distributions.catalog_index import (
    SCHEMA_VERSION,
    CatalogIndex,
    IndexedDistribution,
)
from catalog.describe import describe_wheel, join_versions
from catalog.fetch import fetch_wheel, find_versions
from catalog.pages import write_site
from catalog.wheels import WheelError, open_wheel

TITLE = "Agent Host plugins"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m catalog", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="make a catalog")
    build.add_argument("--out", type=Path, required=True, help="the folder for the pages")
    build.add_argument("--title", default=TITLE, help="what the catalog is called")
    build.add_argument(
        "--names", type=Path, metavar="FILE", help="names of distributions, one in each line"
    )
    build.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="a wheel, a folder of wheels, or the name of a distribution on the index of pip",
    )
    options = parser.parse_args(arguments)
    named = [*options.what, *(_read_names(options.names) if options.names else ())]
    if not named:
        parser.error("name wheels, folders or distributions")
    return _build(named, options.out, options.title)


def _read_names(file: Path) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text:
            yield text


def _build(named: Sequence[str], out: Path, title: str) -> int:
    """Exits with 1 if anything could not be read; what could be is there all the same."""
    found: list[IndexedDistribution] = []
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for each in named:
            try:
                found += _describe(each, Path(work))
            except WheelError as error:
                failed += 1
                _tell(f"left out: {error}")
    joined = join_versions(found)
    write_site(_make_index(joined, title), out)
    _tell(f"{len(joined)} distributions, in {out / 'index.html'}")
    return 1 if failed or not joined else 0


def _describe(named: str, work: Path) -> Iterator[IndexedDistribution]:
    path = Path(named)
    versions: list[str] = []
    if path.is_dir():
        wheels = sorted(path.rglob("*.whl"))
        if not wheels:
            raise WheelError(f"there is no wheel in {path}")
    elif named.endswith(".whl"):
        wheels = [path]
    else:
        wheels, versions = [fetch_wheel(named, work)], find_versions(named)
    for wheel in wheels:
        try:
            with open_wheel(wheel) as opened:
                described = describe_wheel(opened)
        except WheelError as error:
            _tell(f"left out: {error}")
            continue
        if described is None:
            _tell(f"left out: {wheel.name} announces no plugin")
        else:
            yield described.model_copy(update={"versions": [*described.versions, *versions]})


def _make_index(distributions: list[IndexedDistribution], title: str) -> CatalogIndex:
    # The same wheels give the same files for whoever sets the time, as for other builds.
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(epoch), timezone.utc) if epoch else datetime.now(timezone.utc)
    return CatalogIndex(
        schema_version=SCHEMA_VERSION,
        title=title,
        made=when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        distributions=distributions,
    )


def _tell(text: str) -> None:
    print(clean_text(text), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
