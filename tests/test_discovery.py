"""Discovery finds packages in every layout installers leave behind, and imports none of them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.bundle import Bundle, bundle_from_list, bundle_to_list
from agent_host.plugins.discover import discover, top_level_spec
from making import POISON, entry_points, full, install, run_python, write_metadata, write_package

DISCOVER = """
import json
from agent_host.plugins.bundle import bundle_to_list
from agent_host.plugins.discover import discover

found = [bundle for bundle in discover() if bundle.distribution.startswith("dist-")]
assert not [name for name in sys.modules if name.startswith(("pkg_", "acme"))]
print(json.dumps([bundle_to_list(bundle) for bundle in found]))
"""


@pytest.fixture(autouse=True)
def nothing_is_imported() -> Iterator[None]:
    yield
    assert not [name for name in sys.modules if name.startswith(("pkg_", "acme"))]


def only(search_path: list[Path]) -> Bundle:
    (bundle,) = discover([str(entry) for entry in search_path])
    return bundle


def only_in_process(**where: Any) -> Bundle:
    """The one bundle that a process with a real ``sys.path`` discovers."""
    run = run_python(DISCOVER, **where)
    assert run.code == 0, run.err
    (document,) = run.json
    return bundle_from_list(document)


def assert_found(bundle: Bundle, file: Path) -> None:
    assert bundle.problem == ""
    assert bundle.descriptor is not None
    assert bundle.descriptor.entries[0].name == "one"
    assert bundle.file == str(file)
    assert (bundle.name, bundle.distribution, bundle.version) == ("one", "dist-one", "1.0")


def test_a_wheel_is_found_with_name_version_and_descriptor(tmp_path: Path) -> None:
    folder = install(tmp_path, "one", source=POISON)
    assert_found(only([tmp_path]), folder / "agent_plugin.json")


def test_an_editable_install_by_path_file_is_found(tmp_path: Path) -> None:
    site, project = tmp_path / "site", tmp_path / "project" / "src"
    folder = write_package(project, "pkg_one", descriptor=full("pkg_one", "feature", "one"))
    write_metadata(site, "dist-one", {"one": "pkg_one"})
    (site / "editable.pth").write_text(f"{project}\n", "utf-8")
    assert_found(only_in_process(trees=[site]), folder / "agent_plugin.json")


FINDER = """
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location


class Finder:
    mapping = {mapping!r}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in cls.mapping:
            folder = cls.mapping[name]
            return spec_from_file_location(
                name, folder + "/__init__.py", submodule_search_locations=[folder]
            )
        return None


def install():
    sys.meta_path.append(Finder)
"""


def test_an_editable_install_by_import_hook_is_found(tmp_path: Path) -> None:
    site, project = tmp_path / "site", tmp_path / "project" / "lib"
    folder = write_package(project, "pkg_one", descriptor=full("pkg_one", "feature", "one"))
    write_metadata(site, "dist-one", {"one": "pkg_one"})
    finder = FINDER.format(mapping={"pkg_one": str(folder)})
    (site / "__editable___dist_one_finder.py").write_text(finder, "utf-8")
    hook = "import __editable___dist_one_finder as f; f.install()\n"
    (site / "__editable__.dist_one.pth").write_text(hook, "utf-8")
    assert_found(only_in_process(trees=[site]), folder / "agent_plugin.json")


@pytest.mark.parametrize("layout", ["", "src"])
def test_an_editable_install_is_found_by_its_project_folder_alone(
    tmp_path: Path, layout: str
) -> None:
    site, project = tmp_path / "site", tmp_path / "my project"
    folder = write_package(project / layout, "pkg_one", descriptor=full("pkg_one", "tool", "one"))
    url = json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
    write_metadata(site, "dist-one", {"one": "pkg_one"}, direct_url_json=url)
    assert_found(only([site]), folder / "agent_plugin.json")


def zipped(tree: Path, archive: Path) -> Path:
    with zipfile.ZipFile(archive, "w") as target:
        for file in sorted(tree.rglob("*")):
            target.write(file, file.relative_to(tree))
    return archive


def test_a_zip_archive_is_found_here_and_in_a_process_of_its_own(tmp_path: Path) -> None:
    install(tmp_path / "tree", "one", source=POISON)
    archive = zipped(tmp_path / "tree", tmp_path / "plugins.zip")
    expected = archive / "pkg_one" / "agent_plugin.json"
    assert_found(only([archive]), expected)
    assert_found(only_in_process(first=[archive]), expected)


def test_the_plugin_of_an_archive_can_be_loaded(tmp_path: Path) -> None:
    install(tmp_path / "tree", "one", "feature")
    archive = zipped(tmp_path / "tree", tmp_path / "plugins.zip")
    code = """
