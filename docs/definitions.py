"""What a module says of its names, read from its text: nothing is imported.

Owns how classes, their fields, functions and constants are shown on a reference page. It must not
know which pages there are.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

__all__ = ["comments_in", "definition_of", "first_sentence", "flat", "literal_in"]

#: Values of constants that are shown are no longer than this.
_LONGEST = 200
_HEADS = ("name", "type", "default", "meaning")
_MADE = {"field(default_factory=dict)": "{}", "field(default_factory=list)": "[]"}


def flat(text: str) -> str:
    """A text in one line, with marks as Markdown has them."""
    return " ".join(text.replace("``", "`").split())


def first_sentence(doc: str) -> str:
    return re.split(r"(?<=\.)\s", flat(doc.split("\n\n")[0]), maxsplit=1)[0]


def comments_in(text: str) -> dict[str, str]:
    """What stands above constants, types and fields of a text."""
    pattern = r"^ *((?:#: .*\n *)+)(\w+)\b(?::|.* = )"
    return {
        match[2]: re.sub(r"\s*#: ", " ", f" {match[1]}").strip()
        for match in re.finditer(pattern, text, re.MULTILINE)
    }


def literal_in(file: Path, name: str) -> object:
    """The value of a constant that is written out."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{file} has no {name}")


def definition_of(name: str, module: Path) -> list[str]:
    """The lines about a name of a module, or of a package that hands names of its modules on."""
    files = [module] if module.exists() else sorted(module.with_suffix("").glob("*.py"))
    for file in files:
        text = file.read_text("utf-8")
        for node in ast.parse(text).body:
            if lines := _lines_about(name, node, text):
                return [f"### `{name}`", "", *lines]
    raise LookupError(f"{module} has no {name}")


def _lines_about(name: str, node: ast.stmt, text: str) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
        said = _paragraphs(ast.get_docstring(node) or "")
        if isinstance(node, ast.FunctionDef):
            return ["```python", _signature(node), "```", "", *said]
        parts = (said, _fields(node, text), _methods(node))
        return [line for part in parts if part for line in ("", *part)][1:]
    said_above = flat(comments_in(text).get(name, ""))
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
        value = " ".join(ast.unparse(node.value).split())
        return [f"{said_above} `{name} = {value}`" if len(value) < _LONGEST else said_above]
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
        return [f"{said_above} `{name}: {ast.unparse(node.annotation)}`"]
    return []


def _fields(node: ast.ClassDef, text: str) -> list[str]:
    """A table of the fields; columns in which nothing stands are left out."""
    comments = comments_in(ast.get_source_segment(text, node) or "")
    rows = [
        (f"`{name}`", _kind(each), _default(each), comments.get(name, ""))
        for each in _annotated(node, text)
        if not (name := ast.unparse(each.target)).startswith("_")
    ]
    if not rows:
        return []
    used = [n for n in range(len(_HEADS)) if n < 2 or any(row[n] for row in rows)]
    table = [_HEADS, ("---",) * len(_HEADS), *rows]
    return [f"| {' | '.join(flat(row[n]) for n in used)} |" for row in table]


def _annotated(node: ast.ClassDef, text: str) -> Iterator[ast.AnnAssign]:
    """The fields of a class, those of its private bases first."""
    private = {name for base in node.bases if (name := ast.unparse(base)).startswith("_")}
    for each in ast.parse(text).body:
        if isinstance(each, ast.ClassDef) and each.name in private:
            yield from _annotated(each, text)
    yield from (each for each in node.body if isinstance(each, ast.AnnAssign))


def _kind(field: ast.AnnAssign) -> str:
    kind = re.sub(r"^ClassVar\[(.*)\]$", r"\1", ast.unparse(field.annotation))
    return f"`{kind}`".replace("|", "\\|")


def _default(field: ast.AnnAssign) -> str:
    value = "" if field.value is None else ast.unparse(field.value)
    return f"`{_MADE.get(value, value)}`" if value else ""


def _methods(node: ast.ClassDef) -> list[str]:
    return [
        f"- `{_signature(each, is_method=True)}`: {first_sentence(doc)}"
        for each in node.body
        if isinstance(each, ast.FunctionDef)
        and not each.name.startswith(("_", "test_", "pytest_"))
        and (doc := ast.get_docstring(each))
    ]


def _signature(node: ast.FunctionDef, is_method: bool = False) -> str:
    arguments = ast.unparse(node.args)
    if is_method:
        arguments = re.sub(r"^self(, )?", "", arguments)
    is_property = any(ast.unparse(each) == "property" for each in node.decorator_list)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}{returns}" if is_property else f"{node.name}({arguments}){returns}"


def _paragraphs(doc: str) -> list[str]:
    """A docstring as paragraphs; what is indented in it is code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\n(?! )", inspect.cleandoc(doc)):
        words, _, code = paragraph.partition("::\n\n")
        if words.strip():
            lines += [flat(words), ""]
        if code:
            lines += ["```python", *dedent(code).splitlines(), "```", ""]
    return lines[:-1]
