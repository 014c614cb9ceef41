"""How the command line starts and ends: what it loads, its exit codes, its manners in a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hookspecs import API_VERSION
from agent_host import __version__
from agent_host.cli.app import EXIT_CODES
from making import (
    POISON,
    full,
    install,
    run_host,
    run_python,
    settle,
    write_metadata,
    write_package,
)

MODULES = """
from agent_host.cli import main
code = main(sys.argv[1:])
heavy = {"click", "httpx", "httpx2", "pydantic", "pydantic_core", "rich", "pluggy"}
heavy.add("importlib_metadata")
loaded = sorted(name for name in sys.modules if name in heavy or name.startswith("pkg_"))
print("loaded:", *loaded, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_told_without_loading_anything(tmp_path: Path, option: str) -> None:
    install(tmp_path, "one", source=POISON)
    run = run_python(MODULES, option, trees=[tmp_path])
    python = sys.version.split()[0]
    assert run.out == f"agent-host {__version__} (contract {API_VERSION}, Python {python})\n"
    assert run.err == "loaded:\n"


@pytest.mark.parametrize("output", [[], ["--json"]])
def test_listing_loads_no_plugin_and_nothing_heavy(tmp_path: Path, output: list[str]) -> None:
    tree = tmp_path / "tree"
    for name, role in (("one", "provider"), ("two", "extension"), ("three", "feature")):
        install(tree, name, role, source=POISON)
    write_package(tree, "pkg_named", init=POISON, descriptor={"entries": ["pkg_named.plugin:P"]})
    settle(tree)
    home = tmp_path / "home"
    cold = run_python(MODULES, "plugins", "list", *output, trees=[tree], home=home)
    checking = {"importlib_metadata", "pydantic", "pydantic_core"}
    assert cold.code == 0
    assert set(cold.err.split()) <= {"loaded:", "click", *checking}
    assert all(name in cold.out for name in ("one", "two", "three"))
    if (home / "cache" / "index").exists():
        # Not so where something on the path has just been installed.
        warm = run_python(MODULES, "plugins", "list", *output, trees=[tree], home=home)
        assert set(warm.err.split()) <= {"loaded:", "click"}
        assert warm.out == cold.out


def test_info_and_help_import_no_plugin(tmp_path: Path) -> None:
    install(tmp_path, "one", source=POISON, commands=["mine"])
    for arguments in (["plugins", "info", "one"], ["--help"], ["plugins", "--help"]):
        run = run_python(MODULES, *arguments, trees=[tmp_path])
        assert run.code == 0
        assert "pkg_" not in run.err


def test_python_dash_m_does_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent_host", "--version"], capture_output=True, check=True
    )
    assert done.stdout.startswith(b"agent-host ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 0),
        (["plugins"], 0),
        (["--help"], 0),
        (["plugins", "list"], 0),
        (["plugins", "info", "no-such-plugin"], 1),
        (["plugins", "explain", "--provider", "no-such-plugin"], 1),
        (["no-such-command"], 2),
        (["plugins", "list", "--no-such-option"], 2),
        (["plugins", "list", "--role", "wizard"], 2),
        (["plugins", "info"], 2),
        (["plugins", "list", "--prefer", "nonsense"], 2),
        (["completion", "tcsh"], 2),
    ],
)
def test_exit_codes_are_those_documented(arguments: list[str], code: int) -> None:
    run = run_host(*arguments)
    assert run.code == code
    assert code in EXIT_CODES
    assert "Traceback" not in run.out + run.err
    if code:
        assert run.err.startswith("error: ")
        assert "hint: " in run.err


def test_the_help_documents_the_exit_codes() -> None:
    shown = run_host("--help").out
    for code, meaning in EXIT_CODES.items():
        assert f"{code:>3}  {meaning}" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["plugins", "info", "x"],
        ["plugins", "info"],
        ["plugins", "list", "--role"],
        ["plugins", "explain", "--provider", "x"],
        ["plugins", "explain", "--set", "novalue"],
        ["--json"],
    ],
)
def test_errors_are_json_when_json_was_asked_for(arguments: list[str]) -> None:
    run = run_host(*arguments, "--json")
    assert run.code in (1, 2)
    error = run.json["error"]
    assert error["type"]
    assert error["message"]


ODD = [
    [""],
    ["\x1b[31m"],
    ["plugins", ""],
    ["plugins", "list", "--plugin", ""],
    ["plugins", "list", "--plugin", "path:\x1b]0;x\x07"],
    ["plugins", "list", "--plugin", "git+https://host.invalid/x@" + "0" * 40],
    ["plugins", "info", "\u202e\U0001f600"],
    ["plugins", "explain", "--set", "=", "--set", "a=1"],
    ["plugins", "explain", "--model", "\udcff"],
    ["plugins", "list", "--allow", "*", "--deny", "*", "--force", "x", "--enable", "x"],
    ["plugins", "list", "--prefer", "a=b", "--prefer", "a=c", "--role", "tool"],
    ["plugins", "list", "--json=1"],
    ["--", "plugins", "list"],
    ["-"],
    ["plugins", "doctor", "extra"],
]


