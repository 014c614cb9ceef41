"""Whom a request asks where nothing, or not everything, is said."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import ConfigError
from agent_host import AgentApplication
from agent_host.config import LoadedConfig, parse_config
from agent_host.config.catalog import configured_catalog
from agent_host.config.selection import Selection, select, server_address
from agent_host.key_store import KeyStore
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.model_lists import write_list
from making import POISON, full, run_host, write_package

#: Providers by name, with what their descriptors say; nothing of them is ever imported here.
PROVIDERS: dict[str, dict[str, Any]] = {
    "brook": {"requires_api_key": True, "key_variable": "BROOK_KEY", "default_model": "brook-1"},
    "creek": {"requires_api_key": True, "key_variable": "CREEK_KEY", "default_model": "creek/auto"},
    "delta": {
        "requires_api_key": True,
        "requires_base_url": True,
        "key_variable": "DELTA_KEY",
        "default_model": "delta-1",
    },
    "eddy": {
        "local_server": True,
        "address_variable": "EDDY_HOST",
        "config_schema": {"base_url": {"type": "string", "default": "http://localhost:9"}},
    },
}


class Brooks:
    """Some providers, of which none is set up unless a test does so."""

    def __init__(self, root: Path) -> None:
        for name, described in PROVIDERS.items():
            package = f"{name}_selection_pkg"
            descriptor = full(package, "provider", name, **described)
            write_package(root / name, package, descriptor=descriptor, source=POISON)
        self.values: dict[str, Any] = {
            "plugins": [f"path:{root / name}" for name in PROVIDERS],
            "allowed_plugins": ["echo", *(f"{name}_selection_pkg" for name in PROVIDERS)],
        }

    def ask(self, *, config: dict[str, Any] | None = None, **named: Any) -> Selection:
        parsed = self.config(config)
        return select(parsed, self.catalog(parsed), **named)

    def config(self, more: dict[str, Any] | None = None) -> LoadedConfig:
        return parse_config({**self.values, **(more or {})})

    def catalog(self, config: LoadedConfig) -> Catalog:
        return configured_catalog(config)


@pytest.fixture
def brooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Brooks:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_HOST_MODEL", raising=False)
    for described in PROVIDERS.values():
        for key in ("key_variable", "address_variable"):
            if key in described:
                monkeypatch.delenv(described[key], raising=False)
    return Brooks(tmp_path)


def test_with_nothing_set_the_fallback_answers_and_says_what_to_do(brooks: Brooks) -> None:
    chosen = brooks.ask()
    assert (chosen.provider, chosen.model, chosen.is_fallback) == (None, None, True)
    assert "no provider is named and none has a key, so 'echo' answers" in chosen.line
    assert "agent-host keys set PROVIDER" in chosen.line


def test_the_provider_whose_key_is_set_is_asked_for_its_default_model(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREEK_KEY", "x")
    assert brooks.ask().line == "asking creek/creek/auto: CREEK_KEY is set"
    # Of several the first by name, and the line says who else there is.
    monkeypatch.setenv("BROOK_KEY", "x")
    why = "BROOK_KEY is set; --provider asks another: creek"
    assert brooks.ask() == Selection("brook", "brook-1", why)


def test_a_kept_key_and_a_package_of_its_own_come_before_names(
    brooks: Brooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = PROVIDERS["brook"]
    many = [full("many_selection_pkg", "provider", name, **described) for name in ("aa", "ab")]
    many[0]["entries"] += many[1]["entries"]
    write_package(tmp_path / "many", "many_selection_pkg", descriptor=many[0], source=POISON)
    brooks.values["plugins"].append(f"path:{tmp_path / 'many'}")
    brooks.values["allowed_plugins"].append("many_selection_pkg")
    monkeypatch.setenv("BROOK_KEY", "x")
    assert brooks.ask().line == (
        "asking brook/brook-1: BROOK_KEY is set; --provider asks another: aa, ab"
    )
    KeyStore().write("creek", "creek", "stored-key")
    assert brooks.ask().why == ("the key store has its key; --provider asks another: brook, aa, ab")


def test_a_provider_that_needs_more_than_its_key_is_not_chosen(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTA_KEY", "x")
    assert brooks.ask().is_fallback


def test_a_stored_key_counts_as_one_of_the_environment_does(brooks: Brooks) -> None:
    KeyStore().write("creek", "creek", "stored-key")
    assert brooks.ask() == Selection("creek", "creek/auto", "the key store has its key")
    # That of a name which somebody else has taken does not.
    KeyStore().write("brook", "creek", "stored-key")
    assert brooks.ask().provider == "creek"


@pytest.fixture
def server() -> Iterator[int]:
    """A port of this machine at which somebody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)

        def accept() -> None:
            try:
                while True:
                    listening.accept()[0].close()
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]


