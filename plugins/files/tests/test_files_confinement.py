"""No way out of the root: by path, by link, by device, or by a race."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import ToolArgumentsError, ToolError
from agent_host_files.folders import Folder, HandleFolder, ResolvedFolder, open_root
from agent_host_files.paths import WorkspacePath, parse_file, parse_folder
from agent_host_files.plugin import FilesTools
from agent_host_files.workspace import Workspace

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and devices of POSIX")

SECRET = "the secret outside"
INSIDE = "harmless"

ESCAPES = [
    # Upwards.
    "..",
    "../outside/secret.txt",
    "../../etc/passwd",
    "inside/../../outside/secret.txt",
    "inside/../inside/../../outside/secret.txt",
    "./../outside/secret.txt",
    "inside/..",
    "inside/deep/../../../outside/secret.txt",
    "..//outside//secret.txt",
    "../outside",
    "inside/./../../outside/secret.txt",
    # Absolute, in every way of writing it.
    "{outside}/secret.txt",
    "/{outside}/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/../outside/secret.txt",
    "/proc/self/environ",
    "/dev/zero",
    "/dev/fd/0",
    "~/secret.txt",
    "~root/.bashrc",
    "file:///etc/passwd",
    # As other systems write it.
    "..\\outside\\secret.txt",
    "inside\\..\\..\\outside\\secret.txt",
    "C:/Windows/win.ini",
    "c:secret.txt",
    "C:\\Windows\\win.ini",
    "\\\\server\\share\\secret.txt",
    "//server/share/secret.txt",
    "\\\\?\\C:\\secret.txt",
    # Look-alikes and codes for the above.
    "\u2025/outside/secret.txt",
    "\uff0e\uff0e/outside/secret.txt",
    "\u2024\u2024/outside/secret.txt",
    "..\u2215outside\u2215secret.txt",
    "..\uff0foutside\uff0fsecret.txt",
    ".\u200b./outside/secret.txt",
    ".\u0307./outside/secret.txt",
    "%2e%2e/outside/secret.txt",
    "..%2foutside%2fsecret.txt",
    "..%c0%afoutside/secret.txt",
    "$HOME/secret.txt",
    "${{HOME}}/secret.txt",
    ".. /outside/secret.txt",
    ".../outside/secret.txt",
    " ../outside/secret.txt",
    "..",
    "../",
    "../.",
    # What breaks a path in two, or is none.
    "",
    " ",
    ".",
    "./",
    "inside/a.txt\0/../../outside/secret.txt",
    "\0",
    "../outside/secret.txt\0.txt",
    "a\n../outside/secret.txt",
    "\udce2../outside/secret.txt",
    "x" * 300,
    "x/" * 5000,
    "a/" * 150 + "b",
    "../" * 2000 + "etc/passwd",
    # Through links that are there.
    "to_file",
    "to_folder",
    "to_folder/secret.txt",
    "to_folder/new.txt",
    "to_folder/.",
    "to_folder/",
    "to_folder/deeper/secret.txt",
    "to_parent/outside/secret.txt",
    "to_root/etc/passwd",
    "to_proc/root/etc/passwd",
    "to_proc/cwd",
    "to_proc/environ",
    "chain",
    "chain/secret.txt",
    "inside/up",
    "inside/up/outside/secret.txt",
    "inside/deep/to_folder/secret.txt",
    "loop",
    "loop/secret.txt",
    "dangling",
    "dangling/secret.txt",
    "to_itself/to_itself/to_folder/secret.txt",
    # Devices and the like.
    "to_zero",
    "to_stdin",
    "pipe",
    "socket",
    "to_pipe",
]


@contextmanager
def jail(base: Path) -> Iterator[tuple[Path, Path]]:
    """A root full of traps, beside a folder that must stay untouched."""
    root, outside = base / "root", base / "outside"
    (root / "inside" / "deep").mkdir(parents=True)
    (outside / "deeper").mkdir(parents=True)
    (root / "inside" / "a.txt").write_text(INSIDE)
    for folder in (outside, outside / "deeper"):
        (folder / "secret.txt").write_text(SECRET)
    links: dict[str, str | Path] = {
        "to_file": outside / "secret.txt",
        "to_folder": outside,
        "to_parent": "..",
        "to_root": "/",
        "to_proc": "/proc/self",
        "chain": "chain2",
        "chain2": "inside/chain3",
        "inside/chain3": "../to_folder",
        "inside/up": "../..",
        "inside/deep/to_folder": outside,
        "loop": "loop2",
        "loop2": "loop",
        "dangling": outside / "not_yet",
        "to_itself": ".",
        "to_zero": "/dev/zero",
        "to_stdin": "/dev/stdin",
        "to_pipe": "pipe",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    # A relative name, since the names of sockets may not be long.
    here = os.open(".", os.O_RDONLY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.chdir(root)
        listener.bind("socket")
    finally:
        os.fchdir(here)
        os.close(here)
    with listener:
        yield root, outside


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    with jail(tmp_path_factory.mktemp("jail")) as made:
        yield made


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    """Everything there is to change about a folder: names, contents, modes."""
    return {
        str(path.relative_to(folder)): (
            path.read_text() if path.is_file() else "",
            path.lstat().st_mode,
        )
        for path in [folder, *folder.rglob("*")]
    }


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


ATTEMPTS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "read": lambda path: ("read_file", {"path": path}),
    "list": lambda path: ("list_files", {"path": path, "depth": 9}),
    "search": lambda path: ("search_files", {"path": path, "pattern": "."}),
    "write": lambda path: ("write_file", {"path": path, "content": "x"}),
    "add": lambda path: ("apply_patch", patch(f"*** Add File: {path}", "+x")),
    "update": lambda path: (
        "apply_patch",
        patch(f"*** Update File: {path}", "@@", f"-{SECRET}", "+x"),
    ),
    "delete": lambda path: ("apply_patch", patch(f"*** Delete File: {path}")),
    "move": lambda path: (
        "apply_patch",
        patch("*** Update File: inside/a.txt", f"*** Move to: {path}"),
    ),
}


def folder_by_handle(root: Path) -> Folder:
    return open_root(str(root))


def folder_by_path(root: Path) -> Folder:
    return ResolvedFolder(str(root))


BOTH = pytest.mark.parametrize("opened", [folder_by_handle, folder_by_path])


def state_of(root: Path, opened: Callable[[Path], Folder]) -> dict[str, Any]:
    plugin = FilesTools()
    state = plugin.init({"root": str(root), "max_search_seconds": 30})
    state["workspace"].close()
    state["workspace"] = Workspace(opened(root))
    return state


def shown(error: BaseException) -> str:
    found = str(error)
    while error.__cause__ is not None:
        error = error.__cause__
        found += str(error)
    return found


def test_there_are_enough_attempts_and_this_platform_has_handles(tmp_path: Path) -> None:
    assert len(set(ESCAPES)) >= 80
    root = folder_by_handle(tmp_path)
    assert isinstance(root, HandleFolder)
    root.close()


@BOTH
@pytest.mark.parametrize("attempt", ["read", "list", "search"])
@pytest.mark.parametrize("path", sorted(set(ESCAPES)), ids=lambda path: ascii(path)[:60])
def test_nothing_outside_can_be_seen(
    traps: tuple[Path, Path], opened: Callable[[Path], Folder], attempt: str, path: str
) -> None:
    root, outside = traps
    tool, payload = ATTEMPTS[attempt](path.format(outside=outside))
    plugin, state = FilesTools(), state_of(root, opened)
    try:
        seen = plugin.execute_tool(tool, payload, state)["text"]
        # What may be listed or searched is the root itself, under some of its names.
        assert attempt != "read"
        assert parse_folder(payload["path"]).parts == ()
    except ToolError as error:
        seen = shown(error)
        given = payload["path"]
        assert str(root) not in seen.replace(given, "")
    finally:
        plugin.close(state)
    assert SECRET not in seen
    assert "root:" not in seen


@pytest.mark.parametrize("path", sorted(set(ESCAPES)), ids=lambda path: ascii(path)[:60])
def test_nothing_outside_can_be_changed(tmp_path: Path, path: str) -> None:
    for opened in (folder_by_handle, folder_by_path):
        for attempt in ("write", "add", "update", "delete", "move"):
            base = tmp_path / opened.__name__ / attempt
            base.mkdir(parents=True)
            with jail(base) as (root, outside):
                before = contents(outside)
                above = sorted(os.listdir(base))
                tool, payload = ATTEMPTS[attempt](path.format(outside=outside))
                plugin, state = FilesTools(), state_of(root, opened)
                told = ""
                try:
                    plugin.execute_tool(tool, payload, state)
                except ToolError as error:
                    told = shown(error)
                finally:
                    plugin.close(state)
                assert str(root) not in told
                assert contents(outside) == before
                assert sorted(os.listdir(base)) == above
                # Links are not replaced either, so that no change comes as a surprise.
                assert os.readlink(root / "to_file") == str(outside / "secret.txt")


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["..", ".", "", "a", "inside", "to_folder", "to_parent", "~", "secret.txt"])
        | st.text(max_size=5),
        max_size=8,
    ),
    st.sampled_from(["/", "//", "\\", "/./"]),
)
def test_a_parsed_path_has_only_plain_names(names: list[str], separator: str) -> None:
    given = separator.join(names)
    with suppress(ToolArgumentsError):
        for part in parse_folder(given).parts:
            assert part not in ("", ".", "..")
            assert not set(part) & {"/", "\\", "\0"}
    with suppress(ToolArgumentsError):
        assert parse_file(given).parts


@BOTH
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0b", "../outside"])
def test_a_folder_takes_only_one_plain_name(
    traps: tuple[Path, Path], opened: Callable[[Path], Folder], name: str
) -> None:
    folder = opened(traps[0])
    try:
        for use in (folder.child, folder.stat, folder.open_existing, folder.remove):
            with pytest.raises((OSError, ValueError)):
                use(name)
        with pytest.raises((OSError, ValueError)):
            folder.replace("inside", name)
    finally:
        folder.close()


def test_a_walk_meets_links_but_does_not_follow_them(traps: tuple[Path, Path]) -> None:
    plugin, state = FilesTools(), state_of(traps[0], folder_by_handle)
    try:
        listing = plugin.execute_tool("list_files", {"depth": 50}, state)["text"].split("\n")
        found = plugin.execute_tool("search_files", {"pattern": ".*"}, state)["text"]
    finally:
        plugin.close(state)
    assert {"inside/", "inside/a.txt", "to_folder@", "loop@", "pipe?", "socket?"} <= set(listing)
    assert not any(line.startswith("to_folder/") for line in listing)
    assert found == f"inside/a.txt:1: {INSIDE}"


def test_a_hard_link_is_a_file_like_any_other(tmp_path: Path) -> None:
    # The file system knows no original; who may link a file here could as well have copied it.
    (tmp_path / "root").mkdir()
    (tmp_path / "outside.txt").write_text("shared")
    os.link(tmp_path / "outside.txt", tmp_path / "root" / "linked.txt")
    plugin, state = FilesTools(), state_of(tmp_path / "root", folder_by_handle)
    try:
        read = plugin.execute_tool("read_file", {"path": "linked.txt"}, state)
        plugin.execute_tool("write_file", {"path": "linked.txt", "content": "mine"}, state)
    finally:
        plugin.close(state)
    assert read["text"] == "shared"
    # A write replaces the name inside the root and leaves the other file alone.
    assert (tmp_path / "outside.txt").read_text() == "shared"
    assert (tmp_path / "root" / "linked.txt").read_text() == "mine"


Maker = Callable[[Path], object]


@contextmanager
def swapping(name: Path, *makers: Maker) -> Iterator[Counter[str]]:
    """Another thread that puts what ``makers`` make in turn in the place of ``name``.

    Whatever is there is moved out of the way first, also what the code under test has put there.
    Counts how often each was in place.
    """
    turns: Counter[str] = Counter()
    stop = threading.Event()
    aside = name.parent.parent / "aside"
    aside.mkdir()

    def swap() -> None:
        for number in count():
            for maker in makers:
                if stop.is_set():
                    return
                fresh = aside / f"{maker.__name__}{number}"
                maker(fresh)
                with suppress(FileNotFoundError):
                    os.rename(name, aside / f"{maker.__name__}{number}.old")
                with suppress(OSError):
                    os.rename(fresh, name)
                    turns[maker.__name__] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield turns
    finally:
        stop.set()
        thread.join()


def race_ground(base: Path) -> tuple[Path, Path, Maker, Maker]:
    """A root, a folder outside, and two makers of folders to swap: honest, and a link outside."""
    root, outside = base / "root", base / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "data.txt").write_text(SECRET)

    def honest(path: Path) -> None:
        path.mkdir()
        (path / "data.txt").write_text(INSIDE)

    def trap(path: Path) -> None:
        path.symlink_to(outside)

    return root, outside, honest, trap


def rounds_until(rounds: int, enough: Callable[[], bool]) -> Iterator[int]:
    """At least ``rounds``, and more until the race was really on, but not for ever."""
    for number in range(rounds * 50):
        if number >= rounds and enough():
            return
        yield number


def raced(turns: Counter[str], outcomes: Collection[str], *wanted: str) -> bool:
    """Whether both sides were in place often enough and each outcome was seen."""
    often = min(turns["honest"], turns["trap"]) > 50
    return often and all(outcome in outcomes for outcome in wanted)


def test_reading_while_a_parent_is_swapped_for_a_link_never_leaks(tmp_path: Path) -> None:
    root, _, honest, trap = race_ground(tmp_path)
    workspace = Workspace(folder_by_handle(root))
    outcomes: Counter[str] = Counter()
    with swapping(root / "target", honest, trap) as turns:
        for _ in rounds_until(1500, lambda: raced(turns, outcomes, "link")):
            try:
                data = workspace.read(parse_file("target/data.txt"), 1000).data
                outcomes[data.decode()] += 1
            except ToolError as error:
                outcomes["link" if "symbolic link" in str(error) else "missing"] += 1
    workspace.close()
    assert min(turns["honest"], turns["trap"]) > 50
    assert outcomes["link"] > 0
    assert set(outcomes) <= {INSIDE, "", "link", "missing"}


def test_writing_while_a_parent_is_swapped_for_a_link_never_reaches_out(tmp_path: Path) -> None:
    root, outside, honest, trap = race_ground(tmp_path)
    workspace = Workspace(folder_by_handle(root))
    outcomes: Counter[str] = Counter()
    before = contents(outside)
    with swapping(root / "target", honest, trap) as turns:
        for _ in rounds_until(300, lambda: raced(turns, outcomes, "done", "link")):
            for change in (
                lambda: workspace.write(parse_file("target/new.txt"), b"x"),
                lambda: workspace.write(parse_file("target/sub/new.txt"), b"x"),
                lambda: workspace.write(parse_file("target/data.txt"), b"x"),
                lambda: workspace.remove(parse_file("target/data.txt")),
            ):
                try:
                    change()
                    outcomes["done"] += 1
                except ToolError as error:
                    outcomes["link" if "symbolic link" in str(error) else "other"] += 1
    workspace.close()
    assert min(turns["honest"], turns["trap"]) > 50
    assert outcomes["done"] > 0
    assert outcomes["link"] > 0
    assert contents(outside) == before


def test_a_final_name_swapped_for_a_link_is_neither_read_nor_written_through(
    tmp_path: Path,
) -> None:
    root, outside, *_ = race_ground(tmp_path)
    before = contents(outside)

    def honest(path: Path) -> None:
        path.write_text(INSIDE)

    def trap(path: Path) -> None:
        path.symlink_to(outside / "data.txt")

    workspace = Workspace(folder_by_handle(root))
    target = WorkspacePath(("target",))
    read: set[str] = set()
    with swapping(root / "target", honest, trap) as turns:
        for _ in rounds_until(300, lambda: raced(turns, read, INSIDE)):
            for _ in range(3):
                with suppress(ToolError):
                    read.add(workspace.read(target, 1000).data.decode())
            with suppress(ToolError):
                workspace.write(target, b"written")
    workspace.close()
    assert min(turns["honest"], turns["trap"]) > 50
    assert INSIDE in read
    assert read <= {INSIDE, "written"}
    assert contents(outside) == before


def test_a_search_while_folders_are_swapped_for_links_never_leaks(tmp_path: Path) -> None:
    root, _, honest, trap = race_ground(tmp_path)
    (root / "steady.txt").write_text(INSIDE)
    plugin, state = FilesTools(), state_of(root, folder_by_handle)
    with swapping(root / "target", honest, trap) as turns:
        found = [
            plugin.execute_tool("search_files", {"pattern": "."}, state)["text"] for _ in range(10)
        ]
    plugin.close(state)
    assert turns["trap"] > 0
    assert all(f"steady.txt:1: {INSIDE}" in text for text in found)
    assert not any(SECRET in text for text in found)


def test_a_root_that_is_moved_away_stays_the_root(tmp_path: Path) -> None:
    root, outside, *_ = race_ground(tmp_path)
    workspace = Workspace(folder_by_handle(root))
    root.rename(tmp_path / "moved")
    root.symlink_to(outside)
    with pytest.raises(ToolError, match="does not exist"):
        workspace.read(parse_file("data.txt"), 1000)
    workspace.write(parse_file("new.txt"), b"x")
    workspace.close()
    assert (tmp_path / "moved" / "new.txt").read_bytes() == b"x"
    assert sorted(os.listdir(outside)) == ["data.txt"]


def test_closing_a_workspace_under_a_running_call_redirects_nothing(tmp_path: Path) -> None:
    root, outside, *_ = race_ground(tmp_path)
    before = contents(outside)
    for _ in range(30):
        workspace = Workspace(folder_by_handle(root))

        def write(workspace: Workspace = workspace) -> None:
            with suppress(ToolError):
                for number in range(20):
                    workspace.write(WorkspacePath(("honest", f"{number % 3}.txt")), b"x")

        thread = threading.Thread(target=write)
        thread.start()
        workspace.close()
        # These get the number that the closed handle had.
        reused = [os.open(outside, os.O_RDONLY) for _ in range(4)]
        thread.join()
        for descriptor in reused:
            os.close(descriptor)
    assert contents(outside) == before
