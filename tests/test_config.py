"""The config file: found, read, checked, substituted, and never telling what is secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import ConfigError
from agent_host import AgentApplication
from agent_host.config import (
    LoadedConfig,
    find_config,
    load_config,
    parse_config,
    substitute,
)
from agent_host.config.model import config_schema
from agent_host.redaction import mask_config
from making import full, write_package

SEEDS = Path(__file__).resolve().parents[2] / "shared" / "seeds"

PROVIDER = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = {name!r}

    def init(self, config):
        return {{"config": config}}

    def call_api(self, native_messages, state):
        shown = ("model", "api_key", "base_url")
        config = sorted(item for item in state["config"].items() if item[0] in shown)
        final = {{"role": "assistant", "content": repr(config)}}
        return [], [final], [*native_messages, final], state
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a config of their own, in an empty folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("AGENT_HOST_HOME", str(folder))
    monkeypatch.chdir(work)
    return folder


def provider_folder(root: Path, package: str, name: str) -> Path:
    write_package(
        root,
        package,
        descriptor=full(package, "provider", name),
        source=PROVIDER.format(name=name),
    )
    return root


def sample() -> dict[str, Any]:
    """The sample of the source document, as it stands there."""
    documents = sorted(SEEDS.glob("002*"))
    if not documents:
        pytest.skip("the source documents are not here")
    text = documents[0].read_text("utf-8")
    start = text.index('{\n  "plugin_cache_dir"')
    found, _ = json.JSONDecoder().raw_decode(text[start:])
    assert isinstance(found, dict)
    return found


def test_the_sample_config_works_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = sample()
    provider_folder(tmp_path / "my-provider-repo", "sample_provider_pkg", "my_provider_id")
    config["plugins"] = [f"path:{tmp_path}/my-provider-repo"]
    monkeypatch.setenv("MY_API_KEY", "key-of-the-sample")
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "config_echo_app.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    with AgentApplication(file) as app:
        text = app.run("hello").text
        assert app.config.clones() == tmp_path / ".crystal" / "cache" / "plugins"
    assert "('api_key', 'key-of-the-sample')" in text
    assert "('base_url', 'https://example.com/v1')" in text
    assert "('model', 'my-model')" in text


def test_relative_sources_start_at_the_configs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The application sets it, and this takes it back.
    monkeypatch.setenv("PLACE", "elsewhere")
    provider_folder(tmp_path / "conf" / "beside", "relative_pkg", "relative")
    file = tmp_path / "conf" / "c.toml"
    file.write_text(
        'plugins = ["path:${env:PLACE}"]\nenv = {PLACE = "beside"}\n'
        'agents = {default = {provider = "relative"}}',
        encoding="utf-8",
    )
    with AgentApplication(file) as app:
        assert app.run("hello").text == "[]"


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_json_and_toml_say_the_same(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"c.{suffix}"
    file.write_text(
        '{"tools": {"max_turns": 3, "rules": [{"tool": "a*", "decision": "deny"}]}}'
        if suffix == "json"
        else '[tools]\nmax_turns = 3\n[[tools.rules]]\ntool = "a*"\ndecision = "deny"\n',
        encoding="utf-8-sig" if suffix == "json" else "utf-8",
    )
    rules = [{"tool": "a*", "decision": "deny"}]
    assert load_config(file).values == {"tools": {"max_turns": 3, "rules": rules}}


def test_the_working_folder_comes_before_the_users_own(home: Path) -> None:
    assert find_config() is None
    (home / "config.toml").write_text("", encoding="utf-8")
    assert find_config() == home / "config.toml"
    Path("agent-host.toml").write_text("", encoding="utf-8")
    Path("agent-host.json").write_text("{}", encoding="utf-8")
    assert find_config() == Path.cwd() / "agent-host.json"


# --- precedence ---

LAYERED = {
    "request_defaults": {"temperature": 0, "model": "m-default", "seed": 7},
    "providers": {
        "main": {"provider": "p", "model": "m-alias", "temperature": 1},
        "other": {"provider": "q"},
    },
    "agents": {
        "default": {"provider": "main"},
        "writer": {"provider": "main", "model": "m-agent", "temperature": 2, "system": "Write."},
    },
}


@pytest.mark.parametrize(
    ("asked", "effective"),
    [
        ({}, {"provider": "p", "model": "m-alias", "temperature": 1, "seed": 7}),
        (
            {"agent": "writer"},
            {"provider": "p", "model": "m-agent", "temperature": 2, "seed": 7},
        ),
        (
            {"agent": "writer", "model": "m-call"},
            {"provider": "p", "model": "m-call", "temperature": 2, "seed": 7},
        ),
        (
            {"agent": "writer", "provider": "other"},
            {"provider": "q", "model": "m-default", "temperature": 2, "seed": 7},
        ),
        (
            {"provider": "a-plugin"},
            {"provider": "a-plugin", "model": "m-default", "temperature": 0, "seed": 7},
        ),
    ],
)
def test_the_caller_outweighs_the_agent_the_agent_the_alias_and_all_the_defaults(
    asked: dict[str, Any], effective: dict[str, Any]
) -> None:
    assert parse_config(LAYERED).request_config(**asked) == effective


@pytest.mark.parametrize(
    ("providers", "agents", "expected"),
    [
        ({"main": {"provider": "echo", "model": "m"}}, {}, {"provider": "echo", "model": "m"}),
        (
            {"main": {"provider": "echo", "model": "m"}},
            {"default": {"model": "agents"}},
            {"provider": "echo", "model": "agents"},
        ),
        ({"one": {"provider": "echo"}, "two": {"provider": "echo"}}, {}, {}),
    ],
)
def test_one_provider_alone_is_that_of_agents_that_name_none(
    providers: dict[str, Any], agents: dict[str, Any], expected: dict[str, Any]
) -> None:
    config = parse_config({"providers": providers, "agents": agents})
    assert config.request_config() == expected


def test_settings_of_a_call_outweigh_everything() -> None:
    with AgentApplication({"request_defaults": {"temperature": 0, "seed": 1}}) as app:
        config = app.request_config(settings={"temperature": 2}, use_tools="read_*")
    assert (config["temperature"], config["seed"], config["use_tools"]) == (2, 1, ["read_*"])


# --- the environment ---


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${env:A}", "1"),
        ("x${env:A}y${env:B}z", "x1y2z"),
        ("${env:C:-fallback}", "fallback"),
        ("${env:C:-}", ""),
        ("${env:C:-a:b-c}", "a:b-c"),
        ("${env:A:-unused}", "1"),
        ("$A ${A} {env:A}", "$A ${A} {env:A}"),
    ],
)
def test_placeholders_are_filled(text: str, filled: str) -> None:
    env = {"A": "1", "B": "2"}
    assert substitute({"k": [text, 5, None]}, env, "w") == {"k": [filled, 5, None]}


def test_a_variable_that_is_missing_is_named_with_file_key_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    document = {"providers": {"main": {"provider": "p", "api_key": "${env:NOT_SET_AT_ALL}"}}}
    file.write_text(json.dumps(document), encoding="utf-8")
    config = load_config(file)
    with pytest.raises(ConfigError) as caught:
        config.request_config(provider="main")
    error = caught.value
    assert (error.key, error.file) == ("providers.main.api_key", str(file))
    assert "NOT_SET_AT_ALL" in error.message
    assert "export NOT_SET_AT_ALL=" in error.hint


def test_the_configs_own_environment_comes_first_and_is_there_for_plugins() -> None:
    code = """
