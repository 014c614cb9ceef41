"""`agent-host models`: all providers at once, what is known of each model, why some have none."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.model_facts import ModelFacts, read_facts
from loopback import Peer, Request, serve
from making import Run, full, run_host, write_package

SOURCE = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "{name}"

    def models_request(self, config):
        return {{"url": config["base_url"] + "/{name}"}}

    def parse_models(self, body):
        return body["data"]

    def call_api(self, native_messages, state):
        raise NotImplementedError
"""

MODELS = [
    {"id": "stone-1", "context_length": 128000, "supported_parameters": ["tools"],
     "pricing": {"prompt": "0.000002", "completion": "0.00001"}},
    {"id": "stone-2-mini", "name": "Small Stone", "context_window": 1000000},
]  # fmt: skip


class Place:
    """A folder with two providers that list their models at a server."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        for name in ("brook", "creek"):
            package = f"{name}_models_pkg"
            described = full(package, "provider", name, dynamic=["get_models"])
            write_package(
                root / name, package, descriptor=described, source=SOURCE.format(name=name)
            )
        keyed = full("dry_models_pkg", "provider", "dry", dynamic=["get_models"],
                     requires_api_key=True, key_variable="DRY_MODELS_KEY")  # fmt: skip
        write_package(root / "dry", "dry_models_pkg", descriptor=keyed, source="raise SystemExit")
        names = ("brook", "creek", "dry")
        config = {
            "plugins": [f"path:{name}" for name in names],
            "allowed_plugins": [f"{name}_models_pkg" for name in names],
            "request_defaults": {"base_url": url, "timeout": 20},
        }
        (root / "c.json").write_text(json.dumps(config), encoding="utf-8")

    def __call__(self, *arguments: str) -> Run:
        return run_host("models", "--config", "c.json", *arguments, cwd=self.root,
                        home=self.root / "home", COLUMNS="120")  # fmt: skip


def test_prices_are_those_of_the_config_where_it_has_some(tmp_path: Path) -> None:
    def answer(peer: Peer, request: Request) -> None:
        peer.answer(json.dumps({"data": MODELS}).encode())

    with serve(answer) as server:
        place = Place(tmp_path, server.url)
        file = tmp_path / "c.json"
        own = {
            "brook/stone-2-*": {"input": 0.25, "output": 1},
            "brook/stone-1": {"input": 3, "output": 4},
        }
        file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "prices": own}), "utf-8")
        found = place("--provider", "brook", "--json").json["models"]
        other = place("--provider", "creek", "--json").json["models"]

    def prices(models: list[dict[str, Any]]) -> list[Any]:
        return [(each["input_price"], each["output_price"]) for each in models]

    assert prices(found) == [("3", "4"), ("0.25", "1")]
    assert prices(other) == [("2", "10"), (None, None)]


def test_all_are_asked_at_once_and_each_has_its_models_or_its_reason(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def answer(peer: Peer, request: Request) -> None:
        # Neither is answered before the other has asked.
        both.wait()
        if "/creek" in request.line:
            peer.answer(b'{"error": {"message": "closed today"}}', status="503 Later")
        else:
            peer.answer(json.dumps({"data": MODELS}).encode())

    with serve(answer) as server:
        place = Place(tmp_path, server.url)
        done = place()
        found = place("--provider", "brook", "--json").json
    assert done.code == 0, done.err
    assert done.out.splitlines()[1:] == [
        "brook/stone-1       128k    2 / 10         tools",
        "brook/stone-2-mini  1M",
    ]
    assert "creek: " in done.err
    assert "closed today" in done.err
    assert "1 provider without a key or an address: dry" in done.err
    assert found["models"][0] == {
        "provider": "brook",
        "id": "stone-1",
        "name": "",
        "window": 128000,
        "abilities": ["tools"],
        "input_price": "2",
        "output_price": "10",
    }
    assert [row["models"] for row in found["providers"]] == [2]


def test_lists_are_kept_until_they_are_asked_for_again(tmp_path: Path) -> None:
    with serve(lambda peer, request: peer.answer(json.dumps({"data": MODELS}).encode())) as server:
        place = Place(tmp_path, server.url)
        assert place().code == 0
        assert len(server.requests) == 2
        # By words, in id, name, provider or abilities.
        searched = place("small", "BROOK")
        assert searched.out.splitlines()[1:] == ["brook/stone-2-mini  1M"]
        assert "No model fits 'nothing'." in place("nothing").out
        assert len(server.requests) == 2
        file = tmp_path / "home" / "cache" / "models" / "brook.json"
        kept = json.loads(file.read_text("utf-8"))
        file.write_text(json.dumps({**kept, "asked": kept["asked"] - 7200}), encoding="utf-8")
        assert "listed up to 2 hours ago; --refresh asks again" in place().err
        place("--refresh")
        assert len(server.requests) == 4


def test_who_cannot_be_asked_is_told_and_is_no_success(tmp_path: Path) -> None:
    place = Place(tmp_path, "http://127.0.0.1:9")
    missing = place("--provider", "dry")
    assert (missing.code, "'dry' has no key" in missing.err) == (1, True)
    assert "agent-host keys set dry" in missing.err
    silent = place("--provider", "brook", "--timeout", "5")
    assert (silent.code, "brook: no connection to 127.0.0.1:9" in silent.err) == (1, True)
    unknown = place("--provider", "brok")
    assert (unknown.code, "did you mean 'brook'" in unknown.err) == (1, True)


@pytest.mark.parametrize(
    ("listed", "facts"),
    [
        ({}, ModelFacts()),
        ({"inputTokenLimit": 8192}, ModelFacts(window=8192)),
        ({"context_window": True, "max_model_len": 4096}, ModelFacts(window=4096)),
        ({"capabilities": {"function_calling": True, "vision": False}},
         ModelFacts(abilities=("tools",))),
        ({"capabilities": ["thinking", "vision"]}, ModelFacts(abilities=("images", "reasoning"))),
        ({"architecture": {"input_modalities": ["text", "image"]}},
         ModelFacts(abilities=("images",))),
        ({"capabilities": {"image_input": {"supported": False}}}, ModelFacts()),
        ({"pricing": {"input": "0.000001", "output": "0"}},
         ModelFacts(input_price=Decimal(1), output_price=Decimal(0))),
        # Of how many tokens a number is the price is not told.
        ({"pricing": {"prompt": 0.5, "completion": "many"}}, ModelFacts()),
        ({"pricing": {"prompt": "-1", "completion": "NaN"}}, ModelFacts()),
    ],
)  # fmt: skip
def test_facts_are_read_where_listings_have_them(listed: dict[str, Any], facts: ModelFacts) -> None:
    assert read_facts({"id": "m", **listed}) == facts
