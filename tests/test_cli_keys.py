"""`agent-host keys`: kept where nobody else can read them, never shown, and tried out."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin
from agent_hookspecs.errors import ConfigError, HookResultError
from agent_hookspecs.logs import redact
from agent_host import AgentApplication, AgentCore
from agent_host.key_store import KeyStore, StoredKey, stored_names
from agent_host.plugins.secrets import resolve_secret
from loopback import Peer, Request, serve
from making import Run, full, run_host, write_package

KEY = "sk-0123456789-abcdefghij"

#: A keyring of our own, in a file that a variable names, found as keyrings are.
KEYRING = """
import json, os
from pathlib import Path
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class Drawer(KeyringBackend):
    priority = 5
    file = Path(os.environ["DRAWER_FILE"])

    def _read(self):
        if os.environ.get("DRAWER_LOCKED"):
            raise KeyringLocked("locked")
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service, username):
        return self._read().get(f"{service} {username}")

    def set_password(self, service, username, password):
        self.file.write_text(json.dumps({**self._read(), f"{service} {username}": password}))

    def delete_password(self, service, username):
        known = self._read()
        if known.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError("none")
        self.file.write_text(json.dumps(known))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Desk:
    """Commands that have a config with a provider of ours, and keys typed into a pipe."""

    def __init__(self, root: Path, url: str = "http://127.0.0.1:9") -> None:
        self.root = root
        self.environment: dict[str, str] = {}
        described = full(
            "well_keys_pkg",
            "provider",
            "well",
            requires_api_key=True,
            key_variable="WELL_KEY",
            dynamic=["get_models"],
        )
        write_package(root / "well", "well_keys_pkg", descriptor=described, source=WELL)
        config = {
            "plugins": ["path:well"],
            "allowed_plugins": ["echo", "well_keys_pkg"],
            "request_defaults": {"base_url": url, "timeout": 20},
        }
        (root / "c.json").write_text(json.dumps(config), encoding="utf-8")

    def __call__(self, *arguments: str, typed: str | None = None) -> Run:
        config = () if arguments[0] == "remove" else ("--config", "c.json")
        if typed is None:
            return run_host("keys", *arguments, *config, cwd=self.root, home=self.root / "home",
                            **self.environment)  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "agent_host", "keys", *arguments, *config],
            input=typed.encode(),
            capture_output=True,
            cwd=self.root,
            env={**os.environ, "AGENT_HOST_HOME": str(self.root / "home"), **self.environment},
            timeout=60,
            check=False,
        )
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


WELL = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "well"
    requires_api_key = True

    def models_request(self, config):
        headers = {"authorization": "Bearer " + config.get("api_key", "")}
        return {"url": config["base_url"] + "/models", "headers": headers}

    def parse_models(self, body):
        return body["data"]

    def call_api(self, native_messages, state):
        raise NotImplementedError
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_key_that_is_piped_in_is_kept_in_a_file_for_its_owner_alone(desk: Desk) -> None:
    done = desk("set", "well", typed=f"{KEY}\n")
    assert (done.code, done.err) == (0, "")
    assert "keys.json" in done.out
    file = desk.root / "home" / "keys.json"
    assert json.loads(file.read_text("utf-8"))["keys"]["well"]["key"] == KEY
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    listed = desk("list")
    assert "well" in listed.out
    assert "keys.json" in listed.out
    assert KEY not in listed.out + listed.err + done.out
    assert desk("list", "--json").json["keys"] == [
        {"name": "well", "from": "keys.json", "note": ""}
    ]


def test_the_environment_counts_for_more_and_that_is_told(desk: Desk) -> None:
    desk.environment["WELL_KEY"] = "another"
    told = desk("set", "well", typed=KEY)
    assert "WELL_KEY is set and counts for more" in told.err
    (row,) = desk("list", "--json").json["keys"]
    assert (row["from"], "not used while it is set" in row["note"]) == ("WELL_KEY", True)


