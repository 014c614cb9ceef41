"""`FeatureConformance`: what is asked of a feature, alone and in a request of a real provider."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

from agent_hookspecs import ActionResult
from agent_host.sessions.session import Session
from agent_host_testing.sandbox import Order, try_in_sandbox
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
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
