"""One broken package, whatever is wrong with it, breaks nothing but itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from making import EXTENSION, full, install, run_host, write_metadata, write_package

BROKEN = "broken"


def importing(source: str, **more: Any) -> Callable[[Path], list[str]]:
    """An installed package whose descriptor is right and whose module is this."""

    def make(tree: Path) -> list[str]:
        install(tree, BROKEN, source=source, **more)
        return []

    return make


def describing(raw: bytes | Mapping[str, Any]) -> Callable[[Path], list[str]]:
    """An installed package that would work but for its descriptor."""

    def make(tree: Path) -> list[str]:
        install(tree, BROKEN, descriptor=raw, source=EXTENSION.format(name=BROKEN))
        return []

    return make


def huge(tree: Path) -> list[str]:
    install(tree, BROKEN)
    with open(tree / "pkg_broken" / "agent_plugin.json", "r+b") as file:
        file.truncate(50 << 20)
    return []


def leading_out(tree: Path) -> list[str]:
    root = tree.parent / "source"
    descriptor = {**full("broken", "extension", BROKEN), "subdirectory": "../.."}
    write_package(root, BROKEN, descriptor=descriptor)
    return ["--plugin", f"path:{root}"]


def linked_out(tree: Path) -> list[str]:
    root = tree.parent / "source"
    real = write_package(tree.parent / "real", BROKEN, descriptor=full(BROKEN, "tool", BROKEN))
    write_package(root, BROKEN)
    (root / BROKEN / "agent_plugin.json").symlink_to(real / "agent_plugin.json")
    return ["--plugin", f"path:{root}"]


def registering_twice(tree: Path) -> list[str]:
    document = full("pkg_broken", "extension", BROKEN)
    document["entries"] *= 2
    install(tree, BROKEN, descriptor=document, source=EXTENSION.format(name=BROKEN))
    return []


def no_descriptor(tree: Path) -> list[str]:
    write_package(tree, "pkg_broken")
    write_metadata(tree, "dist-broken", {BROKEN: "pkg_broken"})
    return []


def garbled_metadata(tree: Path) -> list[str]:
    write_metadata(tree, BROKEN, b"[agent_host.plugins]\n\xff\xfe")
    return []


@dataclass(frozen=True)
class Case:
    """How to make it, whether a listing can know already, and what is said and advised."""

    make: Callable[[Path], list[str]]
    seen_when_listing: bool
    reason: str
    advice: str


CASES = {
    "import raises": Case(
        importing("raise ValueError('at import')"), False, "raised ValueError: at import", "author"
    ),
    "dependency missing": Case(
        importing("import not_there_at_all"),
        False,
        "needs the module 'not_there_at_all'",
        "pip install",
    ),
    "calls sys.exit": Case(importing("import sys; sys.exit(7)"), False, "sys.exit(7)", "author"),
    "recurses for ever": Case(
        importing("def f(): f()\nf()"), False, "recursed without end", "author"
    ),
    "cannot be compiled": Case(importing("def ("), False, "SyntaxError", "author"),
    "class missing": Case(
        importing("class Other: pass"),
        False,
        "has no class 'Plugin'",
        "correct 'pkg_broken.plugin:Plugin'",
    ),
    "wrong role": Case(
        importing(
            "from agent_hookspecs import FeaturePlugin\n"
            "class Plugin(FeaturePlugin): name = 'broken'"
        ),
        False,
        "the descriptor says role 'extension', but class Plugin has role 'feature'",
        "correct",
    ),
    "not JSON": Case(describing(b"{entries:"), True, "is not JSON", "correct it, or reinstall"),
    "not text": Case(describing(b"\xff\xfe\x00{"), True, "is not JSON", "correct it, or reinstall"),
    "50 MB": Case(huge, True, "larger than 1024 KiB", "keep data in other files"),
    "deeply nested": Case(
        describing(b'{"entries": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        True,
        "nested too deeply",
        "flatten it",
    ),
    "wrong shape": Case(
        describing({"entries": [{"entry": "a:B", "role": "wizard", "name": BROKEN}]}),
        True,
        "entries[0].role is 'wizard'",
        "it must be one of provider, extension",
    ),
    "leads out": Case(leading_out, True, "leads out of it", "inside its folder"),
    "linked out": Case(linked_out, True, "leads out of it", "inside its folder"),
    "registers twice": Case(
        registering_twice, True, "registers extension:broken twice", "rename one"
    ),
    "no descriptor": Case(no_descriptor, True, "has no agent_plugin.json", "package data"),
    "metadata garbled": Case(garbled_metadata, True, "cannot be read", "reinstall it"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_broken_package_has_a_reason_and_its_neighbours_go_on(tmp_path: Path, name: str) -> None:
    case, tree = CASES[name], tmp_path / "tree"
    install(tree, "healthy", "provider")
    install(tree, "neighbour")
    options = ["--json", *case.make(tree)]

    listed = run_host("plugins", "list", *options, trees=[tree])
    assert listed.code == 0
    assert listed.err == ""
    broken = [r for r in listed.json["plugins"] if r["name"] in (BROKEN, "broken")]
    assert {r["state"] for r in broken} == {"failed" if case.seen_when_listing else "discovered"}
    assert listed.plugin("healthy")["state"] == "discovered"
    if case.seen_when_listing:
        assert all(case.reason in r["reason"] and case.advice in r["reason"] for r in broken)

    doctor = run_host("plugins", "doctor", *options, trees=[tree])
    assert doctor.code == 1
    problems = [p for p in doctor.json["problems"] if p["plugin"] == BROKEN]
    assert problems
    assert all(case.reason in p["message"] and case.advice in p["message"] for p in problems)
    assert not [p for p in doctor.json["problems"] if p["plugin"] in ("healthy", "neighbour")]

    explained = run_host("plugins", "explain", "--provider", "healthy", *options, trees=[tree])
    assert explained.code == 0
    assert explained.plugin("neighbour")["state"] == "loaded"
    for record in explained.json["plugins"]:
        if record["name"] == BROKEN:
            assert record["state"] == "failed"
            assert case.reason in record["reason"]
            assert case.advice in record["reason"]


@pytest.mark.parametrize("command", ["list", "explain"])
def test_strict_turns_any_failure_into_exit_code_1(tmp_path: Path, command: str) -> None:
    install(tmp_path, "healthy", "provider")
    options = ["--provider", "healthy"] if command == "explain" else []
    healthy = run_host("plugins", command, *options, "--strict", trees=[tmp_path])
    assert healthy.code == 0, healthy.err
    describing(b"{")(tmp_path)
    run = run_host("plugins", command, *options, "--strict", trees=[tmp_path])
    assert run.code == 1
    assert "broken" in run.err
    assert "agent-host plugins doctor says why" in run.err
    assert "healthy" in run.out
