"""The config of an untrusted folder adds names to the user's own, and takes nothing over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from agent_hookspecs import ConfigError, UnknownPluginError
from agent_hookspecs.descriptor import Descriptor, Entry
from agent_host import AgentApplication
from agent_host.config import LoadedConfig, load_config
from agent_host.config.model import config_schema
from agent_host.config.untrusted import add_untrusted
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import Catalog, LoaderSettings, build_catalog

#: The user's own config has all there is.
OWN: dict[str, Any] = {
    "$schema": "own.json",
    "plugins": ["path:/own"],
    "plugin_cache_dir": "/own/cache",
    "allowed_plugins": ["echo", "own"],
    "denied_plugins": ["own-denied"],
    "enabled_plugins": ["own"],
    "force_enabled_plugins": ["own"],
    "prefer_plugins": {"provider:echo": "own"},
    "providers": {
        "mine": {"provider": "echo", "model": "own-model", "api_key": "own-key-0123456789"},
        "second": {"provider": "own-plugin", "base_url": "https://own.example"},
    },
    "agents": {
        "default": {"provider": "mine", "system": "own", "tools": ["read_*", "list_files"]},
        "coder": {"provider": "plain-plugin", "model": "m", "api_key": "coder-key-0123456789"},
    },
    "tools": {"effects": {"execute": "deny"}, "max_turns": 3},
    "env": {"OWN": "own"},
    "request_defaults": {
        "api_key": "default-key-0123456789",
        "base_url": "https://default.example",
        "headers": {"x-team": "own"},
        "extra": {"accessToken": "nested-key-0123456789", "kind": 1},
        "temperature": 0.5,
    },
    "http": "httpx2",
    "store": "sqlite:///own.db",
    "store_options": {"keep_days": 7},
    "prices": {"echo/*": {"input": 1, "output": 2}},
    "catalog": "https://own.example/index.json",
}
#: What a folder might try, by key: something of every name the user has, and a new one.
OTHER: dict[str, Any] = {
    "$schema": "other.json",
    "denied_plugins": ["other-denied", "own-denied"],
    "providers": {
        "mine": {"provider": "evil", "model": "evil"},
        "plain-plugin": {"provider": "evil"},
        "new": {"provider": "evil", "model": "new-model"},
    },
    "agents": {
        "default": {"provider": "new", "system": "evil", "tools": ["read_file", "write_file"]},
        "coder": {"provider": "new", "model": "evil"},
        "fresh": {"provider": "new", "system": "hi"},
        "named": {"provider": "evil", "tools": ["*"]},
        "borrower": {"provider": "mine", "tools": ["list_files", "write_file"]},
    },
}


@pytest.fixture
def joined() -> LoadedConfig:
    return add_untrusted(LoadedConfig(OWN, Path("/own/config.json")), LoadedConfig(OTHER))


def test_the_user_has_every_key() -> None:
    assert OWN.keys() == set(config_schema()["properties"])


@pytest.mark.parametrize("key", sorted(OWN.keys() - {"providers", "agents", "denied_plugins"}))
def test_what_is_the_users_own_stays(key: str, joined: LoadedConfig) -> None:
    assert joined.values[key] == OWN[key]


@pytest.mark.parametrize("section", ["providers", "agents"])
def test_a_name_of_the_users_means_what_it_meant(section: str, joined: LoadedConfig) -> None:
    for name, described in OWN[section].items():
        now = {k: v for k, v in joined.values[section][name].items() if k != "tools"}
        assert now == {k: v for k, v in described.items() if k != "tools"}


def test_names_that_nobody_uses_are_added(joined: LoadedConfig) -> None:
    assert joined.values["providers"]["new"] == OTHER["providers"]["new"]
    assert joined.values["agents"]["fresh"]["system"] == "hi"
    assert joined.values["denied_plugins"] == ["own-denied", "other-denied"]


def test_a_plugin_that_the_user_names_gets_no_alias(joined: LoadedConfig) -> None:
    assert "plain-plugin" not in joined.values["providers"]
    assert joined.request_config("coder")["provider"] == "plain-plugin"


def test_what_is_ignored_is_told(joined: LoadedConfig) -> None:
    for key in ("providers.mine", "providers.plain-plugin", "agents.default", "agents.coder"):
        assert any(text.startswith(f"{key} of ") for text in joined.warnings), key
    assert len(joined.warnings) == 4


def test_a_run_begins_with_what_is_ignored(work: Path) -> None:
    for folder, name in ((work.parent / "home", "config.json"), (work, "agent-host.json")):
        values = {"agents": {"default": {"provider": "echo", "system": folder.name}}}
        (folder / name).write_text(json.dumps(values), encoding="utf-8")
    with AgentApplication() as app:
        answer = app.run("hello")
    assert "agents.default of " in answer.warnings[0]["message"]
    assert answer.session.messages[0]["content"] == "home"


def test_tools_can_only_become_fewer(joined: LoadedConfig) -> None:
    assert joined.tool_patterns() == ["read_file"]
    assert joined.tool_patterns("fresh") == ["read_*", "list_files"]
    assert joined.tool_patterns("named") == ["read_*", "list_files"]
    assert joined.tool_patterns("borrower") == ["list_files"]


NAMES = ["read_file", "read_files", "read", "list_files", "write_file", "r", "rd", "a[b]", "ab"]
PATTERNS = strategies.lists(
    strategies.text(alphabet="read_wit*?[]fs", max_size=8) | strategies.sampled_from(NAMES),
    max_size=4,
)


@given(PATTERNS, PATTERNS, strategies.text(alphabet="read_wit*?[]fs", max_size=8))
def test_no_tool_is_added_by_any_pattern(own: list[str], other: list[str], name: str) -> None:
    config = add_untrusted(
        LoadedConfig({"agents": {"default": {"tools": own}}}),
        LoadedConfig({"agents": {"default": {"tools": other}}}),
    )
    for tool in (*NAMES, name):
        if any(fnmatchcase(tool, each) for each in config.tool_patterns() or ()):
            assert any(fnmatchcase(tool, each) for each in own)
            assert any(fnmatchcase(tool, each) for each in other)


SECRETS = ("default-key-0123456789", "nested-key-0123456789", "own-key-0123456789", "coder-key")


@pytest.mark.parametrize("agent", ["fresh", "named"])
def test_keys_stay_with_whom_they_were_given_for(agent: str, joined: LoadedConfig) -> None:
    config = joined.request_config(agent)
    assert config["provider"] == "evil"
    assert not any(secret in repr(config) for secret in SECRETS)
    assert "base_url" not in config
    assert "headers" not in config
    # What is no access of anybody's is a default for these as well.
    assert config["temperature"] == 0.5
    assert config["extra"] == {"kind": 1}


def test_an_alias_of_others_gets_no_key_even_if_the_caller_names_it(joined: LoadedConfig) -> None:
    assert not any(secret in repr(joined.request_config(None, "new")) for secret in SECRETS)


def test_an_alias_of_the_users_has_its_own_key_whoever_names_it(joined: LoadedConfig) -> None:
    config = joined.request_config("borrower")
    assert (config["provider"], config["api_key"]) == ("echo", "own-key-0123456789")


def test_the_users_own_requests_are_as_they_were(joined: LoadedConfig) -> None:
    own = LoadedConfig(OWN)
    for options in ({}, {"agent": "coder"}, {"provider": "second"}, {"provider": "plain-plugin"}):
        assert joined.request_config(**options) == own.request_config(**options)


def test_one_alias_alone_stays_the_one_that_is_meant() -> None:
    own = LoadedConfig({"providers": {"mine": {"provider": "echo"}}, "agents": {"coder": {}}})
    config = add_untrusted(own, LoadedConfig({"providers": {"new": {"provider": "evil"}}}))
    assert config.request_config()["provider"] == "echo"
    assert config.request_config("coder")["provider"] == "echo"
    config = add_untrusted(
        LoadedConfig({"agents": {"coder": {}}}),
        LoadedConfig({"providers": {"new": {"provider": "evil"}}}),
    )
    assert "provider" not in config.request_config("coder")
    assert config.request_config()["provider"] == "evil"


def _provider_bundle(name: str, *, fallback: bool) -> Bundle:
    entry = Entry(f"{name}:Plugin", "provider", name, fallback=fallback)
    return Bundle(name, "installed", name, distribution=name, descriptor=Descriptor((entry,)))


def _catalogs(*bundles: Bundle, denied: str) -> Iterator[Catalog]:
    yield build_catalog(bundles, LoaderSettings(deny=frozenset({denied})))
    names = frozenset({denied})
    yield build_catalog(bundles, LoaderSettings(deny=names, denied_by_others=names))


def test_denying_the_fallback_lets_no_other_take_over() -> None:
    bundles = [_provider_bundle(n, fallback=n != "plain") for n in ("echo", "third", "plain")]
    by_user, by_others = _catalogs(*bundles, denied="echo")
    assert by_user.provider(None).name == "third"
    with pytest.raises(UnknownPluginError, match="several say they are the fallback"):
        by_others.provider(None)


@pytest.mark.parametrize("fallback", [True, False])
def test_denying_a_provider_makes_no_other_the_only_one(fallback: bool) -> None:
    bundles = [_provider_bundle("echo", fallback=fallback), _provider_bundle("x", fallback=False)]
    by_user, by_others = _catalogs(*bundles, denied="echo")
    assert by_user.provider(None).name == "x"
    with pytest.raises(UnknownPluginError, match=r"is denied|there is no fallback"):
        by_others.provider(None)
    assert by_others.provider("x").name == "x"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("AGENT_HOST_HOME", str(home))
    monkeypatch.chdir(work)
    return work


def test_a_folder_that_denies_the_fallback_is_told_of(work: Path) -> None:
    (work / "agent-host.json").write_text('{"denied_plugins": ["echo"]}', encoding="utf-8")
    assert load_config().untrusted == {"denied_plugins.echo"}
    with AgentApplication() as app, pytest.raises(UnknownPluginError) as error:
        app.run("hello")
    assert "--provider" in error.value.hint or "none is installed" in error.value.hint


def test_an_alias_with_the_name_of_a_plugin_is_refused(work: Path) -> None:
    values = {"providers": {"echo": {"provider": "other"}}}
    (work / "agent-host.json").write_text(json.dumps(values), encoding="utf-8")
    with AgentApplication() as app, pytest.raises(ConfigError, match="take the place of the plu"):
        app.run("hello", provider="echo")