import os
from agent_host import AgentApplication
defaults = {"base_url": "${env:CONFIG_DIR}"}
app = AgentApplication({"env": {"CONFIG_DIR": "mine"}, "request_defaults": defaults})
print(os.environ["CONFIG_DIR"], app.request_config()["base_url"])
"""
    environment = {**os.environ, "CONFIG_DIR": "theirs"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "mine mine\n"


# --- errors ---


@pytest.mark.parametrize(
    ("values", "key", "message", "hint"),
    [
        ([], None, "the document is []", "it must be an object"),
        ({"plugin": []}, "plugin", "there is no key 'plugin'", "did you mean 'plugins'?"),
        ({"plugins": "path:x"}, "plugins", "plugins is 'path:x'", "it must be a list"),
        ({"tools": {"max_turns": 0}}, "tools.max_turns", "is 0", "at least 1"),
        ({"tools": {"max_turns": True}}, "tools.max_turns", "is True", "a whole number"),
        (
            {"tools": {"rules": [{"decision": "alow"}]}},
            "tools.rules[0].decision",
            "is 'alow'",
            "one of allow, ask, deny",
        ),
        ({"tools": {"rule": []}}, "tools.rule", "no key 'tools.rule'", "did you mean 'rules'?"),
        ({"providers": {"a": {}}}, "providers.a.provider", "is missing", "add it"),
        ({"agents": {"a": []}}, "agents.a", "of the wrong kind", "it must be an object"),
    ],
)
def test_an_error_names_the_key_and_what_would_be_right(
    values: Any, key: str | None, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(values, Path("/c.json"))
    assert (caught.value.key, caught.value.file) == (key, "/c.json")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("c.json", b"{", "is not JSON"),
        ("c.toml", b"a = ", "is not TOML"),
        ("c.json", b"\xff\xfe{", "is not UTF-8"),
        ("c.json", b"[" * 100_000, "is nested too deeply"),
        ("missing.json", None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(file)
    assert str(file) in caught.value.message


def test_an_agent_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="there is no agent 'writter'") as caught:
        parse_config(LAYERED).request_config("writter")
    assert caught.value.hint == "did you mean 'writer'? there are: default, writer"


# --- secrets ---

SECRET = "s3cr3t-value-of-mine"


@pytest.mark.parametrize(
    "values",
    [
        {"providers": {"a": {"provider": "p", "api_key": [SECRET]}}},
        {"providers": {"a": SECRET}},
        {"providers": SECRET},
        {"env": {"ANY": [SECRET]}},
        {"env": SECRET},
        {"request_defaults": SECRET},
        {"agents": {"a": {"provider": {"key": SECRET}}}},
        {"providers": {"a": {"provider": "p", "base_url": {"x": SECRET}}}},
    ],
)
def test_no_error_repeats_what_could_be_a_secret(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(values)
    assert SECRET not in json.dumps(caught.value.to_dict())


def test_what_is_shown_is_masked() -> None:
    shown = mask_config(
        {
            "env": {"HARMLESS": SECRET},
            "providers": {
                "a": {
                    "provider": "p",
                    "model": "m",
                    "api_key": SECRET,
                    "key": "${env:KEY}",
                    "token": f"${{env:KEY:-{SECRET}}}",
                    "secret": f"${{env:KEY}}{SECRET}",
                    "headers": {"Authorization": f"Bearer {SECRET}", "x-auth": {"deep": [SECRET]}},
                    "base_url": f"https://user:{SECRET}@host/v1",
                    "password": 123456,
                    "max_tokens": 5,
                }
            },
            "plugins": [f"git+https://{SECRET}@host/repo@abc"],
        }
    )
    assert SECRET not in json.dumps(shown)
    entry = shown["providers"]["a"]
    assert (entry["model"], entry["key"], entry["max_tokens"]) == ("m", "${env:KEY}", 5)
    assert entry["token"] == "${env:KEY:-[redacted]}"
    assert entry["password"] == "[redacted]"
    assert entry["base_url"] == "https://[redacted]@host/v1"


# --- the schema ---


def test_the_schema_is_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(config_schema())


def values_for(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that often fit the schema and sometimes just miss it."""
    wrong = st.sampled_from([None, True, 0, -1, 1, 2.5, "", "x", [], [""], {}, {"x": 1}])
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | wrong
    kind = schema.get("type")
    if kind == "string":
        return st.sampled_from(["", "a", "path:x"]) | wrong
    if kind == "array":
        return st.lists(values_for(schema["items"], depth + 1), max_size=2) | wrong
    if kind == "object":
        known = {
            key: values_for(each, depth + 1) for key, each in schema.get("properties", {}).items()
        }
        others = schema.get("additionalProperties")
        named = st.dictionaries(
            st.sampled_from(["one", "two"]),
            values_for(others, depth + 1) if isinstance(others, dict) else wrong,
            max_size=1 if others is not False else 0,
        )
        made = st.fixed_dictionaries({}, optional=known)
        return st.builds(lambda a, b: {**a, **b}, named, made) | (wrong if depth else st.nothing())
    return wrong


def test_folders_that_a_config_lists_begin_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    file = tmp_path / "named.json"
    listed = ["skills", "~/more", "/whole", 3]
    values = {"request_defaults": {"skills_folders": listed, "other_folders": "text"}}
    file.write_text(json.dumps(values), encoding="utf-8")
    config = load_config(file).request_config()
    more = str(Path("~/more").expanduser())
    assert config["skills_folders"] == [str(tmp_path / "skills"), more, "/whole", 3]
    assert config["other_folders"] == "text"


@given(values_for(config_schema()))
@settings(max_examples=200, deadline=None)
def test_the_schema_accepts_what_the_host_accepts(values: Any) -> None:
    assert accepted(values) is jsonschema.Draft202012Validator(config_schema()).is_valid(values)


def accepted(values: Any) -> bool:
    try:
        return isinstance(parse_config(values), LoadedConfig)
    except ConfigError:
        return False
