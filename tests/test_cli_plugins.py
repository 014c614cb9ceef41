"""What ``agent-host plugins`` shows to people and to scripts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from agent_host.cli.app import root
from making import (
    EXTENSION,
    FEATURE,
    POISON,
    PROVIDER,
    full,
    install,
    run_host,
    run_python,
    write_package,
)

MODEL = """
    def get_models(self, config):
        return [{"id": "small"}, {"id": "large"}]

    def get_tags(self, config):
        return ["supports_tools"] if config.get("model") == "large" else []
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A provider, two extensions that depend on its tags, and a feature that is off."""
    folder = tmp_path / "tree"
    install(
        folder,
        "main",
        "provider",
        source=PROVIDER.format(name="main") + MODEL,
        label="Main",
        provides_tags=["provider:main"],
        dynamic=["get_tags", "get_models"],
    )
    install(folder, "tools", required_tags=["supports_tools"], after=["first"])
    install(folder, "first", priority=7, provides_tags=["from-first"])
    install(folder, "audit", "feature", default_enabled=False)
    return folder


def test_list_groups_by_role_and_says_only_what_is_worth_saying(tree: Path) -> None:
    run = run_host("plugins", "list", trees=[tree], COLUMNS="200")
    assert run.code == 0
    lines = {line.split()[0]: line.split() for line in run.out.splitlines() if line}
    assert lines["PROVIDERS"] == ["PROVIDERS", "STATE", "FROM", "NOTE"]
    assert lines["main"] == ["main", "no", "key", "needed", "dist-main", "1.0", "Main"]
    assert lines["audit"] == ["audit", "off", "dist-audit", "1.0"]
    assert lines["first"] == ["first", "dist-first", "1.0"]
    assert "discovered" not in run.out


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_list_fits_the_width_of_the_terminal(tree: Path, columns: int) -> None:
    install(tree, "keyed", "provider", requires_api_key=True, key_variable="KEYED_API_KEY")
    run = run_host("plugins", "list", trees=[tree], COLUMNS=str(columns))
    # A name that is longer than a line stays in one piece, and alone.
    long = [line for line in run.out.splitlines() if len(line) > columns]
    assert [line for line in long if " " in line] == []
    assert ("dist-keyed" in run.out) is (columns == 200)


KEYED: dict[str, Any] = {"requires_api_key": True, "key_variable": "KEYED_API_KEY"}


@pytest.mark.parametrize(
    ("config", "env", "state", "place"),
    [
        (None, {}, "key missing", "set KEYED_API_KEY"),
        (None, {"KEYED_API_KEY": "k"}, "key set", "from KEYED_API_KEY"),
        ({"env": {"KEYED_API_KEY": "k"}}, {}, "key set", "from KEYED_API_KEY"),
        ({"request_defaults": {"api_key": "k"}}, {}, "key set", "from request_defaults"),
        ({"providers": {"a": {"provider": "keyed"}}}, {}, "key missing", "set KEYED_API_KEY"),
        (
            {"providers": {"a": {"provider": "keyed", "api_key_file": "key.txt"}}},
            {},
            "key set",
            "from providers.a",
        ),
        (
            {"providers": {"a": {"provider": "keyed", "api_key": "${env:MINE}"}}},
            {"KEYED_API_KEY": "k"},
            "key missing",
            "set MINE",
        ),
        (
            {"providers": {"a": {"provider": "keyed", "api_key": "${env:MINE}"}}},
            {"MINE": "k"},
            "key set",
            "which a run would use, from providers.a",
        ),
        (
            {"agents": {"default": {"provider": "keyed", "api_key": "k"}}},
            {},
            "key set",
            "from agents.default",
        ),
        ({"denied_plugins": ["keyed"]}, {}, "denied", "bundle 'keyed' is denied"),
        ({"allowed_plugins": ["main"]}, {}, "not allowed", "not on the allow list"),
    ],
)
def test_list_says_whether_config_or_environment_has_the_key(
    tmp_path: Path, config: dict[str, Any] | None, env: dict[str, str], state: str, place: str
) -> None:
    install(tmp_path / "tree", "keyed", "provider", source=POISON, **KEYED)
    if config is not None:
        (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    named = ["--config", "c.json"] if config is not None else []
    run = run_host(
        "plugins", "list", *named, trees=[tmp_path / "tree"], cwd=tmp_path, COLUMNS="200", **env
    )
    (line,) = [line for line in run.out.splitlines() if line.startswith("keyed ")]
    assert state in line
    assert place in line


def test_what_a_provider_needs_besides_a_key_is_said(tmp_path: Path) -> None:
    install(tmp_path, "far", "provider", source=POISON, requires_base_url=True)
    line = run_host("plugins", "list", trees=[tmp_path], COLUMNS="80").out
    assert "far " in line
    record = run_host("plugins", "list", "--json", trees=[tmp_path]).plugin("far")
    assert (record["key"], record["missing"]) == ("none", ["base_url"])


def test_the_config_that_a_run_would_find_is_obeyed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    install(tree, "one", source=POISON)
    (tmp_path / "agent-host.json").write_text('{"denied_plugins": ["one"]}', encoding="utf-8")
    run = run_host("plugins", "list", "--json", trees=[tree], cwd=tmp_path)
    assert run.plugin("one")["reason"] == "bundle 'one' is denied"


@pytest.mark.parametrize("command", [["list"], ["info", "one"], ["explain"], ["doctor"]])
def test_a_config_that_needs_trust_is_refused_as_a_run_refuses_it(
    tmp_path: Path, command: list[str]
) -> None:
    install(tmp_path / "tree", "one")
    (tmp_path / "agent-host.json").write_text('{"plugins": ["path:p"]}', encoding="utf-8")
    ran = run_host("run", "Hello", trees=[tmp_path / "tree"], cwd=tmp_path)
    asked = run_host("plugins", *command, trees=[tmp_path / "tree"], cwd=tmp_path)
    assert (asked.code, asked.err) == (1, ran.err)
    assert "agent-host config trust" in asked.err


@pytest.mark.parametrize(
    "options", [["--agent", "nobody"], ["--provider", "nobody"], ["--config", "nothing.json"]]
)
@pytest.mark.parametrize("command", [["list"], ["info", "one"], ["explain"], ["doctor"]])
def test_what_a_run_would_not_find_is_an_error(
    tmp_path: Path, command: list[str], options: list[str]
) -> None:
    install(tmp_path / "tree", "one")
    run = run_host("plugins", *command, *options, trees=[tmp_path / "tree"], cwd=tmp_path)
    assert run.code == 1, run.out
    assert options[1] in run.err


def test_list_can_be_limited_to_a_role(tree: Path) -> None:
    run = run_host("plugins", "list", "--role", "extension", "--json", trees=[tree])
    assert {record["role"] for record in run.json["plugins"]} == {"extension"}
    assert {"tools", "first"} <= {record["name"] for record in run.json["plugins"]}


def test_nothing_installed_is_said_in_words() -> None:
    code = (
        "import importlib_metadata, sysconfig\n"
        "from agent_host.cli import main, plugins\n"
        "from agent_host.plugins import discover\n"
        "sys.path[:] = [sysconfig.get_path('stdlib')]\n"
        "sys.exit(main(['plugins', 'list']))"
    )
    run = run_python(code)
    assert (run.out, run.code) == ("No plugins found.\n", 0)


def test_list_as_json_has_all_a_script_needs(tree: Path) -> None:
    record = run_host("plugins", "list", "--json", trees=[tree]).plugin("tools")
    assert record == {
        "name": "tools",
        "role": "extension",
        "state": "discovered",
        "reason": "",
        "label": "",
        "bundle": "tools",
        "distribution": "dist-tools",
        "version": "1.0",
        "origin": "installed",
        "source": "pkg_tools",
        "key": None,
        "key_from": "",
        "missing": [],
    }


@pytest.mark.parametrize("name", ["tools", "extension:tools", "dist-tools"])
def test_info_shows_what_the_descriptor_says(tree: Path, name: str) -> None:
    text = run_host("plugins", "info", name, trees=[tree]).out
    for line in (
        "Name",
        "Role           extension",
        "Required tags  supports_tools",
        "After          first",
    ):
        assert line in text
    record = run_host("plugins", "info", name, "--json", trees=[tree]).plugin("tools")
    assert record["required_tags"] == ["supports_tools"]
    assert record["entry"] == "pkg_tools.plugin:Plugin"
    assert record["api"] == ">=1,<2"
    assert record["file"].endswith("agent_plugin.json")


def test_info_of_an_unknown_name_suggests_a_known_one(tree: Path) -> None:
    run = run_host("plugins", "info", "tool", trees=[tree])
    assert run.code == 1
    assert "there is no plugin, bundle, distribution or tool 'tool'" in run.err
    assert "did you mean 'tools'?" in run.err


#: Whatever else the environment has must not take part in what is expected.
BUNDLED_OUT = ("--deny", "files", "--deny", "repairs")


def explain_large(tree: Path, *more: str) -> str:
    options = ["--provider", "main", "--model", "large", *BUNDLED_OUT, *more]
    run = run_host("plugins", "explain", *options, trees=[tree], COLUMNS="200")
    assert run.code == 0, run.err
    return run.out


def test_explain_says_first_who_takes_part_why_and_what_is_off(tree: Path) -> None:
    text = explain_large(tree)
    assert "Provider  main (dist-main)\nModel     large\n" in text
    table = [line.split(maxsplit=2) for line in text.splitlines() if line.startswith("extension ")]
    assert table == [
        ["extension", "first", "always; priority 7"],
        ["extension", "tools", "has supports_tools; after first"],
    ]
    assert "feature:audit\n      off by default; name it in enabled_plugins" in text
    assert "→ --enable audit tries it" in text
    assert "pkg_audit" not in text, "what was left out is not imported"
    assert "Rounds" not in text
    assert "--all shows them." in text


def test_explain_with_all_has_rounds_reasons_and_the_order_of_every_hook(tree: Path) -> None:
    text = explain_large(tree, "--all")
    assert "extension:first, extension:tools; gained tags from-first" in text
    assert "nothing changes" in text
    assert "first (priority 7) → tools (after first)" in text


def test_explain_folds_what_is_about_other_providers(tree: Path) -> None:
    for number in range(30):
        install(tree, f"far{number}", required_tags=["wire:far", "supports_tools"])
    install(tree, "near", required_tags=["provider:main", "supports_sight"])
    install(tree, "shy", forbidden_tags=["supports_tools"])
    text = explain_large(tree)
    assert "far1" not in text
    assert "extension:near\n" in text
    assert """→ if the model can: --set 'add_tags=["supports_sight"]'""" in text
    assert "extension:shy" not in text
    assert "1 plugin that a tag keeps out" in text
    assert len(text.splitlines()) < 40
    assert "extension:far1\n" in explain_large(tree, "--all")


def test_explain_says_what_the_config_keeps_out_and_what_is_broken(tree: Path) -> None:
    install(tree, "bad", source="raise ValueError('x')")
    text = explain_large(tree, "--deny", "audit")
    assert "bundle 'audit' is denied" in text
    assert "→ take audit off denied_plugins" in text
    assert "raised ValueError: x" in text
    assert "name it in enabled_plugins" not in text


def test_explain_says_that_the_key_of_the_provider_is_missing(tmp_path: Path) -> None:
    install(tmp_path, "keyed", "provider", **KEYED)
    run = run_host("plugins", "explain", "--provider", "keyed", trees=[tmp_path])
    assert "missing: set KEYED_API_KEY" in run.out
    told = ["--set", "api_key=k"]
    run = run_host("plugins", "explain", "--provider", "keyed", *told, trees=[tmp_path])
    assert "set, from --set" in run.out


def test_doctor_says_which_key_is_missing_of_providers_that_are_named(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    install(tree, "keyed", "provider", **KEYED)
    install(tree, "other", "provider", requires_api_key=True, key_variable="OTHER_KEY")
    config = {"providers": {"main": {"provider": "keyed"}}}
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")

    def found(*options: str) -> list[tuple[str, str]]:
        run = run_host("plugins", "doctor", "--json", *options, trees=[tree], cwd=tmp_path)
        assert run.json["problems"] == []
        return [(each["plugin"], each["message"]) for each in run.json["warnings"]]

    main = ("keyed", "providers.main: key missing: set KEYED_API_KEY")
    assert found() == []
    assert found("--config", "c.json") == [main]
    assert found("--provider", "other") == [("other", "key missing: set OTHER_KEY")]
    strict = ["--config", "c.json", "--strict"]
    assert run_host("plugins", "doctor", *strict, trees=[tree], cwd=tmp_path).code == 1


def test_doctor_obeys_the_lists_and_sources_of_the_config(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    install(tree, "bad", source="raise ValueError('x')")
    described = full("pkg_src", "feature", "sourced")
    write_package(tmp_path / "p", "pkg_src", descriptor=described, source="raise ValueError('y')")
    config = {"plugins": ["path:p"], "denied_plugins": ["bad"]}
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    options = ["--config", "c.json", "--json"]
    run = run_host("plugins", "doctor", *options, trees=[tree], cwd=tmp_path)
    assert [each["plugin"] for each in run.json["problems"]] == ["sourced"]


SCHEMA = {
    "token": {"type": "string", "secret": True, "description": "A token."},
    "speed": {"type": "integer", "default": 3, "enum": [1, 3], "description": "How fast."},
    "hot": {"type": "boolean", "required": True, "description": "Whether it is hot."},
}


def test_info_shows_settings_with_type_default_help_value_and_place(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    install(tree, "one", "feature", source=POISON, config_schema=SCHEMA)
    config = {"request_defaults": {"token": "t0psecret"}, "agents": {"a": {"speed": 1}}}
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    options = ["one", "--config", "c.json", "--agent", "a"]
    run = run_host("plugins", "info", *options, trees=[tree], cwd=tmp_path)
    _, _, settings = run.out.partition("Settings\n")
    assert settings.splitlines() == [
        "  token  (string; secret)",
        "      A token.",
        "      set, from request_defaults.token",
        "  speed  (integer: 1, 3; default 3)",
        "      How fast.",
        "      is 1, from agents.a.speed",
        "  hot  (boolean; required)",
        "      Whether it is hot.",
    ]
    record = run_host("plugins", "info", *options, "--json", trees=[tree], cwd=tmp_path).plugin(
        "one"
    )
    assert record["settings"][0]["secret"] is True
    assert record["settings"][1]["from"] == "agents.a.speed"
    assert "t0psecret" not in run.out + json.dumps(record)


def test_info_finds_the_plugin_that_offers_a_tool(tmp_path: Path) -> None:
    described = full("pkg_bench", "tool", "bench", tools={"saw_wood": "write", "look": "read"})
    install(tmp_path, "bench", "tool", source=POISON, descriptor=described)
    run = run_host("plugins", "info", "saw_wood", trees=[tmp_path])
    assert "Name          bench\n" in run.out
    assert "saw_wood  write" in run.out
    assert (
        "did you mean 'saw_wood'?" in run_host("plugins", "info", "saw_wod", trees=[tmp_path]).err
    )


def test_info_imports_a_plugin_for_its_hooks_only_when_told_to(tmp_path: Path) -> None:
    body = "\n    def get_config_schema(self):\n        return {'deep': {'type': 'string'}}\n"
    source = "print('imported')\n" + EXTENSION.format(name="one") + body
    install(tmp_path, "one", source=source, dynamic=["get_config_schema"])
    plain = run_host("plugins", "info", "one", trees=[tmp_path])
    assert "imported" not in plain.err
    assert "deep" not in plain.out
    assert "--hooks" in plain.out
    told = run_host("plugins", "info", "one", "--hooks", trees=[tmp_path])
    assert "imported" in told.err
    assert "Hooks         finalize, get_config_schema\n" in told.out
    assert "deep  (string)" in told.out


def test_explain_as_json_depends_on_model_and_settings(tree: Path) -> None:
    def explained(*options: str) -> Any:
        return run_host(
            "plugins",
            "explain",
            "--provider",
            "main",
            "--json",
            *BUNDLED_OUT,
            *options,
            trees=[tree],
        ).json

    large = explained("--model", "large")
    assert large["enabled"] == ["extension:first", "extension:tools"]
    assert [model["id"] for model in large["models"]] == ["small", "large"]
    assert large["tags"] == ["from-first", "provider:main", "supports_tools"]
    assert large["rounds"][0]["gained"] == ["from-first"]
    (order,) = [o for o in large["order"] if o["role"] == "extension"]
    assert order["hook"] == "finalize"
    assert [p["name"] for p in order["plugins"]] == ["first", "tools"]
    small = explained("--model", "small")
    assert "needs tag supports_tools" in small["rejected"]["extension:tools"]
    assert "pkg_tools.plugin:Plugin" not in small["imported"]
    assert "feature:audit" in explained("--enable", "audit")["enabled"]
    assert "extension:tools" in explained("--force", "tools")["enabled"]
    assert "extension:first" not in explained("--deny", "first")["enabled"]
    assert explained("--allow", "main")["enabled"] == []


def test_settings_reach_the_plugins_as_json_values(tmp_path: Path) -> None:
    body = "\n    def is_enabled(self, config):\n        return config['on']\n"
    install(tmp_path, "main", "provider")
    install(tmp_path, "asked", source=EXTENSION.format(name="asked") + body, dynamic=["is_enabled"])
    for value, enabled in (("true", True), ("false", False)):
        run = run_host(
            "plugins",
            "explain",
            "--provider",
            "main",
            "--set",
            f"on={value}",
            "--json",
            trees=[tmp_path],
        )
        assert ("extension:asked" in run.json["enabled"]) is enabled
    run = run_host(
        "plugins", "explain", "--provider", "main", "--set", "on=maybe", "--json", trees=[tmp_path]
    )
    assert "must return True, False or None" in run.plugin("asked")["reason"]


def test_contradictions_are_explained_as_errors(tmp_path: Path) -> None:
    install(tmp_path, "main", "provider")
    install(tmp_path, "a", after=["b"])
    install(tmp_path, "b", after=["a"])
    run = run_host("plugins", "explain", "--provider", "main", trees=[tmp_path])
    assert run.code == 1
    assert "a → b → a" in run.err
    error = run_host("plugins", "explain", "--provider", "main", "--json", trees=[tmp_path]).json
    assert error["error"]["type"] == "OrderingError"
    assert error["error"]["plugins"] == ["a", "b"]


def test_doctor_is_content_with_healthy_plugins(tree: Path) -> None:
    run = run_host("plugins", "doctor", "--strict", trees=[tree])
    assert run.code == 0, run.out
    assert "0 problems, 0 warnings." in run.out


def test_doctor_exits_1_for_problems_and_with_strict_for_warnings(tmp_path: Path) -> None:
    body = "\n    def finalize(self, finals):\n        return None\n"
    install(tmp_path, "odd", source=EXTENSION.format(name="odd") + body)
    relaxed = run_host("plugins", "doctor", trees=[tmp_path], COLUMNS="200")
    assert relaxed.code == 0
    assert "warning  odd (dist-odd)" in relaxed.out
    assert "they are bound by position" in relaxed.out
    assert run_host("plugins", "doctor", "--strict", trees=[tmp_path]).code == 1
    install(tmp_path, "bad", source="raise ValueError('x')")
    run = run_host("plugins", "doctor", "--json", trees=[tmp_path])
    assert run.code == 1
    assert [p["plugin"] for p in run.json["problems"]] == ["bad"]
    assert [w["plugin"] for w in run.json["warnings"]] == ["odd"]


def test_collisions_are_loud_and_settled_by_a_preference(tmp_path: Path) -> None:
    install(
        tmp_path,
        "one",
        "provider",
        source=PROVIDER.format(name="same"),
        descriptor=full("pkg_one", "provider", "same"),
    )
    install(
        tmp_path,
        "two",
        "provider",
        source=PROVIDER.format(name="same"),
        descriptor=full("pkg_two", "provider", "same"),
    )
    run = run_host("plugins", "explain", "--provider", "same", trees=[tmp_path])
    assert run.code == 1
    assert "claimed by dist-one and by dist-two" in run.err
    settled = run_host(
        "plugins",
        "explain",
        "--provider",
        "same",
        "--json",
        "--prefer",
        "provider:same=dist-two",
        trees=[tmp_path],
    )
    assert settled.code == 0
    assert "pkg_two.plugin:Plugin" in settled.json["imported"]


def test_sources_are_listed_beside_what_is_installed(tmp_path: Path) -> None:
    write_package(
        tmp_path / "p",
        "pkg_src",
        descriptor=full("pkg_src", "feature", "from_source"),
        source=FEATURE.format(name="from_source"),
    )
    run = run_host("plugins", "list", "--json", "--plugin", "path:p", cwd=tmp_path)
    assert run.plugin("from_source")["origin"] == "path"
    assert run_host("plugins", "doctor", "--plugin", "path:p", cwd=tmp_path).code == 0


def test_what_plugins_print_does_not_spoil_json(tree: Path) -> None:
    noise = "print('hello from a plugin')\n" + EXTENSION.format(name="noisy")
    install(tree, "noisy", source=noise)
    for command in (["explain", "--provider", "main"], ["doctor"]):
        run = run_host("plugins", *command, "--json", trees=[tree])
        assert run.json
        assert "hello from a plugin" in run.err


EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202e\u200f"


def test_control_characters_of_foreign_text_never_reach_the_terminal(tmp_path: Path) -> None:
    install(
        tmp_path,
        "evil",
        "provider",
        label=EVIL,
        description=EVIL,
        provides_tags=[EVIL],
        source=PROVIDER.format(name="evil"),
        unheard_of=1,
    )
    install(tmp_path, "raises", source=f"raise ValueError({EVIL!r})")
    install(tmp_path, "wrong", descriptor={"entries": [EVIL]})
    for arguments in (
        ["list"],
        ["info", "evil"],
        ["info", EVIL],
        ["explain", "--provider", "evil", "--model", EVIL],
        ["explain", "--provider", EVIL],
        ["doctor"],
        ["list", "--plugin", f"path:{EVIL}"],
    ):
        for options in ([], ["--json"]):
            run = run_host("plugins", *arguments, *options, trees=[tmp_path])
            shown = (run.out + run.err).replace("\n", "")
            assert shown
            assert [c for c in shown if not c.isprintable()] == [], arguments


def test_line_breaks_in_foreign_text_become_spaces(tmp_path: Path) -> None:
    install(tmp_path, "one", label="two\nlines")
    assert "two lines" in run_host("plugins", "list", trees=[tmp_path], COLUMNS="200").out


@pytest.mark.parametrize("columns", [20, 40, 80, 120])
def test_text_stays_within_the_terminal(tree: Path, columns: int) -> None:
    install(tree, "wordy", descriptor=b"{", version="1.0")
    install(tree, "labelled", label="many words " * 20)
    for command in (["list"], ["doctor"], ["explain", "--provider", "main"]):
        run = run_host("plugins", *command, trees=[tree], COLUMNS=str(columns))
        # What cannot be broken, such as a path or the columns of a table, may be longer.
        long = [line for line in run.out.splitlines() if len(line) > max(columns, 34)]
        assert not [line for line in long if "many words" in line]


def in_terminal(tree: Path, **environment: str) -> str:
    """The bytes a terminal gets from ``plugins list``."""
    host, terminal = pty.openpty()
    code = (
        f"import site, sys; site.addsitedir({str(tree)!r})\n"
        "from agent_host.cli import main\nsys.exit(main(['plugins', 'list']))"
    )
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=terminal, stderr=terminal, env={**kept, **environment}
    )
    os.close(terminal)
    chunks = []
    while True:
        try:
            chunk = os.read(host, 4096)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(host)
    assert process.wait(timeout=30) == 0
    return b"".join(chunks).decode()


def test_colours_are_for_terminals_that_want_them(tree: Path) -> None:
    assert "\x1b[33moff" in in_terminal(tree, TERM="xterm")
    assert "\x1b" not in in_terminal(tree, TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in run_host("plugins", "list", trees=[tree]).out


COMMANDS = [["plugins", command] for command in ("list", "info", "explain", "doctor")]


def every_command(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """The path and the help of a command and of all that are below it."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every_command(below, click.Context(below, context, name))


