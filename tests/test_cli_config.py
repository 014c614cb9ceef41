"""`agent-host config`: the schema, what is wrong, what is in force, and whom to trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent_host.config.model import config_schema
from making import Run, run_host

SECRET = "s3cr3t-value-of-mine"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path


def host(place: Path, *arguments: str, **environment: str) -> Run:
    return run_host(
        *arguments,
        cwd=place / "work",
        AGENT_HOST_HOME=str(place / "home"),
        **environment,
    )


def lies(place: Path, values: Any, name: str = "agent-host.json") -> Path:
    file = place / "work" / name
    file.write_text(json.dumps(values), encoding="utf-8")
    return file


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_schema_is_printed_as_it_is(place: Path, options: list[str]) -> None:
    run = host(place, "config", "schema", *options)
    assert (run.code, run.err) == (0, "")
    assert run.json == config_schema()
    jsonschema.Draft202012Validator.check_schema(run.json)


def test_nothing_configured_is_valid(place: Path) -> None:
    run = host(place, "config", "validate")
    assert (run.code, run.out) == (0, "No config file: the defaults are valid.\n")


def test_a_config_is_valid_once_nothing_is_missing_that_a_run_needs(place: Path) -> None:
    values = {"providers": {"a": {"provider": "echo", "api_key": "${env:ONE_I_LACK}"}}}
    file = lies(place, values, "mine.json")
    missing = host(place, "config", "validate", "mine.json")
    assert missing.code == 1
    assert "providers.a.api_key needs the environment variable ONE_I_LACK" in missing.err
    there = host(place, "config", "validate", "mine.json", ONE_I_LACK="x")
    assert (there.code, there.out, there.err) == (0, "mine.json is valid.\n", "")
    as_json = host(place, "config", "validate", str(file), "--json", ONE_I_LACK="x").json
    assert as_json == {"file": str(file), "valid": True, "warnings": []}


def test_every_agent_and_alias_is_checked_unless_one_is_named(place: Path) -> None:
    values = {
        "providers": {"good": {"provider": "echo"}, "bad": {"provider": "ecko"}},
        "agents": {"default": {"provider": "good"}, "spare": {"provider": "bad"}},
    }
    lies(place, values, "mine.json")
    whole = host(place, "config", "validate", "mine.json")
    assert (whole.code, "there is no provider 'ecko'" in whole.err) == (1, True)
    assert host(place, "config", "validate", "mine.json", "--agent", "default").code == 0
    assert host(place, "config", "validate", "mine.json", "--agent", "spare").code == 1
    assert host(place, "config", "validate", "mine.json", "--provider", "bad").code == 1


def test_what_would_be_warned_of_is_told(place: Path) -> None:
    values = {"providers": {"a": {"provider": "echo"}}, "agents": {"default": {"tools": ["nope*"]}}}
    lies(place, values, "mine.json")
    run = host(place, "config", "validate", "mine.json")
    assert (run.code, run.out) == (0, "mine.json is valid.\n")
    assert "warning: no tool is called 'nope*'" in run.err


def test_what_is_wrong_is_named_with_file_key_and_remedy(place: Path) -> None:
    lies(place, {"tools": {"max_turn": 5}}, "mine.json")
    run = host(place, "config", "validate", "mine.json")
    assert run.code == 1
    assert "there is no key 'tools.max_turn'" in run.err
    assert "mine.json" in run.err
    assert "did you mean 'max_turns'?" in run.err
    error = host(place, "config", "validate", "mine.json", "--json").json["error"]
    assert (error["key"], error["file"]) == ("tools.max_turn", "mine.json")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_is_in_force_is_shown_without_secrets(place: Path, options: list[str]) -> None:
    values = {
        "env": {"A": SECRET},
        "providers": {"a": {"provider": "p", "api_key": SECRET, "model": "m"}},
    }
    lies(place, values, "mine.json")
    run = host(place, "config", "show", "--config", "mine.json", *options)
    assert run.code == 0
    assert SECRET not in run.out
    assert "[redacted]" in run.out
    assert "mine.json" in run.out
    if options:
        assert run.json["values"]["providers"]["a"]["model"] == "m"
        assert run.json["problem"]["message"].endswith("there is no provider 'p'")
    else:
        # What cannot be used can be shown.
        assert "there is no provider 'p'" in run.err


def test_a_folder_is_trusted_and_trusted_no_longer(place: Path) -> None:
    lies(place, {"tools": {"max_turns": 5}})
    refused = host(place, "config", "show")
    assert refused.code == 1
    assert "sets tools, and its folder is not trusted" in refused.err
    trusted = host(place, "config", "trust")
    assert trusted.out == (
        f"agent-host.json\n{place / 'work'} is now trusted, until any of these files changes.\n"
    )
    assert host(place, "config", "show").code == 0
    revoked = host(place, "config", "trust", "--revoke", "--json").json
    assert revoked == {"folder": str(place / "work"), "trusted": False}
    assert host(place, "config", "show").code == 1


def test_what_has_changed_is_shown_before_it_is_trusted_again(place: Path) -> None:
    lies(place, {"tools": {"max_turns": 5}, "env": {"A": SECRET}, "plugins": ["path:plug"]})
    (place / "work" / "plug").mkdir()
    (place / "work" / "plug" / "one.py").write_text("1", encoding="utf-8")
    assert host(place, "config", "trust").code == 0
    lies(place, {"tools": {"max_turns": 6}, "env": {"A": SECRET}, "plugins": ["path:plug"]})
    (place / "work" / "plug" / "one.py").unlink()
    (place / "work" / "plug" / "two\x1b[31m.py").write_text("2", encoding="utf-8")
    refused = host(place, "config", "show")
    assert refused.code == 1
    assert "this is not what you have trusted" in refused.err
    again = host(place, "config", "trust")
    assert again.out.splitlines()[:3] == [
        "+ plug/two␛[31m.py",
        "~ agent-host.json",
        "- plug/one.py",
    ]
    assert '-    "max_turns": 5' in again.out
    assert '+    "max_turns": 6' in again.out
    assert SECRET not in again.out
    shown = host(place, "config", "show")
    assert shown.code == 0, shown.err


def test_changes_are_data_for_scripts(place: Path) -> None:
    lies(place, {"tools": {"max_turns": 5}})
    assert host(place, "config", "trust", "--json").json["added"] == ["agent-host.json"]
    lies(place, {"tools": {"max_turns": 6}})
    assert host(place, "config", "trust", "--json").json == {
        "folder": str(place / "work"),
        "trusted": True,
        "added": [],
        "changed": ["agent-host.json"],
        "removed": [],
    }


def test_only_folders_that_are_there_can_be_trusted(place: Path) -> None:
    assert host(place, "config", "trust", "nowhere").code == 2
    assert "has no config to trust" in host(place, "config", "trust").err


def test_the_path_says_where_everything_is_and_which_files_count(place: Path) -> None:
    home = place / "home"
    nothing = host(place, "config", "path")
    assert (nothing.code, str(home / "config.toml") in nothing.out) == (0, True)
    lies(place, {"agents": {"a": {}}})
    (place / "work" / "agent-host.toml").write_text("", encoding="utf-8")
    home.mkdir()
    (home / "config.toml").write_text("", encoding="utf-8")
    found = host(place, "config", "path", "--json").json
    assert found["folders"] == {
        "config": str(home),
        "data": str(home),
        "cache": str(home / "cache"),
        "state": str(home / "state"),
    }
    judged = {Path(each["file"]).name: each for each in found["files"]}
    assert [each["counts"] for each in judged.values()] == [True, False, False, True]
    assert judged["agent-host.json"]["trusted"] is False
    assert "nobody trusts its folder" in judged["agent-host.json"]["why"]
    assert judged["agent-host.toml"]["why"] == "agent-host.json beside it comes first"
    assert judged["config.json"]["exists"] is False
    host(place, "config", "trust")
    trusted = host(place, "config", "path")
    assert "which you trust" in trusted.out
    assert "is used in its place" in trusted.out
