"""The words that the glossary gave up do not come back as names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = (ROOT / "agent_host", ROOT / "hookspecs" / "src")


class Name(NamedTuple):
    """A name that somebody chose, and where it stands."""

    text: str
    kind: str
    where: str


def terms() -> dict[str, tuple[str, list[str]]]:
    """What each term means, and the words that must not be used for it."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|(.*)\|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return {
        term: (meaning, re.findall(r"`([^`]+)`", refused))
        for term, meaning, refused in rows
        if term != "term"
    }


def refused() -> list[str]:
    return sorted({word for _, words in terms().values() for word in words})


def words_of(name: str) -> list[str]:
    """The words of a name in snake or camel case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def uses(name: Name, word: str) -> bool:
    """Whether a name has the word in it; one with brackets has to be a function's whole name."""
    if word.endswith("()"):
        return name.kind == "function" and words_of(name.text) == words_of(word)
    wanted, found = words_of(word), words_of(name.text)
    return any(found[at : at + len(wanted)] == wanted for at in range(len(found)))


def names_in(source: str, where: str) -> Iterator[Name]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Name(node.name, "function", f"{where}:{node.lineno}")
        elif isinstance(node, ast.ClassDef):
            yield Name(node.name, "class", f"{where}:{node.lineno}")
        elif isinstance(node, ast.arg):
            yield Name(node.arg, "argument", f"{where}:{node.lineno}")


def names() -> Iterator[Name]:
    for folder in SOURCES:
        for file in sorted(folder.rglob("*.py")):
            where = str(file.relative_to(ROOT))
            yield Name(file.parent.name if file.stem == "__init__" else file.stem, "module", where)
            yield from names_in(file.read_text("utf-8"), where)


@pytest.mark.parametrize(
    ("name", "kind", "word"),
    [
        ("told", "function", "told"),
        ("_as_told", "argument", "told"),
        ("WasTold", "class", "told"),
        ("let_go", "function", "let go"),
        ("_LetGoOf", "class", "let go"),
        ("_UnderWay", "class", "under way"),
        ("under_way", "module", "under way"),
        ("asked", "function", "asked()"),
        ("_asked", "function", "asked()"),
    ],
)
def test_a_word_is_found_however_a_name_is_written(name: str, kind: str, word: str) -> None:
    assert uses(Name(name, kind, ""), word)


@pytest.mark.parametrize(
    ("name", "kind", "word"),
    [
        ("driver", "module", "drive"),
        ("go_and_let", "function", "let go"),
        ("asked", "argument", "asked()"),
        ("asked_for", "function", "asked()"),
        ("upheld", "function", "held"),
    ],
)
def test_a_name_that_only_looks_like_it_is_not_found(name: str, kind: str, word: str) -> None:
    assert not uses(Name(name, kind, ""), word)


def test_functions_classes_and_arguments_are_looked_at() -> None:
    source = "class A:\n    async def b(self, c, *d, e=1, **f): ...\ndef g(): return lambda h: h\n"
    assert {name.text for name in names_in(source, "")} == {*"Abcdefgh", "self"}


def test_every_term_is_explained_in_a_sentence() -> None:
    assert len(terms()) > 40
    assert [term for term, (meaning, _) in terms().items() if not meaning.endswith(".")] == []


def test_a_term_is_not_refused_for_another() -> None:
    assert set(terms()) & set(refused()) == set()


def test_words_that_were_given_up_do_not_come_back() -> None:
    refused_words = refused()
    offenders = [
        f"{name.where}: {name.kind} {name.text} says {word!r}"
        for name in names()
        for word in refused_words
        if uses(name, word)
    ]
    assert not offenders, "see docs/glossary.md:\n" + "\n".join(offenders)