def test_every_command_has_help_with_examples_that_fits_a_terminal() -> None:
    context = click.Context(root, info_name="agent-host", terminal_width=80)
    shown = dict(every_command(root, context))
    assert "agent-host plugins explain" in shown
    for path, text in shown.items():
        assert "Examples:" in text, path
        assert path in text.split("Examples:")[1]
        assert all(len(line) <= 80 for line in text.splitlines()), path


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", [[], ["plugins"], COMMANDS[0]])
def test_help_is_shown_for_either_option(command: list[str], option: str) -> None:
    run = run_host(*command, option)
    assert run.code == 0
    assert run.out.startswith(f"Usage: agent-host {' '.join(command)}".rstrip())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_shows_something_has_json_and_strict(command: list[str]) -> None:
    shown = run_host(*command, "--help").out
    assert "--json" in shown
    assert "--strict" in shown


# Commands of plugins -----------------------------------------------------------------------------

GREETER = (
    FEATURE
    + """
    def cli_command(self, name):
        import click

        @click.command(epilog="none")
        @click.argument("who")
        def greet(who):
            click.echo(f"{{name}}: hello, {{who}}")
            return 3

        return greet if name == "greet" else None
"""
)


def test_a_plugin_adds_a_command(tmp_path: Path) -> None:
    source = GREETER.format(name="greeter")
    install(tmp_path, "greeter", "feature", source=source, commands=["greet", "idle"])
    run = run_host("greet", "you", trees=[tmp_path])
    assert (run.out, run.code) == ("greet: hello, you\n", 3)
    assert re.search(r"greet +From plugin greeter\.", run_host("--help", trees=[tmp_path]).out)
    assert "WHO" in run_host("greet", "--help", trees=[tmp_path]).out
    missing = run_host("idle", trees=[tmp_path])
    assert missing.code == 1
    assert "plugin 'greeter' announces the command 'idle' but does not give it" in missing.err


