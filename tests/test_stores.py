"""Which store a URL opens, through pluggy like any other hook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.errors import ConfigError, HookError, HookResultError
from agent_hookspecs.store import SessionStore, StoreOptions
from agent_host import AgentApplication, AgentCore
from agent_host.plugins.load import load_catalog
from agent_host.plugins.manager import RoleManager
from agent_host.plugins.stores import open_store
from agent_host.store.sqlite import SqliteStore
from making import POISON, install


@pytest.fixture
def core() -> Iterator[AgentCore]:
    made = AgentCore()
    yield made
    made.close()


def opened(core: AgentCore, url: str, **options: Any) -> SessionStore:
    return open_store(url, options, core.stacks.catalog, core.stacks.activator)


def test_the_built_in_store_is_opened_through_pluggy() -> None:
    calls: list[tuple[str, str]] = []

    def watch(manager: RoleManager) -> None:
        def before(hook: str, implementations: Any, arguments: Any) -> None:
            calls.append((hook, arguments["url"]))

        manager.add_hookcall_monitoring(before, lambda *_: None)

    core = AgentCore(on_manager=watch)
    store = opened(core, ":memory:", content=False)
    assert isinstance(store, SqliteStore)
    assert not store.keeps_content
    assert calls == [("open_session_store", ":memory:")]
    store.close()
    core.close()


class OwnStores(FeaturePlugin):
    """A program's own, for one scheme."""

    name = "own"

    def open_session_store(self, url: str, config: dict[str, Any]) -> Any:
        match url.partition(":")[0]:
            case "own":
                return SqliteStore(None, StoreOptions.of(config))
            case "wrong":
                return {"not": "a store"}
            case "raising":
                raise ZeroDivisionError("no")
        return None


def test_a_program_brings_a_store_of_its_own(core: AgentCore) -> None:
    core.register_feature(OwnStores)
    store = opened(core, "own://x")
    assert store.list_sessions() == []
    store.close()


def test_what_is_no_store_is_refused_by_name(core: AgentCore) -> None:
    core.register_feature(OwnStores)
    with pytest.raises(HookResultError, match=r"has no .*append"):
        opened(core, "wrong://x")
    with pytest.raises(HookError, match=r"'own'.* raised ZeroDivisionError") as caught:
        opened(core, "raising://x")
    assert caught.value.hook == "open_session_store"


def test_a_url_that_nobody_opens_is_a_config_error_without_the_url(core: AgentCore) -> None:
    with pytest.raises(ConfigError, match="begins with 'unheard'") as caught:
        opened(core, "unheard://me:password@host")
    assert caught.value.key == "store"
    assert "password" not in caught.value.explain()


def test_only_a_plugin_that_announces_the_scheme_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from agent_hookspecs import FeaturePlugin\n"
        "class Plugin(FeaturePlugin):\n"
        "    name = 'filing'\n"
        "    def open_session_store(self, url, config):\n"
        "        raise ValueError(url)\n"
    )
    install(tmp_path, "filing", "feature", source=source, stores=["filing"])
    install(tmp_path, "other", "feature", source=POISON, stores=["other"])
    monkeypatch.syspath_prepend(tmp_path)
    core = AgentCore(catalog=load_catalog())
    with pytest.raises(HookError, match="filing://x"):
        opened(core, "filing://x")
    opened(core, ":memory:").close()
    core.close()


def test_an_application_gives_plugins_its_store_or_the_users_own_and_stores_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    with AgentApplication({}) as app:
        app.open_store().write_note("acme.x", 1)
        with pytest.raises(ConfigError, match="stores nothing"):
            app.sessions.list()
    with AgentApplication({"store": "sqlite:"}) as app:
        assert [note.value for note in app.open_store().list_notes("acme.")] == [1]
    with AgentApplication({"store": f"sqlite:///{tmp_path}/other.db"}) as app:
        assert app.open_store().list_notes("") == []
        assert app.open_store().url.endswith("other.db")
