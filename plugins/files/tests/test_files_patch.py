"""The patch language, pure and on files: what is applied, and what is refused in which words."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import ToolArgumentsError, ToolError
from agent_host_files.contents import Lines
from agent_host_files.patching import (
    GRAMMAR,
    AddFile,
    DeleteFile,
    Hunk,
    UpdateFile,
    apply,
    parse,
)
from agent_host_files.plugin import FilesTools


class Patched:
    """A folder to patch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plugin = FilesTools()
        self.state = self.plugin.init({"root": str(root)})

    def apply(self, *lines: str) -> dict[str, Any]:
        result = self.plugin.execute_tool("apply_patch", patch(*lines), self.state)
        return self.plugin.format_tool_result("apply_patch", result)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def patched(tmp_path: Path) -> Iterator[Patched]:
    made = Patched(tmp_path)
    yield made
    made.plugin.close(made.state)


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def updated(lines: Sequence[str], *changes: str) -> list[str]:
    (section,) = parse(patch("*** Update File: f", *changes))
    assert isinstance(section, UpdateFile)
    return apply("f", lines, section.hunks)


# Parsing

WHOLE = patch(
    "*** Add File: new.txt",
    "+first",
    "+",
    "*** Update File: old.py",
    "*** Move to: other.py",
    "@@ class A:",
    "@@ def f(self):",
    " stays",
    "-goes",
    "+comes",
    "@@",
    " last",
    "+after",
    "*** End of File",
    "*** Delete File: gone.txt",
)


def test_a_whole_patch_is_understood() -> None:
    assert parse(WHOLE) == (
        AddFile("new.txt", ("first", "")),
        UpdateFile(
            "old.py",
            (
                Hunk(("class A:", "def f(self):"), ((" ", "stays"), ("-", "goes"), ("+", "comes"))),
                Hunk((), ((" ", "last"), ("+", "after")), at_end=True),
            ),
            "other.py",
        ),
        DeleteFile("gone.txt"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "\n" + WHOLE + "\n\n",
        WHOLE.replace("\n", "\r\n"),
        WHOLE.replace("*** Begin Patch", "*** Begin Patch "),
        WHOLE.replace("*** Update", "\n*** Update").replace("*** Delete", "\n\n*** Delete"),
    ],
    ids=["blank lines around", "carriage returns", "space after a marker", "blank lines between"],
)
def test_the_same_patch_in_other_clothes(text: str) -> None:
    assert parse(text) == parse(WHOLE)


def test_line_numbers_of_unified_diffs_and_bare_blank_lines_are_tolerated() -> None:
    lines = ["a", "", "b", "c"]
    assert updated(lines, "@@ -1,3 +1,3 @@ def f():", " a", "", "-b", "+B") == ["a", "", "B", "c"]
    assert updated(lines, "-b", "+B", "", "") == ["a", "", "B", "c"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", r"line 1 of the patch: the first line must be '\*\*\* Begin Patch', not ''"),
        ("hello", "line 1 of the patch: the first line must be"),
        (WHOLE.removesuffix("\n*** End Patch"), "is the patch complete"),
        (patch(), "changes no file"),
        (patch("*** Update File: a"), "the update of 'a' has no hunk"),
        (patch("*** Update File: a", "@@"), "the hunk has no lines"),
        (patch("*** Update File: a", "@@ x", "@@ y"), "the hunk has no lines"),
        (patch("*** Update File: a", "@@", "oops"), "line 4 of the patch: a hunk's lines begin"),
        (patch("*** Update File: a", "@@", "+x", "*** Rename: b"), "line 5 .* not part of the"),
        (patch("*** Add File: a", "x"), r"line 3 of the patch: every line .* begins with '\+'"),
        (patch("*** Remove File: a"), "line 2 of the patch: expected"),
        (patch("+x"), "line 2 of the patch: expected"),
    ],
)
def test_what_is_no_patch_is_explained(text: str, why: str) -> None:
    with pytest.raises(ToolArgumentsError, match=why):
        parse(text)


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from([*WHOLE.split("\n"), "", " ", "*** "])).map("\n".join))
def test_any_text_is_a_patch_or_an_error_for_the_model(text: str) -> None:
    told = "line 0 of the patch: "
    try:
        assert parse(text)
    except ToolArgumentsError as error:
        told = error.message
    assert re.match(r"line \d+ of the patch: ", told)


def test_the_grammar_and_the_parser_know_the_same_lines() -> None:
    terminals = dict(re.findall(r"^([A-Z_]+): /(.*)/$", GRAMMAR, re.MULTILINE))
    used = set(re.findall(r"\b[A-Z_]{3,}\b", GRAMMAR.partition("\n\n")[0]))
    assert used == set(terminals)
    found = [
        [name for name, regex in terminals.items() if re.fullmatch(regex, f"{line}\n")]
        for line in WHOLE.split("\n")
    ]
    assert all(len(names) == 1 for names in found)
    assert {name for names in found for name in names} == set(terminals)


# Finding the place