ASKER = (
    FEATURE
    + """
    def cli_command(self, name, open_application):
        import click

        @click.command(epilog="none")
        @click.option("--config", type=click.Path())
        def answer(config):
            with open_application(config) as app:
                click.echo(app.run("Hello").text)

        return answer
"""
)


def test_the_command_of_a_plugin_opens_the_application(tmp_path: Path) -> None:
    install(tmp_path, "asker", "feature", source=ASKER.format(name="asker"), commands=["answer"])
    named = tmp_path / "named.toml"
    named.write_text('[agents.default]\nprovider = "echo"\nmodel = "echo-1"\n', encoding="utf-8")
    assert "Hello" in run_host("answer", "--config", str(named), trees=[tmp_path]).out
    named.write_text("wrong = 1\n", encoding="utf-8")
    refused = run_host("answer", "--config", str(named), trees=[tmp_path])
    assert refused.code == 1
    assert "named.toml" in refused.err


def test_the_command_of_a_broken_plugin_reports_it(tmp_path: Path) -> None:
    install(tmp_path, "broken", source=POISON, commands=["greet"])
    run = run_host("greet", trees=[tmp_path])
    assert run.code == 1
    assert "importing 'pkg_broken.plugin' failed" in run.err
    raising = FEATURE.format(name="raising") + "\n    def cli_command(self, name): 1 / 0\n"
    install(tmp_path, "raising", "feature", source=raising, commands=["divide"])
    run = run_host("divide", "--json", trees=[tmp_path])
    assert run.code == 1
    assert run.json["error"]["type"] == "HookError"


def test_a_plugin_cannot_take_a_command_of_our_own(tmp_path: Path) -> None:
    install(tmp_path, "thief", source=POISON, commands=["plugins"])
    run = run_host("plugins", "list", "--json", trees=[tmp_path])
    assert run.plugin("thief")["state"] == "discovered"


@pytest.mark.parametrize("command", [["list"], ["info", "echo"], ["explain"]])
def test_a_bundle_that_is_not_there_is_told_by_its_option(command: list[str]) -> None:
    run = run_host("plugins", *command, "--deny", "ecko", "--prefer", "provider:x=nobody")
    assert run.code == 0
    assert "--deny or denied_plugins: there is no bundle 'ecko' (did you mean 'echo'?" in run.err
    assert "--prefer or prefer_plugins: there is no distribution 'nobody'" in run.err


def test_doctor_finds_names_in_the_settings_that_nothing_has() -> None:
    run = run_host("plugins", "doctor", "--deny", "agent-host-echo", "--allow", "echo", "--json")
    (warning,) = [each for each in run.json["warnings"] if each["owner"] == "settings"]
    assert warning["plugin"] == "deny"
    assert "'agent-host-echo' (it is in the bundle 'echo')" in warning["message"]
