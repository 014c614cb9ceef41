"""plugins search reads an index from a file or a server, and always answers the same."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_host.distributions.catalog_index import decode_index
from agent_host.distributions.catalog_source import MAX_BYTES, open_catalog
from agent_host.distributions.errors import CatalogError
from agent_host.distributions.search import Wish, search_index
from making import Run, run_host


def a_plugin(name: str, role: str = "tool", **more: Any) -> dict[str, Any]:
    return {"name": name, "role": role, **more}


def a_distribution(name: str, *plugins: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "plugins": [*plugins], **more}


def an_index(*distributions: Mapping[str, Any], **more: Any) -> bytes:
    document = {"schema_version": 1, "distributions": [*distributions], **more}
    return json.dumps(document).encode()


INDEX = an_index(
    a_distribution(
        "acme-shell",
        a_plugin("shell", tools={"run_command": "execute"}),
        summary="Runs commands.",
        tier="gold",
    ),
    a_distribution(
        "acme-provider",
        a_plugin("acme", "provider", label="Acme", provides_tags=["wire:acme", "fast"]),
        summary="Speaks with Acme, not with a shell.",
        tier="bronze",
    ),
    a_distribution("acme-notes", a_plugin("notes", "feature", required_tags=["fast"])),
)


def found(wish: Wish, raw: bytes = INDEX) -> list[str]:
    return [each.name for each in search_index(decode_index(raw, "index"), wish)]


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (Wish(), ["acme-notes", "acme-provider", "acme-shell"]),
        # A name counts more than a text.
        (Wish(("shell",)), ["acme-shell", "acme-provider"]),
        (Wish(("SHELL", "commands")), ["acme-shell"]),
        (Wish(("run_command",)), ["acme-shell"]),
        (Wish(("she",)), ["acme-shell", "acme-provider"]),
        (Wish(("nowhere",)), []),
        (Wish(role="provider"), ["acme-provider"]),
        (Wish(tags=("fast",)), ["acme-notes", "acme-provider"]),
        (Wish(tags=("fast", "wire:acme")), ["acme-provider"]),
        (Wish(tier="bronze"), ["acme-provider", "acme-shell"]),
        (Wish(tier="silver"), ["acme-shell"]),
    ],
)
def test_what_fits_is_found_the_best_first(wish: Wish, names: list[str]) -> None:
    assert found(wish) == names


@given(st.permutations(json.loads(INDEX)["distributions"]), st.sampled_from(["", "a", "acme s"]))
@settings(max_examples=30, deadline=None)
def test_the_order_of_the_index_does_not_matter(order: list[Any], words: str) -> None:
    assert found(Wish((words,)), an_index(*order)) == found(Wish((words,)))


def search(home: Path, *arguments: str, **variables: str) -> Run:
    """The command, with nothing configured but what is said here."""
    return run_host("plugins", "search", *arguments, home=home, cwd=home.parent, **variables)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "site" / "index.json"
    made.parent.mkdir()
    made.write_bytes(INDEX)
    return made


def test_a_file_or_its_folder_is_read(tmp_path: Path, file: Path) -> None:
    for source in (file, file.parent):
        ran = search(tmp_path / "home", "commands", "--catalog", str(source))
        assert ran.code == 0
        assert "acme-shell" in ran.out
        assert "agent-host plugins add acme-shell" in ran.out
        assert "acme-notes" not in ran.out


def test_json_has_all_that_is_known(tmp_path: Path, file: Path) -> None:
    ran = search(tmp_path / "home", "--role", "provider", "--json", "--catalog", str(file))
    (only,) = ran.json["distributions"]
    assert (only["name"], only["tier"]) == ("acme-provider", "bronze")
    assert only["plugins"][0]["provides_tags"] == ["wire:acme", "fast"]


def test_finding_nothing_is_told_and_exits_with_one(tmp_path: Path, file: Path) -> None:
    ran = search(tmp_path / "home", "nowhere", "--catalog", str(file))
    assert (ran.code, ran.out.strip()) == (1, "Nothing of the 3 distributions fits.")


def test_config_comes_before_the_environment_and_is_read_from_its_folder(
    tmp_path: Path, file: Path
) -> None:
    home = tmp_path / "home"
    ran = search(home, "--json", AGENT_HOST_CATALOG=str(file))
    assert ran.json["source"] == str(file)
    home.mkdir(exist_ok=True)
    (home / "index.json").write_bytes(an_index())
    (home / "config.json").write_text(json.dumps({"catalog": "index.json"}))
    ran = search(home, "--json", AGENT_HOST_CATALOG=str(file))
    assert (ran.code, ran.json["source"]) == (1, str(home / "index.json"))


def test_without_a_catalog_it_is_said_how_to_name_one(tmp_path: Path) -> None:
    ran = search(tmp_path / "home", "words")
    assert ran.code != 0
    assert "no catalog is named" in ran.err
    assert "--catalog" in ran.err


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"<!DOCTYPE html>", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is no index"),
        (b'{"schema_version": 1}', "distributions is missing"),
        (an_index(a_distribution("Not A Name")), "distributions[0].name"),
        (an_index(a_distribution("a", links=[{"label": "x", "url": "javascript:x"}])), "links[0]"),
        (b'{"schema_version": 2, "distributions": []}', "newer than this host knows"),
        (b" " * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_what_is_no_index_is_an_error_that_says_why(tmp_path: Path, raw: bytes, words: str) -> None:
    file = tmp_path / "index.json"
    file.write_bytes(raw)
    with pytest.raises(CatalogError, match=re.escape(words)) as raised:
        open_catalog(str(file))
    assert raised.value.source == str(file)
    assert raised.value.hint


def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "index.json"
    hostile = "\x1b[2J\u202etxet \u25d8 Allow it?\nnew line"
    file.write_bytes(an_index(a_distribution("acme", version=hostile, summary=hostile * 100)))
    ran = search(tmp_path / "home", "--catalog", str(file))
    assert ran.code == 0
    assert not {"\x1b", "\u202e", "\u25d8"} & {*ran.out}
    assert len(ran.out) < 3000


@dataclass
class Site:
    """A web server with one document."""

    raw: bytes
    url: str = ""
    etag: str = '"one"'
    status: int = 200
    asked: list[str | None] = field(default_factory=list)


@contextmanager
def serving(raw: bytes) -> Iterator[Site]:
    site = Site(raw)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers.get("If-None-Match")
            site.asked.append(known)
            if self.path == "/moved/index.json":
                self.answer(302, b"", Location="/index.json")
            elif known == site.etag:
                self.answer(304, b"")
            else:
                self.answer(site.status, site.raw, ETag=site.etag)

        def answer(self, status: int, raw: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield site
        finally:
            server.shutdown()


def test_what_a_server_gave_is_asked_for_again_only_if_it_changed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(INDEX) as site:
        for _ in range(2):
            assert len(search(home, "--json", "--catalog", site.url).json["distributions"]) == 3
        site.raw, site.etag = an_index(a_distribution("new")), '"two"'
        names = search(home, "--json", "--catalog", site.url).json["distributions"]
        assert [each["name"] for each in names] == ["new"]
        assert site.asked == [None, '"one"', '"one"']


def test_redirects_are_followed(tmp_path: Path) -> None:
    with serving(INDEX) as site:
        ran = search(tmp_path / "home", "shell", "--catalog", f"{site.url}moved/")
    assert "acme-shell" in ran.out


def test_without_the_server_what_was_kept_is_used_and_its_time_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(INDEX) as site:
        search(home, "--catalog", site.url)
        site.status, site.etag = 500, '"other"'
        failing = search(home, "shell", "--catalog", site.url)
    offline = search(home, "shell", "--catalog", site.url)
    for ran, why in ((failing, "500"), (offline, "cannot be had")):
        assert ran.code == 0
        assert "acme-shell" in ran.out
        assert "this is what it was on 20" in ran.err
        assert why in ran.err


def test_a_server_that_was_never_reached_is_an_error(tmp_path: Path) -> None:
    with serving(INDEX) as site:
        pass
    ran = search(tmp_path / "home", "--catalog", site.url, "--json")
    assert ran.json["error"]["type"] == "CatalogError"
    assert "cannot be had" in ran.json["error"]["message"]


def test_a_server_that_gives_too_much_is_an_error_and_nothing_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(b" " * (MAX_BYTES + 1)) as site:
        ran = search(home, "--catalog", site.url, "--json")
    assert "larger than" in ran.json["error"]["message"]
    assert not (home / "cache" / "catalogs").exists()


def test_tags_are_completed_from_what_is_known(tmp_path: Path, file: Path) -> None:
    words = f"agent-host plugins search --catalog {file} --tag "
    ran = run_host(
        home=tmp_path / "home",
        _AGENT_HOST_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD="6",
    )
    assert {line.partition(",")[2] for line in ran.out.split()} == {"fast", "wire:acme"}
