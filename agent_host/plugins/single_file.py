"""Finds the plugins in one Python file by reading it, so that nothing of it runs.

A plugin is a public class that has a name and derives from a base of a role, or says its role
itself; or a function made a tool. What else such a class says is known once it is imported.
"""

from __future__ import annotations

import ast
from pathlib import Path

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_hookspecs.errors import SourceError

__all__ = ["read_plugin_file"]

_BASES = ("ProviderPlugin", "ProviderExtensionPlugin", "FeaturePlugin", "ToolPlugin")


def read_plugin_file(file: Path) -> Descriptor:
    """The plugins of a file, in short form; a `SourceError` if there are none."""
    if not file.stem.isidentifier():
        raise SourceError(f"{file.name} cannot be imported by that name", hint="rename the file")
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"{file} is not Python: {error}", hint="correct the file") from None
    names = _plugin_names(tree)
    if not names:
        raise SourceError(
            f"there is no plugin in {file}",
            hint=f"derive a class from {', '.join(_BASES[:-1])} or {_BASES[-1]} and give it a "
            "name, or decorate a function with @tool",
        )
    return Descriptor(tuple(Entry.of_class(f"{file.stem}:{name}") for name in names))


def _plugin_names(tree: ast.Module) -> list[str]:
    found: list[str] = []
    roles: set[str] = {*_BASES}
    named: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = {_last_name(base) for base in node.bases}
            sets = _assigned_names(node)
            if bases & roles or "role" in sets:
                roles.add(node.name)
            if bases & named or "name" in sets:
                named.add(node.name)
            if node.name in roles and node.name in named and not node.name.startswith("_"):
                found.append(node.name)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            _last_name(each) == "tool" for each in node.decorator_list
        ):
            found.append(node.name)
    return found


def _assigned_names(node: ast.ClassDef) -> set[str]:
    targets: list[ast.expr] = []
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets.append(statement.target)
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _last_name(node: ast.expr) -> str:
    """The name of ``tool``, ``authoring.tool`` and ``tool(effect="read")`` alike."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
