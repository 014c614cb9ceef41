"""What a package says of itself: its addresses, its licence, and the tier that it can prove."""

from __future__ import annotations

import base64
import hashlib
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.descriptor import Descriptor
from agent_hookspecs.errors import DescriptorError
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.inspect.about import About, about_bundle, about_metadata
from agent_host.plugins.inspect.conformance import (
    Conformance,
    TriedPlugin,
    decode_conformance,
    digest_files,
    digest_folder,
    judge_package,
    standing_of,
    write_conformance,
)
from making import FEATURE, full, install, run_host, write_package

# About ------------------------------------------------------------------------------------------


def metadata(*lines: tuple[str, str], readme: str = "") -> Message:
    message = Message()
    for key, value in lines:
        message[key] = value
    message.set_payload(readme)
    return message


def test_the_addresses_are_those_of_the_metadata_however_they_are_called() -> None:
    found = about_metadata(
        metadata(
            ("Project-URL", "Home-Page, https://example.com/home"),
            ("Project-URL", "DOCS, https://example.com/docs"),
            ("Project-URL", "Bug Tracker, https://example.com/bugs"),
            ("License-Expression", "MIT"),
            ("Requires-Python", ">=3.10"),
            ("Classifier", "Programming Language :: Python :: 3.10"),
            ("Classifier", "Programming Language :: Python :: 3"),
            readme="Words.",
        ),
        Descriptor((), api=">=1,<2", homepage="https://example.com/else", license="BSD"),
    )
    assert found == About(
        homepage="https://example.com/home",
        documentation="https://example.com/docs",
        issues="https://example.com/bugs",
        license="MIT",
        python=">=3.10",
        pythons=("3.10",),
        contract=">=1,<2",
        readme="Words.",
    )


@pytest.mark.parametrize(
    ("lines", "license_text"),
    [
        ([("License", "BSD")], "BSD"),
        ([("License", "Permission is\nhereby granted")], "from the descriptor"),
        ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT License"),
        ([], "from the descriptor"),
    ],
)
def test_a_licence_is_a_name_and_not_its_text(
    lines: list[tuple[str, str]], license_text: str
) -> None:
    said = Descriptor((), license="from the descriptor")
    assert about_metadata(metadata(*lines), said).license == license_text


def test_an_address_that_a_browser_should_not_be_given_is_left_out() -> None:
    lines = [("Project-URL", "Homepage, javascript:alert(1)"), ("Home-page", "UNKNOWN")]
    assert about_metadata(metadata(*lines), None).homepage == ""


def test_a_source_tree_is_asked_for_its_project_file(tmp_path: Path) -> None:
    descriptor = full("pkg", "feature", "one") | {"issues": "https://example.com/i"}
    folder = write_package(tmp_path / "src", "pkg", descriptor=descriptor)
    (tmp_path / "README.md").write_text("Words.", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nreadme = "README.md"\nlicense = "MIT"\nrequires-python = ">=3.11"\n'
        '[project.urls]\nDocumentation = "https://example.com/d"\n',
        encoding="utf-8",
    )
    file = str(folder / "agent_plugin.json")
    bundle = Bundle("pkg", "path", "path:x", file=file, descriptor=parse_descriptor(descriptor))
    found = about_bundle(bundle)
    assert (found.documentation, found.issues) == ("https://example.com/d", "https://example.com/i")
    assert (found.license, found.python, found.readme) == ("MIT", ">=3.11", "Words.")


# The seal ---------------------------------------------------------------------------------------

ENTRY = full("pkg_one", "feature", "one", config_schema={"speed": {"type": "integer"}})
ABOUT = About(pythons=("3.10", "3.13"), readme="It has the setting speed.")


