"""Plugins come, change and go: with each installer, from an index of the tests' own, for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_host.distributions.environment import find_environment
from agent_host.distributions.errors import DistributionError, LockError
from agent_host.distributions.wanted import WantedList, parse_wanted, read_wanted
from indexes import Index, Place, make_environment, make_wheel, pack_host, serve_index
from making import POISON, full

MAKERS = ("venv", "uv", "uv tool", "pipx")
IS_LONG = os.environ.get("AGENT_HOST_LONG_TRIALS", "") not in ("", "0")
long_trial = pytest.mark.skipif(not IS_LONG, reason="takes long: AGENT_HOST_LONG_TRIALS=1")
HAS_UV = shutil.which("uv") is not None or (Path(sys.executable).parent / "uv").exists()
needs_uv = pytest.mark.skipif(not HAS_UV, reason="needs uv: pip install uv")
#: What is the same for all is tried with one of them each day, and with all by hand.
each_maker = pytest.mark.parametrize(
    "maker",
    ["uv", *(pytest.param(name, marks=long_trial) for name in ("venv", "uv tool", "pipx"))],
)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of the host and of what it needs."""
    folder = tmp_path_factory.mktemp("wheels")
    pack_host(folder)
    return folder


@pytest.fixture
def index(wheels: Path, tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "index"
    shutil.copytree(wheels, folder)
    with serve_index(folder) as served:
        yield served


@pytest.fixture
def make(index: Index, tmp_path: Path) -> Callable[[str], Place]:
    def make_one(maker: str) -> Place:
        if maker == "pipx":
            pytest.importorskip("pipx")
        if maker.startswith("uv") and not HAS_UV:
            pytest.skip("needs uv: pip install uv")
        return make_environment(maker, tmp_path / "made", index)

    return make_one


@pytest.fixture
def place(make: Callable[[str], Place]) -> Place:
    return make("uv")


# Coming and going -------------------------------------------------------------------------------


@pytest.mark.parametrize("maker", MAKERS)
def test_a_plugin_comes_and_goes_with_what_it_needs(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    make_wheel(index.folder, "needed-lib", is_plugin=False)
    make_wheel(index.folder, "acme-one", requires=["needed-lib"])
    place = make(maker)
    before = place.files()
    added = place.host("plugins", "add", "acme-one", "--json")
    assert added.code == 0, added.err
    assert [(each["kind"], each["name"], each["why"]) for each in added.json["changes"]] == [
        ("add", "acme-one", "wanted"),
        ("add", "needed-lib", "needed by acme-one"),
    ]
    assert read_wanted(place.home / "plugins.txt").by_name.keys() == {"acme-one"}
    assert "acme-one" in place.host("plugins", "list").out
    verified = place.host("plugins", "verify")
    assert verified.code == 0, verified.out
    removed = place.host("plugins", "remove", "acme-one", "--yes")
    assert removed.out.splitlines() == ["- acme-one 1.0", "- needed-lib 1.0", "Done."]
    assert place.files() == before
    assert not read_wanted(place.home / "plugins.txt").by_name


@pytest.mark.parametrize(
    "maker", ["venv", "uv", *(pytest.param(name, marks=long_trial) for name in MAKERS[2:])]
)
def test_a_lost_environment_comes_back_as_it_was(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    make_wheel(index.folder, "acme-one")
    place = make(maker)
    place.host("plugins", "add", "acme-one", "--yes")
    before, files = place.freeze(), place.files()
    # Something newer has come since; the lock does not care.
    make_wheel(index.folder, "acme-one", "2.0")
    shutil.rmtree(place.prefix)
    make(maker)
    told = place.host("run", "--provider", "echo", "--model", "echo-1", "hello")
    assert "not as it is locked: acme-one 1.0 is missing" in told.err
    assert "acme-one 1.0 is missing" in place.host("plugins", "doctor").out
    synced = place.host("plugins", "sync", "--frozen", "--yes")
    assert synced.code == 0, synced.err
    assert place.freeze() == before
    assert place.files() == files
    assert place.host("plugins", "verify").code == 0


@pytest.mark.parametrize(
    ("maker", "upgrade"),
    [
        ("uv tool", ["uv", "tool", "install", "-q", "--reinstall", "agent-host-core"]),
        ("pipx", [sys.executable, "-m", "pipx", "reinstall", "agent-host-core"]),
    ],
)
def test_what_an_upgrade_threw_away_is_brought_back(
    make: Callable[[str], Place], index: Index, maker: str, upgrade: list[str]
) -> None:
    make_wheel(index.folder, "acme-one")
    place = make(maker)
    place.host("plugins", "add", "acme-one", "--yes")
    assert place.run(*upgrade).code == 0
    assert "acme_one-1.0" not in place.freeze()
    assert place.host("plugins", "sync", "--yes").code == 0
    assert "acme_one-1.0" in place.freeze()


@needs_uv
def test_a_new_python_gets_the_same_versions(place: Place, index: Index) -> None:
    make_wheel(index.folder, "acme-one")
    place.host("plugins", "add", "acme-one", "--yes")
    before = place.freeze()
    make_wheel(index.folder, "acme-one", "2.0")
    # As if all had been locked and installed for another one.
    lock = place.home / "pylock.toml"
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    text = lock.read_text(encoding="utf-8")
    assert f"=={here}.*" in text
    lock.write_text(text.replace(f"=={here}.*", "==3.9.*"), encoding="utf-8")
    (packages,) = (place.prefix / "lib").glob("python*/site-packages")
    for gone in packages.glob("acme_one*"):
        shutil.rmtree(gone)
    assert "acme-one 1.0 is missing" in place.host("plugins", "doctor").out
    refused = place.host("plugins", "sync", "--frozen", "--yes")
    assert refused.code == 1
    assert "is for another Python" in refused.err
    assert "plugins sync makes it anew" in refused.err.replace("\n", " ")
    synced = place.host("plugins", "sync", "--yes")
    assert synced.out == "+ acme-one 1.0  (wanted)\nDone.\n", synced.err
    assert place.freeze() == before
    assert lock.read_text(encoding="utf-8") == text


@needs_uv
def test_upgrading_brings_what_is_newer_and_nothing_else(place: Place, index: Index) -> None:
    make_wheel(index.folder, "acme-one")
    make_wheel(index.folder, "acme-two")
    place.host("plugins", "add", "acme-one", "acme-two", "--yes")
    make_wheel(index.folder, "acme-one", "1.1")
    make_wheel(index.folder, "acme-two", "1.1")
    found = place.host("plugins", "outdated", "--json").json["outdated"]
    assert [(each["name"], each["latest"]) for each in found] == [
        ("acme-one", "1.1"),
        ("acme-two", "1.1"),
    ]
    assert place.host("plugins", "sync", "--dry-run").out == "Nothing has to be changed.\n"
    assert place.host("plugins", "sync", "--yes").out == "Nothing had to be changed.\n"
    upgraded = place.host("plugins", "upgrade", "acme-two", "--yes")
    assert upgraded.out.splitlines() == ["~ acme-two 1.0 -> 1.1  (wanted)", "Done."]
    assert place.host("plugins", "verify").code == 0


@needs_uv
def test_wheels_folders_and_lists_are_wanted_too(
    place: Place, index: Index, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "acme-local")
    assert place.host("plugins", "add", str(wheel), "--yes").code == 0
    (place.home / "plugins.txt").write_text(f"# mine\nacme-one\n{wheel}\n", encoding="utf-8")
    make_wheel(index.folder, "acme-one")
    synced = place.host("plugins", "sync", "--yes")
    assert "+ acme-one 1.0  (wanted)" in synced.out
    listed = (place.home / "plugins.txt").read_text(encoding="utf-8")
    assert listed.startswith("# mine\n")


_BACKEND = """\
import shutil
from pathlib import Path


def build_wheel(folder, settings=None, metadata=None):
    (wheel,) = Path(__file__).parent.glob("*.whl")
    shutil.copy(wheel, folder)
    return wheel.name
"""


def make_project(folder: Path, name: str, *, files: Mapping[str, str] | None = None) -> Path:
    """A folder from which installers build a wheel, with nothing but what lies in it."""
    folder.mkdir()
    make_wheel(folder, name, files=files)
    (folder / "backend.py").write_text(_BACKEND, encoding="utf-8")
    table = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    about = f'[project]\nname = "{name}"\nversion = "1.0"\n'
    (folder / "pyproject.toml").write_text(table + about, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "maker", ["venv", "uv", *(pytest.param(name, marks=long_trial) for name in MAKERS[2:])]
)
def test_folders_and_commits_are_built_looked_at_and_locked(
    make: Callable[[str], Place], tmp_path: Path, maker: str
) -> None:
    place = make(maker)
    local = make_project(tmp_path / "local", "acme-local")
    served = make_project(tmp_path / "served", "acme-git", files={"acme.pth": "import os\n"})
    git = ["git", "-C", str(served), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "First"]):
        subprocess.run([*git, *command], check=True)
    commit = place.run(*git, "rev-parse", "HEAD").out.strip()
    # The folder stands for a server that has it.
    instead = {"KEY_0": f"url.file://{served}.insteadOf", "VALUE_0": "https://git.example/acme"}
    with_git = replace(
        place,
        variables={
            **place.variables,
            "GIT_CONFIG_COUNT": "1",
            **{f"GIT_CONFIG_{key}": value for key, value in instead.items()},
        },
    )
    address = f"acme-git @ git+https://git.example/acme@{commit}"
    added = with_git.host("plugins", "add", address, str(local), "--json")
    assert added.code == 0, added.err + added.out
    assert [each["name"] for each in added.json["changes"]] == ["acme-git", "acme-local"]
    assert ["brings acme.pth" in each["message"] for each in added.json["objections"]] == [True]
    lock = (place.home / "pylock.toml").read_text(encoding="utf-8")
    assert f'commit-id = "{commit}"' in lock
    assert place.host("plugins", "verify").code == 0
    assert with_git.host("plugins", "sync", "--yes").out == "Nothing had to be changed.\n"


@needs_uv
def test_a_project_has_a_list_and_a_lock_of_its_own(
    place: Place, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(index.folder, "acme-one")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert place.host("plugins", "add", "acme-one", "--project", "--yes").code == 0
    assert {path.name for path in folder.iterdir()} == {"plugins.txt", "pylock.toml"}
    assert not (place.home / "plugins.txt").exists()


@needs_uv
def test_what_others_need_by_an_extra_stays_when_one_goes(place: Place, index: Index) -> None:
    for name in ("shared-lib", "fast-lib", "lone-lib"):
        make_wheel(index.folder, name, is_plugin=False)
    make_wheel(index.folder, "acme-one", requires=["shared-lib", "fast-lib; extra == 'fast'"])
    make_wheel(index.folder, "acme-two", requires=["shared-lib", "lone-lib"])
    place.host("plugins", "add", "acme-one[fast]", "acme-two", "--yes")
    removed = place.host("plugins", "remove", "acme-two", "--yes")
    assert removed.out.splitlines() == ["- acme-two 1.0", "- lone-lib 1.0", "Done."]
    assert place.host("plugins", "verify").code == 0


# What speaks against it -------------------------------------------------------------------------


@pytest.mark.parametrize("maker", ["venv", "uv"])
def test_a_conflict_names_both_sides_and_changes_nothing(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(index.folder, "needed-lib", version, is_plugin=False)
    make_wheel(index.folder, "acme-one", requires=["needed-lib<2"])
    make_wheel(index.folder, "acme-two", requires=["needed-lib>=2"])
    place = make(maker)
    before = place.files()
    refused = place.host("plugins", "add", "acme-one", "acme-two", "--yes")
    assert refused.code == 1
    for word in ("acme-one", "acme-two", "needed-lib<2", "needed-lib>=2"):
        assert word in refused.err.replace("\n", " ")
    assert place.files() == before
    assert not (place.home / "plugins.txt").exists()


BAD_DESCRIPTORS: dict[str, tuple[Any, str]] = {
    "unsound": ({"api": ">=1,<2", "entries": [{"entry": 1}]}, "entries"),
    "another contract": (
        {**full("acme_bad", "feature", "acme-bad"), "api": ">=9,<10"},
        "made for contract >=9,<10",
    ),
    "a taken name": (full("acme_bad", "provider", "echo"), "claimed by"),
}


@needs_uv
@pytest.mark.parametrize("case", BAD_DESCRIPTORS)
def test_a_plugin_that_could_not_be_used_is_not_installed(
    place: Place, index: Index, case: str
) -> None:
    descriptor, said = BAD_DESCRIPTORS[case]
    make_wheel(index.folder, "acme-bad", descriptor=descriptor)
    before = place.files()
    refused = place.host("plugins", "add", "acme-bad", "--json")
    assert refused.code == 1
    assert not refused.json["done"]
    assert any(said in each["message"] for each in refused.json["objections"])
    assert place.files() == before


@pytest.mark.parametrize("maker", ["uv", "venv"])
def test_what_is_young_is_refused(make: Callable[[str], Place], index: Index, maker: str) -> None:
    place = make(maker)
    young = make_wheel(index.folder, "acme-young")
    now = datetime.now(timezone.utc)
    index.uploaded[young.name] = (now - timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    refused = place.host("plugins", "add", "acme-young", "--yes")
    assert refused.code == 1
    assert "1.0 is 5 hours old" in refused.out
    assert place.host("plugins", "add", "acme-young", "--cooldown", "0", "--yes").code == 0


@pytest.mark.parametrize("maker", ["uv", "venv"])
def test_what_its_author_withdrew_is_refused_unless_it_is_named(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    place = make(maker)
    withdrawn = make_wheel(index.folder, "needed-lib", is_plugin=False)
    index.yanked.add(withdrawn.name)
    make_wheel(index.folder, "acme-one", requires=["needed-lib==1.0"])
    refused = place.host("plugins", "add", "acme-one", "--yes")
    assert refused.code == 1
    assert "yanked" in refused.out + refused.err
    assert "acme_one-1.0" not in place.freeze()
    assert place.host("plugins", "add", "acme-one", "needed-lib==1.0", "--yes").code == 0


@needs_uv
def test_what_python_runs_at_every_start_is_told(place: Place, index: Index) -> None:
    make_wheel(index.folder, "acme-one", files={"acme.pth": "import os\n"}, scripts=["acme"])
    told = place.host("plugins", "add", "acme-one", "--dry-run")
    assert "brings acme.pth, which Python runs whenever it starts" in told.out
    assert "brings the commands acme" in told.out
    assert "acme_one-1.0" not in place.freeze()


@each_maker
def test_a_package_that_cannot_be_imported_breaks_nothing_else(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    place = make(maker)
    make_wheel(index.folder, "acme-poison", files={"acme_poison/plugin.py": POISON})
    assert place.host("plugins", "add", "acme-poison", "--yes").code == 0
    assert place.host("run", "--provider", "echo", "--model", "echo-1", "hello").code == 0
    assert "acme-poison" in place.host("plugins", "doctor").out


@each_maker
def test_a_wheel_that_changed_under_its_version_is_refused(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    place = make(maker)
    make_wheel(index.folder, "acme-one")
    place.host("plugins", "add", "acme-one", "--yes")
    make_wheel(index.folder, "acme-one", files={"acme_one/more.py": "import os\n"})
    # As if the environment had been made anew on another machine.
    (packages,) = (place.prefix / "lib").glob("python*/site-packages")
    for gone in packages.glob("acme_one*"):
        shutil.rmtree(gone)
    for cache in ("UV_CACHE_DIR", "XDG_CACHE_HOME"):
        shutil.rmtree(place.variables[cache], ignore_errors=True)
    refused = place.host("plugins", "sync", "--frozen", "--yes")
    assert refused.code == 1
    assert "hash" in refused.err.lower()
    assert "acme_one-1.0" not in place.freeze()


@each_maker
def test_an_index_that_is_gone_changes_nothing(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    place = make(maker)
    make_wheel(index.folder, "acme-one")
    place.host("plugins", "add", "acme-one", "--yes")
    before = place.files()
    index.is_down = True
    failed = place.host("plugins", "add", "acme-two", "--yes")
    assert failed.code == 1
    assert "Traceback" not in failed.err
    assert "nothing was changed" in failed.err
    # What needs nobody works: to look, to compare, and to find that there is nothing to do.
    assert place.host("plugins", "verify").code == 0
    assert place.host("plugins", "sync", "--frozen", "--yes").out == "Nothing had to be changed.\n"
    assert place.files() == before
    assert place.host("plugins", "remove", "acme-one", "--yes").out == "- acme-one 1.0\nDone.\n"


@each_maker
def test_a_connection_that_is_lost_in_the_middle_changes_nothing(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    place = make(maker)
    make_wheel(index.folder, "acme-one", files={"acme_one/data.txt": "x" * 200_000})
    index.cut.add("acme_one-1.0-py3-none-any.whl")
    before = place.files()
    failed = place.host("plugins", "add", "acme-one", "--yes")
    assert failed.code == 1
    assert "Traceback" not in failed.err
    assert place.files() == before
    assert not (place.home / "plugins.txt").exists()
    index.cut.clear()
    assert place.host("plugins", "add", "acme-one", "--yes").code == 0


@needs_uv
def test_nobody_is_asked_who_is_not_there(place: Place, index: Index) -> None:
    make_wheel(index.folder, "acme-one")
    refused = place.host("plugins", "add", "acme-one")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert "acme_one-1.0" not in place.freeze()


# Nothing half done ------------------------------------------------------------------------------


@pytest.mark.parametrize("maker", ["venv", "uv"])
def test_an_installation_that_fails_in_the_middle_is_undone(
    make: Callable[[str], Place], index: Index, maker: str
) -> None:
    for name in ("acme-one", "acme-two"):
        make_wheel(index.folder, name)
    place = make(maker)
    place.host("plugins", "add", "acme-one", "--yes")
    make_wheel(index.folder, "acme-one", "2.0")
    # A folder where a file of the second package must go.
    (packages,) = (place.prefix / "lib").glob("python*/site-packages")
    (packages / "acme_two" / "plugin.py").mkdir(parents=True)
    (packages / "acme_two" / "plugin.py" / "mine.txt").touch()
    before = place.files()
    failed = place.host("plugins", "add", "acme-one>=2", "acme-two", "--yes")
    assert failed.code == 1
    assert place.files() == before
    assert "cannot be carried out" in failed.err
    assert "Traceback" not in failed.err


@each_maker
@pytest.mark.parametrize("point", range(10))
def test_a_killed_change_is_undone_or_done(
    make: Callable[[str], Place], index: Index, maker: str, point: int
) -> None:
    place = make(maker)
    names = [f"acme-{number}" for number in range(4)]
    for name in names:
        files = {f"{name.replace('-', '_')}/part{each}.py": "" for each in range(20)}
        make_wheel(index.folder, name, files=files)
    before = place.files()
    steps = ("resolving", "fetching", "installing")
    with place.start("plugins", "add", *names, "--yes") as process:
        assert process.stderr is not None
        if point < 3:
            for line in process.stderr:
                if steps[point].encode() in line:
                    break
        else:
            for line in process.stderr:
                if b"installing" in line:
                    break
            (packages,) = (place.prefix / "lib").glob("python*/site-packages")
            while process.poll() is None and len([*packages.glob("acme_*")]) < point - 2:
                pass
        process.kill()
    after = place.host("plugins", "sync", "--yes")
    assert after.code == 0, after.err
    wanted = (place.home / "plugins.txt").exists()
    assert place.files() == before or wanted
    if wanted:
        assert place.host("plugins", "verify").code == 0
    assert not [*place.prefix.glob("agent-host-change/*")]


# Verifying --------------------------------------------------------------------------------------


@needs_uv
def test_verifying_finds_what_was_changed(place: Place, index: Index) -> None:
    make_wheel(index.folder, "acme-one")
    place.host("plugins", "add", "acme-one", "--yes")
    (packages,) = (place.prefix / "lib").glob("python*/site-packages")
    (packages / "acme_one" / "plugin.py").write_text("import os\n", encoding="utf-8")
    (packages / "acme_one" / "agent_plugin.json").unlink()
    (packages / "planted.pth").write_text("import os\n", encoding="utf-8")
    (packages / "sitecustomize.py").write_text("\n", encoding="utf-8")
    with open(packages / "acme_one-1.0.dist-info" / "RECORD", "a", encoding="utf-8") as record:
        record.write("../../../../outside.txt,,\n")
    found = place.host("plugins", "verify", "--json")
    assert found.code == 1
    said = {Path(each["file"]).name: each["message"] for each in found.json["found"]}
    assert said["plugin.py"] == "is not the file that was installed"
    assert "cannot be read" in said["agent_plugin.json"]
    assert said["outside.txt"] == "lies outside of the environment"
    for name in ("planted.pth", "sitecustomize.py"):
        assert "is run by Python whenever it starts" in said[name]
    outside = place.prefix.parent / "outside.txt"
    outside.touch()
    assert place.host("plugins", "remove", "acme-one", "--yes").code == 0
    assert outside.exists()


@needs_uv
def test_a_list_of_files_that_was_rewritten_is_found(place: Place, index: Index) -> None:
    make_wheel(index.folder, "acme-one")
    place.host("plugins", "add", "acme-one", "--yes")
    (packages,) = (place.prefix / "lib").glob("python*/site-packages")
    record = packages / "acme_one-1.0.dist-info" / "RECORD"
    lines = record.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "plugin.py" not in line]
    record.write_text("\n".join(kept) + "\n", encoding="utf-8")
    found = place.host("plugins", "verify", "--json").json["found"]
    assert [each["message"] for each in found] == [
        "1.0 is another build than the one that is locked"
    ]


# Environments and lists -------------------------------------------------------------------------


def test_a_python_of_the_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(DistributionError, match="a Python of the system") as caught:
        find_environment()
    assert "uv tool install agent-host-core" in str(caught.value.hint)


def test_a_conda_environment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(DistributionError, match="belongs to conda"):
        find_environment()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("git+https://example.com/a", "does not say how the distribution is called"),
        ("a @ git+https://example.com/a@main", "is not pinned"),
        ("not a name", "is no requirement"),
        ("./nowhere", "there is no project in nowhere"),
        ("nowhere.whl", "there is no wheel nowhere.whl"),
    ],
)
def test_what_cannot_be_wanted_is_refused(text: str, said: str) -> None:
    with pytest.raises(DistributionError, match=said) as caught:
        parse_wanted(text)
    assert caught.value.hint


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "plugins.txt"
    file.write_text("fine\n\nnot a name\n", encoding="utf-8")
    with pytest.raises(LockError, match=r"plugins\.txt, line 3"):
        _ = read_wanted(file).by_name


NAMES = st.from_regex(r"[a-z]{1,8}(-[a-z]{1,8})?", fullmatch=True)
LINES = st.lists(st.one_of(NAMES, st.just(""), NAMES.map(lambda name: f"# {name}")), max_size=8)


@given(LINES, st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_adding_and_removing_keeps_all_other_lines(lines: list[str], names: list[str]) -> None:
    listed = WantedList(Path("plugins.txt"), tuple(lines))
    added = listed.with_wanted([parse_wanted(name) for name in names])
    assert {*names} <= {*added.by_name}
    left = added.without_names(names)
    assert [*left.lines] == [line for line in lines if line not in names]


def test_the_lock_is_what_other_tools_read(tmp_path: Path) -> None:
    from agent_host.distributions.pins import Pin, read_lock, write_lock

    pins = [
        Pin("b", "1.0", "wheel", "https://example.com/b-1.0-py3-none-any.whl", sha256="0" * 64),
        Pin("a", "2.0", "git", "https://example.com/a", commit="1" * 40),
        Pin("c", "3.0", "archive", "https://example.com/c-3.0-py3-none-any.whl", sha256="2" * 64),
        Pin("d", "4.0", "folder", tmp_path.as_uri()),
        Pin(
            "e",
            "5.0",
            "wheel",
            "https://example.com/e-5.0-py3-none-any.whl",
            sha256="3" * 64,
            uploaded=datetime(2026, 1, 2, 3, 4, 5, 678900, timezone.utc),
            contents="4" * 64,
            publisher='GitHub "acme"\\é\U0001f600\n\x7f/acme',
        ),
    ]
    file = tmp_path / "pylock.toml"
    write_lock(file, pins)
    assert read_lock(file) == {pin.name: pin for pin in pins}
