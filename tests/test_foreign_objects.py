"""What belongs to other libraries is used by its public names and left as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    file
    for folder in (ROOT / "agent_host", ROOT / "hookspecs" / "src", *ROOT.glob("plugins/*/src"))
    for file in folder.rglob("*.py")
)
#: The standard library documents these, though their names begin with an underscore.
DOCUMENTED = {"sys._getframe", "os._exit"}
_WRITES = {"setdefault", "pop", "popitem", "update", "clear", "__setitem__", "__delitem__"}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def is_own(node: ast.expr) -> bool:
    """Whether it is the object whose code this is, or its class."""
    if isinstance(node, ast.Name):
        return node.id in ("self", "cls")
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "super"


def declared_names(tree: ast.AST) -> set[str]:
    """The attributes that this module's own classes have, and its own functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {node.attr} if is_own(node.value) else set()
        if isinstance(node, ast.ClassDef):
            stored = (each for child in node.body for each in ast.walk(child))
            found |= {
                each.id
                for each in stored
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
    return found


def imported_names(tree: ast.AST) -> set[str]:
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def root_of(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def private_uses(tree: ast.AST) -> Iterator[str]:
    own = declared_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            words = ast.unparse(node)
            if not is_own(node.value) and node.attr not in own and words not in DOCUMENTED:
                yield words
        elif isinstance(node, ast.ImportFrom) and not node.level:
            foreign = not (node.module or "").startswith(("agent_host", "agent_hookspecs"))
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            if foreign and any(is_private(part) for part in parts):
                yield ast.unparse(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if any(is_private(part) for part in alias.name.split(".")):
                    yield ast.unparse(node)


def changes(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What is assigned to, with what, as far as it is one target and one value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from zip(target.elts, node.value.elts, strict=False)
                else:
                    yield target, node.value
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            yield node.target, node.value
        elif isinstance(node, ast.Delete):
            yield from ((target, None) for target in node.targets)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
            yield ast.Attribute(node.args[0], "?"), None


def methods_of(tree: ast.AST) -> set[str]:
    """The names under which a class has functions; a decorator may make something else of one."""
    return {
        each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, FUNCTIONS) and not each.decorator_list
    }


def functions_of(tree: ast.AST) -> set[str]:
    """The names under which functions can be reached without an object."""
    in_classes = {
        each for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body
    }
    every = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
    return {node.name for node in every if node not in in_classes}


def patches(tree: ast.AST) -> Iterator[str]:
    """Assignments to attributes of what was imported, and functions put into other objects."""
    own, imported = declared_names(tree), imported_names(tree)
    methods, functions = methods_of(tree), functions_of(tree)
    for target, value in changes(tree):
        if not isinstance(target, ast.Attribute):
            continue
        is_function = (isinstance(value, ast.Name) and value.id in functions) or (
            isinstance(value, ast.Attribute) and is_own(value.value) and value.attr in methods
        )
        is_other = not is_own(target.value) and target.attr not in own
        if root_of(target) in imported or (is_other and is_function):
            yield ast.unparse(target)


def module_table_writes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            table, writes = node.value, not isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            table, writes = node.func.value, node.func.attr in _WRITES
        else:
            continue
        if writes and ast.unparse(table) == "sys.modules":
            yield ast.unparse(node)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_foreign_objects_are_used_by_public_names_and_are_not_changed(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    assert list(private_uses(tree)) == []
    assert list(patches(tree)) == []
    assert list(module_table_writes(tree)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("connection._h11_state.trailing_data", private_uses),
        ("import anyio._backends._asyncio", private_uses),
        ("from httpx._client import Client", private_uses),
        ("from dataclasses import _FIELDS", private_uses),
        ("import httpx\nhttpx.Client.send = None", patches),
        ("import json\nsetattr(json, 'loads', None)", patches),
        ("import os\ndel os.environ", patches),
        ("class A:\n def read(self): ...\n def f(self, s): s.recv = self.read", patches),
        ("def lost(): ...\ndef f(tls):\n tls.connection_lost = lost", patches),
        ("import sys\nsys.modules['x'] = 1", module_table_writes),
        ("import sys\nsys.modules.setdefault('x', 1)", module_table_writes),
        ("import sys\ndel sys.modules['x']", module_table_writes),
    ],
)
def test_the_rules_see_what_they_are_for(source: str, found: object) -> None:
    assert callable(found)
    assert list(found(ast.parse(source)))


def test_a_class_may_look_into_others_of_its_kind() -> None:
    source = (
        "class A:\n def __init__(self): self._a = 1\n def same(self, o): return o._a == self._a"
    )
    assert not list(private_uses(ast.parse(source)))
