"""The repository's pages as tests see them: their blocks, and what a block needs in order to run.

A block says by its language what is done with it. Tutorials use all of these; other pages each for
itself.

- ``python`` runs as a script, ``json`` and ``toml`` must be read without error.
- Any of them after a line that ends with a path and a colon, such as ``In `src/x.py`:``, is that
  file, and ``diff`` is a change of it: lines that stay or go must be found exactly once.
- ``console`` has commands after ``$`` and what they print. ``…`` stands for anything in a line, and
  alone in a line for any number of lines. A command that fails says so: ``# fails``.
- ``sh`` has commands whose output is nobody's business here.
- ``text`` is a drawing, or a quotation, that a test of its own looks at.

It must not know what the pages say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

__all__ = [
    "LANGUAGES",
    "PAGES",
    "READMES",
    "ROOT",
    "TUTORIALS",
    "Block",
    "Command",
    "as_printed",
    "blocks",
    "changed",
    "commands",
    "missing",
    "same_output",
]

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS]
#: Pages that belong to a distribution; some have languages of their own, which its tests know.
READMES = sorted(ROOT.glob("plugins/*/README.md"))
LANGUAGES = ("python", "json", "toml", "diff", "console", "sh", "text")

_FENCE = re.compile(r"^```(?P<language>[\w-]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`(?P<path>[\w./-]+\.\w+)`[^`\n]*:\s*$")
_FAILS = "  # fails"
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. ``file`` is the path that the line before it names, or empty."""

    page: Path
    number: int
    line: int
    language: str
    heading: str
    file: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, what the page says that it prints, and whether it fails."""

    line: str
    output: str = ""
    fails: bool = False


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page, of these languages or all, in order."""
    return [block for block in _blocks(page) if not languages or block.language in languages]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for number, found in enumerate(_FENCE.finditer(text), 1):
        before = text[: found.start()]
        named = _FILE.search(before.rstrip("\n"))
        headings = _HEADING.findall(_FENCE.sub("", before))
        yield Block(
            page=page,
            number=number,
            line=before.count("\n") + 1,
            language=found["language"],
            heading=headings[-1] if headings else "",
            file=named["path"] if named else "",
            text=found["text"],
        )


def missing(block: Block) -> list[str]:
    """The packages that a Python block imports and that are not installed."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return sorted(name for name in names if find_spec(name) is None)


def commands(block: Block) -> list[Command]:
    """The commands of a ``console`` block with their output, or of an ``sh`` block without."""
    if block.language == "sh":
        lines = block.text.replace("\\\n", " ").splitlines()
        return [Command(line) for line in lines if line and not line.startswith("#")]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block.where}: a console block begins with a command"
    found = (part.partition("\n") for part in parts[1:])
    return [
        Command(line.removesuffix(_FAILS), output, line.endswith(_FAILS))
        for line, _, output in found
    ]


def changed(source: str, diff: str) -> str:
    """``source`` with every hunk of ``diff`` applied; hunks are told apart by ``@@`` lines."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        if not hunk:
            continue
        lines = [(line[:1], line[1:]) for line in hunk.splitlines(keepends=True)]
        odd = [mark + text for mark, text in lines if mark not in (" ", "+", "-", "\n")]
        assert not odd, f"lines of a diff begin with a space, + or -: {odd}"
        old = "".join(text or "\n" for mark, text in lines if mark != "+")
        new = "".join(text or "\n" for mark, text in lines if mark != "-")
        assert source.count(old) == 1, f"found {source.count(old)} times, not once:\n{old}"
        source = source.replace(old, new)
    return source


def as_printed(text: str) -> list[str]:
    """The lines of an output without the white space at their ends."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def same_output(expected: str, printed: str) -> bool:
    """Whether a command printed what the page shows."""
    lines = as_printed(expected)
    pattern = "".join(
        "(?:.*\n)*" if line == "…" else "[^\n]*".join(map(re.escape, line.split("…"))) + "\n"
        for line in lines
    )
    assert not any(one == two == "…" for one, two in pairwise(lines))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in as_printed(printed))) is not None
