"""Each tool through the plugin's hooks, on real files."""

from __future__ import annotations

import base64
import os
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import ConfigError, ToolArgumentsError, ToolError, UnknownToolError
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY, ToolInteropTarget
from agent_host_files.contents import Lines, decode, encode
from agent_host_files.plugin import FilesTools
from agent_host_files.walking import Glob

Run = Callable[..., dict[str, Any]]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Calls a tool in ``tmp_path``; the tool message. ``config`` has further settings."""
    plugin = FilesTools()
    states = []

    def call(tool: str, payload: Any = None, /, *, config: Any = None, **arguments: Any) -> Any:
        state = plugin.init({"root": str(tmp_path), **(config or {})})
        states.append(state)
        payload = arguments if payload is None else payload
        return plugin.format_tool_result(tool, plugin.execute_tool(tool, payload, state))

    yield call
    for state in states:
        plugin.close(state)


def filled(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


# read_file


@pytest.mark.parametrize(
    "data",
    [
        "naïve ☃\nzwei\n".encode(),
        b"\xef\xbb\xbf" + "naïve ☃\nzwei\n".encode(),
        b"\xff\xfe" + "naïve ☃\nzwei\n".encode("utf-16-le"),
        b"\xfe\xff" + "naïve ☃\nzwei\n".encode("utf-16-be"),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16-le", "utf-16-be"],
)
def test_text_of_every_encoding_reads_the_same(run: Run, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert run("read_file", path="a.txt")["content"] == "naïve ☃\nzwei\n"


@pytest.mark.parametrize(
    "data",
    [b"caf\xe9", b"a\0b", b"\xff\xfea", b"\xff\xfe\0\0a\0\0\0", os.urandom(64) + b"\0\xff"],
    ids=["latin-1", "nul", "odd utf-16", "utf-32", "random"],
)
def test_what_is_no_text_is_refused_with_its_size(run: Run, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(ToolError, match=rf"'a.bin' is binary.*it has {len(data)} bytes"):
        run("read_file", path="a.bin")


def test_a_part_of_a_file_says_where_it_goes_on(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, a="".join(f"line {n}\n" for n in range(1, 11)))
    message = run("read_file", path="a", offset=3, limit=2)
    assert message["content"] == (
        "line 3\nline 4\n[truncated: lines 3 to 4 of 10; go on with offset 5]"
    )
    assert message["metadata"]["display"]["lines"] == [3, 4]
    assert run("read_file", path="a", offset=9)["content"] == (
        "line 9\nline 10\n[end of file: lines 9 to 10 of 10]"
    )


def test_following_the_offsets_reads_the_whole_file(run: Run, tmp_path: Path) -> None:
    lines = [f"{n:03} " + "ü" * (n % 17) if n % 5 else "" for n in range(200)]
    filled(tmp_path, a="\n".join(lines) + "\n")
    read: list[str] = []
    while len(read) < len(lines):
        message = run("read_file", path="a", offset=len(read) + 1, config={"max_read_bytes": 100})
        body = message["content"].split("\n")
        assert body[-1].startswith(("[truncated", "[end of file"))
        assert len("\n".join(body[:-1]).encode()) <= 100
        read += body[:-1]
    assert read == lines


def test_a_line_longer_than_the_cap_is_cut_at_a_character(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, a="é" * 100 + "\nnext\n")
    content = run("read_file", path="a", config={"max_read_bytes": 9})["content"]
    assert content == (
        "éééé\n[truncated: line 1 is longer than 9 bytes and was cut; lines 1 to 1 of 2; "
        "go on with offset 2]"
    )


def test_an_empty_file_and_an_offset_beyond_the_end_say_so(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, empty="", two="1\n2")
    assert run("read_file", path="empty")["content"] == "[the file is empty]"
    assert run("read_file", path="two")["content"] == "1\n2"
    with pytest.raises(ToolArgumentsError, match="'two' has 2 lines; there is no line 3"):
        run("read_file", path="two", offset=3)


def test_a_picture_reaches_every_api_family_as_a_picture(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    message = run("read_file", path="a.png")
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert message["content"] == f"'a.png' is a picture (image/png, {len(PNG)} bytes)."
    view = DEFAULT_TOOL_INTEROP_REGISTRY.inspect_result(message["toolResult"])
    assert view is not None
    assert [part["type"] for part in view.parts] == ["text", "image"]
    (item,) = DEFAULT_TOOL_INTEROP_REGISTRY.convert_tool_results(
        [message["toolResult"]], target=ToolInteropTarget("openai.responses")
    )
    assert item["output"][1] == {"type": "input_image", "image_url": url}


def test_a_picture_above_the_cap_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    with pytest.raises(ToolError, match=r"a picture \(image/png\) of 48 bytes; at most 47"):
        run("read_file", path="a.png", config={"max_read_bytes": 47})


def test_a_missing_file_and_a_folder_are_told_apart(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolError, match="'none' does not exist"):
        run("read_file", path="none")
    with pytest.raises(ToolError, match="'folder' is a folder"):
        run("read_file", path="folder")
    with pytest.raises(ToolArgumentsError, match="names a folder"):
        run("read_file", path="folder/")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_text_survives_every_encoding_and_the_way_by_lines(text: str) -> None:
    assert Lines.of(text).join() == text
    for mark, encoding in [
        (b"", "utf-8"),
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ]:
        data = mark + text.encode(encoding)
        read = decode(data)
        assert read is not None
        assert encode(read.text, read) == data


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_whatever_counts_as_text_is_written_back_byte_for_byte(data: bytes) -> None:
    read = decode(data)
    assert read is None or encode(read.text, read) == data


# list_files


def tree(root: Path) -> None:
    filled(
        root,
        **{
            "b.py": "x",
            "a__one.py": "x",
            "a__two.txt": "x",
            "a__deep__three.py": "x",
            ".hidden__four.py": "x",
            ".env": "x",
        },
    )
    (root / "link").symlink_to("a")


def listed(run: Run, **arguments: Any) -> list[str]:
    content: str = run("list_files", **arguments)["content"]
    return content.split("\n")


def test_a_listing_is_sorted_marks_kinds_and_skips_hidden_names(run: Run, tmp_path: Path) -> None:
    tree(tmp_path)
    assert listed(run) == ["a/", "b.py", "link@"]
    assert listed(run, path="a", depth=1) == ["a/deep/", "a/one.py", "a/two.txt"]
    assert listed(run, depth=2) == ["a/", "a/deep/", "a/one.py", "a/two.txt", "b.py", "link@"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", ["a/deep/three.py", "a/one.py", "b.py"]),
        ("a/*.py", ["a/one.py"]),
        ("a/**", ["a/", "a/deep/", "a/deep/three.py", "a/one.py", "a/two.txt"]),
        ("**/*.{py,txt}", ["a/deep/three.py", "a/one.py", "a/two.txt", "b.py"]),
        ("./b.py", ["b.py"]),
        (".hidden/*", [".hidden/four.py"]),
        (".e*", [".env"]),
        ("[!a]*", ["a/deep/", "a/deep/three.py", "a/one.py", "a/two.txt", "b.py", "link@"]),
        ("nothing", ["[no files]"]),
    ],
)
def test_globs(run: Run, tmp_path: Path, glob: str, expected: list[str]) -> None:
    tree(tmp_path)
    assert listed(run, glob=glob) == expected


def test_a_hidden_folder_can_be_named(run: Run, tmp_path: Path) -> None:
    tree(tmp_path)
    assert listed(run, path=".hidden") == [".hidden/four.py"]


def test_a_listing_is_capped(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, **{f"f{n}": "" for n in range(5)})
    message = run("list_files", config={"max_results": 3})
    assert message["content"].split("\n")[:3] == ["f0", "f1", "f2"]
    assert "[truncated: only the first 3" in message["content"]
    assert message["metadata"]["display"]["more"] is True
    assert "truncated" not in run("list_files", config={"max_results": 5})["content"]


def test_names_that_cannot_be_written_down_do_not_break_the_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a\nb").write_text("")
    if sys.platform == "linux":
        os.close(os.open(os.fsencode(tmp_path) + b"/c\xff", os.O_CREAT))
        assert listed(run) == ["a\ufffdb", "c\ufffd"]
    else:
        assert listed(run) == ["a\ufffdb"]


def test_a_glob_with_many_stars_takes_no_time() -> None:
    glob = Glob("**/" * 20 + "*a" * 40 + "b")
    started = time.perf_counter()
    assert not glob.matches(("a" * 200,) * 50)
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("glob", ["../*", "/etc/*", "", "x" * 1001, "{a,b}" * 10])
def test_a_glob_that_reaches_out_or_is_too_large_is_refused(run: Run, glob: str) -> None:
    with pytest.raises(ToolArgumentsError, match="a glob"):
        run("list_files", glob=glob)


# search_files


def test_matches_come_with_path_and_line(run: Run, tmp_path: Path) -> None:
    tree(tmp_path)
    filled(tmp_path, **{"a__one.py": "def f():\r\n    return 1\r\n", "b.py": "Return\n"})
    (tmp_path / "a" / "x.bin").write_bytes(b"return\0")
    found = run("search_files", pattern=r"return\b")
    assert found["content"].split("\n") == [
        "a/one.py:2:     return 1",
        "[binary, too large or unreadable and not searched: 1]",
    ]
    assert found["metadata"]["display"] == {
        "kind": "matches",
        "pattern": r"return\b",
        "count": 1,
        "more": False,
    }
    both = run("search_files", pattern="return", ignore_case=True, glob="*.py")["content"]
    assert both.split("\n") == ["a/one.py:2:     return 1", "b.py:1: Return"]
    one = run("search_files", pattern="^x$", path="a/two.txt")["content"]
    assert one == "a/two.txt:1: x"
    assert run("search_files", pattern="nowhere", path="b.py")["content"] == "[no matches]"


def test_matches_are_capped_over_files(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, a="x\nx\n", b="x\nx\n")
    content = run("search_files", pattern="x", config={"max_results": 3})["content"]
    assert content.split("\n")[:3] == ["a:1: x", "a:2: x", "b:1: x"]
    assert "[truncated: only the first 3" in content
    exact = run("search_files", pattern="x", config={"max_results": 4})["content"]
    assert "truncated" not in exact


def test_a_long_line_is_shown_around_its_match(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, a="." * 5000 + "needle" + "." * 5000)
    content = run("search_files", pattern="needle")["content"]
    assert "needle" in content
    assert len(content) < 450


def test_a_pattern_that_would_never_end_is_stopped(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, a="match: aaa\n", b="a" * 64 + "b\n", c="aaa\n")
    started = time.perf_counter()
    content = run("search_files", pattern="(a+)+$", config={"max_search_seconds": 1})["content"]
    assert time.perf_counter() - started < 10
    assert content.split("\n")[0] == "a:1: match: aaa"
    assert "[truncated: stopped at 'b' after 1 s" in content


#: Searches for what takes for ever, in a process of its own.
_ABANDONED = """
from agent_host_files.searching import Matcher
matcher = Matcher("(a+)+$", ignore_case=False, seconds=2)
print("started", flush=True)
matcher.matches("a" * 60 + "b", 1)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open of Linux")
def test_a_search_ends_though_the_host_was_killed() -> None:
    host = subprocess.Popen([sys.executable, "-c", _ABANDONED], stdout=subprocess.PIPE)
    assert host.stdout is not None
    assert host.stdout.readline() == b"started\n"
    (child,) = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
    searching = os.pidfd_open(int(child))
    try:
        host.kill()
        host.communicate()
        ended, _, _ = select.select([searching], [], [], 60)
        assert ended
    finally:
        os.close(searching)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(?P<x>a)(?P<x>b)", "*"])
