"""A catalog is made of wheels that are read and never run, and nothing in them becomes markup."""

from __future__ import annotations

import json
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given, settings, strategies as st

from indexes import make_wheel, serve_index
from making import POISON, full

ROOT = Path(__file__).resolve().parent.parent
# At the end, so that the packages under test are those that are installed.
sys.path.append(str(ROOT))

from agent_host.distributions.catalog_index import (  # noqa: E402
    SCHEMA_VERSION,
    CatalogIndex,
    decode_index,
    index_schema,
)
from agent_host.plugins.inspect.conformance import (  # noqa: E402
    Conformance,
    TriedPlugin,
    write_conformance,
)
from catalog.__main__ import main  # noqa: E402
from catalog.describe import describe_wheel  # noqa: E402
from catalog.markup import element, join  # noqa: E402
from catalog.wheels import WheelError, open_wheel  # noqa: E402

SCRIPT = "<script>document.title = 'taken'</script>"
CLASSES = """
from acme.base import Base
from elsewhere.plugin import Foreign


class Plugin(Base, Foreign):
    def finalize(self, final_messages, native_messages, state): ...

    def its_own(self): ...
"""


class Parsed(HTMLParser):
    """Every element of a page with its attributes, and every text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def links(self) -> list[str]:
        return [str(about["href"]) for tag, about in self.elements if tag == "a"]


def build(folder: Path, *what: object) -> CatalogIndex:
    code = main(["build", "--out", str(folder / "out"), *map(str, what)])
    assert code == 0
    return read(folder)


def read(folder: Path) -> CatalogIndex:
    return decode_index((folder / "out" / "index.json").read_bytes(), "index.json")


def page(folder: Path, name: str = "index") -> Parsed:
    place = folder / "out" if name == "index" else folder / "out" / "plugins"
    return Parsed((place / f"{name}.html").read_text(encoding="utf-8"))


def descriptor(**more: Any) -> dict[str, Any]:
    return full("acme", "feature", "acme", **more)


def test_a_wheel_is_described_without_being_imported(tmp_path: Path) -> None:
    settings = {
        "depth": {"type": "integer", "default": 3, "description": "How deep."},
        "acme_token": {"type": "string", "default": "t0p", "required": True},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
    }
    make_wheel(
        tmp_path,
        "acme",
        "1.2",
        descriptor=descriptor(
            label="Acme",
            description="Does much.",
            provides_tags=["acme"],
            required_tags=["supports_tools"],
            config_schema=settings,
            commands=["acme"],
        ),
        files={
            "acme/__init__.py": POISON,
            "acme/plugin.py": POISON + CLASSES,
            "acme/base.py": "class Base:\n    def init(self, config, state): ...\n",
        },
        requires=["agent-host-files>=0.1", "httpx", "agent-host-web; extra == 'web'"],
        headers=[
            "Summary: One line.",
            "License-Expression: MIT",
            "Requires-Python: >=3.10",
            "Keywords: one,two",
            "Project-URL: Issues, https://example.org/issues",
            "Project-URL: Homepage, https://example.org/",
        ],
        readme="# Acme\n\nLong.",
    )
    (found,) = build(tmp_path, tmp_path).distributions
    (plugin,) = found.plugins
    assert (found.name, found.version, found.summary) == ("acme", "1.2", "One line.")
    assert (found.licence, found.python, found.contract) == ("MIT", ">=3.10", ">=1,<2")
    assert (found.needs, found.keywords) == (["agent-host-files"], ["one", "two"])
    assert [each.label for each in found.links] == ["Homepage", "Issues"]
    assert found.description == "# Acme\n\nLong."
    assert plugin.hooks == ["cli_command", "finalize", "get_config_schema", "init", "required_tags"]
    assert plugin.inherits == ["elsewhere.plugin:Foreign"]
    keys = {each.key: each for each in plugin.settings}
    assert (keys["depth"].type, keys["depth"].default) == ("integer", "3")
    # What is secret has no default that pages show.
    assert (keys["acme_token"].secret, keys["acme_token"].default) == (True, "")
    assert keys["mode"].choices == ['"fast"', '"slow"']
    assert "acme" not in sys.modules


def test_the_index_is_what_its_schema_says(tmp_path: Path) -> None:
    make_wheel(tmp_path, "acme", descriptor=descriptor(label="Acme"))
    build(tmp_path, tmp_path)
    written = json.loads((tmp_path / "out" / "index.schema.json").read_text())
    assert written == index_schema()
    document = json.loads((tmp_path / "out" / "index.json").read_text())
    fastjsonschema.compile(written)(document)
    assert document["schema_version"] == SCHEMA_VERSION


def test_the_same_wheels_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in ("beta", "acme"):
        make_wheel(wheels, name)
    trees = []
    for name in ("one", "two"):
        main(["build", "--out", str(tmp_path / name), str(wheels)])
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        trees.append({str(f.relative_to(tmp_path / name)): f.read_bytes() for f in files})
    assert trees[0] == trees[1]


def test_of_several_versions_the_newest_stable_one_is_shown(tmp_path: Path) -> None:
    for version in ("1.9", "1.10", "2.0rc1"):
        make_wheel(tmp_path, "acme", version)
    (found,) = build(tmp_path, tmp_path).distributions
    assert (found.version, found.versions) == ("1.10", ["2.0rc1", "1.10", "1.9"])


def test_names_are_fetched_from_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("1.0", "1.1"):
        make_wheel(wheels, "acme", version, files={"acme/__init__.py": POISON})
    with serve_index(wheels) as index:
        for key, value in {"INDEX_URL": f"{index.url}/simple/", "CONFIG_FILE": "/dev/null"}.items():
            monkeypatch.setenv(f"PIP_{key}", value)
        for key in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
            monkeypatch.delenv(key, raising=False)
        (found,) = build(tmp_path, "acme").distributions
    assert (found.version, found.versions) == ("1.1", ["1.1", "1.0"])


def test_what_cannot_be_read_is_left_out_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_wheel(tmp_path, "acme")
    make_wheel(tmp_path, "plain", is_plugin=False)
    (tmp_path / "broken-1.0-py3-none-any.whl").write_bytes(b"PK no archive")
    with zipfile.ZipFile(tmp_path / "empty-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("empty/__init__.py", "")
    found = build(tmp_path, tmp_path)
    told = capsys.readouterr().err
    assert [each.name for each in found.distributions] == ["acme"]
    for words in ("broken-1.0", "0 dist-info folders", "plain-1.0-py3-none-any.whl announces no"):
        assert words in told


def test_a_broken_descriptor_is_shown_as_a_problem(tmp_path: Path) -> None:
    make_wheel(tmp_path, "acme", descriptor={"entries": "none"})
    (found,) = build(tmp_path, tmp_path).distributions
    assert "entries" in found.problems[0]
    assert any("refuse" in text for text in page(tmp_path, "acme").texts)


@pytest.mark.parametrize(
    "source", ["(" * 5000, "class Plugin(:", "\0", "class Plugin(Plugin): ..."]
)
def test_source_that_cannot_be_read_costs_its_hooks_alone(tmp_path: Path, source: str) -> None:
    wheel = make_wheel(tmp_path, "acme", files={"acme/plugin.py": source})
    with open_wheel(wheel) as opened:
        described = describe_wheel(opened)
    assert described is not None
    assert described.plugins[0].hooks == []


def test_a_file_that_says_it_is_small_is_read_up_to_a_limit(tmp_path: Path) -> None:
    wheel = tmp_path / "acme-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("acme-1.0.dist-info/METADATA", b"Name: acme\n\n" + b"x" * (64 << 20))
        points = "[agent_host.plugins]\nacme = acme.plugin:Plugin\n"
        archive.writestr("acme-1.0.dist-info/entry_points.txt", points)
    with open_wheel(wheel) as opened:
        described = describe_wheel(opened)
    assert described is not None
    assert len(described.description) == 20_000
    assert described.description.endswith("…")


def test_a_wheel_without_metadata_is_no_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "acme-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("acme-1.0.dist-info/entry_points.txt", "[agent_host.plugins]\na = a:B\n")
    with pytest.raises(WheelError, match="METADATA"), open_wheel(wheel) as opened:
        describe_wheel(opened)


def make_tried(folder: Path, **changes: Any) -> None:
    """A wheel with what the kit found of it, and with some of that changed afterwards."""
    about = {**descriptor(required_plugins=["other"]), "tier": "gold"}
    wheel = make_wheel(folder, "acme", descriptor=about)
    with open_wheel(wheel) as opened:
        files = opened.digest_package("acme")
    tried = {"feature:acme": TriedPlugin(tier="gold", passed=9)}
    found = Conformance(
        contract="1", host="1", kit="1", pythons=("3.11",), plugins=tried, files=files
    )
    written = write_conformance(folder / "conformance.json", found)
    text = json.dumps({**written.model_dump(mode="json"), **changes})
    make_wheel(folder, "acme", descriptor=about, files={"acme/conformance.json": text})


def test_the_tier_is_what_the_results_in_the_wheel_show(tmp_path: Path) -> None:
    make_tried(tmp_path)
    (found,) = build(tmp_path, tmp_path).distributions
    # For more, it has no py.typed.
    assert (found.tier, found.tier_words) == ("bronze", "bronze, of this content")
    assert found.plugins[0].required_plugins == ["other"]
    assert "bronze tier" in page(tmp_path).texts


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pythons": ["3.11", "3.12"]}, "not as the kit wrote it"),
        ({"plugins": 1}, "plugins is 1"),
    ],
)
def test_results_that_were_changed_show_nothing(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    make_tried(tmp_path, **changes)
    (found,) = build(tmp_path, tmp_path).distributions
    assert found.tier == ""
    assert words in found.tier_words


def test_results_of_other_files_show_nothing(tmp_path: Path) -> None:
    make_tried(tmp_path)
    with zipfile.ZipFile(tmp_path / "acme-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("acme/more.py", "")
    (found,) = build(tmp_path, tmp_path).distributions
    assert (found.tier, found.tier_words) == ("", "conformance.json is of other files")


def test_a_claim_is_shown_as_one(tmp_path: Path) -> None:
    make_wheel(tmp_path, "acme", descriptor={**descriptor(), "tier": "gold"})
    (found,) = build(tmp_path, tmp_path).distributions
    assert (found.tier, found.tier_words) == ("", "gold is claimed, and nothing proves it")


def make_hostile(folder: Path) -> None:
    """A wheel all of whose text wants to be more than text."""
    hostile = f'"><img src=x onerror="taken()">{SCRIPT}\u202etxet\x1b[31m'
    schema = {hostile: {"type": hostile, "description": hostile, "default": hostile}}
    make_wheel(
        folder,
        "acme",
        descriptor=descriptor(
            label=hostile,
            description=hostile * 200,
            provides_tags=[hostile],
            config_schema=schema,
        ),
        headers=[
            f"Summary: {SCRIPT} $title ${{body}}",
            "Home-page: javascript:taken()",
            "Project-URL: Docs, JaVaScRiPt:taken()",
            "Project-URL: Data, data:text/html,<script>taken()</script>",
            'Project-URL: Quoted, https://example.org/"onmouseover="taken()',
            "Project-URL: Login, https://example.org@evil.example/",
            f"Project-URL: {SCRIPT}, https://example.org/ok",
        ],
        readme=f"{SCRIPT}</div></details><iframe src=x>" + "\u202e" + "long " * 50_000,
    )


def test_text_of_packages_never_becomes_markup(tmp_path: Path) -> None:
    make_hostile(tmp_path)
    build(tmp_path, tmp_path)
    for name in ("index", "acme"):
        parsed = page(tmp_path, name)
        scripts = [about for tag, about in parsed.elements if tag == "script"]
        assert [about["src"] for about in scripts] == [
            ("" if name == "index" else "../") + "catalog.js"
        ]
        assert {tag for tag, _ in parsed.elements}.isdisjoint({"iframe", "object", "style", "base"})
        assert [about["src"] for tag, about in parsed.elements if tag == "img"] == [
            ("" if name == "index" else "../") + "icon.svg"
        ]
        attributes = {key for _, about in parsed.elements for key in about}
        assert not [key for key in attributes if key.startswith("on") or key == "style"]
        assert not [link for link in parsed.links() if ":" in link.partition("?")[0] and
                    not link.startswith("https://example.org/")]  # fmt: skip
        text = "".join(parsed.texts)
        assert "\u202e" not in text
        assert "\x1b" not in text
    outside = [link for link in page(tmp_path, "acme").links() if ":" in link]
    assert outside == ["https://example.org/ok"]
    assert "<U+202E>" in "".join(page(tmp_path, "acme").texts)


def test_pages_forbid_all_that_they_do_not_need(tmp_path: Path) -> None:
    make_wheel(tmp_path, "acme")
    build(tmp_path, tmp_path)
    for name in ("index", "acme"):
        policies = [
            str(about["content"])
            for tag, about in page(tmp_path, name).elements
            if tag == "meta" and about.get("http-equiv") == "Content-Security-Policy"
        ]
        assert len(policies) == 1
        assert "default-src 'none'" in policies[0]
        assert "unsafe" not in policies[0]


@given(st.text(), st.text())
@settings(max_examples=50, deadline=None)
def test_any_text_is_read_back_from_markup_as_it_was(text: str, value: str) -> None:
    # A parser of HTML is free to change line ends and NUL.
    text, value = (each.replace("\r", "").replace("\0", "") for each in (text, value))
    parsed = Parsed(join(element("p", text, title=value, hidden=True, lang=False)))
    assert "".join(parsed.texts) == text
    assert parsed.elements == [("p", {"title": value, "hidden": None})]
