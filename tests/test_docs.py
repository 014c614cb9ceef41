"""The documentation is true: its code runs, its output is what is printed, its tables agree.

Every block of every page is looked at by one of these tests; one that none knows is a failure.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import pytest

import test_hook_order as hook_order
from agent_hookspecs import AgentError, errors
from agent_hookspecs.specs import SPECS, hooks_of
from agent_host.agent import preview as previews
from agent_host.agent.policy import Approval, ToolUse
from agent_host.cli import asking
from agent_host.cli.approval import approval_rows
from agent_host.cli.outside import GUTTER
from agent_host.config import parse_config
from agent_host.plugins.descriptor import parse_descriptor
from documented import (
    LANGUAGES,
    PAGES,
    READMES,
    ROOT,
    TUTORIALS,
    Block,
    Command,
    blocks,
    commands,
    missing,
)
from workshop import Workshop

DOCS = ROOT / "docs"
README = ROOT / "README.md"
LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")


@cache
def generator() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "generate.py"))


#: Pages that are compared with the generator's as a whole; their blocks are signatures.
GENERATED = [DOCS / name for name in ("hooks.md", "descriptor.md", "events.md", "kit-names.md")]
#: Tutorials are walked through from end to end, in test_tutorials.py.
SINGLE = [page for page in PAGES if page not in GENERATED and page not in TUTORIALS]


def of_kind(*languages: str, pages: list[Path]) -> list[Any]:
    found = [block for page in pages for block in blocks(page, *languages)]
    return [pytest.param(block, id=block.where) for block in found]


# Blocks.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    known = [each for each in LANGUAGES if each != "diff" or page in TUTORIALS]
    odd = [block.where for block in blocks(page) if block.language not in known]
    assert not odd, f"their language is none of {', '.join(known)}"
    fences = re.findall(r"^\s*```", page.read_text("utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), "a fence that is indented, or open"


@pytest.mark.parametrize("block", of_kind("python", pages=[*SINGLE, *READMES]))
def test_python_blocks_run(block: Block, tmp_path: Path) -> None:
    # What the page has as a file can be imported by its other blocks.
    files = [each for each in blocks(block.page, "python") if each.file]
    for each in files:
        (tmp_path / each.file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each.file).write_text(each.text, encoding="utf-8")
    lacking = {*missing(block)} - {Path(each.file).stem for each in files}
    if lacking:
        pytest.skip(f"needs {', '.join(sorted(lacking))}")
    script = tmp_path / "block.py"
    script.write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
        env=_environment(tmp_path),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, f"{block.where}:\n{done.stderr}"
    # What stands beside a print is printed by it.
    promised = re.findall(r"^ *print\(.*\)  # (.+)$", block.text, re.MULTILINE)
    assert [line for line in promised if line not in done.stdout.splitlines()] == []


def _environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "AGENT_HOST_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


@pytest.mark.parametrize("block", of_kind("json", pages=[*PAGES, *READMES]))
def test_json_blocks_are_what_they_look_like(block: Block) -> None:
    value = json.loads(block.text)
    if "entries" in value:
        parse_descriptor(value)
    elif {"providers", "agents"} & {*value}:
        parse_config(value)


@pytest.mark.parametrize("block", of_kind("toml", pages=PAGES))
def test_toml_blocks_are_toml(block: Block) -> None:
    module = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    assert module.loads(block.text)


@pytest.mark.parametrize("block", of_kind("console", pages=SINGLE))
def test_consoles_show_what_is_printed(block: Block, tmp_path: Path) -> None:
    if "plugins new" in block.text:
        pytest.importorskip("cookiecutter", reason="needs cookiecutter")
    if "keys set openai" in block.text:
        pytest.importorskip("agent_host_openai", reason="needs agent-host-openai")
    Workshop(tmp_path).follow(block)


# Drawings and quotations.


def _hooks_in(text: str) -> list[str]:
    known = {name for role in SPECS for name in hooks_of(role)}
    return [word for word in re.findall(r"[a-z_]{4,}", text) if word in known and "_" in word]


def _draws_the_path_of_a_request(block: Block) -> None:
    order = ["initialize_request", "build_request", "process_chunk", "from_native_messages"]
    assert _hooks_in(block.text) == order


def _lists_hooks_with_roles_that_have_them(block: Block) -> None:
    """In which order they are called is compared with a run elsewhere."""
    lines = [line for line in block.text.splitlines() if line and line[0] != "#"]
    listed = [
        (role, hook)
        for hook, roles in (line.split(maxsplit=1) for line in lines)
        for role in roles.split(", ")
    ]
    known = {(role, hook) for role in SPECS for hook in hooks_of(role)}
    assert set(listed) <= known


def _draws_three_packages(block: Block) -> None:
    assert re.findall(r"[a-z_]+", block.text) == ["plugins", "agent_hookspecs", "agent_host"]


def _quotes_a_check(block: Block) -> None:
    suites = pytest.importorskip("agent_host_testing", reason="needs agent_host_testing")
    asked = re.search(r"the contract asks: (.+)", block.text)
    place = re.search(r"written in: +docs/testing.md#(\S+)", block.text)
    assert asked
    assert place
    suite = suites.ProviderConformance
    sentences = [getattr(suite, name).__doc__ for name in dir(suite) if name.startswith("test_")]
    assert asked[1] in sentences
    assert place[1] in anchors(DOCS / "testing.md")


def _is_the_tree(block: Block) -> None:
    assert block.text.strip() in (errors.__doc__ or "")


def _installs_the_peers_of_the_benchmarks(block: Block) -> None:
    peers = runpy.run_path(str(ROOT / "benchmarks" / "peers" / "installed.py"))["PEERS"]
    installed = " ".join(re.findall(r" install (.+)", block.text))
    assert sorted(shlex.split(installed)) == sorted(peer.wanted for peer in peers.values())


def _shows_a_question(block: Block) -> None:
    old, new = ("Monday\nTuesday\nThursday\n", "Monday\nWednesday\nThursday\n")
    given = [{"path": "notes.txt", "before": old, "after": new}]
    use = ToolUse(
        "1", "write_file", "write", "agent-host-files", {"content": new, "path": "notes.txt"}
    )
    approval = Approval(use, use.digest, previews._compare_all(given))
    rows = [f"{GUTTER} {row.text}" for row in approval_rows(approval, 78).rows]
    words = [f"{GUTTER} {line}" for line in asking.describe_words(can_view=True).split("\n")]
    assert [line.rstrip() for line in block.text.splitlines()] == [*rows, *words]


def _draws_the_way_through_a_gateway(block: Block) -> None:
    doors = import_or_skip("agent_host_gateway.doors.chat")
    upstream = import_or_skip("agent_host_gateway.upstream")
    for name in re.findall(r"door: ([^─]+)", block.text):
        assert all(hasattr(doors, each.strip()) for each in name.split(","))
    assert upstream.__doc__.startswith("Whom a request is for")


def _has_the_limits_of_the_gateway(block: Block) -> None:
    settings = import_or_skip("agent_host_gateway.settings").Settings()
    assert f"client_max_body_size {settings.max_body_bytes >> 20}m;" in block.text
    assert f"proxy_read_timeout {settings.request_seconds}s;" in block.text


def _names_the_address_of_the_gateway(block: Block) -> None:
    command = import_or_skip("agent_host_gateway.command").make_group(lambda: None)
    (port,) = [each.default for each in command.params if each.name == "port"]
    assert f":{port}" in block.text


def _draws_what_a_team_runs(block: Block) -> None:
    group = import_or_skip("agent_host_gateway.command").make_group(lambda: None)
    assert f"agent-host {group.name}" in block.text
    page = (DOCS / "gateway.md").read_text("utf-8")
    assert all(path in page for path in re.findall(r"/[a-z]+(?=\))", block.text))


def _names_commands_that_there_are(block: Block) -> None:
    from agent_host.cli.app import root

    for line in block.text.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "agent-host"
        command: click.Command = root
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        known = {option for param in command.params for option in param.opts}
        assert {word for word in words if word.startswith("-")} <= known, line
    for name in re.findall(r" agent-host-([\w-]+)", block.text):
        assert (ROOT / "plugins" / name / "pyproject.toml").is_file()


def import_or_skip(module: str) -> Any:
    return pytest.importorskip(module, reason=f"needs {module.partition('.')[0]}")


DRAWINGS: dict[tuple[str, str], Callable[[Block], None]] = {
    ("README.md", "How a request flows"): _draws_the_path_of_a_request,
    ("cli.md", "Approvals"): _shows_a_question,
    ("architecture.md", "Architecture"): _draws_three_packages,
    ("order.md", "From discover to store"): _draws_the_path_of_a_request,
    ("order.md", "The calls of a run"): _lists_hooks_with_roles_that_have_them,
    ("testing.md", "What a failure says"): _quotes_a_check,
    ("errors.md", "Errors"): _is_the_tree,
    ("performance.md", "Measuring"): _installs_the_peers_of_the_benchmarks,
    ("gateway.md", "Design"): _draws_the_way_through_a_gateway,
    ("gateway.md", "Several machines"): _has_the_limits_of_the_gateway,
    ("gateway.md", "Clients"): _names_the_address_of_the_gateway,
    ("team.md", "For a team"): _draws_what_a_team_runs,
    ("team.md", "One environment"): _names_commands_that_there_are,
    ("batch.md", "Past one machine"): _names_commands_that_there_are,
}


@pytest.mark.parametrize("block", of_kind("text", pages=PAGES))
def test_drawings_agree_with_the_code(block: Block) -> None:
    DRAWINGS[block.page.name, block.heading](block)


def _rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    text = (DOCS / page).read_text("utf-8").partition(f"# {heading}\n")[2]
    table = re.search(r"^\|.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert table, f"{page} has no table below {heading!r}"
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_order_of_hooks_is_as_the_table_says() -> None:
    acting = ("get_actions", "execute_action")
    before = [
        *hook_order.BEFORE[: hook_order.BEFORE.index("p.get_actions")],
        *hook_order.BEFORE[hook_order.BEFORE.index("f1.select_tools") :],
    ]
    order = [*hook_order.COLD, *before, *hook_order.STREAMED, *hook_order.AFTER]
    calls = [tuple(each.split(".")) for each in order]
    asked = [call for call in calls if call[1] not in (*acting, "required_tags", "forbidden_tags")]
    roles = {"p": "provider", "e": "extensions", "f": "features", "t": "tools"}
    actual = [
        (hook, list(dict.fromkeys(roles[plugin[0]] for plugin, _ in run)))
        for hook, run in groupby(asked, key=lambda call: call[1])
    ]
    said = [
        (hook, row[2].split(", "))
        for row in _rows("order.md", "The hooks of a request")
        for hook in _codes(row[1])
    ]
    assert said == actual


# Tables.


def test_generated_pages_are_current() -> None:
    for name, render in generator()["PAGES"].items():
        current = (DOCS / name).read_text("utf-8")
        assert current == render(), f"run python docs/generate.py to renew docs/{name}"


def test_every_tag_of_the_bundled_packages_is_explained() -> None:
    assert generator()["named_tags"]() == {*generator()["TAGS"]}


def test_every_bundled_provider_is_in_the_overview() -> None:
    page = (DOCS / "providers.md").read_text("utf-8")
    packages = {f"agent-host-{package}" for package, _ in generator()["providers"]()}
    assert packages == {*re.findall(r"^\| \[`(agent-host-[\w-]+)`\]", page, re.MULTILINE)}
    for _, entry in generator()["providers"]():
        assert f"| `{entry['name']}` |" in page


def test_every_key_of_a_context_is_explained() -> None:
    from agent_host.plugins.outgoing import TRACE_CONTEXT
    from agent_host.turn.context import RESERVED

    headings = ("Of a request", "Of an action", "Of a tool")
    rows = [row for heading in headings for row in _rows("contexts.md", heading)]
    # This one a caller may name, too.
    assert {key for row in rows for key in _codes(row[0])} == {*RESERVED, TRACE_CONTEXT}


@pytest.mark.parametrize(
    ("room", "heading"),
    [("plugins", "From packages to a stack: `plugins/`"), ("wire", "`wire/`")],
)
def test_every_module_of_a_room_stands_in_its_table(room: str, heading: str) -> None:
    folder = ROOT / "agent_host" / room
    named = [Path(name) for row in _rows("architecture.md", heading) for name in _codes(row[0])]
    here = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    rooms = {file.parent.name for file in folder.glob("*/__init__.py")}
    modules = {file.stem for file in folder.rglob("*.py")}
    assert {name.parts[0] for name in named} >= here | rooms
    assert {name.stem for name in named} <= modules | rooms


def test_the_walk_of_a_request_names_what_there_is() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    walk = text.partition("\n## The walk of one request\n")[2].partition("\n## ")[0]
    files = {str(file) for file in (ROOT / "agent_host").rglob("*")}
    code = "".join(
        file.read_text("utf-8")
        for folder in (ROOT / "agent_host", ROOT / "hookspecs" / "src")
        for file in folder.rglob("*.py")
    )
    defined = {*re.findall(r"(?:def|class) (\w+)", code)}
    for name in _codes(walk):
        if "/" in name or name.endswith(".py"):
            assert any(file.endswith(f"/{name.rstrip('/')}") for file in files), name
        elif name != "done":
            assert name.rpartition(".")[2] in defined | {"keep"}, name


def test_everything_that_errors_have_is_explained() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    rows = _rows("errors.md", "What an error has")
    explained = {key for row in rows for key in _codes(row[0])}
    for kind in kinds:
        assert issubclass(kind, AgentError)
        assert {*kind.details} <= explained, kind.__name__


def test_every_command_stands_in_the_docs() -> None:
    from agent_host.cli.app import root

    page = (DOCS / "cli.md").read_text("utf-8")
    context = click.Context(root)
    names = root.list_commands(context)
    assert "plugins" in names
    for name in names:
        command = root.get_command(context, name)
        below = command.list_commands(context) if isinstance(command, click.Group) else []
        for full in [f"{name} {sub}" for sub in below] or [name]:
            assert f"`agent-host {full}" in page, full


def test_exit_codes_stand_in_the_docs_as_they_are() -> None:
    from agent_host.cli.app import EXIT_CODES

    rows = _rows("cli.md", "Exit codes")
    assert {int(code): text.replace("`", "") for code, text in rows} == EXIT_CODES


def test_every_benchmark_that_a_page_names_is_one() -> None:
    from benchmarks.__main__ import NAMES

    for page in (DOCS / "scale.md", DOCS / "performance.md"):
        text = page.read_text("utf-8")
        named = " ".join(re.findall(r"`python -m benchmarks ([a-z_ ]+)`", text)).split()
        assert named
        assert {*named} <= {*NAMES}
        for module in re.findall(r"`python -m benchmarks\.(\w+)", text):
            assert (ROOT / "benchmarks" / f"{module}.py").exists()


# Links.


@cache
def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {each.replace(" ", "-") for each in words}


@pytest.mark.parametrize(
    "page", [*PAGES, *READMES], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(place), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_table_of_contents() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    for page in PAGES[1:]:
        if page.name != "README.md":
            assert f"]({page.relative_to(DOCS).as_posix()})" in index


def test_what_the_kit_refers_to_is_there() -> None:
    sources = (ROOT / "plugins" / "testing" / "src").rglob("*.py")
    found = [
        each
        for source in sources
        for each in re.findall(r'"docs/([\w/]+\.md)#([\w-]+)"', source.read_text("utf-8"))
    ]
    assert found
    for page, anchor in found:
        assert anchor in anchors(DOCS / page), f"docs/{page}#{anchor}"


# The README.


def _is_a_label_of_tox() -> None:
    assert re.search(r"^labels =\n +ci = ", (ROOT / "tox.ini").read_text("utf-8"), re.MULTILINE)


def _asks_a_provider() -> None:
    names = [entry["name"] for _, entry in generator()["providers"]()]
    assert "anthropic" in names


#: Commands of ``sh`` blocks that need a network, and what is true of each without one.
SET_UP: dict[str, Callable[[], None]] = {
    "python3 -m venv .venv": lambda: None,
    ". .venv/bin/activate": lambda: None,
    "pip install -r requirements.txt": lambda: None,  # test_requirements.py reads it.
    "pip install tox": lambda: None,
    "tox -m ci": _is_a_label_of_tox,
    "agent-host keys set anthropic": lambda: None,  # test_cli_keys.py types and pipes keys in.
    'agent-host run --model anthropic/claude-sonnet-4-5 "Hello"': _asks_a_provider,
    "agent-host models": lambda: None,  # test_cli_models.py asks servers of its own.
}


@pytest.mark.parametrize("block", of_kind("sh", pages=[README]))
def test_the_commands_of_the_readme_do_what_it_says(block: Block, tmp_path: Path) -> None:
    steps = [step for command in commands(block) for step in command.line.split(" && ")]
    for step in steps:
        if step in SET_UP:
            SET_UP[step]()
        else:
            Workshop(tmp_path).run(Command(step), block.where)


def test_two_commands_are_all_it_takes() -> None:
    install, check = (commands(block) for block in blocks(README, "sh")[:2])
    assert len(install) == len(check) == 1
    assert install[0].line.endswith(" && agent-host demo --yes")


def test_programs_of_the_readme_take_fewer_than_twenty_lines() -> None:
    programs = [block.text for block in blocks(README, "python") if block.heading == "In a program"]
    typed, with_tool, watching = programs
    for program in programs:
        assert len([line for line in program.splitlines() if line.strip()]) < 20
    assert "output_type=" in typed
    assert "Image(" in typed
    assert "@tool" in with_tool
    assert "async def main" in watching


# The smallest package.


def test_the_smallest_package_works_as_written(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    page = DOCS / "plugins.md"
    made = [block for block in blocks(page) if block.heading == "The smallest package"]
    for block in made:
        if block.file:
            workshop.follow(block)
    (typed,) = blocks(page, "sh")
    install, *lines = [command.line for command in commands(typed)]
    assert install == "pip install -e ./hello"
    assert lines == ["agent-host plugins list", 'agent-host run --provider hello "World"']
    # In place of installing it, which needs a build backend.
    source = {"plugins": [f"path:{workshop.folder / 'hello'}"]}
    (workshop.folder / "config.json").write_text(json.dumps(source), encoding="utf-8")
    asked = lines[1].replace(" run ", " run --config config.json ")
    workshop.run(Command(asked, "Hello, World!"), typed.where)


def test_commands_without_output_stand_where_a_test_looks() -> None:
    places = {block.where for page in PAGES for block in blocks(page, "sh")}
    looked_at = [*blocks(README, "sh"), *blocks(DOCS / "plugins.md", "sh")]
    assert places == {block.where for block in looked_at}
