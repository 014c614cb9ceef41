"""The rules of the repository's shape, read off its sources."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_host
from agent_hookspecs import errors, events
from agent_hookspecs.specs import SPECS, hooks_of

ROOT = Path(__file__).resolve().parent.parent
HOST = ROOT / "agent_host"
CONTRACT = ROOT / "hookspecs" / "src" / "agent_hookspecs"
#: The conformance kit is no plugin of the host; it may import both.
PLUGINS = [path for path in sorted(ROOT.glob("plugins/*")) if path.name != "testing"]

#: Whoever these are, the host must not know them.
PROVIDER_NAMES = re.compile(
    r"anthropic|azure|bedrock|claude|cohere|deepseek|fireworks|gemini|google|gpt-|groq|huggingface"
    r"|kimi|llama|lmstudio|mistral|moonshot|ollama|openai|openrouter|perplexity|qwen|vertex|vllm"
    r"|\bxai\b|\becho\b",
    re.IGNORECASE,
)
#: Formats built into tool interop are named after the API that made them common; a distribution
#: may be trusted by name without a word about what it provides.
ALLOWED = re.compile(r"openai\.(chat_completions|responses)(\.\w+)?|agent-host-\w+|\becho\(")


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is named; a relative import can only name the package itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def tops(file: Path) -> set[str]:
    tree = ast.parse(file.read_text("utf-8"))
    return {name.partition(".")[0] for name in imports(tree)}


def foreign(file: Path) -> set[str]:
    return tops(file) - sys.stdlib_module_names - {"__future__"}


@pytest.mark.parametrize("file", sources(CONTRACT), ids=lambda file: file.name)
def test_the_contract_imports_the_standard_library_and_pluggy_only(file: Path) -> None:
    # Typed functions become tools with pydantic, which is loaded when such a tool is first used,
    # and typed dicts are read with what pydantic reads them with.
    assert foreign(file) <= {"agent_hookspecs", "pluggy", "pydantic", "typing_extensions"}
    now = {name.partition(".")[0] for name in dependencies(file, "agent_hookspecs")}
    assert "pydantic" not in now


def test_dataclasses_are_made_so_that_starting_stays_quick() -> None:
    # Not asked of plugins, which pay for it when they are loaded and not before.
    files = [*sources(HOST), *sources(CONTRACT)]
    made = re.compile(
        r"^(from dataclasses import .*\bdataclass\b|import dataclasses)", re.MULTILINE
    )
    assert [file for file in files if made.search(file.read_text("utf-8"))] == []


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_a_plugin_never_imports_the_host(plugin: Path) -> None:
    files = sources(plugin / "src")
    assert files
    for file in files:
        assert "agent_host" not in tops(file), file


def declared(plugin: Path, *, for_tests: bool = False) -> set[str]:
    """The packages of the distributions that a plugin says it depends on."""
    text = (plugin / "pyproject.toml").read_text("utf-8")
    key = "dependencies|test" if for_tests else "dependencies"
    lists = "".join(re.findall(rf"^(?:{key}) = (\[.*\])$", text, re.MULTILINE))
    return {name.replace("-", "_") for name in re.findall(r'"([\w-]+)', lists)}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_a_plugin_of_the_repository_imports_what_it_depends_on(plugin: Path) -> None:
    own = {path.name for path in ROOT.glob("plugins/*/src/*") if path.is_dir()}
    itself = {path.name for path in (plugin / "src").iterdir()}
    for file in sources(plugin / "src"):
        undeclared = foreign(file) & (own - itself) - declared(plugin)
        assert not undeclared, f"{file} imports another plugin"


@pytest.mark.parametrize("plugin", sorted(ROOT.glob("plugins/*")), ids=lambda path: path.name)
def test_the_tests_of_a_plugin_import_what_it_or_its_test_extra_depends_on(plugin: Path) -> None:
    # Each is tested alone in its environment, but only there would a missing one be noticed.
    own = {path.name for path in (plugin / "src").iterdir()}
    # The host itself is always there, and brings the fallback provider.
    allowed = own | declared(plugin, for_tests=True) | {"agent_host", "agent_host_echo"}
    used = {name for file in sources(plugin / "tests") for name in tops(file)}
    assert {name for name in used if name.startswith("agent_host")} <= allowed


def test_the_host_imports_no_plugin() -> None:
    own = {path.name for path in ROOT.glob("plugins/*/src/*") if path.is_dir()}
    for file in sources(HOST):
        assert not tops(file) & own, file


def test_the_http_client_is_imported_in_exactly_one_module() -> None:
    libraries = {"httpx", "httpx2", "httpcore", "httpcore2"}
    users = [module_name(f) for f in sources(HOST) if tops(f) & libraries]
    assert users == ["agent_host.wire.client"]


def dependencies(file: Path, package: str) -> set[str]:
    """What importing this module imports, as far as its own statements say."""
    found: set[str] = set()
    pending: list[ast.stmt] = list(ast.parse(file.read_text("utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            pending += node.body
    return found


@pytest.mark.parametrize("folder", [HOST, CONTRACT], ids=["host", "contract"])
def test_no_modules_import_each_other_in_a_circle(folder: Path) -> None:
    needs: dict[str, set[str]] = {}
    for file in sources(folder):
        package = ".".join(file.parent.relative_to(folder.parent).parts)
        name = package if file.stem == "__init__" else f"{package}.{file.stem}"
        needs[name] = dependencies(file, package) - {name}
    graph = {name: needed & set(needs) for name, needed in needs.items()}
    done: set[str] = set()
    while len(done) < len(graph):
        ready = {name for name in graph if name not in done and graph[name] <= done}
        assert ready, f"a circle among {sorted(set(graph) - done)}"
        done |= ready


#: The rooms of the host from the lowest to the highest; each imports only from those before it.
ROOMS = (
    "base",
    "input",
    "sessions",
    "store",
    "wire",
    "drivers",
    "plugins",
    "turn",
    "output",
    "runs",
    "agent",
    "distributions",
    "application",
    "cli",
)
#: Modules beside the folders that know nothing of the host.
BASE = {
    "_version",
    "checking",
    "json_schemas",
    "key_file",
    "key_store",
    "places",
    "prices",
    "private",
    "redaction",
    "threads",
    "trust",
    "usage",
}


def room(module: str) -> str:
    """The room that a module of the host stands in."""
    _, name, *_ = [*module.split("."), ""]
    if name in ROOMS:
        return name
    return "base" if name in BASE else "application"


@pytest.mark.parametrize("file", sources(HOST), ids=lambda file: module_name(file))
def test_a_room_of_the_host_imports_only_from_those_below_it(file: Path) -> None:
    if file.name in ("__init__.py", "__main__.py") and file.parent == HOST:
        # The package itself names what it loads on first use.
        return
    own = ROOMS.index(room(module_name(file)))
    package = ".".join(file.parent.relative_to(ROOT).parts)
    modules = {name for name in dependencies(file, package) if name.startswith("agent_host.")}
    above = {name for name in modules if ROOMS.index(room(name)) > own}
    assert not above


@pytest.mark.parametrize("file", sources(HOST), ids=lambda file: module_name(file))
def test_no_provider_is_known_to_the_host_by_name(file: Path) -> None:
    text = ALLOWED.sub("", file.read_text("utf-8"))
    if file.parent.name == "cli":
        # What people read and try out may name the plugin that every installation has.
        text = re.sub(r"\becho\b", "", text)
    assert PROVIDER_NAMES.search(text) is None


def test_the_public_names_of_the_host_are_these() -> None:
    own = [
        "AgentApplication",
        "AgentCore",
        "Answer",
        "AppConfig",
        "Approval",
        "AsyncStream",
        "Audio",
        "CoreMessage",
        "Decision",
        "Edited",
        "EventFeed",
        "File",
        "Image",
        "InputError",
        "Limits",
        "OutputCutError",
        "OutputError",
        "OutputInvalidError",
        "OutputRefusedError",
        "Prompt",
        "ResumeOptions",
        "RunEvent",
        "RunOptions",
        "Session",
        "Stream",
        "Usage",
        "__version__",
    ]
    # Errors and events again, whose own lists the contract's tests pin.
    assert agent_host.__all__ == sorted([*errors.__all__, *events.__all__, *own])
    assert all(hasattr(agent_host, name) for name in agent_host.__all__)


@pytest.mark.parametrize("file", [*sources(HOST), *sources(CONTRACT)], ids=str)
def test_a_module_says_what_it_owns_and_what_it_offers(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    assert ast.get_docstring(tree), "a module opens with a paragraph"
    functions = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    public = [node.name for node in functions if not node.name.startswith("_")]
    declared = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert declared or not public, "what is public stands in __all__"


def reference() -> str:
    """The hooks reference as the specifications make it."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rendered = module.render_hooks()
    assert isinstance(rendered, str)
    return rendered


def test_the_hooks_reference_is_what_the_specifications_say() -> None:
    written = (ROOT / "docs" / "hooks.md").read_text("utf-8")
    assert written == reference(), "write it anew: python docs/generate.py"


def test_every_hook_stands_in_the_reference_with_its_exact_signature() -> None:
    written = (ROOT / "docs" / "hooks.md").read_text("utf-8")
    for role in SPECS:
        for hook in hooks_of(role).values():
            assert hook.signature in written, f"{role}.{hook.name}"