def test_a_pattern_that_is_none_is_explained(run: Run, pattern: str) -> None:
    with pytest.raises(ToolArgumentsError, match="not a regular expression"):
        run("search_files", pattern=pattern)


# write_file


def test_writing_creates_folders_and_says_what_changed(run: Run, tmp_path: Path) -> None:
    message = run("write_file", path="new/deep/a.txt", content="1\n2\n")
    assert (tmp_path / "new" / "deep" / "a.txt").read_text() == "1\n2\n"
    assert message["content"] == "Created 'new/deep/a.txt': 2 lines."
    message = run("write_file", path="new/deep/a.txt", content="1\nzwei\n")
    assert message["content"] == "Updated 'new/deep/a.txt': +1 -1 lines."
    assert message["metadata"]["display"] == {
        "kind": "diff",
        "files": [{"path": "new/deep/a.txt", "change": "updated", "added": 1, "removed": 1}],
        "diff": "@@ -2,1 +2,1 @@\n-2\n+zwei",
    }
    assert os.listdir(tmp_path / "new" / "deep") == ["a.txt"]
    message = run("write_file", path="new/deep/a.txt", content="eins\nzwei\ndrei\n")
    assert message["content"] == "Updated 'new/deep/a.txt': +2 -1 lines."
    assert message["metadata"]["display"]["diff"] == (
        "@@ -1,1 +1,1 @@\n-1\n+eins\n@@ -3,0 +3,1 @@\n+drei"
    )