def test_a_server_that_answers_on_this_machine_counts_after_keys(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch, server: int
) -> None:
    monkeypatch.setenv("EDDY_HOST", f"127.0.0.1:{server}")
    chosen = brooks.ask()
    assert chosen.line == f"asking eddy: a server answers at http://127.0.0.1:{server}"
    monkeypatch.setenv("CREEK_KEY", "x")
    assert brooks.ask().provider == "creek"


@pytest.mark.parametrize(
    ("named", "address"),
    [
        ("", "http://localhost:9"),
        ("elsewhere", "http://elsewhere:9"),
        ("elsewhere:70", "http://elsewhere:70"),
        ("0.0.0.0", "http://127.0.0.1:9"),
        ("[::]:70", "http://127.0.0.1:70"),
        ("[fe80::1]:70", "http://[fe80::1]:70"),
        ("https://elsewhere/below/", "https://elsewhere/below"),
    ],
)
def test_an_address_may_be_short_as_servers_take_it(
    brooks: Brooks, named: str, address: str
) -> None:
    (record,) = [each for each in brooks.catalog(brooks.config()) if each.name == "eddy"]
    assert record.entry is not None
    assert server_address(record.entry, {"EDDY_HOST": named}) == address


def test_what_the_caller_or_the_config_names_is_not_decided(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROOK_KEY", "x")
    assert brooks.ask(provider="creek") == Selection("creek", None)
    assert brooks.ask(provider="creek", model="brook/x") == Selection("creek", "brook/x")
    config = {"agents": {"default": {"provider": "creek"}}}
    assert brooks.ask(config=config) == Selection(None, None)
    assert brooks.ask(config=config, model="m") == Selection(None, "m")


def test_a_model_of_the_config_without_a_provider_is_read_as_one_that_is_typed(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROOK_KEY", "x")
    monkeypatch.setenv("AGENT_HOST_MODEL", "brook/from-the-environment")
    for config in ({"agents": {"default": {"model": "creek/c"}}},
                   {"request_defaults": {"model": "creek/c"}}):  # fmt: skip
        assert brooks.ask(config=config) == Selection("creek", "c")
    named = {"agents": {"default": {"model": "b-2"}}}
    assert brooks.ask(config=named) == Selection("brook", "b-2", "BROOK_KEY is set")


def test_a_model_is_named_with_its_provider_or_by_an_alias(brooks: Brooks) -> None:
    aliases = {"providers": {"fast": {"provider": "brook", "model": "b"}, "big": {"provider": "x"}}}
    assert brooks.ask(model="brook/b/2") == Selection("brook", "b/2")
    assert brooks.ask(config=aliases, model="fast") == Selection("fast", None)
    assert brooks.ask(config=aliases, model="fast/b-2") == Selection("fast", "b-2")
    # What is nobody's name is part of the id.
    assert brooks.ask(model="nobody/b").model == "nobody/b"
    # Some have models that begin with their own name.
    assert brooks.ask(model="creek/auto") == Selection("creek", "creek/auto")
    assert brooks.ask(model="creek/other") == Selection("creek", "other")


def test_a_model_with_a_slash_may_belong_to_the_provider_that_is_asked_anyway(
    brooks: Brooks,
) -> None:
    config = {"agents": {"default": {"provider": "creek"}}}
    write_list("creek", "", [{"id": "brook/b"}])
    assert brooks.ask(config=config, model="brook/b") == Selection(None, "brook/b")
    assert brooks.ask(config=config, model="brook/c") == Selection("brook", "c")


def test_the_environment_names_a_model_where_nothing_else_does(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_MODEL", "brook/b")
    assert brooks.ask() == Selection("brook", "b", "AGENT_HOST_MODEL says so")
    assert brooks.ask(model="creek/c") == Selection("creek", "c")
    config = {"agents": {"default": {"provider": "creek"}}}
    assert brooks.ask(config=config) == Selection(None, None)


def test_a_part_of_an_id_that_one_model_has_is_enough_for_who_types_it(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_list("brook", "", [{"id": "stone-large-1"}, {"id": "stone-small-1"}, {"id": "stone"}])
    typed = brooks.ask(provider="brook", model="LARGE", parts=True)
    assert typed.line == "asking brook/stone-large-1: only that one has 'LARGE' in its id"
    assert brooks.ask(provider="brook", model="large").model == "large"
    assert brooks.ask(provider="brook", model="stone", parts=True).model == "stone"
    assert brooks.ask(provider="brook", model="pebble", parts=True).model == "pebble"
    with pytest.raises(ConfigError, match="'stone-' may be any of 2") as caught:
        brooks.ask(provider="brook", model="stone-", parts=True)
    assert caught.value.hint == "name one: brook/stone-large-1, brook/stone-small-1"
    # Who has it is asked for it, of all that can be asked.
    monkeypatch.setenv("CREEK_KEY", "x")
    monkeypatch.setenv("BROOK_KEY", "x")
    write_list("creek", "", [{"id": "wave-1"}])
    assert brooks.ask(model="wave-1").provider == "creek"
    found = brooks.ask(model="wave", parts=True)
    assert (found.provider, found.model) == ("creek", "wave-1")


def test_of_several_aliases_the_first_that_has_its_key_is_asked(
    brooks: Brooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "providers": {
            "one": {"provider": "brook", "api_key": "${env:ONE_KEY}"},
            "two": {"provider": "creek", "api_key": "${env:TWO_KEY}"},
        }
    }
    monkeypatch.setenv("TWO_KEY", "x")
    chosen = brooks.ask(config=config)
    assert (chosen.provider, chosen.model) == ("two", None)


ANSWERING = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "spring"
    requires_api_key = True

    def get_config_schema(self):
        return {"model": {"type": "string", "required": True}}

    def init(self, config):
        return {"config": config}

    def call_api(self, native_messages, state):
        config = state["config"]
        final = {"role": "assistant", "content": f"{config['model']} {len(config['api_key'])}"}
        return [], [final], [*native_messages, final], state
"""


@pytest.fixture
def spring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The config of a provider that answers with its model and the length of its key."""
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SPRING_KEY", raising=False)
    package = f"spring_{abs(hash(tmp_path))}"
    descriptor = full(
        package,
        "provider",
        "spring",
        requires_api_key=True,
        key_variable="SPRING_KEY",
        default_model="spring-9",
        config_schema={"model": {"type": "string", "required": True}},
    )
    write_package(tmp_path / "spring", package, descriptor=descriptor, source=ANSWERING)
    return {"plugins": [f"path:{tmp_path / 'spring'}"], "allowed_plugins": ["echo", package]}


def test_a_program_asks_whom_a_terminal_would(
    spring: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPRING_KEY", "0123456789")
    caplog.set_level("INFO")
    with AgentApplication(spring) as app:
        answer = app.run("go")
        assert (answer.text, answer.warnings) == ("spring-9 10", [])
        assert app.run("go", model="spring/other").text == "other 10"
        assert app.run("go", provider="echo").text == "go"
    assert "SPRING_KEY is set" in caplog.text
    assert "0123456789" not in caplog.text


def test_a_stored_key_is_used_and_a_new_one_after_a_restart(spring: dict[str, Any]) -> None:
    store = KeyStore()
    store.write("spring", "spring", "0123")
    with AgentApplication(spring) as app:
        assert app.run("go").text == "spring-9 4"
    store.write("spring", "spring", "01234567")
    with AgentApplication(spring) as app:
        assert app.run("go").text == "spring-9 8"
    aliases = {"providers": {"a": {"provider": "spring"}, "b": {"provider": "spring"}}}
    store.write("b", "spring", "012345678901")
    with AgentApplication({**spring, **aliases}) as app:
        assert app.run("go", provider="a").text == "spring-9 8"
        assert app.run("go", provider="b").text == "spring-9 12"
    named = {"providers": {"a": {"provider": "spring", "api_key_name": "b"}}}
    with AgentApplication({**spring, **named}) as app:
        assert app.run("go").text == "spring-9 12"
    store.remove("b")
    with (
        AgentApplication({**spring, **named}) as app,
        pytest.raises(ConfigError, match="'b' is the name of no key") as caught,
    ):
        app.run("go")
    assert caught.value.hint == "run: agent-host keys set b"


def test_the_line_is_told_on_standard_error_and_explain_says_the_same(
    spring: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(spring), encoding="utf-8")
    where = {"cwd": tmp_path, "home": tmp_path / "home", "SPRING_KEY": "0123"}
    done = run_host("run", "--config", "c.json", "--no-store", "go", **where)
    assert (done.code, done.out) == (0, "spring-9 4\n")
    assert done.err == "asking spring/spring-9: SPRING_KEY is set\n"
    told = run_host("plugins", "explain", "--config", "c.json", "--json", **where).json
    assert (told["provider"], told["model"]) == ("spring", "spring-9")
    assert told["why"] == "SPRING_KEY is set"
