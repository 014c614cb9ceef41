"""Bundled packages are quiet: importing one brings nothing along but the contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, split_entry
from agent_host.plugins.descriptor import parse_descriptor

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTORS = sorted(ROOT.glob(f"plugins/*/src/*/{DESCRIPTOR_NAME}"))
PACKAGES = pytest.mark.parametrize(
    "descriptor", DESCRIPTORS, ids=[path.parent.name for path in DESCRIPTORS]
)


def imported_by(*modules: str) -> set[str]:
    """Top-level packages outside the standard library that importing ``modules`` brings along."""
    source = (
        "import sys; before = set(sys.modules)\n"
        + "".join(f"import {module}\n" for module in modules)
        + "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        + "sys.stdout.write(' '.join(new - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@PACKAGES
def test_importing_a_package_loads_no_plugin(descriptor: Path) -> None:
    package = descriptor.parent.name
    assert imported_by(package) == {package}


@PACKAGES
def test_plugins_import_only_the_contract_and_what_they_depend_on(descriptor: Path) -> None:
    package = descriptor.parent.name
    entries = parse_descriptor(json.loads(descriptor.read_text("utf-8"))).entries
    modules = {split_entry(entry.entry)[0] for entry in entries}
    needed = [line for line in requires(package.replace("_", "-")) or () if "extra ==" not in line]
    packages = {line.partition(">")[0].strip().replace("-", "_") for line in needed}
    assert imported_by(*modules) <= {package, "pluggy", *packages}
