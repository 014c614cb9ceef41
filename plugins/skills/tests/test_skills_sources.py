"""Skills that installed distributions carry, found by their metadata and by nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from skills_made import write_package, write_skill

from agent_host import places
from agent_host_skills.library import Library
from agent_host_skills.sources import data_folder, find_sources, user_folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are installed in."""
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(site: Path, name: str, points: str, version: str = "1.0") -> None:
    """The metadata of a distribution that announces skills."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[agent_host.skills]\n{points}\n", encoding="utf-8")


def poison(package: Path) -> None:
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")


@pytest.mark.parametrize("value", ["acme_skills", "acme_skills.data"])
def test_a_distribution_carries_skills_and_is_not_imported(site: Path, value: str) -> None:
    poison(site / "acme_skills")
    write_skill(site.joinpath(*value.split(".")), "pdf-forms")
    install(site, "acme-skills", f"acme = {value}")
    library = Library([], None)
    found = library.skills["pdf-forms"]
    assert (found.source.kind, found.source.label) == ("distribution", "acme-skills")
    assert "acme_skills" not in sys.modules
    assert library.problems == ()


def test_a_distribution_carries_a_package(site: Path) -> None:
    write_package(site / "acme_plugin")
    poison(site / "acme_plugin")
    install(site, "acme-plugin", "acme = acme_plugin")
    assert [found.manifest.name for found in Library([], None).packages] == ["acme-tools"]


def test_an_editable_install_leads_to_its_package(site: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    poison(tree / "acme_edited")
    write_skill(tree / "acme_edited" / "skills")
    sys.path.append(str(tree))
    try:
        install(site, "acme-edited", "acme = acme_edited.skills")
        assert "pdf-forms" in Library([], None).skills
    finally:
        sys.path.remove(str(tree))
    assert "acme_edited" not in sys.modules


@pytest.mark.parametrize("value", ["nowhere", "../..", "/etc", "a:b", "acme_file", "..", ""])
def test_what_is_no_folder_of_the_distribution_is_told(site: Path, value: str) -> None:
    (site / "acme_file").touch()
    install(site, "acme-broken", f"acme = {value}")
    sources, problems = find_sources([])
    assert [source for source in sources if source.label == "acme-broken"] == []
    assert len(problems) == 1


def test_metadata_that_cannot_be_read_costs_its_distribution_alone(site: Path) -> None:
    install(site, "acme-bad", "acme = x")
    broken = site / "acme_bad-1.0.dist-info" / "entry_points.txt"
    broken.write_bytes(b"[agent_host.skills]\n\xff\xfe = x\n")
    write_skill(site / "acme_good")
    install(site, "acme-good", "acme = acme_good")
    library = Library([], None)
    assert "pdf-forms" in library.skills
    assert len(library.problems) == 1


def test_of_two_versions_the_first_on_the_path_counts(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(site / "acme_one")
    install(site, "acme-x", "acme = acme_one")
    first = tmp_path / "first"
    write_skill(first / "acme_two", "other")
    install(first, "Acme.X", "acme = acme_two", "2.0")
    monkeypatch.syspath_prepend(str(first))
    assert [*Library([], None).skills] == ["other"]


def test_the_users_own_come_before_what_is_installed(site: Path, tmp_path: Path) -> None:
    write_skill(site / "acme_skills")
    install(site, "acme-skills", "acme = acme_skills")
    write_skill(tmp_path / "home" / "skills")
    library = Library([], None)
    assert library.skills["pdf-forms"].source.kind == "user"
    assert [found.source.label for found in library.shadowed] == ["acme-skills"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, site: Path) -> None:
    (problem,) = Library([str(tmp_path / "nowhere")], None).problems
    assert (problem.lost, problem.file) == ("source", str(tmp_path / "nowhere"))
    assert problem.hint


@pytest.mark.parametrize(
    "variables",
    [
        {"AGENT_HOST_HOME": "/one/place"},
        {"AGENT_HOST_HOME": "relative"},
        {"XDG_CONFIG_HOME": "/xdg", "XDG_DATA_HOME": "/data"},
        {"XDG_CONFIG_HOME": "relative", "XDG_DATA_HOME": "relative"},
        {},
    ],
    ids=str,
)
def test_the_places_are_where_the_host_has_them(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name in ("AGENT_HOST_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_folder() == str(Path(places.config_folder()) / "skills")
    assert data_folder() == places.data_folder()