def test_where_much_has_changed_lines_are_not_compared_with_each_other(run: Run) -> None:
    many = [f"line {number}" for number in range(300)]
    run("write_file", path="a.txt", content="\n".join(("first", *many, "last")))
    message = run("write_file", path="a.txt", content="\n".join(("new", *many, "newer")))
    assert message["content"] == "Updated 'a.txt': +302 -302 lines."


@pytest.mark.parametrize("mode", [0o640, 0o755, 0o600])
def test_writing_keeps_the_mode_of_a_file(run: Run, tmp_path: Path, mode: int) -> None:
    filled(tmp_path, a="old")
    (tmp_path / "a").chmod(mode)
    run("write_file", path="a", content="new")
    assert (tmp_path / "a").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_new_file_gets_the_mode_that_any_program_would_give_it(run: Run, tmp_path: Path) -> None:
    run("write_file", path="a", content="")
    filled(tmp_path, b="")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_writing_keeps_the_encoding_of_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe" + "alt".encode("utf-16-le"))
    run("write_file", path="a", content="neü")
    assert (tmp_path / "a").read_bytes() == b"\xff\xfe" + "neü".encode("utf-16-le")


def test_writing_refuses_what_it_must_not_replace(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, file="x", fixed="x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "fixed").chmod(0o444)
    (tmp_path / "link").symlink_to("file")
    for path, why in [
        ("folder", "is a folder"),
        ("fixed", "is read-only"),
        ("link", "is a symbolic link"),
        ("file/below", "passes through a file"),
        ("link/below", "passes through a file or a symbolic link"),
    ]:
        with pytest.raises(ToolError, match=why):
            run("write_file", path=path, content="y")
    with pytest.raises(ToolError, match="would have 4 bytes; at most 3"):
        run("write_file", path="new/big", content="ééé"[:2], config={"max_write_bytes": 3})
    with pytest.raises(ToolArgumentsError, match="surrogate"):
        run("write_file", path="new/half", content="\ud800")
    assert sorted(os.listdir(tmp_path)) == ["file", "fixed", "folder", "link"]
    assert (tmp_path / "file").read_text() == "x"


# Arguments and settings


@pytest.mark.parametrize(
    ("tool", "payload", "why"),
    [
        ("read_file", {}, "needs the argument 'path'"),
        ("read_file", {"path": 5}, "'path' of read_file must be text"),
        ("read_file", {"path": "a", "offset": 0}, "at least 1"),
        ("read_file", {"path": "a", "offset": True}, "at least 1"),
        ("read_file", {"path": "a", "limit": "3"}, "at least 1"),
        ("read_file", {"file": "a"}, "has no argument 'file'; it has path, offset, limit"),
        ("read_file", "a", "takes an object"),
        ("read_file", None, "takes an object"),
        ("write_file", {"path": "a"}, "needs the argument 'content'"),
        ("search_files", {"pattern": "a", "ignore_case": "yes"}, "true or false"),
        ("search_files", {"pattern": ""}, "between 1 and"),
        ("apply_patch", {"patch": "x"}, "has no argument 'patch'; it has input"),
        ("apply_patch", 5, "takes an object"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, tool: str, payload: Any, why: str) -> None:
    plugin = FilesTools()
    state = plugin.init({"root": str(tmp_path)})
    try:
        with pytest.raises(ToolArgumentsError, match=why):
            plugin.execute_tool(tool, payload, state)
    finally:
        plugin.close(state)


def test_null_arguments_count_as_left_out(run: Run, tmp_path: Path) -> None:
    filled(tmp_path, a="x")
    assert run("read_file", path="a", offset=None, limit=None)["content"] == "x"
    assert listed(run, path=None, glob=None, depth=None) == ["a"]


def test_an_unknown_tool_is_refused(run: Run) -> None:
    with pytest.raises(UnknownToolError, match="no tool 'rm'"):
        run("rm", path="a")


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"root": "/"}, "root"),
        ({"root": "/usr/.."}, "root"),
        ({"root": ""}, "root"),
        ({"root": 5}, "root"),
        ({"root": "no/such/folder"}, "root"),
        ({"root": "nul\0"}, "root"),
        ({"max_read_bytes": 0}, "max_read_bytes"),
        ({"max_read_bytes": "many"}, "max_read_bytes"),
        ({"max_results": True}, "max_results"),
        ({"max_search_seconds": float("inf")}, "max_search_seconds"),
        ({"max_search_seconds": float("nan")}, "max_search_seconds"),
    ],
)
def test_wrong_settings_are_named(config: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FilesTools().init(config)
    assert caught.value.key == key


def test_the_root_is_the_working_folder_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, a="here")
    monkeypatch.chdir(tmp_path)
    plugin = FilesTools()
    state = plugin.init({})
    # It is the folder that counts, not where the process goes later.
    monkeypatch.chdir("/")
    assert plugin.execute_tool("read_file", {"path": "a"}, state)["text"] == "here"
    plugin.close(state)
    with pytest.raises(ToolError, match="the workspace is closed"):
        plugin.execute_tool("read_file", {"path": "a"}, state)
    plugin.close(state)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to count handles")
def test_no_handle_is_left_open(run: Run, tmp_path: Path) -> None:
    tree(tmp_path)
    plugin = FilesTools()
    before = len(os.listdir("/proc/self/fd"))
    state = plugin.init({"root": str(tmp_path)})
    for tool, payload in [
        ("read_file", {"path": "a/one.py"}),
        ("read_file", {"path": "a/none"}),
        ("read_file", {"path": "link/one.py"}),
        ("list_files", {"depth": 5}),
        ("search_files", {"pattern": "x"}),
        ("search_files", {"pattern": "("}),
        ("write_file", {"path": "q/r/s", "content": "x"}),
        ("write_file", {"path": "a", "content": "x"}),
    ]:
        try:
            plugin.execute_tool(tool, payload, state)
        except ToolError:
            continue
    plugin.close(state)
    assert len(os.listdir("/proc/self/fd")) == before
