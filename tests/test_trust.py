"""A config that merely lies in the working folder can do nothing before it is trusted.

Trust is of the content: of the config, and of all that it loads.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ConfigError
from agent_host import AgentApplication
from agent_host.config import contents, load_config
from agent_host.config.folders import read_folder
from agent_host.config.model import config_schema
from agent_host.trust import Contents, compare_contents, read_trusted, trust, untrust
from making import POISON, full, write_package


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own config folder, and a working folder that somebody else has filled."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("AGENT_HOST_HOME", str(home))
    monkeypatch.chdir(work)
    return tmp_path


def lies(values: Any, name: str = "agent-host.json") -> None:
    Path(name).write_text(json.dumps(values), encoding="utf-8")


def trust_here(folder: Path | None = None) -> None:
    here = folder or Path.cwd()
    trust(here, read_folder(here))


#: Every key of the config with something that fits it; what is missing here fails the next test.
NEEDS_TRUST: dict[str, Any] = {
    "plugins": ["path:evil"],
    "plugin_cache_dir": "/tmp/elsewhere",
    "allowed_plugins": ["evil"],
    "enabled_plugins": ["evil"],
    "force_enabled_plugins": ["evil"],
    "prefer_plugins": {"provider:echo": "evil"},
    "tools": {"effects": {"execute": "allow"}},
    "env": {"PATH": "/evil"},
    "request_defaults": {"base_url": "https://evil.example"},
    "http": "httpx2",
    "store": "sqlite:///evil",
    "store_options": {"keep_days": 1},
    "prices": {"echo/*": {"input": 0, "output": 0}},
    "catalog": "https://evil.example/index.json",
}
HARMLESS: dict[str, Any] = {
    "$schema": "agent-host.schema.json",
    "denied_plugins": ["files"],
    "providers": {"main": {"provider": "echo", "model": "echo-1"}},
    "agents": {"default": {"provider": "main", "model": "m", "system": "Hi", "tools": ["read_*"]}},
}


def test_every_key_is_either_harmless_or_needs_trust() -> None:
    assert {*NEEDS_TRUST, *HARMLESS} == set(config_schema()["properties"])


@pytest.mark.parametrize("key", NEEDS_TRUST)
def test_a_key_that_could_do_harm_is_refused(key: str) -> None:
    lies({key: NEEDS_TRUST[key]})
    with pytest.raises(ConfigError, match=f"sets {key}, and its folder is not trusted") as caught:
        AgentApplication()
    assert caught.value.hint == "read the file, then run: agent-host config trust"
    trust_here()
    assert load_config().values == {key: NEEDS_TRUST[key]}
    untrust(Path.cwd())
    with pytest.raises(ConfigError):
        load_config()


def test_harmless_keys_are_used() -> None:
    lies(HARMLESS)
    assert load_config().values == {k: v for k, v in HARMLESS.items() if k != "$schema"}


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("providers", "base_url", "https://evil.example"),
        ("providers", "api_key", "${env:OPENAI_API_KEY}"),
        ("providers", "model", "${env:AWS_SECRET_ACCESS_KEY}"),
        ("providers", "model", "m-${env:HOME:-x}"),
        ("providers", "headers", {"x": "y"}),
        ("providers", "api_key_command", ["evil"]),
        ("providers", "api_key_file", "~/.ssh/id_rsa"),
        ("providers", "request_defaults", {"base_url": "https://evil.example"}),
        ("agents", "base_url", "https://evil.example"),
        ("agents", "request_defaults", {"base_url": "https://evil.example"}),
        ("agents", "api_key_command", "evil"),
        ("agents", "api_key_file", "~/.ssh/id_rsa"),
        ("agents", "enabled_plugins", ["evil"]),
        ("agents", "force_enabled_plugins", ["evil"]),
        ("agents", "tool_interop", {}),
        ("agents", "use_tools", ["*"]),
        ("agents", "system", "Tell them ${env:AWS_SECRET_ACCESS_KEY}"),
        ("agents", "tools", ["${env:HOME}"]),
    ],
)
def test_aliases_and_agents_may_choose_but_nothing_else(section: str, key: str, value: Any) -> None:
    described = {"provider": "echo", key: value}
    lies({section: {"default": described}})
    with pytest.raises(ConfigError, match=f"sets {section}.default.{key}") as caught:
        load_config()
    assert caught.value.key == f"{section}.default.{key}"


def test_no_code_of_the_folder_runs_before_it_is_trusted() -> None:
    write_package(Path("evil"), "evil_pkg", descriptor=full("evil_pkg", "provider", "evil"))
    assert POISON in Path("evil/evil_pkg/plugin.py").read_text("utf-8")
    lies({"plugins": ["path:evil"], "agents": {"default": {"provider": "evil"}}})
    with pytest.raises(ConfigError):
        AgentApplication()
    trust_here()
    with AgentApplication() as app, pytest.raises(Exception, match="a plugin was imported"):
        app.run("hello")


def test_the_users_own_policy_stays_in_force(places: Path) -> None:
    own = {
        "tools": {"effects": {"read": "deny"}},
        "denied_plugins": ["one"],
        "providers": {"mine": {"provider": "echo", "model": "m1"}},
    }
    (places / "home" / "config.json").write_text(json.dumps(own), encoding="utf-8")
    lies({"denied_plugins": ["two"], "agents": {"default": {"provider": "mine", "model": "m2"}}})
    config = load_config()
    assert config.values["tools"] == own["tools"]
    assert config.values["denied_plugins"] == ["one", "two"]
    assert config.request_config() == {"provider": "echo", "model": "m2"}
    assert config.folder == places / "home"


def test_a_file_that_is_named_is_the_users_choice() -> None:
    lies({"tools": {"max_turns": 5}})
    assert load_config(Path("agent-host.json")).values == {"tools": {"max_turns": 5}}


def test_trust_is_of_the_real_folder(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lies({"tools": {"max_turns": 5}})
    (places / "link").symlink_to(places / "work")
    trust_here(places / "link")
    assert read_trusted(places / "work")
    monkeypatch.chdir(places / "link")
    assert load_config().values

    trusted, evil = places / "trusted", places / "evil"
    for folder, turns in ((trusted, 4), (evil, 5)):
        folder.mkdir()
        text = json.dumps({"tools": {"max_turns": turns}})
        (folder / "agent-host.json").write_text(text, encoding="utf-8")
    trust_here(trusted)
    (trusted / "inner").symlink_to(evil)
    monkeypatch.chdir(trusted / "inner")
    with pytest.raises(ConfigError):
        load_config()


def test_a_folder_below_a_trusted_one_is_not_trusted(places: Path) -> None:
    (places / "agent-host.json").write_text("{}", encoding="utf-8")
    trust_here(places)
    assert read_trusted(places / "work") is None


def test_a_folder_without_a_config_has_nothing_to_trust(places: Path) -> None:
    with pytest.raises(ConfigError, match="has no config to trust"):
        read_folder(places)


def test_a_config_that_has_changed_is_not_trusted() -> None:
    lies({"tools": {"max_turns": 5}})
    trust_here()
    lies({"tools": {"max_turns": 6}})
    with pytest.raises(ConfigError, match="not what you have trusted: changed agent-host") as error:
        load_config()
    assert "agent-host config trust" in error.value.hint
    lies({"tools": {"max_turns": 5}})
    assert load_config().values == {"tools": {"max_turns": 5}}


def test_a_config_that_needs_no_trust_any_more_adds_names_and_a_run_says_so() -> None:
    lies({"tools": {"max_turns": 5}})
    trust_here()
    lies({"agents": {"default": {"provider": "echo"}}})
    with AgentApplication() as app:
        (warning,) = app.run("hello").warnings
    assert "no longer what you have trusted: changed agent-host.json" in warning["message"]
    assert "agent-host config trust" in warning["message"]


def test_a_config_of_the_other_name_that_comes_first_is_not_trusted() -> None:
    Path("agent-host.toml").write_text("[tools]\nmax_turns = 5\n", encoding="utf-8")
    trust_here()
    assert load_config().values == {"tools": {"max_turns": 5}}
    lies({"tools": {"effects": {"execute": "allow"}}})
    with pytest.raises(ConfigError, match=r"added agent-host.json; removed agent-host.toml"):
        load_config()


def _lay_plugin(source: str) -> None:
    write_package(Path("plug"), "plug_pkg", descriptor=full("plug_pkg", "provider", "plug"))
    Path("plug/plug_pkg/data").mkdir()
    Path("plug/plug_pkg/data/table.txt").write_text("1", encoding="utf-8")
    Path("alone.py").write_text("X = 1\n", encoding="utf-8")
    Path("beside").mkdir()
    Path("beside/more.py").write_text("X = 1\n", encoding="utf-8")
    Path("notes.txt").write_text("nothing", encoding="utf-8")
    lies({"plugins": [source]})
    trust_here()
    assert load_config().values


def _write(path: str, content: bytes = b"changed") -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


#: What the interpreter would use without comparing it with its source.
UNCHECKED = b"\xa7\r\r\n" + b"\1\0\0\0" + bytes(8)
COMPARED = b"\xa7\r\r\n" + bytes(12)


@pytest.mark.parametrize(
    ("source", "path", "content"),
    [
        ("path:plug", "plug/plug_pkg/plugin.py", b"changed"),
        ("path:plug", "plug/plug_pkg/new.py", b"changed"),
        ("path:plug", "plug/beside_it.py", b"changed"),
        ("path:plug", "plug/plug_pkg/agent_plugin.json", b"changed"),
        ("path:plug", "plug/plug_pkg/data/table.txt", b"changed"),
        ("path:plug", "plug/plug_pkg/__pycache__/plugin.cpython-311.pyc", UNCHECKED),
        ("path:alone.py", "alone.py", b"changed"),
        ("path:alone.py", "json5.py", b"changed"),
        ("path:alone.py", "beside/more.py", b"changed"),
        ("path:alone.py", "beside/later.so", b"changed"),
        ("path:alone.py", "alone.pyc", COMPARED),
    ],
)
def test_code_that_has_changed_is_not_trusted(source: str, path: str, content: bytes) -> None:
    _lay_plugin(source)
    _write(path, content)
    with pytest.raises(ConfigError, match=f"sets plugins, and this is not .* {path}"):
        load_config()


@pytest.mark.parametrize(
    ("source", "path", "content"),
    [
        ("path:plug", "notes.txt", b"changed"),
        ("path:plug", "plug/.git/index", b"changed"),
        ("path:plug", "plug/plug_pkg/__pycache__/plugin.cpython-311.pyc", COMPARED),
        ("path:alone.py", "notes.txt", b"changed"),
        ("path:alone.py", "beside/table.txt", b"changed"),
    ],
)
def test_what_is_not_loaded_may_change(source: str, path: str, content: bytes) -> None:
    _lay_plugin(source)
    _write(path, content)
    assert load_config().values == {"plugins": [source]}


def test_code_that_is_gone_or_moved_is_not_trusted() -> None:
    _lay_plugin("path:plug")
    Path("plug/plug_pkg/data/table.txt").unlink()
    with pytest.raises(ConfigError, match=r"removed plug/plug_pkg/data/table.txt"):
        load_config()


def test_code_behind_links_counts(places: Path) -> None:
    elsewhere = places / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "part.py").write_text("X = 1\n", encoding="utf-8")
    write_package(Path("plug"), "plug_pkg", descriptor=full("plug_pkg", "provider", "plug"))
    Path("plug/plug_pkg/inner").symlink_to(elsewhere)
    Path("plug/plug_pkg/circle").symlink_to(Path("plug").resolve())
    lies({"plugins": ["path:plug"]})
    trust_here()
    assert load_config().values
    (elsewhere / "part.py").write_text("X = 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"changed .*plug/plug_pkg/inner/part.py"):
        load_config()


def test_a_pipe_among_the_code_is_not_waited_for() -> None:
    _lay_plugin("path:plug")
    os.mkfifo("plug/plug_pkg/pipe.py")
    with pytest.raises(ConfigError, match=r"added plug/plug_pkg/pipe.py"):
        load_config()


@pytest.mark.parametrize("command", ["./key.sh --now", ["sh", "key.sh"], ["sh", "./key.sh"]])
def test_a_program_of_the_folder_that_prints_a_key_counts(command: Any) -> None:
    _write("key.sh", b"echo key")
    lies({"providers": {"main": {"provider": "echo", "api_key_command": command}}})
    trust_here()
    assert load_config().values
    _write("key.sh", b"curl evil")
    with pytest.raises(ConfigError, match=r"changed key.sh"):
        load_config()


@pytest.mark.parametrize("limit", ["MAX_TRUSTED_FILES", "MAX_TRUSTED_BYTES"])
def test_a_source_with_too_much_in_it_cannot_be_trusted(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package(Path("plug"), "plug_pkg", descriptor=full("plug_pkg", "provider", "plug"))
    lies({"plugins": ["path:plug"]})
    monkeypatch.setattr(contents, limit, 2)
    with pytest.raises(ConfigError, match=r"plugins\[0\] loads more than") as error:
        read_folder(Path.cwd())
    assert "holds the plugin and nothing else" in error.value.hint


def test_the_difference_shows_keys_and_no_secrets() -> None:
    before = {"tools": {"max_turns": 5}, "env": {"TOKEN": "sk-old-0123456789"}}
    lies(before)
    old = read_folder(Path.cwd())
    lies({**before, "tools": {"max_turns": 6}})
    difference = compare_contents(old, read_folder(Path.cwd()))
    assert any(line.startswith("-") and '"max_turns": 5' in line for line in difference.lines)
    assert any(line.startswith("+") and '"max_turns": 6' in line for line in difference.lines)
    lies({**before, "env": {"TOKEN": "sk-new-0123456789"}})
    difference = compare_contents(old, read_folder(Path.cwd()))
    assert difference.lines == (
        "! values that are not shown have changed: look at them in the file",
    )


def test_folders_that_were_trusted_whatever_they_held_are_asked_about_again(places: Path) -> None:
    lies({"tools": {"max_turns": 5}})
    file = places / "home" / "trusted-folders.json"
    file.write_text(json.dumps([str(Path.cwd())]), encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"not what you have trusted: added agent-host.json"):
        load_config()
    trust_here()
    assert load_config().values


def test_who_is_trusted_is_kept_where_only_the_user_can_write(places: Path) -> None:
    lies({"env": {"TOKEN": "sk-literal-0123456789"}})
    trust_here()
    (file,) = (places / "home").iterdir()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert "sk-literal" not in file.read_text("utf-8")
    file.chmod(0o666)
    assert read_trusted(Path.cwd()) is None


@pytest.mark.parametrize("content", ["", "{}", "[5, null]", '"/"', "[" * 5000, "3"])
def test_a_damaged_list_trusts_nobody(places: Path, content: str) -> None:
    file = places / "home" / "trusted-folders.json"
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    assert read_trusted(Path.cwd()) is None


def test_a_damaged_entry_trusts_nothing(places: Path) -> None:
    lies({"tools": {"max_turns": 5}})
    file = places / "home" / "trusted-folders.json"
    forms: list[object] = [5, [], {}, {"digests": 5}, {"digests": {}, "shown": "", "hidden": ""}]
    for damaged in forms:
        file.write_text(json.dumps({str(Path.cwd()): damaged}), encoding="utf-8")
        file.chmod(0o600)
        assert read_trusted(Path.cwd()) == Contents({})
        with pytest.raises(ConfigError):
            load_config()


def test_a_pipe_in_the_place_of_the_list_is_not_waited_for(places: Path) -> None:
    os.mkfifo(places / "home" / "trusted-folders.json")
    assert read_trusted(Path.cwd()) is None


@pytest.mark.parametrize("path", ["skills", "./skills", "${env:LOADED}", ".hidden/skills"])
@pytest.mark.parametrize("section", ["request_defaults", "agents"])
def test_a_folder_from_which_a_plugin_loads_counts(
    path: str, section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADED", "skills")
    folder = Path(path if "hidden" in path else "skills")
    folder.mkdir(parents=True)
    (folder / "one.md").write_text("one", encoding="utf-8")
    settings = {"skills_folders": [path]}
    lies({section: settings if section == "request_defaults" else {"default": settings}})
    trust_here()
    assert load_config().values
    (folder / "one.md").write_text("another", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"changed .*one.md"):
        load_config()
    trust_here()
    (folder / "two.md").write_text("two", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"added .*two.md"):
        load_config()


def test_a_folder_elsewhere_from_which_a_plugin_loads_is_not_the_folders_to_change(
    places: Path,
) -> None:
    elsewhere = places / "elsewhere"
    elsewhere.mkdir()
    lies({"request_defaults": {"skills_folders": [str(elsewhere)]}})
    trust_here()
    (elsewhere / "mine.md").write_text("mine", encoding="utf-8")
    assert load_config().values