def proof(folder: Path, **more: Any) -> Conformance:
    values: dict[str, Any] = {
        "tier": "gold",
        "contract": "1.0",
        "host": "0.1",
        "kit": "0.1",
        "pythons": ("3.10", "3.13"),
        "types": "mypy",
        "plugins": {"feature:one": TriedPlugin(tier="silver", passed=3)},
        "files": digest_folder(folder),
    }
    return Conformance(**(values | more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_package(tmp_path, "pkg_one", descriptor=ENTRY, source=FEATURE.format(name="one"))
    (made / "py.typed").touch()
    return made


def test_the_hash_of_a_folder_is_that_of_its_lines_in_a_record(folder: Path) -> None:
    rows = []
    for path in folder.iterdir():
        encoded = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
        rows.append((path.name, f"sha256={encoded.rstrip(b'=').decode()}"))
    # What others put there is no part of it.
    write_conformance(folder / "conformance.json", proof(folder))
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "plugin.pyc").touch()
    assert digest_folder(folder) == digest_files([*rows, ("conformance.json", "sha256=x")])


def standing(folder: Path) -> str:
    descriptor = parse_descriptor(ENTRY)
    file = str(folder / "agent_plugin.json")
    return standing_of(Bundle("one", "path", "path:x", file=file, descriptor=descriptor)).words


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("name", ["plugin.py", "agent_plugin.json", "py.typed"])
def test_one_changed_byte_of_a_file_is_told(folder: Path, name: str, place: int) -> None:
    written = write_conformance(folder / "conformance.json", proof(folder))
    assert standing(folder).startswith("silver, of this content")
    raw = bytearray((folder / name).read_bytes() or b"\n")
    raw[place] ^= 1
    (folder / name).write_bytes(raw)
    assert standing(folder) == "claimed gold; the files have changed since"
    assert written.files != digest_folder(folder)


@pytest.mark.parametrize(
    ("before", "after"), [('"gold"', '"silver"'), ("3.13", "3.12"), ('"passed": 3', '"passed": 4')]
)
def test_one_changed_word_of_the_file_itself_is_told(folder: Path, before: str, after: str) -> None:
    file = folder / "conformance.json"
    write_conformance(file, proof(folder))
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(before, after), encoding="utf-8")
    assert standing(folder).endswith("; conformance.json is not as the kit wrote it")


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b" " * (1 << 21)])
def test_a_file_that_nobody_can_read_is_an_error_with_a_way_out(raw: bytes) -> None:
    with pytest.raises(DescriptorError) as caught:
        decode_conformance(raw, "conformance.json")
    assert "--conformance-tier" in str(caught.value.hint)


# The tiers --------------------------------------------------------------------------------------

FAILED = {"feature:one": TriedPlugin(tier=None, failed=1, lacks=("text: 1 of 2 failed",))}
SOFT = {"feature:one": TriedPlugin(tier="bronze", lacks=("secrets: nothing could be tried",))}
UNPLAYED = {"feature:one": TriedPlugin(tier="silver", lacks=("recordings: none was replayed",))}


@pytest.mark.parametrize(
    ("found", "about", "tier", "lacks"),
    [
        ({}, ABOUT, "gold", ""),
        ({"plugins": FAILED}, ABOUT, None, "feature:one: text: 1 of 2 failed"),
        ({"plugins": {}}, ABOUT, None, "feature:one: no suite was run"),
        ({"types": ""}, ABOUT, "bronze", "no type checker has passed it"),
        ({"plugins": SOFT}, ABOUT, "bronze", "feature:one: secrets: nothing could be tried"),
        ({"pythons": ("3.10",)}, ABOUT, "silver", "not tried: 3.13"),
        ({}, About(readme="speed"), "silver", "name no Python"),
        ({}, About(pythons=("3.10",), readme="Words."), "silver", "settings speed"),
        ({}, About(pythons=("3.10",)), "silver", "no README"),
        ({"plugins": UNPLAYED}, ABOUT, "silver", "feature:one: recordings: none was replayed"),
    ],
)
def test_a_tier_asks_for_all_that_the_lower_ones_ask(
    folder: Path, found: dict[str, Any], about: About, tier: str | None, lacks: str
) -> None:
    judged = judge_package(proof(folder, **found), parse_descriptor(ENTRY), about, folder)
    assert judged.tier == tier
    assert lacks in "; ".join(judged.lacks)
    assert bool(lacks) == bool(judged.lacks)