from agent_host.plugins.activate import Activator
from agent_host.plugins.load import load_catalog
(record,) = load_catalog().find("feature:one")
print(Activator().load(record).key)
"""
    assert run_python(code, first=[archive]).out == "feature:one\n"


def test_egg_info_is_found(tmp_path: Path) -> None:
    folder = write_package(tmp_path, "pkg_one", descriptor=full("pkg_one", "tool", "one"))
    write_metadata(tmp_path, "dist-one", {"one": "pkg_one"}, kind="egg-info")
    assert_found(only([tmp_path]), folder / "agent_plugin.json")


def test_a_package_inside_namespace_packages_is_found(tmp_path: Path) -> None:
    package = "acme.plugins.echo"
    folder = tmp_path / "acme" / "plugins" / "echo"
    write_package(tmp_path, package, descriptor=full(package, "tool", "one"), init=POISON)
    write_metadata(tmp_path, "dist-one", {"one": package})
    assert_found(only([tmp_path]), folder / "agent_plugin.json")


def test_a_namespace_package_elsewhere_on_the_path_is_found(tmp_path: Path) -> None:
    package, site, project = "acme.plugins.echo", tmp_path / "site", tmp_path / "project"
    folder = write_package(project, package, descriptor=full(package, "tool", "one"), init=POISON)
    write_metadata(site, "dist-one", {"one": package})
    (site / "path.pth").write_text(f"{project}\n", "utf-8")
    assert_found(only_in_process(trees=[site]), folder / "agent_plugin.json")


def test_an_entry_point_may_name_a_class_instead_of_a_package(tmp_path: Path) -> None:
    write_metadata(tmp_path, "dist-one", {"one": "pkg_one.plugin:Plugin"})
    bundle = only([tmp_path])
    assert bundle.problem == ""
    assert bundle.descriptor is not None
    (entry,) = bundle.descriptor.entries
    assert entry.entry == "pkg_one.plugin:Plugin"
    assert entry.short


def test_one_distribution_may_announce_several_bundles(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_package(tmp_path, f"pkg_{name}", descriptor=full(f"pkg_{name}", "tool", name))
    write_metadata(tmp_path, "dist-many", {"a": "pkg_a", "b": "pkg_b"})
    assert [bundle.name for bundle in discover([str(tmp_path)])] == ["a", "b"]


def test_the_first_of_two_versions_on_the_path_wins(tmp_path: Path) -> None:
    for number in ("1", "2"):
        install(tmp_path / number, "one", version=f"{number}.0", label=f"number {number}")
    assert only([tmp_path / "1", tmp_path / "2"]).version == "1.0"
    bundle = only([tmp_path / "2", tmp_path / "1"])
    assert bundle.version == "2.0"
    assert bundle.descriptor is not None
    assert bundle.descriptor.entries[0].label == "number 2"


def test_a_first_version_that_announces_nothing_hides_a_later_one(tmp_path: Path) -> None:
    write_metadata(tmp_path / "1", "Dist.One", b"[console_scripts]\nx = y:z\n")
    install(tmp_path / "2", "one")
    assert discover([str(tmp_path / "1"), str(tmp_path / "2")]) == []


def test_an_archive_takes_part_in_the_order_of_the_path(tmp_path: Path) -> None:
    install(tmp_path / "new", "one", version="2.0")
    install(tmp_path / "old", "one", version="1.0")
    archive = zipped(tmp_path / "new", tmp_path / "new.zip")
    assert only([archive, tmp_path / "old"]).version == "2.0"
    assert only([tmp_path / "old", archive]).version == "1.0"


def test_what_a_cut_short_uninstall_left_behind_is_no_distribution(tmp_path: Path) -> None:
    folder = install(tmp_path, "one")
    metadata = folder.parent / "dist_one-1.0.dist-info"
    metadata.rename(folder.parent / "~ist_one-1.0.dist-info")
    assert discover([str(tmp_path)]) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\xff\xfe[agent_host.plugins]\x80\x81 = \n\xff",
        b"[agent_host.plugins]\nno value here\n",
        entry_points({"one": "pkg_one"}).decode().encode("utf-16") + b"agent_host.plugins",
    ],
)
def test_broken_entry_points_concern_their_distribution_alone(tmp_path: Path, raw: bytes) -> None:
    write_metadata(tmp_path, "dist-broken", raw)
    install(tmp_path, "one")
    bundles = {bundle.distribution: bundle for bundle in discover([str(tmp_path)])}
    assert bundles["dist-one"].problem == ""
    assert "entry points of dist-broken cannot be read" in bundles["dist-broken"].problem
    assert "reinstall" in bundles["dist-broken"].problem


def test_without_a_header_the_first_bundle_gives_the_name(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_one", descriptor=full("pkg_one", "tool", "one"))
    write_metadata(tmp_path, "dist-one", {"one": "pkg_one"}, header=False)
    bundle = only([tmp_path])
    assert (bundle.distribution, bundle.version, bundle.problem) == ("one", "", "")


def test_a_missing_descriptor_is_a_problem_that_says_where_it_should_be(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_one")
    write_metadata(tmp_path, "dist-one", {"one": "pkg_one"})
    bundle = only([tmp_path])
    assert "package 'pkg_one' has no agent_plugin.json" in bundle.problem
    assert "package data" in bundle.problem
    assert bundle.file == str(tmp_path / "pkg_one" / "agent_plugin.json")


@pytest.mark.parametrize("value", ["../../etc", "/etc/passwd", "pkg.mod:a.b", "pkg one", "..."])
def test_a_value_that_is_no_package_is_refused(tmp_path: Path, value: str) -> None:
    write_metadata(tmp_path, "dist-one", {"one": value})
    bundle = only([tmp_path])
    assert bundle.descriptor is None
    # Some versions of importlib-metadata refuse it before we do.
    assert "is no package" in bundle.problem or "Invalid object reference" in bundle.problem


def test_whatever_stands_on_the_path_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("not an archive", "utf-8")
    install(tmp_path / "tree", "one")
    whole = zipped(tmp_path / "tree", tmp_path / "cut.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    names = ("absent", "text.zip", "cut.zip", "loop", "\0", "x" * 5000)
    assert discover([*(str(tmp_path / name) for name in names)]) == []


VAULT = """
import importlib_metadata
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder


class Vaulted(importlib_metadata.Distribution):
    def __init__(self, name, points):
        self._name, self._points = name, points

    def read_text(self, filename):
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\\nName: {self._name}\\nVersion: 7.0\\n\\n"
        return self._points if filename == "entry_points.txt" else None

    def locate_file(self, path):
        raise NotImplementedError("it has no files")


class Vault(importlib_metadata.DistributionFinder):
    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, [PACKAGES]) if name == "pkg_one" else None

    def find_distributions(self, context=None):
        # It heeds neither name nor path, as finders may.
        yield Vaulted("dist-other", "[console_scripts]\\nx = y:z\\n")
        yield Vaulted("dist-one", "[agent_host.plugins]\\none = pkg_one\\n")


PACKAGES = {packages!r}
sys.meta_path.append(Vault())
"""


def test_a_distribution_that_only_a_finder_knows_is_found_and_loads(tmp_path: Path) -> None:
    install(tmp_path / "packages", "one", "feature")
    shutil.rmtree(tmp_path / "packages" / "dist_one-1.0.dist-info")
    code = (
        VAULT.replace("{packages!r}", repr(str(tmp_path / "packages")))
        + """
import json
from agent_host.plugins.activate import Activator
from agent_host.plugins.load import load_catalog
seen = []
for round in range(3):
    # Through the index, which must not outlive what the finder says.
    if round == 2:
        sys.meta_path.pop()
    found = load_catalog().find("dist-one")
    seen.append([(r.name, r.bundle.version, r.state) for r in found])
    if round == 0:
        seen.append(Activator().load(found[0]).key)
