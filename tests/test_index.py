"""The index answers for discovery only while that cannot make a difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import importlib_metadata
import pytest
from hypothesis import given, settings, strategies as st

from agent_host.plugins.bundle import Bundle
from agent_host.plugins.discover import discover
from agent_host.plugins.index import find_bundles
from making import POISON, entry_points, install, run_host, settle, write_metadata, write_package

assert importlib_metadata.__name__, "imported now, since tests replace sys.path"


@contextmanager
def search_path(*entries: Path) -> Iterator[None]:
    before = sys.path
    sys.path = [str(entry) for entry in entries]
    try:
        yield
    finally:
        sys.path = before


class Home:
    """A tree of installed packages, a cache, and how often discovery ran."""

    def __init__(self, root: Path) -> None:
        self.tree = root / "tree"
        self.cache = root / "cache"
        self.discoveries = 0
        install(self.tree, "one", source=POISON)
        install(self.tree, "two", source=POISON)
        settle(self.tree)

    def ask(self, *more: Path) -> list[Bundle]:
        with search_path(self.tree, *more):
            answer = find_bundles(self._discover, self.cache)
            assert answer == discover()
        return answer

    def _discover(self) -> list[Bundle]:
        self.discoveries += 1
        return discover()

    @property
    def file(self) -> Path:
        (file,) = (self.cache / "index").iterdir()
        return file


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def warmed(home: Home) -> None:
    home.ask()
    home.ask()
    assert home.discoveries == 1, "the index was not used"


def test_a_warm_start_does_not_discover(home: Home) -> None:
    warmed(home)
    assert [bundle.name for bundle in home.ask()] == ["one", "two"]
    assert home.discoveries == 1


def test_the_index_lies_in_a_private_folder(home: Home) -> None:
    warmed(home)
    assert (home.cache / "index").stat().st_mode & 0o777 == 0o700
    assert home.file.stat().st_mode & 0o777 == 0o600


def new_distribution(tree: Path) -> None:
    install(tree, "three", source=POISON)


def removed_distribution(tree: Path) -> None:
    folder = tree / "dist_one-1.0.dist-info"
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def edited_entry_points(tree: Path) -> None:
    points = entry_points({"renamed": "pkg_one"})
    (tree / "dist_one-1.0.dist-info" / "entry_points.txt").write_bytes(points)


def edited_descriptor(tree: Path) -> None:
    file = tree / "pkg_one" / "agent_plugin.json"
    file.write_text(file.read_text("utf-8").replace('"one"', '"eno"'), "utf-8")


def removed_descriptor(tree: Path) -> None:
    (tree / "pkg_one" / "agent_plugin.json").unlink()


def upgraded_distribution(tree: Path) -> None:
    removed_distribution(tree)
    write_metadata(tree, "dist-one", {"one": "pkg_one"}, version="2.0")


@pytest.mark.parametrize(
    "change",
    [
        new_distribution,
        removed_distribution,
        edited_entry_points,
        edited_descriptor,
        removed_descriptor,
        upgraded_distribution,
    ],
)
def test_a_change_is_seen_at_once(home: Home, change: Callable[[Path], None]) -> None:
    warmed(home)
    before = home.ask()
    change(home.tree)
    assert home.ask() != before


def test_a_descriptor_that_appears_is_seen(home: Home) -> None:
    removed_descriptor(home.tree)
    settle(home.tree)
    assert home.ask()[0].problem
    install(home.tree, "one", source=POISON)
    settle(home.tree, 60)
    assert home.ask()[0].problem == ""


def test_a_first_announcement_of_an_installed_distribution_is_seen(home: Home) -> None:
    metadata = write_metadata(home.tree, "dist-late", b"")
    (metadata / "entry_points.txt").unlink()
    settle(home.tree)
    warmed(home)
    write_package(home.tree, "pkg_late", descriptor={"entries": ["pkg_late.plugin:Plugin"]})
    settle(home.tree / "pkg_late")
    os.utime(home.tree, ns=(0, os.stat(home.tree).st_mtime_ns))
    write_metadata(home.tree, "dist-late", {"late": "pkg_late"})
    assert "late" in [bundle.name for bundle in home.ask()]


def test_an_editable_installs_descriptor_outside_the_path_is_watched(
    home: Home, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    folder = write_package(project, "pkg_far", descriptor={"entries": ["pkg_far.plugin:Plugin"]})
    url = json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
    write_metadata(home.tree, "dist-far", {"far": "pkg_far"}, direct_url_json=url)
    settle(tmp_path)
    warmed(home)
    (folder / "agent_plugin.json").write_text('{"entries": ["pkg_far.other:Plugin"]}', "utf-8")
    (far,) = [bundle for bundle in home.ask() if bundle.name == "far"]
    assert far.descriptor is not None
    assert far.descriptor.entries[0].entry == "pkg_far.other:Plugin"


def test_another_search_path_has_another_answer(home: Home, tmp_path: Path) -> None:
    warmed(home)
    install(tmp_path / "more", "three", source=POISON)
    settle(tmp_path / "more")
    assert [b.name for b in home.ask(tmp_path / "more")] == ["one", "two", "three"]
    assert [b.name for b in home.ask()] == ["one", "two"]
    assert home.discoveries == 2


def test_what_is_young_is_not_trusted(home: Home) -> None:
    edited_descriptor(home.tree)
    home.ask()
    home.ask()
    assert home.discoveries == 2
    assert not (home.cache / "index").exists()


def test_a_time_in_the_future_is_not_trusted(home: Home) -> None:
    os.utime(home.tree, (2**33, 2**33))
    home.ask()
    home.ask()
    assert home.discoveries == 2


# Damage ------------------------------------------------------------------------------------------


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def garbled(file: Path) -> None:
    file.write_bytes(os.urandom(500))


def checksummed_nonsense(file: Path) -> None:
    body = json.dumps({"key": "other", "watched": [], "bundles": 3}).encode()
    file.write_bytes(b"%08x\n%s" % (zlib.crc32(body), body))


def deeply_nested(file: Path) -> None:
    body = b"[" * 100_000
    file.write_bytes(b"%08x\n%s" % (zlib.crc32(body), body))


def readable_by_the_group(file: Path) -> None:
    file.chmod(0o640)


def folder_open_to_others(file: Path) -> None:
    file.parent.chmod(0o755)


def symlinked(file: Path) -> None:
    moved = file.parent.parent / "elsewhere"
    file.rename(moved)
    file.symlink_to(moved)


def folder_symlinked(file: Path) -> None:
    moved = file.parent.parent / "elsewhere"
    file.parent.rename(moved)
    file.parent.symlink_to(moved)


def a_folder_itself(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def foreign_owned(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 12345, 12345)


def folder_foreign_owned(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(file.parent, 12345, 12345)


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        emptied,
        garbled,
        checksummed_nonsense,
        deeply_nested,
        readable_by_the_group,
        folder_open_to_others,
        symlinked,
        folder_symlinked,
        a_folder_itself,
        a_pipe,
        foreign_owned,
        folder_foreign_owned,
    ],
)
def test_a_damaged_or_untrustworthy_index_is_bypassed(
    home: Home, damage: Callable[[Path], None]
) -> None:
    warmed(home)
    damage(home.file)
    assert len(home.ask()) == 2
    assert home.discoveries == 2


@pytest.mark.parametrize("damage", [truncated, emptied, garbled, readable_by_the_group, symlinked])
def test_a_damaged_index_is_written_anew(home: Home, damage: Callable[[Path], None]) -> None:
    warmed(home)
    damage(home.file)
    home.ask()
    home.ask()
    assert home.discoveries == 2


@pytest.fixture(scope="module")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("flipped"))
    warmed(home)
    return home


@given(place=st.integers(0), bit=st.integers(0, 7))
@settings(max_examples=60)
def test_any_flipped_bit_gives_the_same_answer(warm_home: Home, place: int, bit: int) -> None:
    raw = bytearray(warm_home.file.read_bytes())
    raw[place % len(raw)] ^= 1 << bit
    warm_home.file.write_bytes(raw)
    assert len(warm_home.ask()) == 2


@given(cut=st.integers(0, 5000), junk=st.binary(max_size=50))
@settings(max_examples=40)
def test_any_torn_write_gives_the_same_answer(warm_home: Home, cut: int, junk: bytes) -> None:
    warm_home.file.write_bytes(warm_home.file.read_bytes()[:cut] + junk)
    assert len(warm_home.ask()) == 2


# A cache that cannot be used ---------------------------------------------------------------------


def test_without_a_cache_folder_discovery_runs_each_time(home: Home) -> None:
    with search_path(home.tree):
        assert find_bundles(discover, None) == discover()


def test_a_file_where_the_folder_should_be_is_no_error(home: Home) -> None:
    home.cache.write_text("in the way", "utf-8")
    assert len(home.ask()) == 2
    assert home.cache.read_text("utf-8") == "in the way"


def test_a_cache_that_cannot_be_written_is_no_error(home: Home) -> None:
    home.cache.mkdir(mode=0o500)
    as_root = os.geteuid() == 0
    if as_root:
        # Permissions do not bind root; as somebody else the cache is out of reach too.
        os.chmod(home.cache.parent, 0o700)
        os.seteuid(65534)
    try:
        with search_path(home.tree):
            assert find_bundles(lambda: [Bundle("b", "installed", "s")], home.cache)[0].name == "b"
    finally:
        if as_root:
            os.seteuid(0)
        home.cache.chmod(0o700)
    assert list(home.cache.iterdir()) == []


WORK = """
import os, random
from pathlib import Path
from agent_host.plugins.discover import discover
from agent_host.plugins.index import find_bundles
import agent_host.private, importlib_metadata