def test_without_py_typed_there_is_no_silver(folder: Path) -> None:
    (folder / "py.typed").unlink()
    judged = judge_package(proof(folder), parse_descriptor(ENTRY), ABOUT, folder)
    assert (judged.tier, judged.lacks) == ("bronze", ("the package has no py.typed",))


def test_an_extension_is_tried_with_its_provider_and_a_class_under_any_name(folder: Path) -> None:
    entries = [
        {"entry": "p.a:P", "role": "provider", "name": "p"},
        {"entry": "p.a:P", "role": "provider", "name": "q"},
        {"entry": "p.b:E", "role": "extension", "name": "e"},
        {"entry": "p.c:T", "role": "tool", "name": "t"},
    ]
    found = proof(folder, plugins={"provider:p": TriedPlugin(tier="silver")})
    judged = judge_package(found, parse_descriptor({"entries": entries}), ABOUT, folder)
    assert judged.lacks == ("tool:t: no suite was run",)


# As people see it -------------------------------------------------------------------------------


def test_info_shows_home_needs_and_tier_and_validate_agrees(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    descriptor = full("pkg_one", "feature", "one", required_plugins=["tool:absent"]) | {
        "homepage": "https://example.com/home",
        "tier": "silver",
    }
    folder = install(tree, "one", "feature", descriptor=descriptor)
    run = run_host("plugins", "info", "one", trees=[tree], COLUMNS="200")
    lines = [line.split(maxsplit=1) for line in run.out.splitlines() if line]
    assert ["Homepage", "https://example.com/home"] in lines
    assert ["Tier", "claimed silver; nothing proves it"] in lines
    assert ["Needs", "plugins  tool:absent"] in lines
    checked = run_host("plugins", "validate", "dist-one", "--json", trees=[tree]).json["checks"]
    assert [each["level"] for each in checked["tier"]] == ["warning"]
    plugins = {"feature:one": TriedPlugin(tier="silver", passed=3)}
    write_conformance(folder / "conformance.json", proof(folder, types="", plugins=plugins))
    about = run_host("plugins", "info", "one", "--json", trees=[tree]).plugin("one")
    assert about["about"]["homepage"] == "https://example.com/home"
    assert about["required_plugins"] == ["tool:absent"]
    assert about["tier"] == {
        "claimed": "gold",
        "proved": "bronze",
        "words": "bronze, of this content; gold is claimed",
    }
    checked = run_host("plugins", "validate", "dist-one", "--json", trees=[tree])
    assert checked.code == 1
    (found,) = checked.json["checks"]["tier"]
    assert found["level"] == "problem"
    assert "bronze, of this content; gold is claimed" in found["message"]


def test_a_plugin_whose_need_is_not_met_takes_no_part_and_is_told(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    install(tree, "lonely", "feature", required_plugins=["absent"])
    install(tree, "helped", "feature", required_plugins=["feature:helper"])
    install(tree, "helper", "feature", default_enabled=False)
    options = ["--provider", "echo", "--model", "echo-1", "--json"]
    run = run_host("plugins", "explain", *options, trees=[tree])
    assert run.plugin("lonely")["state"] == "gated"
    assert run.plugin("lonely")["reason"] == "needs absent, which does not take part"
    assert run.plugin("helped")["reason"] == "needs feature:helper, which does not take part"
    run = run_host("plugins", "explain", *options, "--enable", "helper", trees=[tree])
    assert run.plugin("helped")["state"] == "loaded"
    said = run_host("plugins", "doctor", "--json", trees=[tree]).json["problems"]
    assert [(each["plugin"], each["message"]) for each in said] == [
        ("lonely", "never takes part: it needs absent, which is not there (install what has it)")
    ]
