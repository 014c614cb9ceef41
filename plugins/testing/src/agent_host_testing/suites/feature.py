"""`FeatureConformance`: what is asked of a feature, alone and in a request of a real provider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ActionResult
from agent_host.sessions.session import Session
from agent_host_testing.sandbox import Order, try_in_sandbox
from agent_host_testing.suites.beside import places_with, run_in_turns
from agent_host_testing.suites.blocking import blocking_calls
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import Host
from agent_host_testing.suites.leftovers import left_behind
from agent_host_testing.suites.natives import NATIVES, Natives
from agent_host_testing.suites.speech import SpokenChecks
from agent_host_testing.violations import require

__all__ = ["FeatureConformance"]

_RESULT_KEYS = set(ActionResult.__annotations__)


class FeatureConformance(SpokenChecks):
    """Subclass it in a test file and say which feature is meant.

    ``settings`` must be such that the feature takes part in requests of ``provider``, which is the
    offline provider unless the subclass says otherwise.
    """

    role = "feature"
    needs = ("agent_host_echo",)

    @check("taking part", "docs/plugins.md#who-takes-part-tags")
    def test_takes_part_in_a_request(self) -> None:
        """With its settings the feature takes part, and a request with it ends well."""
        with self.host() as host:
            resolution = host.core.resolution(self.config())
            active = [plugin.name for plugin in resolution.plugins["feature"]]
            rejected = resolution.gating.rejected.get(f"feature:{self.plugin}", "")
            require(self.plugin in active, f"the features are {active}; {rejected}")
            for asynchronous in (False, True):
                session = host.core.add_message(host.core.create_session(), "user", "Hello")
                outcome = host.ask(session, self.config(), asynchronous=asynchronous).expect()
                warned = [event["message"] for event in outcome.of("warning")]
                require(not warned, f"it warns: {'; '.join(warned)}")
                require(outcome.answer["role"] == "assistant", "the session has no answer")
                json.dumps(outcome.session.to_dict())

    @check("no persistence", "docs/hooks.md#feature")
    def test_actions_change_nothing_themselves(self) -> None:
        """An action changes the session only through its result; a feature keeps none itself."""
        actions = self.hook("get_actions").call(self.state())
        some = isinstance(actions, list) and actions
        require(some, f"get_actions gives {actions!r}, which is no list of actions")
        session = Session().with_added({"role": "user", "content": "Hello"})
        before = session.to_dict()
        with self.host() as host:
            for action in actions:
                given = action.get("inputs") or {}
                if any(spec.get("required") for spec in given.values() if isinstance(spec, dict)):
                    continue
                after, result = host.core.execute_session_action(
                    session, action["id"], self.config()
                )
                unknown = sorted({*result} - _RESULT_KEYS)
                require(not unknown, f"the result of {action['id']} has {unknown}")
                json.dumps([after.to_dict(), result])
                require(session.to_dict() == before, f"{action['id']} has changed the session")
                require(after.id == session.id, f"{action['id']} makes another session")

    @pytest.mark.parametrize("format", NATIVES)
    @check("formats", "docs/testing.md#features-and-formats")
    def test_every_format_is_borne(self, format: str) -> None:
        """Native messages of any format pass through a feature, and what was retained stays."""
        natives = NATIVES[format]
        self._require_format(natives)
        hooks = self.loaded().implementations
        if not hooks.keys() & {"initialize_request", "finalize"}:
            not_claimed("the feature has nothing to do with messages")
        state = self.begun()
        state["request"]["payload"]["tools"] = deepcopy(natives.tools)
        history = deepcopy(natives.history)
        for hook in hooks.get("initialize_request", ()):
            history, state = self.result_of(hook, history, state, self.context())
        kept = history[: len(natives.history)] == natives.history
        require(kept, f"initialize_request has made the history {history}")
        final = deepcopy(natives.final)
        finals, history = [final], [*history, final]
        for hook in hooks.get("finalize", ()):
            finals, history, state = self.result_of(hook, finals, history, state, self.context())
        kept = history[: len(natives.history)] == natives.history
        require(kept, f"finalize has made the history {history}")
        require(finals, "finalize has dropped the final message")
        json.dumps([finals, history, state["request"]])

    @pytest.mark.parametrize("way", ["taking turns", "threads", "whole requests"])
    @check("concurrency", "docs/testing.md#requests-beside-each-other")
    def test_requests_do_not_mix(self, way: str) -> None:
        """Requests that a feature has a part in beside each other are what each is by itself."""
        # Equally long, so that threads come to the same places at the same time.
        words = ("north words", "south\nwords")
        run = {
            "taking turns": self._walk,
            "threads": self._walk_in_threads,
            "whole requests": self._ask_in_threads,
        }[way]
        alone = [run([text])[0] for text in words]
        beside = run(words)
        for text, one, two in zip(words, alone, beside, strict=True):
            require(one == two, f"{text!r} alone gives {one}, beside another {two}")

    def _ask_in_threads(self, words: Sequence[str]) -> list[Any]:
        """What is left of requests with these words, of which each is in a thread."""
        with self.host() as host:
            return run_in_turns(self.package, [partial(self._ask, host, text) for text in words])

    def _ask(self, host: Host, text: str) -> Any:
        session = host.core.add_message(host.core.create_session(), "user", text)
        return host.ask(session, self.config()).expect().comparable()

    def _walk_in_threads(self, words: Sequence[str]) -> list[Any]:
        """What the hooks of one instance make of these words, line by line beside each other."""
        self._forget_instance()
        jobs = [partial(self._go_through, [text]) for text in words]
        return [made for (made,) in run_in_turns(self.package, jobs)]

    def _walk(self, words: Sequence[str]) -> list[Any]:
        """What the hooks of one instance make of these words, hook by hook beside each other."""
        self._forget_instance()
        return self._go_through(words)

    def _forget_instance(self) -> None:
        """Go on with an instance that has seen no requests."""
        vars(self).pop("_loaded", None)
        self.loaded()

    def _go_through(self, words: Sequence[str]) -> list[Any]:
        hooks = self.loaded().implementations
        natives = [{"role": "user", "content": text} for text in words]
        walks = [([message], self.begun()) for message in natives]
        for hook in hooks.get("initialize_request", ()):
            walks = [self.result_of(hook, told, state, self.context()) for told, state in walks]
        for hook in hooks.get("finalize", ()):
            ended = []
            for text, (told, state) in zip(words, walks, strict=True):
                final = {"role": "assistant", "content": f"Said: {text}"}
                given = [final], [*told, final], state, self.context()
                _, told, state = self.result_of(hook, *given)
                ended.append((told, state))
            walks = ended
        return [json.loads(json.dumps([told, state["request"]])) for told, state in walks]

    @check("concurrency", "docs/testing.md#requests-beside-each-other")
    def test_nothing_of_a_request_is_kept(self) -> None:
        """After a request neither plugin, class nor module of the package holds anything of it."""
        marker = "kept-marker-7b1e"
        with self.host() as host:
            self._ask(host, f"{marker}-question")
            plugins = host.core.stacks.activator.loaded_plugins
            found = places_with([marker], self.package, [plugin.instance for plugin in plugins])
            require(not found, f"of the request there is something in {', '.join(found)}")

    @check("process", "docs/testing.md#what-is-left-in-the-process")
    def test_nothing_is_left_in_the_process(self, capfd: pytest.CaptureFixture[str]) -> None:
        """A request prints nothing, leaves no thread and no file, and changes no setting of all."""
        with self.host() as host:
            found = left_behind(lambda: self._ask(host, "Hello"), capfd)
            require(not found, "; ".join(found))

    @check("event loop", "docs/testing.md#the-event-loop")
    def test_a_request_blocks_nothing(self) -> None:
        """In an async request a feature waits for nothing and opens no file."""
        with self.host() as host:
            session = host.core.add_message(host.core.create_session(), "user", "Hello")
            # What a package does once in a process is not the business of any request.
            host.ask(session, self.config(), asynchronous=True).expect()
            with blocking_calls(self.package) as blocking:
                host.ask(session, self.config(), asynchronous=True).expect()
            require(not blocking, f"in the thread of the loop it calls {', '.join(blocking)}")

    def _require_format(self, natives: Natives) -> None:
        """End the check if the feature's tags keep it out of requests of this format."""
        asked = self.loaded().entry.required_tags
        of_others = [tag for tag in asked if tag.startswith("wire:") and tag != natives.tag]
        of_others += [tag for tag in asked if tag.startswith("provider:")]
        if of_others:
            not_claimed(f"it takes part only where there is {', '.join(of_others)}")

    @check("no persistence", "docs/testing.md#features-keep-nothing")
    def test_nothing_is_written_elsewhere(self, tmp_path: Path) -> None:
        """A feature writes no file, sets no variable and starts no process; the session keeps."""
        packages = dict.fromkeys((self.package, *self.also, *self.needs))
        enabled = (self.plugin, *self.enabled)
        order = Order(
            "feature",
            self.plugin,
            tuple(packages),
            str(self.folder),
            enabled,
            self.config(),
            str(tmp_path),
        )
        done = [f"{during} it {what}" for during, what in try_in_sandbox(order)["changes"]]
        require(not done, "\n".join(done))