tree, cache, number = sys.argv[1:]
# Loads what reads metadata, which cannot be found afterwards.
list(importlib_metadata.distribution("pluggy").metadata)
sys.path = [tree]
random.seed(int(number))
expected = discover()
for _ in range(40):
    assert find_bundles(discover, Path(cache)) == expected
    for file in Path(cache, "index").glob("*"):
        dice = random.random()
        try:
            if dice < 0.2:
                file.unlink()
            elif dice < 0.4:
                file.write_bytes(file.read_bytes()[:-7])
        except OSError:
            continue
print("agreed")
"""


def test_eight_processes_that_write_and_damage_it_at_once_never_see_a_wrong_answer(
    home: Home,
) -> None:
    command = [sys.executable, "-c", "import sys\n" + WORK, str(home.tree), str(home.cache)]
    workers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in range(8)
    ]
    told = [worker.communicate(timeout=60) for worker in workers]
    assert told == [(b"agreed\n", b"")] * 8
    home.ask()
    home.ask()
    left = [file.name for file in (home.cache / "index").iterdir()]
    assert [name for name in left if not name.endswith(".json")] == []


def test_the_command_line_answers_alike_before_and_after_it_is_written(tmp_path: Path) -> None:
    install(tmp_path / "tree", "one", source=POISON)
    first = run_host("plugins", "list", "--json", trees=[tmp_path / "tree"], home=tmp_path / "home")
    again = run_host("plugins", "list", "--json", trees=[tmp_path / "tree"], home=tmp_path / "home")
    assert first.plugin("one") == again.plugin("one")


def test_indexes_of_environments_long_gone_make_room(home: Home, tmp_path: Path) -> None:
    for number in range(70):
        extra = tmp_path / f"extra{number}"
        extra.mkdir()
        settle(extra)
        home.ask(extra)
    assert len(list((home.cache / "index").iterdir())) == 64
