"""`ToolConformance`: what is asked of a tool plugin: declarations, effects, results and its end."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import threading
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.roles import Effect
from agent_host.agent.calls import run_calls
from agent_host.drivers.blocking import complete
from agent_host.turn.context import tool_context
from agent_host_testing.sandbox import Order, try_in_sandbox
from agent_host_testing.sandbox.tool_trial import ALLOWED
from agent_host_testing.suites.blocking import blocking_calls
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import CANARY, PATIENCE, Host
from agent_host_testing.suites.tool_concurrency import ToolConcurrencyChecks, without_paths
from agent_host_testing.violations import require

__all__ = ["ToolConformance"]

_AS_THE_CALL = "let preview_tool and execute_tool read the payload with one function"
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EFFECTS = "docs/tools.md#policy"
_IN_CALLS = (
    "do in execute_tool what changes the world; import, init, prepare and get_tool_schemas "
    "are for every request, whether a call comes or not"
)
#: What was seen of the tools of each suite, which costs a process to know.
_TRIALS: dict[type[ToolConformance], dict[str, Any]] = {}


class ToolConformance(ToolConcurrencyChecks):
    """Subclass it in a test file and say which tool plugin is meant."""

    @check("schemas", "docs/hooks.md#tool-get_tool_schemas")
    def test_schemas(self) -> None:
        """Each tool is declared once, by a legal name, in words, with a valid JSON Schema.

        Each of its parameters is described, and each that is required is there.
        """
        import fastjsonschema

        with self.host() as host:
            views = self.views(host)
            require(views, "no tool is offered")
            for name, view in views.items():
                legal = _LEGAL_NAME.fullmatch(name)
                require(legal, f"{name!r} does not match {_LEGAL_NAME.pattern}")
                require(view.description, f"{name} has no description")
                if view.payload_kind == "object":
                    parameters = view.parameters or {}
                    kind = parameters.get("type", "object")
                    require(kind == "object", f"the parameters of {name} are of type {kind!r}")
                    fastjsonschema.compile(parameters, use_default=False)
                    _described(name, parameters)

    @check("schemas", "docs/testing.md#exact-bytes")
    def test_schemas_stay_as_they_are(self) -> None:
        """What is offered is the same in every request, to the letter and in the same order."""
        offered = []
        for _ in range(2):
            with self.host() as host:
                offered.append([each.schema for each in self.prepared(host).descriptors])
        one, two = (list(map(json.dumps, each)) for each in offered)
        for first, again in zip(one, two, strict=False):
            require(first == again, f"first it offers {first}, then {again}")
        require(len(one) == len(two), f"first it offers {len(one)} tools, then {len(two)}")

    @check("effects", _EFFECTS)
    def test_effects(self) -> None:
        """Every tool has its effect, read, write, execute or network, in class and descriptor."""
        with self.host() as host:
            tool = self.prepared(host)
            offered = {descriptor.tool_name for descriptor in tool.descriptors}
        named, described = getattr(tool.plugin.instance, "effects", {}), tool.plugin.entry.tools
        if not named and not described:
            # As with tools that only a config makes known.
            not_claimed(
                "it states no effects, so that each of its tools counts as one that executes"
            )
        for where, stated in (("the class", named), ("the descriptor", described)):
            missing = sorted(offered - {*stated})
            require(not missing, f"{where} has no effect for {', '.join(missing)}")
            wrong = {
                name: effect for name, effect in stated.items() if effect not in get_args(Effect)
            }
            require(not wrong, f"{where} has the effects {wrong}")
            unknown = sorted({*stated} - offered)
            require(not unknown, f"{where} has effects for {', '.join(unknown)}, not on offer")

    @check("effects", "docs/testing.md#effects-of-tools", change=_IN_CALLS)
    def test_making_a_tool_changes_nothing(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Until it is called, a tool writes no file, sets no variable and stays in its folder."""
        made = self._tried(tmp_path_factory)["made"]
        require(not made, f"before anything is called, it {'; '.join(made)}")

    @check("effects", "docs/testing.md#effects-of-tools")
    def test_effects_are_honoured(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """A tool does to the world what its effect says and nothing besides."""
        for name, found in self._tried(tmp_path_factory)["tools"].items():
            effect = self.loaded().entry.tools.get(name, "execute")
            allowed = ALLOWED[effect]
            done = [what for kind, what in found["changes"] if kind not in allowed]
            require(not done, f"{name} has the effect {effect!r} and {'; '.join(done)}")

    @check("properties", "docs/testing.md#schemas-that-tools-keep")
    def test_properties_are_as_the_schema_says(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """What is not required can be left out, and what the schema allows can be taken."""
        tried = self._tried(tmp_path_factory)["tools"].items()
        wrong = [f"{name}: {each}" for name, found in tried for each in found["properties"]]
        require(not wrong, "\n".join(wrong))

    @check("made-up payloads", "docs/testing.md#schemas-that-tools-keep")
    def test_made_up_payloads(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Whatever its schema allows, a tool gives a result or says in a typed error why not."""
        tried = self._tried(tmp_path_factory)["tools"].items()
        wrong = [f"{name} crashes {each}" for name, found in tried for each in found["crashes"]]
        require(not wrong, "\n".join(wrong))

    def _tried(self, temporary: pytest.TempPathFactory) -> dict[str, Any]:
        """What was seen of the tools in a process and a world of their own."""
        suite = type(self)
        if suite not in _TRIALS:
            with self.host() as host:
                samples = self.runnable(host)
                self.prepared(host)
                objects = {
                    name: view.parameters or {}
                    for name, view in self.views(host).items()
                    if name in samples and view.payload_kind == "object"
                }
            world = temporary.mktemp("world")
            self._made = dict(self.prepare_world(world))
            packages = dict.fromkeys((self.package, *self.also, *self.needs))
            enabled = (self.plugin, *self.enabled)
            order = Order(
                "tool",
                self.plugin,
                tuple(packages),
                str(self.folder),
                enabled,
                self.config(),
                str(world),
                samples,
                objects,
                dict(self.loaded().entry.tools),
            )
            _TRIALS[suite] = try_in_sandbox(order)
        return _TRIALS[suite]

    @check("running", "docs/hooks.md#tool-execute_tool")
    def test_samples_run(self) -> None:
        """A call with a payload as its schema asks gives a result that the model can read."""
        with self.host() as host:
            for name, payload in self.runnable(host).items():
                message = _run(host, self.config(), name, payload)
                _readable(name, message)
                failed = message["metadata"].get("error")
                require(not failed, f"{name} fails: {message['content']}")

    @check("running", "docs/hooks.md#tool-execute_tool")
    def test_sync_equals_async(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """An async run gives the same results as a sync one."""
        results = []
        for run in (_run, _arun):
            self._made = dict(self.prepare_world(tmp_path_factory.mktemp("world")))
            with self.host() as host:
                runnable = self.runnable(host)
                said = {n: run(host, self.config(), n, p)["content"] for n, p in runnable.items()}
            results.append(said)
        for name in results[0]:
            one, two = (without_paths(result[name]) for result in results)
            require(one == two, f"{name} gives {one!r} sync and {two!r} async")

    @check("event loop", "docs/testing.md#the-event-loop")
    def test_calls_block_nothing(self) -> None:
        """A tool that is awaited waits for nothing in the thread of the event loop."""
        with self.host() as host:
            runnable = self.runnable(host)
            with blocking_calls(self.package) as blocking:
                for name, payload in runnable.items():
                    _arun(host, self.config(), name, payload)
            require(not blocking, f"in the thread of the loop it calls {', '.join(blocking)}")

    @check("previews", "docs/testing.md#previews")
    def test_previews_change_nothing(self, tmp_path: Path) -> None:
        """Saying what a call would change changes nothing, and says it in texts or notes."""
        if "preview_tool" not in self.loaded().implementations:
            not_claimed("the plugin has no preview_tool")
        with self.host() as host:
            tool = self.prepared(host)
            for name, payload in self.runnable(host).items():
                before, given = _content_of(tmp_path), deepcopy(payload)
                context = {"config": tool.config, "cancelled": bool}
                shown = tool.ask(
                    "preview_tool",
                    tool_name=name,
                    payload=payload,
                    state=tool.state,
                    context=context,
                )
                require(payload == given, f"the preview of {name} has changed its payload")
                changed = _content_of(tmp_path) != before
                require(not changed, f"the preview of {name} has changed files")
                for change in shown or ():
                    path = change.get("path")
                    require(isinstance(path, str), f"a change that {name} shows has no path")
                    for key in ("before", "after", "note", "target"):
                        text = change.get(key)
                        fits = text is None or isinstance(text, str)
                        require(fits, f"{key!r} of what {name} shows is {type(text).__name__}")

    @check("previews", "docs/testing.md#previews", change=_AS_THE_CALL)
    def test_previews_show_what_the_call_does(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """What a preview says of files is what the call does to them: which, and their texts."""
        if "preview_tool" not in self.loaded().implementations:
            not_claimed("the plugin has no preview_tool")
        tried = self._tried(tmp_path_factory)["tools"].items()
        wrong = [
            f"the preview of {name}: {each}" for name, found in tried for each in found["previews"]
        ]
        require(not wrong, "\n".join(wrong))

    @check("invalid payloads", "docs/tools.md#the-loop")
    def test_invalid_payloads(self) -> None:
        """A payload that is not what the schema asks gives an error result and ends nothing."""
        with self.host() as host:
            for name, view in self.views(host).items():
                if view.payload_kind != "object":
                    continue
                broken: list[Any] = [[], "text"]
                if (view.parameters or {}).get("required"):
                    broken.append({})
                for payload in broken:
                    message = _run(host, self.config(), name, payload)
                    _readable(name, message)
                    failed = message["metadata"].get("error")
                    require(failed, f"{name} takes {payload!r} and says {message['content']!r}")

    @check("unknown tools", "docs/hooks.md#tool-execute_tool")
    def test_unknown_tools(self) -> None:
        """A name that the plugin does not offer is refused by the plugin itself."""
        with self.host() as host:
            tool = self.prepared(host)
            hook = tool.implementation("execute_tool")
            assert hook is not None, "the registration guard refuses a tool without it"
            try:
                result = hook.call("no_such_tool", {}, tool.state, {"config": tool.config})
                if inspect.isawaitable(result):
                    result = asyncio.run(_await_result(result))
                elif inspect.isgenerator(result):
                    result = [*result]
            except Exception:
                # Nothing is lost: raising is what the check wants.
                return
            require(False, f"it runs 'no_such_tool' and gives {result!r}")

    @check("secrets", "docs/testing.md#secrets")
    def test_no_secrets_of_others(self, caplog: pytest.LogCaptureFixture) -> None:
        """A tool neither sees nor says the key of the provider."""
        with caplog.at_level(logging.DEBUG), self.host() as host:
            tool = self.prepared(host)
            require(CANARY not in repr(tool.config), "its config has the key")
            require(CANARY not in repr(tool.state), "its state has the key")
            for name, payload in deepcopy(dict(self.samples)).items():
                message = _run(host, self.config(), name, payload)
                require(CANARY not in json.dumps(message), f"the result of {name} has the key")
        logged = [r.name for r in caplog.records if CANARY in f"{r.getMessage()} {r.__dict__!r}"]
        require(not logged, f"the log of {', '.join(logged)} has the key")

    @check("cancellation", "docs/hooks.md#tool-execute_tool")
    def test_cancelled_calls_end(self) -> None:
        """A call that nobody waits for any more ends by itself, with whatever result."""
        execute: Any = getattr(self.loaded().instance, "execute_tool", None)
        if "context" not in inspect.signature(execute).parameters:
            not_claimed("execute_tool does not take the context that says so")
        with self.host() as host:
            stack = complete(host.core.stacks.stack(self.config()), host.core.wire)
            context = tool_context(stack, None, cancelled=lambda: True)
            for name, payload in self.runnable(host).items():
                steps = run_calls(stack, [_call(name, payload)], context, {})
                # Beside us, so that one that never ends does not keep us too.
                running = threading.Thread(
                    target=complete, args=(steps, host.core.wire), daemon=True
                )
                running.start()
                running.join(PATIENCE)
                require(not running.is_alive(), f"{name} still runs after {PATIENCE:.0f} s")

    @check("closing", "docs/hooks.md#tool-close")
    def test_close(
        self, caplog: pytest.LogCaptureFixture, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """``close`` lets go of what the state holds, and a new stack can be made after it."""
        if "close" not in self.loaded().implementations:
            not_claimed("the plugin has no close")
        with caplog.at_level(logging.WARNING), self.host() as host:
            first = self.prepared(host).state
            before = self._results(host)
            host.close()
            failed = [
                r.getMessage() for r in caplog.records if "tool_close_failed" in r.getMessage()
            ]
            require(not failed, "; ".join(failed))
            # What the samples did to the first world must not hinder them in the second.
            self._made = dict(self.prepare_world(tmp_path_factory.mktemp("world")))
            second = self.prepared(host).state
            require(first is not second, "the next stack gets the state that was closed")
            broken = [name for name, ok in self._results(host).items() if before[name] and not ok]
            require(not broken, f"after it, {', '.join(broken)} cannot be run any more")

    def _results(self, host: Host) -> dict[str, bool]:
        """Whether each sample runs."""
        return {
            name: not _run(host, self.config(), name, payload)["metadata"].get("error")
            for name, payload in deepcopy(dict(self.samples)).items()
        }


def _content_of(folder: Path) -> dict[str, bytes | None]:
    """Everything below the folder, by path."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def _described(name: str, parameters: Mapping[str, Any]) -> None:
    properties = parameters.get("properties") or {}
    bare = sorted(key for key, about in properties.items() if not about.get("description"))
    require(
        not bare,
        f"the parameters {', '.join(bare)} of {name} have no description, so that a model has to "
        "guess what they are",
    )
    unknown = sorted({*(parameters.get("required") or ())} - {*properties})
    require(not unknown, f"{name} requires {', '.join(unknown)}, which its properties do not have")


def _call(name: str, payload: Any) -> dict[str, Any]:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return {
        "id": "call_tool_1",
        "type": "function",
        "function": {"name": name, "arguments": text},
    }


def _run(host: Host, config: dict[str, Any], name: str, payload: Any) -> CoreMessage:
    (message,) = host.core.execute_tool_calls([_call(name, payload)], config)
    return message


def _arun(host: Host, config: dict[str, Any], name: str, payload: Any) -> CoreMessage:
    (message,) = asyncio.run(_acalls(host, config, name, payload))
    return message


async def _acalls(host: Host, config: dict[str, Any], name: str, payload: Any) -> list[CoreMessage]:
    return await host.core.aexecute_tool_calls([_call(name, payload)], config)


async def _await_result(result: Any) -> Any:
    return await result


def _readable(name: str, message: CoreMessage) -> None:
    require(message["role"] == "tool", f"the result of {name} has the role {message['role']!r}")
    call_id = message["metadata"].get("tool_call_id")
    require(call_id == "call_tool_1", f"the result of {name} is for the call {call_id!r}")
    require(isinstance(message["content"], str), f"the content of {name} is no text")
    json.dumps(message)
