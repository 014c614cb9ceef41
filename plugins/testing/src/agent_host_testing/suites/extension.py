"""`ExtensionConformance`: what is asked of a provider extension, hook by hook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

from agent_hookspecs.authoring.partial import plain
from agent_host.wire.framing import framing
from agent_host_testing.formats import wire_format
from agent_host_testing.script import Call, Reply, Text, Thought
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hooks import (
    OTHERS,
    HookConformance,
    core_messages,
    native_messages,
    require_keys,
)
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
        format = wire_format(self.wire) if isinstance(self.wire, str) else self.wire
        machine = framing(format.framing)
        data = b"".join(format.events(_SAMPLE, _request(), Ledger()))
        return [chunk for chunk, _ in (*machine.decode(data), *machine.flush())]

    @check("chunks", _PROCESS)
    def test_no_chunk_is_tolerated(self) -> None:
        """``process_chunk`` changes nothing without a chunk, as when the provider did the I/O."""
        hook, state = self.hook("process_chunk"), self.begun()
        given = deepcopy(plain(state))
        result = self.result_of(hook, None, [], [], native_messages(), state)
        partials, finals, natives, state = result
        require(not partials and not finals, f"it makes {partials} and {finals}")
        require(natives == native_messages(), f"the history has become {natives}")
        require(plain(state) == given, f"the state was {given} and is {plain(state)}")

    @check("chunks", _MERGING)
    def test_partial_is_merged(self) -> None:
        """``process_chunk`` merges into ``state["partial"]`` and keeps the keys of others."""
        state = self.begun()
        state["partial"] = {"role": "assistant", "content": "So far.", **deepcopy(OTHERS)}
        merged = plain(self._feed(state)["partial"])
        require_keys(OTHERS, merged, "state['partial']")
        content = str(merged.get("content"))
        require(content.startswith("So far."), f"the text so far has become {content!r}")

    @check("chunks", _MERGING)
    def test_partial_messages_are_patched(self) -> None:
        """What others show of a chunk stays; the extension adds to the last partial message."""
        hook, state = self.hook("process_chunk"), self.begun()
        for chunk in self.sample_chunks():
            shown = [{"role": "assistant", "content": "new", **deepcopy(OTHERS)}]
            result = self.result_of(hook, chunk, shown, [], native_messages(), state)
            shown, _, _, state = result
            require(shown, "the partial message of the provider is gone")
            require_keys({"content": "new", **OTHERS}, shown[0], "the partial message")

    @check("chunks", _PROCESS)
    def test_history_is_passed_on(self) -> None:
        """While chunks come, the native history is passed on as it is, without chunks in it."""
        hook, state, natives = self.hook("process_chunk"), self.begun(), native_messages()
        for chunk in self.sample_chunks():
            _, _, natives, state = self.result_of(hook, chunk, [], [], natives, state)
        require(natives == native_messages(), f"the history has become {natives}")

    @check("instances", "docs/plugins.md#writing-a-plugin")
    def test_requests_do_not_see_each_other(self) -> None:
        """An instance keeps nothing of a request: the same chunks give the same again."""
        first, second = (plain(self._feed(self.begun())["partial"]) for _ in range(2))
        require(first == second, f"the first time it is {first}, then {second}")

    def _feed(self, state: dict[str, Any]) -> dict[str, Any]:
        hook = self.hook("process_chunk")
        for chunk in self.sample_chunks():
            state = self.result_of(hook, chunk, [], [], native_messages(), state)[3]
        return state

    @check("mapping", "docs/hooks.md#extension-to_native_messages")
    def test_natives_keep_what_is_not_mapped(self) -> None:
        """``to_native_messages`` adds to the natives and leaves the core messages alone."""
        messages = core_messages()
        natives = self.hook("to_native_messages").call(messages, native_messages())
        for old, new in zip(native_messages(), natives, strict=True):
            require_keys(old, new, "the native message")
        require(messages == core_messages(), "the core messages have changed")

    @check("mapping", "docs/hooks.md#extension-from_native_messages")
    def test_messages_keep_what_is_not_mapped(self) -> None:
        """``from_native_messages`` adds to the metadata and leaves the natives alone."""
        natives = native_messages()
        messages = self.hook("from_native_messages").call(natives, core_messages())
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
                result = hook.call(source, deepcopy(target))
                require(result == target, f"{name} of 1 and 2 messages gives {result}")


def _request() -> Request:
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    return Request("POST", "/", {}, {}, json.dumps(body).encode(), body)