@pytest.mark.parametrize("typed", ["", " \n", "two words", "tab\tbed", "bell\a"])
def test_what_is_no_key_is_refused_without_repeating_it(desk: Desk, typed: str) -> None:
    done = desk("set", "well", typed=typed)
    assert done.code == 2
    assert "two" not in done.err
    assert not (desk.root / "home" / "keys.json").exists()


def test_a_name_that_is_nobodys_is_refused_with_what_was_meant(desk: Desk) -> None:
    done = desk("set", "wel", typed=KEY)
    assert (done.code, "did you mean 'well'" in done.err) == (1, True)


def test_who_needs_no_key_gets_none(desk: Desk) -> None:
    done = desk("set", "echo", typed=KEY)
    assert (done.code, "echo needs no key" in done.err) == (2, True)


def test_a_key_is_forgotten_on_request(desk: Desk) -> None:
    desk("set", "well", typed=KEY)
    assert desk("remove", "well").out == "The key of well is forgotten.\n"
    again = desk("remove", "well")
    assert (again.code, "no key is kept for 'well'" in again.err) == (2, True)
    assert "No provider has a key." in desk("list").out


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, {"data": [{"id": "w-1"}, {"id": "w-2"}]}, "2 models"),
        (401, {"error": {"message": "bad key"}}, "the key was refused"),
        (404, {"error": {"message": "no such page"}}, "the address is wrong"),
        (500, {"error": {"message": "broken"}}, "broken"),
    ],
)
def test_a_key_is_tried_out_at_the_providers_listing(
    tmp_path: Path, status: int, body: Any, words: str
) -> None:
    seen: list[str] = []

    def answer(peer: Peer, request: Request) -> None:
        seen.append(request.headers["authorization"])
        peer.answer(json.dumps(body).encode(), status=f"{status} Some")

    with serve(answer) as server:
        desk = Desk(tmp_path, server.url)
        desk.environment["COLUMNS"] = "200"
        desk("set", "well", typed=KEY)
        done = desk("test")
    assert {*seen} == {f"Bearer {KEY}"}
    assert done.code == (0 if status == 200 else 1), done.err
    assert words in done.out
    assert KEY not in done.out


def test_an_address_at_which_nobody_answers_and_a_missing_key_are_told_apart(desk: Desk) -> None:
    desk.environment["COLUMNS"] = "200"
    missing = desk("test", "well")
    assert (missing.code, "'well' has no key" in missing.out) == (1, True)
    assert "agent-host keys set well" in missing.out
    desk("set", "well", typed=KEY)
    silent = desk("test", "well")
    assert (silent.code, "no network, or nobody answers there" in silent.out) == (1, True)


# The store ----------------------------------------------------------------------------------------


def test_what_passes_the_store_is_a_secret_from_then_on(home: Path) -> None:
    KeyStore().write("a", "well", "quite-a-secret-1")
    assert "quite-a-secret-1" not in redact("it is quite-a-secret-1.")
    assert KeyStore().resolve_secret("a", {}) == "quite-a-secret-1"
    assert KeyStore().resolve_secret("b", {}) is None
    assert stored_names() == {"a": "well"}
    assert KeyStore().list_keys() == [StoredKey("a", "well", "file")]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_in_place_of_the_file_is_refused_and_not_waited_for(home: Path) -> None:
    home.mkdir(exist_ok=True)
    os.mkfifo(home / "keys.json", 0o600)
    assert stored_names() == {}
    with pytest.raises(ConfigError, match="is no regular file"):
        KeyStore().list_keys()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_a_file_that_others_may_read_is_refused(home: Path) -> None:
    KeyStore().write("a", "well", KEY)
    (home / "keys.json").chmod(0o640)
    with pytest.raises(ConfigError, match="others may use it") as caught:
        KeyStore().resolve_secret("a", {})
    assert "chmod 600" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"keys": {"a": {"provider": "p", "place": "attic"}}}',
        '{"keys": {"a": {"provider": "p", "place": "file"}}}',
        '{"keys": {"a": {"provider": "p", "place": "keyring", "key": "quite-secret"}}}',
        '{"keys": {"a": {"provider": "p", "place": "file", "key": 5, "secret": "quite-secret"}}}',
    ],
)
def test_a_file_that_is_broken_is_told_without_what_stands_in_it(home: Path, text: str) -> None:
    home.mkdir(mode=0o700)
    (home / "keys.json").write_text(text, encoding="utf-8")
    (home / "keys.json").chmod(0o600)
    with pytest.raises(ConfigError, match="is not as we write it") as caught:
        KeyStore().resolve_secret("a", {})
    assert "quite-secret" not in str(caught.value)