def test_context_is_found_exactly_or_but_for_trailing_white_space() -> None:
    assert updated(["a  ", "b", "c"], " a", "-b", "+B") == ["a  ", "B", "c"]
    # An exact place wins over one that fits less well.
    assert updated(["a ", "x", "a", "x"], " a", "-x", "+X") == ["a ", "x", "a", "X"]


def test_an_ambiguous_place_is_refused_and_a_place_line_resolves_it() -> None:
    lines = ["def f():", "    return 1", "", "def g():", "    return 1"]
    with pytest.raises(ToolError, match=r"hunk 1 of 'f': .* more than once, at lines 2 and 5; add"):
        updated(lines, "-    return 1", "+    return 2")
    for place in (["@@ def g():"], ["@@ def g():", " def g():"]):
        changed = updated(lines, *place, "-    return 1", "+    return 2")
        assert changed == [*lines[:4], "    return 2"]
    changed = updated(lines, "-    return 1", "+    return 2", "*** End of File")
    assert changed == [*lines[:4], "    return 2"]


def test_place_lines_narrow_down_one_after_the_other() -> None:
    lines = ["class A:", "  def f():", "    x", "class B:", "  def f():", "    x"]
    with pytest.raises(ToolError, match=r"'@@ def f\(\):' fits lines 2 and 5"):
        updated(lines, "@@ def f():", "-    x", "+    y")
    changed = updated(lines, "@@ class B:", "@@ def f():", "-    x", "+    y")
    assert changed == [*lines[:5], "    y"]
    changed = updated(lines, "@@ class A:", "@@ def f():", "   def f():", "-    x", "+    y")
    assert changed == [*lines[:2], "    y", *lines[3:]]
    with pytest.raises(ToolError, match="no line after line 4 is 'def g"):
        updated(lines, "@@ class B:", "@@ def g():", "-    x", "+    y")


def test_lines_are_only_added_where_the_patch_says_where() -> None:
    assert updated([], "+new") == ["new"]
    assert updated(["a", "b"], "@@ a", "+new") == ["a", "new", "b"]
    assert updated(["a", "b"], "+new", "*** End of File") == ["a", "b", "new"]
    with pytest.raises(ToolError, match="only adds lines and does not say where"):
        updated(["a", "b"], "+new")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            [" one", "-twp", "+2"],
            "not in the file; nearest is line 1, but at line 2 it expects 'twp' and finds 'two'",
        ),
        (["-nowhere", "+x"], "not in the file; it expects 'nowhere'"),
        ([" three", "-four", "+x"], "at line 4 it expects 'four' and finds the end of the file"),
        (
            ["-two", "+x", "*** End of File"],
            "not in the end of the file; it expects 'two'",
        ),
        (
            ["@@", "-three", "+3", "@@", "-one", "+1"],
            "hunk 2 of 'f': its lines are found at line 1 only, before the end of the previous",
        ),
        (["@@", " one", "-two", "@@", " two", "-three"], "hunk 2 .* without overlap"),
    ],
)
def test_a_hunk_without_a_place_says_what_was_expected_and_found(
    changes: list[str], why: str
) -> None:
    with pytest.raises(ToolError, match=why):
        updated(["one", "two", "three"], *changes)


def test_a_hunk_is_searched_in_linear_time() -> None:
    lines = ["a"] * 200_000
    started = time.perf_counter()
    with pytest.raises(ToolError, match="not in the file"):
        updated(lines, *[" a"] * 5_000, "-b")
    assert time.perf_counter() - started < 5


def test_the_example_of_the_readme_is_a_patch(patched: Patched) -> None:
    readme = Path(__file__).resolve().parents[1] / "README.md"
    (example,) = re.findall(r"```patch\n(.*?)\n```", readme.read_text("utf-8"), re.DOTALL)
    (patched.root / "src").mkdir()
    (patched.root / "src" / "old.py").write_text("")
    (patched.root / "src" / "app.py").write_text(
        "class App:\n    def start(self):\n        self.ready = False\n        self.port = 80\n"
    )
    patched.apply(*example.split("\n")[1:-1])
    assert set(patched.files()) == {"docs/new.md", "src/main.py"}
    assert b"self.port = 8080\n" in patched.files()["src/main.py"]


# Any edit

LINES = st.lists(st.text(st.sampled_from("ab +-@*\t"), max_size=3), max_size=12)
ANY_LINES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=8),
    max_size=8,
)


def hunks_of(old: list[str], new: list[str], context: int) -> Iterator[str]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        yield "@@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[i1:i2])
            else:
                yield from (f"-{line}" for line in old[i1:i2])
                yield from (f"+{line}" for line in new[j1:j2])
        if group[-1][2] == len(old):
            yield "*** End of File"


@settings(deadline=None)
@given(LINES | ANY_LINES, LINES | ANY_LINES)
def test_a_patch_with_all_its_context_makes_the_edited_file(old: list[str], new: list[str]) -> None:
    changes = list(hunks_of(old, new, 1000))
    assert (updated(old, *changes) if changes else old) == new


