"""Old or new, never half: failures midway, and a process that is killed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_hookspecs import ToolError
from agent_host_files.changing import perform, plan
from agent_host_files.folders import HandleFolder, open_root
from agent_host_files.patching import parse
from agent_host_files.paths import parse_file
from agent_host_files.workspace import Workspace

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs folder handles and signals")


@dataclass
class Fault:
    """An operation that fails the ``after``-th time, counted from 0, or from then on."""

    operation: str
    after: int
    lasting: bool = False

    def meet(self, operation: str) -> None:
        if operation == self.operation:
            self.after -= 1
            if self.after == -1 or (self.lasting and self.after < 0):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FaultyFolder(HandleFolder):
    """A real folder on a disk that fails as told."""

    def __init__(self, descriptor: int, fault: Fault) -> None:
        super().__init__(descriptor)
        self.fault = fault

    def duplicate(self) -> FaultyFolder:
        return FaultyFolder(os.dup(self._descriptor), self.fault)

    def child(self, name: str) -> FaultyFolder:
        return FaultyFolder(super().child(name)._descriptor, self.fault)

    def create(self, name: str, mode: int) -> int:
        self.fault.meet("create")
        return super().create(name, mode)

    def replace(self, source: str, target: str) -> None:
        self.fault.meet("replace")
        super().replace(source, target)

    def remove(self, name: str) -> None:
        # Our own temporary files can always go.
        if not name.startswith(".agent-host-"):
            self.fault.meet("remove")
        super().remove(name)


def faulty(root: Path, fault: Fault) -> Workspace:
    return Workspace(FaultyFolder(os.open(root, os.O_RDONLY), fault))


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mode,
        )
        for path in root.rglob("*")
    }


PATCH = """*** Begin Patch
*** Update File: a
@@
-a
+A
*** Delete File: b
*** Add File: new/deep/c
+c
*** Update File: d
*** Move to: moved/d
@@
-d
+D
*** Update File: e
@@
-e
+E
*** End Patch"""


def start(root: Path) -> None:
    for name in "abde":
        (root / name).write_text(f"{name}\n")
        (root / name).chmod(0o640)


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault("create", after, lasting=True) for after in range(4)),
        *(Fault("replace", after) for after in range(4)),
        *(Fault("remove", after) for after in range(2)),
    ],
    ids=lambda fault: f"{fault.operation} {fault.after}",
)
def test_a_patch_that_fails_midway_is_taken_back(tmp_path: Path, fault: Fault) -> None:
    start(tmp_path)
    before = tree(tmp_path)
    workspace = faulty(tmp_path, replace(fault))
    changes = plan(workspace, parse(PATCH), 1000)
    with pytest.raises(ToolError, match="the disk is full; nothing was changed"):
        perform(workspace, changes)
    workspace.close()
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "fault", [Fault("create", 4), Fault("replace", 4), Fault("remove", 2)], ids=str
)
def test_the_same_patch_is_done_when_nothing_fails(tmp_path: Path, fault: Fault) -> None:
    start(tmp_path)
    workspace = faulty(tmp_path, replace(fault))
    perform(workspace, plan(workspace, parse(PATCH), 1000))
    workspace.close()
    files = {name: data for name, (data, _) in tree(tmp_path).items() if data}
    assert files == {"a": b"A\n", "e": b"E\n", "moved/d": b"D\n", "new/deep/c": b"c\n"}
    assert (tmp_path / "moved" / "d").stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_taken_back_is_named(tmp_path: Path) -> None:
    start(tmp_path)
    workspace = faulty(tmp_path, Fault("replace", 1, lasting=True))
    changes = plan(workspace, parse(PATCH), 1000)
    with pytest.raises(
        ToolError, match=r"'new/deep/c' .*; and these could not be restored: 'b', 'a'"
    ):
        perform(workspace, changes)
    workspace.close()
    assert sorted(os.listdir(tmp_path)) == ["a", "d", "e"]


def test_a_file_that_vanishes_after_the_plan_stops_the_patch(tmp_path: Path) -> None:
    start(tmp_path)
    workspace = Workspace(open_root(str(tmp_path)))
    changes = plan(workspace, parse(PATCH), 1000)
    (tmp_path / "d").unlink()
    before = tree(tmp_path)
    with pytest.raises(ToolError, match=r"'d' does not exist.*; nothing was changed"):
        perform(workspace, changes)
    workspace.close()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("operation", ["create", "replace"])
def test_a_failed_write_leaves_no_trace(tmp_path: Path, operation: str) -> None:
    (tmp_path / "a").write_text("old")
    before = tree(tmp_path)
    workspace = faulty(tmp_path, Fault(operation, 0))
    with pytest.raises(ToolError, match="the disk is full"):
        workspace.write(parse_file("new/deep/file"), b"x")
    workspace.close()
    assert tree(tmp_path) == before


WRITER = textwrap.dedent(
    """
    import sys
    from agent_host_files.paths import parse_file
    from agent_host_files.workspace import Workspace

    workspace = Workspace.at(sys.argv[1])
    while True:
        for byte in (b"1", b"2"):
            workspace.write(parse_file("file"), byte * 3_000_000)
            sys.stdout.write(".")
            sys.stdout.flush()
    """
)


@pytest.mark.parametrize("writes", [1, 2, 3, 5, 8])
def test_a_process_killed_while_it_writes_leaves_a_whole_file(tmp_path: Path, writes: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(writes) == b"." * writes
        process.kill()
        assert process.wait() == -signal.SIGKILL
    data = (tmp_path / "file").read_bytes()
    assert len(data) == 3_000_000
    assert set(data) in ({ord("1")}, {ord("2")})
    left = [path.name for path in tmp_path.iterdir() if path.name != "file"]
    assert all(name.startswith(".agent-host-") for name in left)