@pytest.mark.parametrize("arguments", ODD)
def test_odd_arguments_never_give_a_traceback(arguments: list[str]) -> None:
    run = run_host(*arguments)
    assert run.code in (0, 1, 2)
    assert "Traceback" not in run.out + run.err
    assert "\x1b" not in run.out + run.err


def test_a_fault_of_our_own_is_reported_as_one_and_debuggable() -> None:
    code = """
import agent_host.plugins.load as loader
def failing(*args, **more):
    raise ArithmeticError("ours")
loader.load_catalog = failing
from agent_host.cli import main
sys.exit(main(sys.argv[1:]))
"""
    run = run_python(code, "plugins", "list")
    assert run.code == 70
    assert "agent-host itself failed: ArithmeticError: ours" in run.err
    assert "AGENT_HOST_DEBUG=1" in run.err
    assert run_python(code, "plugins", "list", "--json").json["error"]["type"] == "InternalError"
    debugged = run_python(code, "plugins", "list", AGENT_HOST_DEBUG="1")
    assert "Traceback" in debugged.err


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    for number in range(300):
        install(tmp_path, f"p{number}", source=POISON, label="x" * 300)
    for options in ([], ["--json"]):
        command = [sys.executable, "-c", _host(tmp_path), "plugins", "list", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(timeout=30) in (0, 1)


def _host(tree: Path) -> str:
    return (
        f"import site, sys; site.addsitedir({str(tree)!r})\n"
        "from agent_host.cli import main\nsys.exit(main(sys.argv[1:]))"
    )


def test_a_terminal_that_cannot_show_it_is_no_reason_to_fail(tmp_path: Path) -> None:
    install(tmp_path, "one", label="größer → \ud800 \U0001f600")
    for options in ([], ["--json"]):
        run = run_host("plugins", "list", *options, trees=[tmp_path], PYTHONIOENCODING="ascii")
        assert run.code == 0, run.err
        assert "one" in run.out
    assert run_host("plugins", "list", "--json", trees=[tmp_path]).plugin("one")["label"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_completion_script(shell: str) -> None:
    run = run_host("completion", shell)
    assert run.code == 0
    assert f"_AGENT_HOST_COMPLETE={shell}_complete" in run.out
    # Or fish breaks descriptions off at their first comma.
    assert 'string split ","' not in run.out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("agent-host ", "plugins"),
        ("agent-host plugins ", "explain"),
        ("agent-host plugins list --ro", "--role"),
        ("agent-host plugins list --role pro", "provider"),
        ("agent-host plugins info on", "one"),
        ("agent-host plugins info saw", "saw_wood"),
        ("agent-host plugins explain --provider ma", "main"),
        ("agent-host run --provider ma", "main"),
        ("agent-host run --provider al", "alias"),
        ("agent-host run --agent re", "reviewer"),
        ("agent-host run --provider main --model ma", "main-large"),
        ("agent-host run --model of", "of-the-alias"),
        ("agent-host run --tools sa", "saw_wood"),
        ("agent-host run --set spe", "speed="),
    ],
)
def test_completion_knows_commands_options_and_plugins(
    tmp_path: Path, words: str, wanted: str
) -> None:
    tree = tmp_path / "tree"
    install(tree, "one", source=POISON, config_schema={"speed": {"type": "integer"}})
    models = {"model": {"type": "string", "enum": ["main-small", "main-large"]}}
    install(tree, "main", "provider", source=POISON, config_schema=models)
    described = full("pkg_bench", "tool", "bench", tools={"saw_wood": "write"})
    install(tree, "bench", "tool", source=POISON, descriptor=described)
    config = {
        "providers": {"alias": {"provider": "main", "model": "of-the-alias"}},
        "agents": {"reviewer": {"provider": "alias"}},
    }
    (tmp_path / "agent-host.json").write_text(json.dumps(config), encoding="utf-8")
    run = run_host(
        trees=[tree],
        cwd=tmp_path,
        _AGENT_HOST_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
    )
    assert f"plain,{wanted}" in run.out.splitlines()
    assert run.err == ""


def test_interrupting_a_plugin_ends_with_130(tmp_path: Path) -> None:
    install(tmp_path, "one", source="raise KeyboardInterrupt")
    run = run_host("plugins", "doctor", trees=[tmp_path])
    assert run.code == 130
    assert "Traceback" not in run.err


def test_the_console_script_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("agent-host")
    if not os.access(script, os.X_OK):
        pytest.skip("agent-host is not installed in this environment")
    done = subprocess.run([script, "plugins", "list", "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["plugins"]


def test_version_and_completion_are_json_for_scripts() -> None:
    from agent_hookspecs import API_VERSION

    for options in (("--version", "--json"), ("--json", "-V")):
        assert run_host(*options).json["contract"] == API_VERSION
    shown = run_host("completion", "zsh", "--json").json
    assert shown["shell"] == "zsh"
    assert shown["script"].strip() == run_host("completion", "zsh").out.strip()


def test_metadata_in_the_working_folder_is_nobodys_installation(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_here", descriptor=full("pkg_here", "tool", "here"))
    write_metadata(tmp_path, "dist-here", {"here": "pkg_here"})
    done = subprocess.run(
        [sys.executable, "-m", "agent_host", "plugins", "list", "--json"],
        cwd=tmp_path,
        env={**os.environ, "AGENT_HOST_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "dist-here" not in done.stdout