@settings(deadline=None)
@given(LINES, LINES, st.integers(0, 3))
def test_a_patch_with_little_context_makes_the_edited_file_or_says_why_not(
    old: list[str], new: list[str], context: int
) -> None:
    changes = list(hunks_of(old, new, context))
    try:
        after = updated(old, *changes) if changes else old
    except ToolError as error:
        refused = error.message
    else:
        assert after == new
        return
    assert re.search("fit more than once|does not say where", refused)


@settings(deadline=None)
@given(ANY_LINES.filter(len), ANY_LINES, st.booleans())
def test_carriage_returns_and_the_final_line_feed_stay_as_they_are(
    old: list[str], new: list[str], ended: bool
) -> None:
    before = Lines(tuple(f"{line}\r" for line in old), ended)
    changes = list(hunks_of(old, new, 1000))
    after = updated(before.lines, *changes) if changes else list(before.lines)
    assert after == [f"{line}\r" for line in new]


# On files


def test_every_kind_of_section_is_done(patched: Patched) -> None:
    (patched.root / "old.py").write_text("class A:\n def f(self):\nstays\ngoes\nlast\n")
    (patched.root / "old.py").chmod(0o750)
    (patched.root / "gone.txt").write_bytes(b"\0binary")
    result = patched.apply(*WHOLE.split("\n")[1:-1])
    assert patched.files() == {
        "new.txt": b"first\n\n",
        "other.py": b"class A:\n def f(self):\nstays\ncomes\nlast\nafter\n",
    }
    assert (patched.root / "other.py").stat().st_mode & 0o777 == 0o750
    assert result["content"].split("\n") == [
        "Done.",
        "A new.txt (+2 -0)",
        "R old.py -> other.py (+2 -1)",
        "D gone.txt",
    ]
    assert [file["change"] for file in result["metadata"]["display"]["files"]] == [
        "added",
        "moved",
        "deleted",
    ]
    assert result["metadata"]["display"]["diff"] == WHOLE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb", b"a\nB"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nB\n"),
        (b"\xff\xfe" + "ä\na\nb".encode("utf-16-le"), b"\xff\xfe" + "ä\na\nB".encode("utf-16-le")),
    ],
    ids=["no final line feed", "carriage returns", "utf-8 with mark", "utf-16"],
)
def test_an_update_keeps_encoding_and_line_ends(
    patched: Patched, before: bytes, after: bytes
) -> None:
    (patched.root / "f").write_bytes(before)
    patched.apply("*** Update File: f", "@@", " a", "-b", "+B")
    assert patched.files() == {"f": after}


def test_a_move_alone_keeps_the_bytes(patched: Patched) -> None:
    (patched.root / "a").write_bytes(b"\xff\0\xfe")
    patched.apply("*** Update File: a", "*** Move to: deep/b", "", "*** Add File: c", "+c")
    assert patched.files() == {"deep/b": b"\xff\0\xfe", "c": b"c\n"}


def test_the_function_form_does_the_same(patched: Patched) -> None:
    payload = {"input": patch("*** Add File: a", "+x")}
    patched.plugin.execute_tool("apply_patch", payload, patched.state)
    assert patched.files() == {"a": b"x\n"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["*** Update File: f", "-nowhere"], "hunk 1 of 'f'"),
        (["*** Update File: none", "-x"], "'none' does not exist"),
        (["*** Delete File: none"], "'none' does not exist"),
        (["*** Delete File: folder"], "'folder' is a folder"),
        (["*** Add File: f", "+x"], "'f' exists already; update it instead"),
        (["*** Update File: f", "*** Move to: folder"], "'folder' exists already"),
        (["*** Update File: binary", "-x"], "'binary' is binary"),
        (["*** Update File: fixed", "-x", "+y"], "'fixed' is read-only"),
        (["*** Delete File: fixed"], "'fixed' is read-only"),
        (["*** Add File: f/below", "+x"], "passes through a file"),
        (["*** Add File: first.txt", "+x"], "'first.txt' has more than one section"),
        (["*** Update File: f", "*** Move to: first.txt"], "'first.txt' has more than one"),
        (["*** Add File: a/../b", "+x"], "has '..'"),
        (["*** Add File: ", "+x"], "the path is empty"),
        (["*** Add File: big", "+" + "x" * 1_000_001], "would have 1000002 bytes"),
        (["*** Update File: f", "oops"], "line 5 of the patch"),
    ],
)
def test_one_bad_section_and_no_file_is_touched(
    patched: Patched, lines: list[str], why: str
) -> None:
    (patched.root / "f").write_text("x\n")
    (patched.root / "fixed").write_text("x\n")
    (patched.root / "fixed").chmod(0o444)
    (patched.root / "binary").write_bytes(b"x\0")
    (patched.root / "folder").mkdir()
    before = patched.files()
    with pytest.raises(ToolError, match=f"{why}.*; nothing was changed"):
        patched.apply("*** Add File: first.txt", "+x", *lines)
    assert patched.files() == before