print(json.dumps(seen))
"""
    )
    run = run_python(code, home=tmp_path / "home")
    assert run.code == 0, run.err
    listed = [["one", "7.0", "discovered"]]
    assert run.json == [listed, "feature:one", listed, []]


def test_a_finder_that_fails_is_a_failed_record(tmp_path: Path) -> None:
    install(tmp_path, "one")

    class Failing:
        @staticmethod
        def find_spec(*args: object) -> None:
            return None

        @staticmethod
        def find_distributions(context: object) -> None:
            raise RuntimeError("no vault")

    sys.meta_path.insert(0, Failing)
    try:
        one, failed = discover([str(tmp_path)])
    finally:
        sys.meta_path.remove(Failing)
    assert (one.name, one.problem) == ("one", "")
    assert "raised RuntimeError: no vault" in failed.problem


def test_of_what_is_left_of_an_upgrade_the_whole_distribution_counts(tmp_path: Path) -> None:
    install(tmp_path, "one", version="1.0")
    (tmp_path / "dist_one-1.0.dist-info").rename(tmp_path / "~ist_one-1.0.dist-info")
    install(tmp_path, "one", version="2.0")
    assert only([tmp_path]).version == "2.0"


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        install(tmp_path, name)
    assert [bundle.name for bundle in discover([str(tmp_path)])] == ["a", "b", "c"]


def test_an_import_hook_that_fails_has_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        @staticmethod
        def find_spec(*args: object) -> None:
            raise RuntimeError("broken hook")

    monkeypatch.setattr(sys, "meta_path", [Failing])
    assert top_level_spec("pkg_nowhere") is None


def test_a_bundle_survives_being_written_as_json(tmp_path: Path) -> None:
    install(
        tmp_path,
        "one",
        "tool",
        source="",
        tools={"t": "read"},
        options={"n": [1, {"x": None}]},
        after=["other"],
        priority=-3,
        default_enabled=False,
        unheard_of=1,
    )
    install(tmp_path, "bad", descriptor=b"{")
    for bundle in discover([str(tmp_path)]):
        assert bundle_from_list(json.loads(json.dumps(bundle_to_list(bundle)))) == bundle


@pytest.mark.parametrize("path", ["subprocess:Popen", "os.path:Thing", "other_pkg.plugin:Plugin"])
def test_an_entry_names_a_class_of_its_own_distribution(tmp_path: Path, path: str) -> None:
    descriptor = {"entries": [{**full("pkg_one", "tool", "one")["entries"][0], "entry": path}]}
    write_package(tmp_path, "pkg_one", descriptor=descriptor)
    folder = write_metadata(tmp_path, "dist-one", {"one": "pkg_one", "two": path})
    record = "pkg_one/plugin.py,,\npkg_one/agent_plugin.json,,\ndist_one-1.0.dist-info/RECORD,,\n"
    (folder / "RECORD").write_text(record, encoding="utf-8")
    for bundle in discover([str(tmp_path)]):
        assert "is no part of dist-one" in bundle.problem
        assert bundle.descriptor is None


def test_a_distribution_without_a_list_of_files_cannot_name_what_is_pythons(tmp_path: Path) -> None:
    write_metadata(tmp_path, "dist-one", {"one": "subprocess:Popen"})
    assert "is no part of dist-one" in only([tmp_path]).problem
