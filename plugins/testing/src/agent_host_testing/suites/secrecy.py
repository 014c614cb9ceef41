"""The check that a key is sent where it belongs and appears nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from agent_hookspecs.errors import AgentError
from agent_host.core import AgentCore
from agent_host_testing.script import Answer, Failure, Reply, Text, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.hosting import CANARY, Outcome
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.violations import require

__all__ = ["SecrecyChecks"]


class SecrecyChecks(ProviderSuite):
    """Secrets."""

    @check("secrets", "docs/testing.md#secrets")
    def test_secrets_stay_secret(
        self, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """The key is in no log, error, event, session, schema or repr, and on no terminal."""
        places: list[tuple[str, str]] = []
        with caplog.at_level(logging.DEBUG):
            for stream in (True, False):
                with self.talk(stream=stream, debug_stream=True) as talk:
                    for number, answer in enumerate(self._askable()):
                        talk.again()
                        outcome = talk.ask(answer)
                        kind = "streamed" if stream else "whole"
                        places += _outcome_texts(outcome, f"answer {number + 1}, {kind}")
                    if self.wire is not None:
                        require(talk.server.deliveries, "no request has reached the server")
                    places += _core_texts(talk.host.core, talk.config)
        places += [(f"the log of {r.name}", _record_text(r)) for r in caplog.records]
        written = capfd.readouterr()
        places += [("stdout", written.out), ("stderr", written.err)]
        found = list(dict.fromkeys(place for place, text in places if CANARY in text))
        require(not found, f"the key is in {', '.join(found)}")

    def _askable(self) -> Iterator[Answer]:
        """Answers of every kind; APIs repeat the key in refusals, a prompt must not have it."""
        key = CANARY if self.wire is not None else "it"
        for answer in (
            say("Hello."),
            Failure("authentication", f"Incorrect API key provided: {key}"),
            Failure("invalid_request", f"No parameter api_key={key}"),
            Reply((Text("Some words"),), failure=Failure("overloaded", f"too much from {key}")),
        ):
            if self.wire is not None or self.prompt_for(answer) is not None:
                yield answer


def _outcome_texts(outcome: Outcome, which: str) -> Iterator[tuple[str, str]]:
    yield f"an event of {which}", json.dumps(outcome.comparable_events())
    yield f"the session of {which}", json.dumps(outcome.session.to_dict())
    error = outcome.error
    if error is not None:
        details = json.dumps(error.to_dict()) if isinstance(error, AgentError) else ""
        yield f"the error of {which}", "\n".join((str(error), repr(error), details))


def _core_texts(core: AgentCore, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "the config schema", repr(core.get_config_schema(config))
    yield "the UI elements", repr(core.get_ui_elements(config))
    yield "the models", repr(core.get_models(config))
    for plugin in core.stacks.activator.loaded_plugins:
        attributes = getattr(plugin.instance, "__dict__", {})
        yield f"the repr of the instance of {plugin.name}", f"{plugin.instance!r} {attributes!r}"


def _record_text(record: logging.LogRecord) -> str:
    """A log record with everything that a handler could write of it."""
    return f"{record.getMessage()} {record.__dict__!r}"
