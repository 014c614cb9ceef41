"""`ExtensionConformance`: what is asked of a provider extension, hook by hook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import pytest

from agent_hookspecs.authoring.partial import plain
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.settings import merge_schemas
from agent_host.turn.send import make_request, own_hook
from agent_host.wire.framing import framing
from agent_host_testing.formats import wire_format
from agent_host_testing.script import Call, Reply, Text, Thought
from agent_host_testing.suites.beside import run_in_turns
from agent_host_testing.suites.blocking import blocking_calls
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hooks import (
    OTHERS,
    HookConformance,
    core_messages,
    native_messages,
    require_keys,
)
from agent_host_testing.suites.hosting import CANARY
from agent_host_testing.suites.leftovers import left_behind
from agent_host_testing.suites.turns import prepare_by_hand
from agent_host_testing.violations import require
from agent_host_testing.wire import Ledger, Request, WireFormat

__all__ = ["ExtensionConformance"]

_PROCESS = "docs/hooks.md#extension-process_chunk"
_MERGING = "docs/plugins.md#what-an-extension-does"
_SAMPLE = Reply(
    (
        Thought("A thought.", signature="c2lnbmVkLXNhbXBsZQ=="),
        Text("Some text."),
        Call("weather", {"place": "Oslo"}, id="call_sample_1"),
    )
)


#: The tags of extensions for which there is something in the sample.
_IN_SAMPLE = {"supports_tools", "supports_reasoning"}


class ExtensionConformance(HookConformance):
    """Subclass it in a test file and say which extension is meant.

    ``provider`` is the id of the provider it extends. ``wire`` is that provider's format, from
    which sample chunks are made; give ``chunks`` instead if it is none of the kit's.
    """

    role = "extension"
    needs = ("agent_host_echo",)
    wire: ClassVar[str | WireFormat | None] = None
    chunks: ClassVar[Sequence[Any]] = ()

    def sample_chunks(self) -> list[Any]:
        """Chunks with text, a thought and a call, as the provider would get them."""
        if self.chunks:
            return deepcopy([*self.chunks])
        if self.wire is None:
            not_claimed("neither 'wire' nor 'chunks' says what chunks look like")
        machine = framing(self._format().framing)
        data = b"".join(self._format().events(_SAMPLE, self._sample_request(), Ledger()))
        chunks = [chunk for chunk, _ in (*machine.decode(data), *machine.flush())]
        require(chunks, f"the sample answer of {self._format().name} has no chunks")
        return chunks

    def _format(self) -> WireFormat:
        assert self.wire is not None
        return wire_format(self.wire) if isinstance(self.wire, str) else self.wire

    def config(self, **more: Any) -> dict[str, Any]:
        # No request is ever sent there.
        path = "" if self.wire is None else self._format().base_path
        where = {"base_url": f"http://127.0.0.1:9{path}", "api_key": CANARY, "model": "fake-model"}
        return super().config(**{**where, **self.settings, **more})

    def _sample_request(self) -> Request:
        """What the provider would send, for formats whose answers depend on that."""
        body: Any = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
        path, query = "/", {}
        with self.host() as host:
            session = host.core.add_message(host.core.create_session(), "user", "Hello")
            turn = prepare_by_hand(host.core, session, self.config())
            if own_hook(turn) is None:
                made, _ = make_request(turn)
                parts = urlsplit(made.url)
                path, query, body = parts.path, dict(parse_qsl(parts.query)), made.body
        return Request("POST", path, query, {}, json.dumps(body).encode(), body)

    def _provider_plugin(self) -> LoadedPlugin | None:
        """The provider that is extended, if it is at hand."""
        for record in self.catalog():
            if record.role == "provider" and record.name == self.provider and record.usable:
                return self._activator.load(record)
        return None

    @cached_property
    def _activator(self) -> Activator:
        return Activator()

    def begun(self) -> dict[str, Any]:
        """A state in which first the provider and then the extension have begun a request."""
        state, provider = self.state(), self._provider_plugin()
        if provider is not None:
            own = merge_schemas([(provider.name, provider.entry.config_schema)])
            state["config"] = own.with_defaults(state["config"])
            for hook in provider.implementations.get("init", ()):
                state |= hook.call(state["config"]) or {}
            for hook in provider.implementations.get("initialize_request", ()):
                _, state = hook.call([], state, self.context())
            request = state.setdefault("request", {})
            request["headers"] = {**(request.get("headers") or {}), "x-other": "1"}
            request["payload"] = {**(request.get("payload") or {}), **deepcopy(OTHERS)}
            state |= deepcopy(OTHERS)
        for hook in self.loaded().implementations.get("init", ()):
            state = self.result_of(hook, state["config"], state)
        return state

    def _with_provider(self, chunk: Any, state: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """What the provider shows of a chunk, and the state after it."""
        provider = self._provider_plugin()
        for hook in provider.implementations.get("process_chunk", ()) if provider else ():
            shown, _, _, state = hook.call(chunk, native_messages(), state, None)
            return shown, state
        return [], state

    @check("chunks", _PROCESS)
    def test_no_chunk_is_tolerated(self) -> None:
        """``process_chunk`` changes nothing without a chunk, as when the provider did the I/O."""
        hook, state = self.hook("process_chunk"), self.begun()
        given = _comparable(state)
        result = self.result_of(hook, None, [], [], native_messages(), state)
        partials, finals, natives, state = result
        require(not partials and not finals, f"it makes {partials} and {finals}")
        require(natives == native_messages(), f"the history has become {natives}")
        now = _comparable(state)
        require(now == given, f"the state was {given} and is {now}")

    @check("chunks", _MERGING)
    def test_partial_is_merged(self) -> None:
        """``process_chunk`` merges into ``state["partial"]`` and keeps the keys of others."""
        self.hook("process_chunk")
        alone, state = self.begun(), self.begun()
        for each in (alone, state):
            if each.get("partial") is None:
                each["partial"] = {"role": "assistant", "content": "So far."}
            each["partial"].update(deepcopy(OTHERS))
        for chunk in self.sample_chunks():
            _, alone = self._with_provider(chunk, alone)
        merged = plain(self._feed(state)["partial"])
        require_keys(OTHERS, merged, "state['partial']")
        content, wanted = merged.get("content"), plain(alone["partial"]).get("content")
        require(
            str(content).startswith(str(wanted)),
            f"the text so far, {wanted!r}, has become {content!r}",
        )

    @check("chunks", _MERGING)
    def test_partial_messages_are_patched(self) -> None:
        """What others show of a chunk stays; the extension adds to the last partial message."""
        hook, state = self.hook("process_chunk"), self.begun()
        for chunk in self.sample_chunks():
            shown, state = self._with_provider(chunk, state)
            last = {"role": "assistant", "content": "new", **deepcopy(OTHERS)}
            before = [*shown, last]
            given = deepcopy(before)
            result = self.result_of(hook, chunk, before, [], native_messages(), state)
            after, _, _, state = result
            require(len(after) >= len(given), "a partial message of the provider is gone")
            for old, new in zip(given, after, strict=False):
                require_keys(old, new, "the partial message")

    @check("chunks", _MERGING)
    def test_something_is_made_of_the_sample(self) -> None:
        """An extension that reads chunks makes something of text, a thought and a call."""
        self.hook("process_chunk")
        alone, state, shown = self.begun(), self.begun(), 0
        for chunk in self.sample_chunks():
            _, alone = self._with_provider(chunk, alone)
            partials, state = self._with_provider(chunk, state)
            before = deepcopy(partials)
            after, _, _, state = self.result_of(
                self.hook("process_chunk"), chunk, partials, [], native_messages(), state
            )
            shown += after != before
        moved = shown or _comparable(alone) != _comparable(state)
        entry = self.loaded().entry
        if not moved and not _IN_SAMPLE & {*entry.required_tags}:
            not_claimed("the sample answer has nothing for it; give 'chunks' that have")
        require(moved, "it shows nothing of the sample answer and keeps nothing of it")

    @check("chunks", _PROCESS)
    def test_history_is_passed_on(self) -> None:
        """While chunks come, the native history is passed on as it is, without chunks in it."""
        hook, state, natives = self.hook("process_chunk"), self.begun(), native_messages()
        for chunk in self.sample_chunks():
            shown, state = self._with_provider(chunk, state)
            _, _, natives, state = self.result_of(hook, chunk, shown, [], natives, state)
        require(natives == native_messages(), f"the history has become {natives}")

    @check("event loop", "docs/testing.md#the-event-loop")
    def test_chunks_block_nothing(self) -> None:
        """A request and its chunks are seen through without waiting, and open no file."""
        hooks = self.loaded().implementations
        if not hooks.keys() & {"init", "process_chunk"}:
            not_claimed(f"{self.plugin!r} has neither init nor process_chunk")
        self._feed(self.begun())
        with blocking_calls(self.package) as blocking:
            self._feed(self.begun())
        require(not blocking, f"in the thread of the loop it calls {', '.join(blocking)}")

    @check("process", "docs/testing.md#what-is-left-in-the-process")
    def test_nothing_is_left_in_the_process(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Chunks print nothing, leave no thread and no file, and change no setting of all."""
        self.hook("process_chunk")

        def request() -> None:
            self._feed(self.begun())

        found = left_behind(request, capfd)
        require(not found, "; ".join(found))

    @check("instances", "docs/plugins.md#writing-a-plugin")
    def test_requests_do_not_see_each_other(self) -> None:
        """An instance keeps nothing of a request: none leaves a trace in the next, or beside it."""
        hook = self.hook("process_chunk")
        first = _comparable(self._feed(self.begun()))
        again = _comparable(self._feed(self.begun()))
        require(first == again, f"the first time it is {first}, then {again}")
        # Two requests that take turns, one chunk each, beside one that has only begun.
        states = [self.begun(), self.begun()]
        self.begun()
        for chunk in self.sample_chunks():
            for number, state in enumerate(states):
                copy = deepcopy(chunk)
                shown, state = self._with_provider(copy, state)
                states[number] = self.result_of(hook, copy, shown, [], native_messages(), state)[3]
        # And two that take turns at each line.
        states += run_in_turns(self.package, [lambda: self._feed(self.begun())] * 2)
        for state in states:
            found = _comparable(state)
            require(found == first, f"alone it is {first}, beside another {found}")

    def _feed(self, state: dict[str, Any]) -> dict[str, Any]:
        hook = self.hook("process_chunk")
        for chunk in self.sample_chunks():
            shown, state = self._with_provider(chunk, state)
            state = self.result_of(hook, chunk, shown, [], native_messages(), state)[3]
        return state

    @check("mapping", "docs/hooks.md#extension-to_native_messages")
    def test_natives_keep_what_is_not_mapped(self) -> None:
        """``to_native_messages`` adds to the natives and leaves the core messages alone."""
        messages = core_messages()
        hook = self.hook("to_native_messages")
        natives = self.result_of(hook, messages, native_messages())
        for old, new in zip(native_messages(), natives, strict=True):
            require_keys(old, new, "the native message")
        require(messages == core_messages(), "the core messages have changed")

    @check("mapping", "docs/hooks.md#extension-from_native_messages")
    def test_messages_keep_what_is_not_mapped(self) -> None:
        """``from_native_messages`` adds to the metadata and leaves the natives alone."""
        natives = native_messages()
        hook = self.hook("from_native_messages")
        messages = self.result_of(hook, natives, core_messages())
        for old, new in zip(core_messages(), messages, strict=True):
            require_keys({"role": old["role"], "content": old["content"]}, new, "the message")
            require_keys(old["metadata"], new.get("metadata"), "the message's metadata")
        require(natives == native_messages(), "the native messages have changed")

    @check("mapping", "docs/testing.md#what-others-keep")
    def test_lists_of_other_lengths_are_passed_on(self) -> None:
        """Mappers return what they were given if the two lists do not go together."""
        hooks = self.loaded().implementations
        given = {
            "to_native_messages": (core_messages()[:1], native_messages()),
            "from_native_messages": (native_messages()[:1], core_messages()),
        }
        if not hooks.keys() & given:
            not_claimed("the extension maps nothing")
        for name, (source, target) in given.items():
            for hook in hooks.get(name, ()):
                result = self.result_of(hook, source, deepcopy(target))
                require(result == target, f"{name} of 1 and 2 messages gives {result}")


def _comparable(state: dict[str, Any]) -> Any:
    """What of a state is data: objects that plugins keep there compare by who they are."""
    return {key: value for key, held in state.items() if (value := _data(plain(held))) is not _NONE}


def _data(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: each for key, held in value.items() if (each := _data(held)) is not _NONE}
    if isinstance(value, (list, tuple)):
        return [each for held in value if (each := _data(held)) is not _NONE]
    return value if value is None or isinstance(value, (str, int, float)) else _NONE


_NONE = object()
