"""All checks of one plugin package in order: descriptor, contract, imports, packaging, tier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, split_entry
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.inspect.conformance import tier_problems
from agent_host.plugins.inspect.doctor import Finding, examine
from agent_host.plugins.inspect.imports import import_effects
from agent_host.plugins.inspect.packaging import installed_problems, tree_problems
from agent_host.plugins.inspect.target import Target, open_target

__all__ = ["AREAS", "Area", "validate"]

Area = Literal["descriptor and contract", "imports", "packaging", "tier"]
AREAS: tuple[Area, ...] = ("descriptor and contract", "imports", "packaging", "tier")


def validate(target: str) -> Iterator[tuple[Area, Finding]]:
    """Everything found in the package at a path, or installed as a distribution.

    A wheel is looked at as if it was installed. Raises `UnknownPluginError` if there is neither.
    """
    with open_target(target) as opened:
        yield from _check_target(opened)


def _check_target(target: Target) -> Iterator[tuple[Area, Finding]]:
    catalog, tree = target.catalog, target.tree
    bundles = list({id(record.bundle): record.bundle for record in catalog}.values())
    safe = True
    for bundle in bundles:
        if bundle.problem:
            yield "imports", _finding("warning", bundle, "not looked at: it cannot be loaded")
            continue
        imported = import_effects(_module_names(bundle), [bundle.import_root])
        safe = safe and imported.survived
        for message in imported.effects:
            yield "imports", _finding("problem", bundle, message)
    # Only now: what ends a process would end ours.
    for finding in examine(catalog) if safe else ():
        yield "descriptor and contract", finding
    for bundle in bundles:
        for finding in _check_form(bundle):
            yield "descriptor and contract", finding
    if tree is not None:
        folders = [Path(bundle.file).parent for bundle in bundles if bundle.file]
        found = tree_problems(tree, folders)
    elif target.file is not None:
        found = iter([(False, "a single file cannot be installed; others name it with path:")])
    else:
        distributions = dict.fromkeys(b.distribution for b in bundles if b.distribution)
        found = (each for name in distributions for each in installed_problems(name))
    for serious, message in found:
        yield "packaging", _finding("problem" if serious else "warning", bundles[0], message)
    for bundle in bundles:
        for serious, message in tier_problems(bundle):
            yield "tier", _finding("problem" if serious else "warning", bundle, message)


def _check_form(bundle: Bundle) -> Iterator[Finding]:
    for entry in bundle.descriptor.entries if bundle.descriptor else ():
        if entry.short:
            why = "is in the short form" if bundle.file else f"has no {DESCRIPTOR_NAME}"
            yield _finding(
                "warning",
                bundle,
                f"{entry.entry} {why}, so its role, name, tags and settings are known only once "
                "it is imported, and cannot be compared with anything",
            )
        elif not entry.label:
            yield _finding("warning", bundle, f"{entry.role} {entry.name!r} has no label")


def _module_names(bundle: Bundle) -> list[str]:
    entries = bundle.descriptor.entries if bundle.descriptor else ()
    return list(dict.fromkeys(split_entry(entry.entry)[0] for entry in entries))


def _finding(level: Literal["problem", "warning"], bundle: Bundle, message: str) -> Finding:
    return Finding(level, bundle.name, bundle.owner, message)
