"""What the tools that write say before: what they then do; and nothing is done by saying it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ToolArgumentsError, ToolError
from agent_host_files.plugin import FilesTools

PATCH = """*** Begin Patch
*** Add File: added.txt
+one
*** Update File: changed.txt
@@
 one
-two
+TWO
*** Update File: moved.txt
*** Move to: folder/there.txt
*** Delete File: gone.txt
*** End Patch"""


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Any]:
    plugin = FilesTools()
    state = plugin.init({"root": str(tmp_path)})

    class Tools:
        def preview(self, name: str, **payload: str) -> Any:
            return plugin.preview_tool(name, payload, state)

        def execute(self, name: str, **payload: str) -> Any:
            return plugin.execute_tool(name, payload, state)

    yield Tools()
    plugin.close(state)


def content(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_new_file_and_one_that_is_replaced_are_told_apart(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("before\n")
    assert tools.preview("write_file", path="new/a.txt", content="after\n") == [
        {"path": "new/a.txt", "change": "added", "before": None, "after": "after\n"}
    ]
    assert tools.preview("write_file", path="old.txt", content="after\n") == [
        {"path": "old.txt", "change": "updated", "before": "before\n", "after": "after\n"}
    ]
    assert content(tmp_path) == {"old.txt": b"before\n"}


def test_a_patch_is_told_file_by_file_and_does_just_that(tools: Any, tmp_path: Path) -> None:
    for name in ("changed.txt", "moved.txt", "gone.txt"):
        (tmp_path / name).write_text("one\ntwo\n")
    before = content(tmp_path)
    told = tools.preview("apply_patch", input=PATCH)
    assert content(tmp_path) == before
    assert [(each["path"], each["change"], each.get("target")) for each in told] == [
        ("added.txt", "added", None),
        ("changed.txt", "updated", None),
        ("moved.txt", "moved", "folder/there.txt"),
        ("gone.txt", "deleted", None),
    ]
    tools.execute("apply_patch", input=PATCH)
    made = {each.get("target", each["path"]): each["after"] for each in told}
    assert {name: text for name, text in made.items() if text is not None} == {
        name: data.decode() for name, data in content(tmp_path).items()
    }


def test_what_is_no_text_is_told_by_its_size(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\1\2")
    (told,) = tools.preview("write_file", path="a.bin", content="text")
    assert told["note"] == "not text: 3 bytes before, 4 bytes after"


def test_what_would_be_refused_is_refused(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolError, match="is a folder"):
        tools.preview("write_file", path="folder", content="x")
    with pytest.raises(ToolError):
        tools.preview("write_file", path="../x", content="x")
    with pytest.raises(ToolArgumentsError):
        tools.preview("write_file", path="x")


def test_tools_that_change_nothing_have_no_preview(tools: Any) -> None:
    assert tools.preview("read_file", path="x") is None