@pytest.fixture
def drawer(desk: Desk) -> Desk:
    """A desk whose keyring is a file."""
    pytest.importorskip("keyring")
    (desk.root / "drawer.py").write_text(KEYRING, encoding="utf-8")
    desk.environment |= {
        "PYTHON_KEYRING_BACKEND": "drawer.Drawer",
        "PYTHONPATH": os.pathsep.join([str(desk.root), os.environ.get("PYTHONPATH", "")]),
        "DRAWER_FILE": str(desk.root / "drawer.json"),
    }
    return desk


def test_a_keyring_has_the_key_where_there_is_one(drawer: Desk) -> None:
    done = drawer("set", "well", typed=KEY)
    assert done.out == "The key of well is kept in the system's keyring.\n", done.err
    home = drawer.root / "home"
    assert KEY not in (home / "keys.json").read_text("utf-8")
    kept = json.loads((drawer.root / "drawer.json").read_text("utf-8"))
    # A home of its own has keys of its own.
    assert kept == {f"agent-host:{home} well": KEY}
    assert "the system's keyring" in drawer("list").out
    assert drawer("remove", "well").code == 0
    assert json.loads((drawer.root / "drawer.json").read_text("utf-8")) == {}


def test_a_keyring_that_is_locked_or_gone_is_told(drawer: Desk) -> None:
    drawer.environment["COLUMNS"] = "200"
    drawer("set", "well", typed=KEY)
    drawer.environment["DRAWER_LOCKED"] = "1"
    locked = drawer("test", "well")
    assert "the keyring refuses the key 'well': KeyringLocked" in locked.out
    # What cannot be put there is kept in the file.
    assert "keys.json" in drawer("set", "well", typed=KEY).out
    del drawer.environment["DRAWER_LOCKED"]
    drawer("set", "well", typed=KEY)
    drawer.environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    gone = drawer("test", "well")
    assert "which cannot be reached from here" in gone.out


# Vaults -------------------------------------------------------------------------------------------


class Vault(FeaturePlugin):
    """Keys of a program's own."""

    name = "vault"

    def resolve_secret(self, name: str, config: dict[str, Any]) -> Any:
        assert "api_key" not in config
        return {"well": "from-the-vault", "odd": 5}.get(name)


def test_a_vault_comes_before_the_key_store(home: Path) -> None:
    KeyStore().write("well", "well", "from-the-store")
    KeyStore().write("other", "well", "from-the-store-2")
    with AgentCore() as core:
        core.register_feature(Vault)

        def ask(name: str) -> str | None:
            config = {"api_key": "not-for-vaults", "model": "m"}
            return resolve_secret(name, config, core.stacks.catalog, core.stacks.activator)

        assert ask("well") == "from-the-vault"
        assert ask("other") == "from-the-store-2"
        assert ask("nobody") is None
        with pytest.raises(HookResultError, match=r"'vault': hook 'resolve_secret' .* not int"):
            ask("odd")


def test_a_request_without_a_key_asks_the_vault(desk: Desk, home: Path) -> None:
    with AgentApplication(desk.root / "c.json") as app:
        app.core.register_feature(Vault)
        assert app.request_config(provider="well")["api_key_name"] == "well"
