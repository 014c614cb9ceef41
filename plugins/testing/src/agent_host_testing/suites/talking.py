"""Conversations with the provider under test that go as a script says.

Owns what a provider suite is told about its subject, and a `Talk`: a host, a session and, if the
provider has a wire, a fake server that answers it. It must not know any check.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from agent_host_testing.faults import Fault
from agent_host_testing.formats import wire_format
from agent_host_testing.script import Answer
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.expecting import ClaimConformance
from agent_host_testing.suites.hosting import CANARY, PATIENCE, Host, Outcome, recording_tools
from agent_host_testing.suites.serving import WatchedServer
from agent_host_testing.wire import WireFormat

__all__ = ["ProviderSuite", "Talk"]

_QUESTION = "What do you say?"


class Talk:
    """A session with the provider under test, turn by turn.

    ``noted`` is what the tools were called with; ``config`` goes into every request.
    """

    def __init__(
        self,
        suite: ProviderSuite,
        host: Host,
        server: WatchedServer | None,
        config: dict[str, Any],
        noted: list[tuple[str, Any]],
        ways: Mapping[str, bool],
    ) -> None:
        self._suite = suite
        self._server = server
        self._ways = ways
        self.host = host
        self.config = config
        self.noted = noted
        self.session = host.core.create_session()
        self.last = Outcome(self.session)

    @property
    def server(self) -> WatchedServer:
        """The fake server; the check is not for a provider without a wire."""
        if self._server is None:
            not_claimed("the provider has no wire")
        return self._server

    def say(self, text: str, role: str = "user") -> None:
        """Add a message and send nothing."""
        self.session = self.host.core.add_message(self.session, role, text)

    def ask(
        self, answer: Answer, prompt: str = "", *, fault: Fault | Sequence[Fault] | None = None
    ) -> Outcome:
        """Say something that is answered like this."""
        self.say(prompt or self._suite.prompt_to(answer))
        return self.go_on(answer, fault=fault)

    def go_on(self, answer: Answer, *, fault: Fault | Sequence[Fault] | None = None) -> Outcome:
        """Send the session as it is, to be answered like this if there is a server."""
        if self._server is not None:
            self._server.queue(answer, fault=fault)
        self.last = self.host.ask(self.session, self.config, **self._ways)
        self.session = self.last.session
        return self.last

    def run_calls(self) -> None:
        """Run the calls of the last answer and add their results."""
        self.session = self.host.run_calls(self.last, self.config)

    def again(self) -> None:
        """Begin a new session with the same host and server."""
        self.session = self.host.core.create_session()


class ProviderSuite(ClaimConformance):
    """What the checks of a provider are told.

    ``wire`` is the name of one of the kit's formats, or a `WireFormat` of the author's own; None
    for a provider that does its own I/O, which then says in `prompt_for` how to be asked for an
    answer. ``reasoning_settings`` are added where the model is to reason. ``own_metadata`` names
    what the provider says of its messages by itself. Base URL and key are put in by the suite.
    """

    role = "provider"
    wire: ClassVar[str | WireFormat | None] = None
    reasoning_settings: ClassVar[Mapping[str, Any]] = {}
    own_metadata: ClassVar[Sequence[str]] = ()

    def prompt_for(self, answer: Answer) -> str | None:
        """What to say to a provider without a wire so that it answers like this.

        None means that it cannot be asked for such an answer.
        """
        return None

    def prompt_to(self, answer: Answer) -> str:
        """What to say to get the answer, from a server or from the provider itself."""
        if self.wire is not None:
            return _QUESTION
        prompt = self.prompt_for(answer)
        if prompt is None:
            not_claimed("prompt_for says that the provider cannot be asked for this")
        return prompt

    def require_wire(self) -> WireFormat:
        """The wire format; the check ends if there is none."""
        if self.wire is None:
            not_claimed("the provider has no wire")
        return wire_format(self.wire) if isinstance(self.wire, str) else self.wire

    def serve(self, **options: Any) -> WatchedServer:
        """A server that asks for the key and is as strict as the real one."""
        model = str(self.settings.get("model") or "fake-model")
        options = {"key": CANARY, "models": (model, f"{model}-other"), **options}
        server = WatchedServer(self.require_wire(), **options)
        server.start()
        self.servers.append(server)
        return server

    def request_config(self, server: WatchedServer | None, **more: Any) -> dict[str, Any]:
        """The config of a request to that server."""
        timeout = {"connect": PATIENCE, "first_byte": PATIENCE, "idle": PATIENCE}
        where = {} if server is None else {"base_url": server.base_url}
        return self.config(api_key=CANARY, timeout=timeout, **where, **more)

    @contextmanager
    def talk(
        self,
        *,
        stream: bool = True,
        asynchronous: bool = False,
        strict: bool = True,
        tools: Sequence[str] = ("weather", "clock"),
        providers: Sequence[type] = (),
        **more: Any,
    ) -> Iterator[Talk]:
        """A conversation, with tools if the provider claims them; ``more`` goes into the config.

        A check that compares requests itself has a server that is not ``strict``: what an API would
        refuse in them is the business of others.
        """
        noted: list[tuple[str, Any]] = []
        server = None if self.wire is None else self.serve(strict=strict)
        offered = [recording_tools(noted, tools)] if tools and self.claims("supports_tools") else []
        with self.host(*offered) as host:
            for provider in providers:
                host.core.register_provider(provider)
            ways = {"stream": stream, "asynchronous": asynchronous}
            yield Talk(self, host, server, self.request_config(server, **more), noted, ways)

    claims_are = "tags"

    def claimed(self) -> Collection[str]:
        return [tag for tag in self._tags() if tag.startswith("supports_") and tag not in _TWINS]

    def claims(self, tag: str) -> bool:
        """Whether the provider's tags, for the settings of the suite, have this one."""
        return tag in self._tags()

    def _tags(self) -> frozenset[str]:
        suite = type(self)
        if suite not in _TAGS:
            _TAGS[suite] = _tags(suite)
        return _TAGS[suite]

    def require_claim(self, claim: str) -> None:
        if not self.claims(claim):
            model = self.settings.get("model")
            of = f" for the model {model!r}" if model else ""
            not_claimed(f"the tags of {self.plugin!r}{of} do not have {claim}")


#: Other names of tags.
_TWINS = ("supports_thinking",)
#: The tags of each suite's provider, which cost a request to know.
_TAGS: dict[type[ProviderSuite], frozenset[str]] = {}


def _tags(suite: type[ProviderSuite]) -> frozenset[str]:
    about = suite()
    about.servers = []
    server = None if suite.wire is None else about.serve()
    try:
        with about.host() as host:
            return frozenset(host.core.get_tags(about.request_config(server)))
    finally:
        if server is not None:
            server.close()
