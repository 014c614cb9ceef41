"""Which hooks a class defines, read from its source without importing or running it.

A method whose name is in the specification is an implementation, so its name is all that is
needed. Base classes are followed as far as the wheel has them; the others are named.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agent_hookspecs.descriptor import Entry, split_entry
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_hookspecs.specs import hooks_of

__all__ = ["DefinedHooks", "find_hooks"]

#: Longer chains of classes and of imports are not followed.
_MAX_STEPS = 30
#: The contract's own base classes implement nothing that an author has to be told.
_CONTRACT = "agent_hookspecs"
#: What keys of a descriptor say of hooks.
_CLAIMS = {
    "commands": "cli_command",
    "stores": "open_session_store",
    "resolves_secrets": "resolve_secret",
    "required_tags": "required_tags",
    "forbidden_tags": "forbidden_tags",
    "config_schema": "get_config_schema",
    "tools": "get_tool_schemas",
}

ReadSource = Callable[[str], "str | None"]


@dataclass
class DefinedHooks:
    """The hooks of a class, and the classes elsewhere whose hooks it has besides."""

    hooks: set[str] = field(default_factory=set)
    inherits: set[str] = field(default_factory=set)


def find_hooks(entry: Entry, read_source: ReadSource) -> DefinedHooks:
    """What the descriptor claims of an entry and what the source of its class defines."""
    roles = [entry.role] if entry.role else PLUGIN_ROLES
    known = {*hooks_of("host"), *(name for role in roles for name in hooks_of(role))}
    found = _Reader(read_source, known)
    found.read_class(*split_entry(entry.entry), steps=0)
    claimed = {hook for key, hook in _CLAIMS.items() if getattr(entry, key)}
    found.defined.hooks |= {*claimed, *entry.dynamic} & known
    return found.defined


class _Reader:
    """Reads one class and those that it is made of."""

    def __init__(self, read_source: ReadSource, known: set[str]) -> None:
        self._read_source = read_source
        self._known = known
        self._trees: dict[str, ast.Module | None] = {}
        self.defined = DefinedHooks()

    def read_class(self, module: str, name: str, *, steps: int) -> None:
        """Add what a class of a module defines, wherever the module has it from."""
        if module.partition(".")[0] == _CONTRACT:
            return
        tree = self._tree(module)
        if tree is None or steps > _MAX_STEPS:
            if steps:
                self.defined.inherits.add(f"{module}:{name}")
            return
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                self._read_body(node)
                for base in node.bases:
                    self._read_base(module, tree, base, steps)
                return
        origin = _imports(module, tree, self._is_package(module)).get(name)
        if origin is not None:
            self.read_class(*origin, steps=steps + 1)

    def _read_base(self, module: str, tree: ast.Module, base: ast.expr, steps: int) -> None:
        # What Generic[T] and its like are made of is in front of the brackets.
        base = base.value if isinstance(base, ast.Subscript) else base
        names = _imports(module, tree, self._is_package(module))
        if isinstance(base, ast.Name):
            origin = names.get(base.id, (module, base.id))
            self.read_class(*origin, steps=steps + 1)
        elif isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            before, last = names.get(base.value.id, ("", base.value.id))
            self.read_class(f"{before}.{last}".strip("."), base.attr, steps=steps + 1)

    def _read_body(self, node: ast.ClassDef) -> None:
        self.defined.hooks |= {*_defined_names(node)} & self._known

    def _is_package(self, module: str) -> bool:
        return self._read_source(f"{module}.__init__") is not None

    def _tree(self, module: str) -> ast.Module | None:
        if module not in self._trees:
            source = self._read_source(module)
            try:
                self._trees[module] = None if source is None else ast.parse(source)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                # Nothing is lost: the hooks of a class whose source cannot be read are not listed.
                self._trees[module] = None
        return self._trees[module]


def _defined_names(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield each.name
        elif isinstance(each, ast.Assign):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value:
            yield each.target.id


def _imports(module: str, tree: ast.Module, is_package: bool) -> dict[str, tuple[str, str]]:
    """Each name that a module imports, with the module and the name there."""
    found: dict[str, tuple[str, str]] = {}
    parts = module.split(".")
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name] = (origin, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                before, _, last = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                ).rpartition(".")
                found[alias.asname or last] = (before, last)
    return found
