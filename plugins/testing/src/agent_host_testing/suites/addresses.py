"""Checks of where requests go, how long they may take, and which key goes with them."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import urlsplit

from agent_host.turn.send import make_request, own_hook
from agent_host.wire.deadlines import Timeouts
from agent_host_testing.script import say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import CANARY
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.suites.turns import prepare_by_hand
from agent_host_testing.violations import require

__all__ = ["AddressChecks"]

_WHERE = "docs/testing.md#addresses-and-keys"
_PROXY = "/kit-proxy"
#: What a user may set, and what it means for the waits of a request.
_TIMEOUTS = (
    (7.5, Timeouts(7.5, 7.5, 7.5, None)),
    (
        {"connect": 1.5, "first_byte": 2.5, "idle": 3.5, "total": 4.5},
        Timeouts(1.5, 2.5, 3.5, 4.5),
    ),
)


class AddressChecks(ProviderSuite):
    """Addresses, timeouts and keys.

    ``key_variable`` is the environment variable that should hold the key; None if the suite does
    not say.
    """

    key_variable: ClassVar[str | None] = None

    @check("addresses", _WHERE)
    def test_a_slash_at_the_end_of_the_address_does_not_matter(self) -> None:
        """A base_url that ends in a slash leads to the same address as one that does not."""
        self.require_wire()
        with self.talk() as talk:
            base = talk.config["base_url"]
            for ending in ("", "/"):
                talk.config["base_url"] = base + ending
                talk.again()
                talk.host.core.get_models(talk.config)
                talk.ask(say("Yes.")).expect()
            paths = [exchange.request for exchange in self.exchanges()]
            require(len({*paths}) == 1, f"with and without the slash it asks {' and '.join(paths)}")

    @check("addresses", _WHERE)
    def test_a_path_in_the_address_is_kept(self) -> None:
        """A base_url with a path of its own, as behind a proxy, is asked below that path."""
        self.require_wire()
        with self.talk() as talk:
            parts = urlsplit(talk.config["base_url"])
            base = f"{parts.scheme}://{parts.netloc}{_PROXY}{parts.path}"
            talk.config["base_url"] = base
            talk.say("Yes?")
            turn = prepare_by_hand(talk.host.core, talk.session, talk.config)
            if own_hook(turn) is not None:
                not_claimed("the provider does its own I/O, and makes addresses as it likes")
            path = urlsplit(make_request(turn)[0].url).path
            kept = path.startswith(f"{_PROXY}/")
            require(kept, f"with the base_url {base} it asks {path}")

    @check("addresses", _WHERE)
    def test_the_key_is_in_no_address(self) -> None:
        """The key is sent in a header: addresses stand in the logs of every machine between."""
        self.require_wire()
        with self.talk() as talk:
            talk.host.core.get_models(talk.config)
            talk.ask(say("Yes.")).expect()
            for request in talk.server.requests:
                where = [name for name, value in request.query.items() if CANARY in value]
                inside = CANARY in request.path or bool(where)
                require(not inside, f"{request.method} {request.path} has it in {where or 'path'}")

    @check("addresses", _WHERE)
    def test_the_key_variable_is_the_right_one(self) -> None:
        """The key is looked for in the environment variable that the suite names."""
        if self.key_variable is None:
            not_claimed("the suite does not say its 'key_variable'")
        entry = self.record().entry
        found = entry.key_variable if entry else None
        require(found == self.key_variable, f"the descriptor has the key_variable {found!r}")

    @check("settings", _WHERE)
    def test_the_users_timeout_counts(self) -> None:
        """A request waits as long as the user's timeout says, and no plugin replaces that."""
        self.require_wire()
        with self.talk() as talk:
            for timeout, wanted in _TIMEOUTS:
                talk.config["timeout"] = timeout
                talk.again()
                talk.say("Yes?")
                turn = prepare_by_hand(talk.host.core, talk.session, talk.config)
                if own_hook(turn) is not None:
                    not_claimed("the provider does its own I/O, and waits as it likes")
                found, _ = make_request(turn)
                require(
                    found.timeouts == wanted,
                    f"with the timeout {timeout} the request waits {found.timeouts}",
                )
