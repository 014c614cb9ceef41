"""Tools in the sandbox: their samples, each property by itself, and payloads made from the schema.

Owns what is tried and what counts as a crash. It tells what it saw; what a tool should do is for
the suite to say.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from agent_hookspecs.errors import AgentError, PluginError, ToolArgumentsError
from agent_hookspecs.roles import Effect
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY, SchemaView
from agent_host.agent.arguments import arguments_objection
from agent_host.agent.results import tool_message
from agent_host.drivers.blocking import complete
from agent_host.plugins.stack import PreparedTool
from agent_host.turn.context import tool_context
from agent_host_testing.sandbox import Order
from agent_host_testing.sandbox.payloads import corner_payloads, named_values, obvious_values
from agent_host_testing.sandbox.previews import compare_preview
from agent_host_testing.sandbox.watch import Kind, Watch, World
from agent_host_testing.suites.hosting import Host, prepared_tool
from agent_host_testing.suites.loading import catalog_of

__all__ = ["ALLOWED", "outcome_of", "try_tools"]

#: What an effect lets a tool do to the world.
ALLOWED: Mapping[Effect, frozenset[Kind]] = {
    "read": frozenset(),
    "write": frozenset({"files"}),
    "network": frozenset({"network", "files"}),
    "execute": frozenset({"files", "environment", "working folder", "processes", "network"}),
}
#: What no tool may change before it is called; it may connect, or start what it talks to.
_KEPT: tuple[Kind, ...] = ("files", "environment", "working folder")
_KINDS: tuple[Kind, ...] = ("files", "environment", "working folder", "processes", "network")
#: Seconds of work for all made-up payloads, and how many each tool gets however slow it is.
_SECONDS, _LEAST = 0.6, 12

_Ending = Literal["result", "refused", "failed", "crashed"]


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a call ended; ``said`` is its error."""

    ending: _Ending
    said: str = ""


@dataclass
class _Found:
    """What was seen of one tool: what its sample does, and what is wrong in sentences."""

    changes: list[tuple[str, str]] = field(default_factory=list)
    previews: list[str] = field(default_factory=list)
    properties: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    generated: int = 0


