"""The entries of the package: a switch, and repairs that wait for it."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_host.plugins.descriptor import parse_descriptor
from agent_host_repairs.switch import REPAIRS

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_repairs").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)


def test_the_entries_are_the_switch_and_the_five_repairs() -> None:
    assert [entry.name for entry in DESCRIPTOR.entries] == ["repairs", *REPAIRS]
    assert {entry.role for entry in DESCRIPTOR.entries} == {"feature"}


def test_each_repair_waits_for_a_tag_of_its_own() -> None:
    waits = {entry.name: entry.required_tags for entry in DESCRIPTOR.entries[1:]}
    assert waits == {name: (f"repair:{name}",) for name in REPAIRS}


def test_the_readme_names_every_repair_and_every_setting() -> None:
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([a-z_]+)`", readme))
    settings = {key for entry in DESCRIPTOR.entries for key in entry.config_schema}
    assert {*REPAIRS, *settings} <= known