def try_tools(order: Order, made_up: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """What is seen of the tools, those with a sample by name, and ``made``, of their making.

    ``made_up`` has the payloads at random that those are tried with that can be confined.
    """
    with tempfile.TemporaryDirectory() as copies:
        world, watch = World(Path(order.world), Path(copies)), Watch(Path(order.world))
        with watch.looking() as seen:
            host = Host(catalog_of(order.packages, folder=order.folder, enabled=order.enabled))
            trial = _Trial(host, order, world, watch)
        made = [what for kind, what in seen if kind in _KEPT]
        if not any(kind == "files" for kind, _ in seen):
            made += [f"changes {path}" for path in world.changes()[:3]]
        found = {name: trial.look_at(name, made_up.get(name, ())) for name in order.samples}
    host.close()
    return {"made": made, "tools": {name: vars(each) for name, each in found.items()}}


class _Trial:
    def __init__(self, host: Host, order: Order, world: World, watch: Watch) -> None:
        config = dict(order.config)
        stack = complete(host.core.stacks.stack(config), host.core.wire)
        self._tool: PreparedTool = prepared_tool(stack, order.plugin)
        self._context = tool_context(stack, None)
        self._samples = order.samples
        self._confinable = order.confined
        #: What payloads besides the sample did to the world.
        self._done: dict[tuple[Kind, str], None] = {}
        self._world = world
        self._watch = watch
        self._share = 1 / max(1, len(order.samples))

    def look_at(self, name: str, made_up: Sequence[Any]) -> _Found:
        found = _Found()
        sample = self._samples[name]
        self._world.restore()
        shown = self._preview(name, sample, found)
        before = self._world.content()
        with self._watch.looking() as seen:
            baseline = self._call(name, sample)
            changed = self._world.changes()
        found.changes = [*seen]
        if changed and not any(kind == "files" for kind, _ in seen):
            found.changes += [("files", f"changes {path}") for path in changed[:3]]
        if name not in self._confinable or baseline.ending != "result":
            return found
        found.previews += compare_preview(shown, before, self._world.content())
        allowed = ALLOWED[self._tool.plugin.entry.tools[name]]
        refused = frozenset(_KINDS) - allowed
        schema = self._schema(name)
        self._done.clear()
        if schema.payload_kind == "object" and isinstance(sample, Mapping):
            found.properties = [*self._properties(name, schema, sample, refused)]
        self._try_odd_payloads(name, schema, found, refused, made_up)
        found.changes += [
            (kind, what)
            for kind, what in self._done
            if kind not in allowed and (kind, what) not in found.changes
        ]
        return found

    def _preview(self, name: str, sample: Any, found: _Found) -> list[Mapping[str, Any]]:
        """What the tool says that the call would change."""
        if self._tool.implementation("preview_tool") is None:
            return []
        with self._watch.looking() as seen:
            try:
                shown = self._tool.ask(
                    "preview_tool",
                    tool_name=name,
                    payload=deepcopy(sample),
                    state=self._tool.state,
                    context={**self._context, "config": self._tool.config},
                )
            except Exception:
                # Nothing is lost: another check asks the same, and tells it.
                shown = None
        found.previews += [f"it {what}" for kind, what in seen if kind in _KEPT]
        return [each for each in shown or () if isinstance(each, Mapping)]

    def _schema(self, name: str) -> SchemaView:
        descriptor = self._tool.descriptor(name)
        assert descriptor is not None, "the suite has looked at the names"
        schema = DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema(descriptor.schema)
        assert schema is not None, "the suite has looked at the schemas"
        return schema

    def _properties(
        self, name: str, schema: SchemaView, sample: Mapping[str, Any], refused: Collection[Kind]
    ) -> Iterator[str]:
        """What is wrong with each property of the parameters by itself."""
        parameters = schema.parameters or {}
        required = parameters.get("required") or ()
        call = partial(self._confined, name, refused=refused)
        for key, about in (parameters.get("properties") or {}).items():
            if key in sample and key not in required:
                ended = call({each: value for each, value in sample.items() if each != key})
                if ended.ending in ("refused", "crashed"):
                    yield f"{key!r} is not required, but without it the call ends in {ended.said}"
            elif key not in sample:
                yield from self._values(schema, key, about, sample, call)

    def _values(
        self,
        schema: SchemaView,
        key: str,
        about: Mapping[str, Any],
        sample: Mapping[str, Any],
        call: Callable[[Any], _Ended],
    ) -> Iterator[str]:
        """What is wrong with a property that the sample does not have."""
        parameters = schema.parameters or {}
        named = named_values(about, parameters)
        refused: list[tuple[Any, _Ended]] = []
        taken = False
        for value in obvious_values(about, parameters):
            payload = {**sample, key: value}
            if (taken and value not in named) or arguments_objection(schema, payload) is not None:
                continue
            ended = call(payload)
            if ended.ending not in ("refused", "crashed"):
                taken = True
                continue
            if value in named:
                yield f"the schema names {value!r} for {key!r}, and the call ends in {ended.said}"
                return
            refused.append((value, ended))
        if refused and not taken:
            value, ended = refused[-1]
            yield (
                f"no value of {key!r} is taken of {len(refused)} that the schema allows: with "
                f"{value!r} the call ends in {ended.said}. If only some make sense, put one into "
                f"the sample"
            )

    def _try_odd_payloads(
        self,
        name: str,
        schema: SchemaView,
        found: _Found,
        refused: Collection[Kind],
        made_up: Sequence[Any],
    ) -> None:
        """Call the tool with whatever its schema allows; note the first that is too much for it."""
        sample = self._samples[name]
        corners: Iterable[Any] = ()
        if schema.payload_kind == "object":
            known = sample if isinstance(sample, Mapping) else {}
            corners = corner_payloads(schema.parameters or {}, known)
        until = _work_done() + _SECONDS * self._share
        for payload in (*corners, *made_up):
            if found.generated >= _LEAST and _work_done() > until:
                return
            if arguments_objection(schema, payload) is not None:
                continue
            found.generated += 1
            ended = self._confined(name, payload, refused)
            if ended.ending == "crashed":
                given = json.dumps(payload, ensure_ascii=False)
                found.crashes.append(f"with {given}: {ended.said}")
                return

    def _confined(self, name: str, payload: Any, refused: Collection[Kind]) -> _Ended:
        """A call that can do nothing but what its effect says, and only in the world."""
        self._world.restore()
        with self._watch.looking(forbid=refused, confined=True) as seen:
            ended = self._call(name, payload)
        self._done |= dict.fromkeys(seen)
        return ended

    def _call(self, name: str, payload: Any) -> _Ended:
        context = {**self._context, "config": self._tool.config}
        shared = {"tool_name": name, "payload": deepcopy(payload), "state": self._tool.state}
        try:
            result = outcome_of(self._tool.ask("execute_tool", **shared, context=context))
            if self._tool.implementation("format_tool_result") is not None:
                result = self._tool.ask(
                    "format_tool_result", **shared, result=result, context=context
                )
            json.dumps(tool_message(result, name, "call_1"))
        except ToolArgumentsError as error:
            return _Ended("refused", _say(error))
        except Exception as error:
            # The host's word for what a plugin raised has that as its cause.
            raised = (error.__cause__ or error) if isinstance(error, PluginError) else error
            # The world may be such that a call fails, and the tool says so.
            told = isinstance(raised, (AgentError, OSError))
            return _Ended("failed" if told else "crashed", _say(raised))
        return _Ended("result")


def _work_done() -> float:
    """Seconds of work so far, also of processes that tools started; a busy machine adds none."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def outcome_of(result: Any) -> Any:
    """What a call gives in the end, however the tool is written."""
    if inspect.isawaitable(result):
        return asyncio.run(_await_result(result))
    if inspect.isasyncgen(result):
        return asyncio.run(_last_of(result))
    if isinstance(result, Iterator):
        last, returned = None, None
        while True:
            try:
                last = next(result)
            except StopIteration as end:
                returned = end.value
                break
        return last if returned is None else returned
    return result


async def _await_result(result: Any) -> Any:
    return await result


async def _last_of(items: Any) -> Any:
    last = None
    async for item in items:
        last = item
    return last


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
