"""Which requests Anthropic's Messages API refuses: turns, options and signed thinking.

Reads a request and the ledger, and renders nothing. Thinking is held to what the ledger says was
handed out, also where the API has been seen to let it pass: a block comes back as it was, on the
turn it was on, before the call it led to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_host_testing.formats.anthropic_messages_fields import body_fields, content_blocks
from agent_host_testing.formats.checks import (
    Node,
    calls_unchanged,
    first_problem,
    results_match,
    unique,
)
from agent_host_testing.script import Call
from agent_host_testing.wire import Ledger, Problem, Request

__all__ = ["SignedBlock", "credential", "first_refusal", "remember"]


@dataclass(frozen=True, slots=True)
class SignedBlock:
    """A thinking block that was handed out."""

    block: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Turn:
    """Neighbouring messages of one role, which the API reads as one."""

    role: str
    blocks: tuple[Node, ...]

    def of(self, *kinds: str) -> list[Node]:
        return [block for block in self.blocks if block.value["type"] in kinds]


_THINKING = ("thinking", "redacted_thinking")


def remember(content: Sequence[Mapping[str, Any]], request: Request, ledger: Ledger) -> None:
    """Enter the blocks of an answer into the ledger."""
    ledger.answers.append([dict(block) for block in content])
    ledger.hand_out(request, (_call(block) for block in content if block["type"] == "tool_use"))
    for block in content:
        if block["type"] in _THINKING:
            ledger.signatures[_signature(block)] = SignedBlock(dict(block))


def _call(block: Mapping[str, Any]) -> Call:
    return Call(block["name"], block["input"], block["id"])


def first_refusal(request: Request, ledger: Ledger) -> Problem | None:
    """The first thing for which the API would refuse the request, or None."""

    def check(body: Node) -> None:
        _headers(request)
        body_fields(request)(body)
        turns = _turns(body.need("messages"))
        _pairs(turns)
        _searches(turns)
        _references(body, turns)
        calls = [[(block, _call(block.value)) for block in turn.of("tool_use")] for turn in turns]
        calls_unchanged(request, calls, ledger)
        _tool_choice(body)
        _cache_points(body)
        _thinking_options(body, request)
        _thinking_blocks(turns, body, ledger)

    return first_problem(check, Node(request.body))


def credential(request: Request) -> str | None:
    """The key, from either header: most clients use the first, Anthropic's newest the second."""
    return request.header("x-api-key") or request.bearer()


def _headers(request: Request) -> None:
    if credential(request) is None:
        Node(None, "headers.x-api-key").refuse(
            "x-api-key header is required", "the key is sent in x-api-key, or as a bearer", 401
        )
    if not request.header("anthropic-version"):
        Node(None, "headers.anthropic-version").refuse(
            "anthropic-version: header is required", "the version of the API is sent with each call"
        )


def _turns(messages: Node) -> list[_Turn]:
    turns: list[_Turn] = []
    for message in messages.items():
        role, blocks = message.value["role"], tuple(content_blocks(message))
        if turns and turns[-1].role == role:
            turns[-1] = _Turn(role, (*turns[-1].blocks, *blocks))
        else:
            turns.append(_Turn(role, blocks))
    return turns


def _pairs(turns: Sequence[_Turn]) -> None:
    """Calls are answered in the next turn, before anything else is said there."""
    unique([block.child("id") for turn in turns for block in turn.of("tool_use")], "tool_use id")
    nothing = _Turn("user", ())
    for turn, following in zip([nothing, *turns], [*turns, nothing], strict=True):
        if turn.role == "assistant" or turn is nothing:
            calls = [block.child("id") for block in turn.of("tool_use")]
            results = [block.child("tool_use_id") for block in following.of("tool_result")]
            results_match(calls, results)
            _results_first(following)


def _results_first(turn: _Turn) -> None:
    results = turn.of("tool_result")
    for block, result in zip(turn.blocks, results, strict=False):
        if block is not result:
            result.refuse(
                "tool_result blocks must come first", "what else is said stands after the results"
            )


def _searches(turns: Sequence[_Turn]) -> None:
    """A search has its result in the same turn; the last turn may be one that pauses."""
    for turn in turns[:-1] if turns and turns[-1].role == "assistant" else turns:
        open_searches: dict[str, Node] = {}
        for block in turn.of("server_tool_use", "tool_search_tool_result"):
            if block.value["type"] == "server_tool_use":
                if block.value["name"].startswith("tool_search_tool_"):
                    open_searches[block.value["id"]] = block
            elif open_searches.pop(block.value["tool_use_id"], None) is None:
                block.child("tool_use_id").refuse(
                    "unexpected `tool_use_id` found in `tool_search_tool_result` blocks",
                    "a result stands after the search that it belongs to",
                )
        for search_id, block in open_searches.items():
            name = block.value["name"]
            block.refuse(
                f"`{name}` tool use with id `{search_id}` was found without a corresponding "
                f"`{name}_tool_result` block",
                "a search goes back with its result",
            )


def _references(body: Node, turns: Sequence[_Turn]) -> None:
    """What a result refers to is declared."""
    declared = {tool["name"] for tool in body.child("tools").value or ()}
    for turn in turns:
        for block in turn.of("tool_search_tool_result", "tool_result"):
            within = block.child("content")
            if block.value["type"] == "tool_search_tool_result":
                listed = within.child("tool_references")
            else:
                listed = within
            for each in listed.items() if isinstance(listed.value, list) else ():
                name = each.child("tool_name")
                if each.value["type"] == "tool_reference" and name.value not in declared:
                    name.refuse(
                        f"Tool reference {name.value!r} has no corresponding tool definition",
                        "every tool that a result refers to is in tools",
                    )


def _tool_choice(body: Node) -> None:
    choice = body.child("tool_choice")
    if choice.value is None:
        return
    names = [tool["name"] for tool in body.child("tools").value or ()]
    if not names:
        choice.refuse(
            "tool_choice may only be specified while providing tools", "a choice needs tools"
        )
    if choice.value["type"] == "tool" and choice.value["name"] not in names:
        choice.child("name").refuse(
            f"Tool {choice.value['name']!r} not found in provided tools", "the tool is in tools"
        )


def _cache_points(body: Node) -> None:
    found = sum(1 for place in _cacheable(body) if place.has("cache_control"))
    if found > 4:
        body.refuse(
            f"A maximum of 4 blocks with cache_control may be provided. Found {found}",
            "at most four blocks carry cache_control",
        )


def _cacheable(body: Node) -> Iterator[Node]:
    yield body
    for name in ("tools", "system"):
        if isinstance(body.child(name).value, list):
            yield from body.child(name).items()
    for message in body.child("messages").items():
        for block in content_blocks(message):
            yield block
            if isinstance(block.child("content").value, list):
                yield from block.child("content").items()


def _thinking_options(body: Node, request: Request) -> None:
    config = body.child("thinking")
    if config.value is None or config.value["type"] not in ("enabled", "adaptive"):
        return
    if config.value["type"] == "enabled":
        interleaved = "interleaved-thinking" in request.header("anthropic-beta")
        if config.value["budget_tokens"] >= body.value["max_tokens"] and not interleaved:
            config.child("budget_tokens").refuse(
                "`max_tokens` must be greater than `thinking.budget_tokens`",
                "the budget is part of max_tokens",
            )
    rule = "thinking goes with the default sampling and a free choice of tools"
    if body.child("temperature").value not in (None, 1):
        body.child("temperature").refuse(
            "`temperature` may only be set to 1 when thinking is enabled", rule
        )
    if body.has("top_k"):
        body.child("top_k").refuse("`top_k` must be unset when thinking is enabled", rule)
    if body.has("top_p") and body.child("top_p").value < 0.95:
        body.child("top_p").refuse("`top_p` must be at least 0.95 when thinking is enabled", rule)
    choice = body.child("tool_choice")
    if choice.value is not None and choice.value["type"] in ("any", "tool"):
        choice.refuse("Thinking may not be enabled when tool_choice forces tool use", rule)


def _thinking_blocks(turns: Sequence[_Turn], body: Node, ledger: Ledger) -> None:
    thinks = (body.child("thinking").value or {"type": "disabled"})["type"]
    loop = _start_of_loop(turns)
    led_to = _thoughts_by_call(ledger)
    for position, turn in enumerate(turns):
        required = position >= loop and thinks != "disabled"
        before: list[str] = []
        for block in turn.blocks:
            if block.value["type"] in _THINKING:
                _as_handed_out(block, ledger)
                before.append(_signature(block.value))
            elif block.value["type"] == "tool_use":
                wanted = led_to.get(block.value["id"], [[]])
                _thought_before(block, before, wanted, required=required)
        _in_their_order(turn, ledger)
    first = turns[loop] if loop < len(turns) else None
    if thinks == "enabled" and first is not None and first.role == "assistant":
        _starts_with_thinking(first, ledger)


def _thoughts_by_call(ledger: Ledger) -> dict[str, list[list[str]]]:
    """The signatures of the thinking that led to each call, in order, for each answer with its id.

    Ids may come again in a later answer, where something else was thought.
    """
    found: dict[str, list[list[str]]] = {}
    for answer in ledger.answers:
        before: list[str] = []
        for block in answer:
            if block["type"] in _THINKING:
                before.append(_signature(block))
            elif block["type"] == "tool_use":
                found.setdefault(block["id"], []).append([*before])
    return found


def _in_their_order(turn: _Turn, ledger: Ledger) -> None:
    """Blocks of an answer with thinking come back in the order they had; some may be left out."""
    for thought in turn.of(*_THINKING):
        signature = _signature(thought.value)
        made = [answer for answer in ledger.answers if signature in _signatures(answer)]
        late = [_out_of_order(turn, answer) for answer in made]
        if late and all(late) and late[0] is not None:
            late[0].refuse(
                f"the {late[0].value['type']} block has come after one that followed it",
                "the blocks of a turn with thinking stand in their original order",
            )


def _signatures(answer: Sequence[Mapping[str, Any]]) -> list[str]:
    return [_signature(block) for block in answer if block["type"] in _THINKING]


def _out_of_order(turn: _Turn, answer: Sequence[Mapping[str, Any]]) -> Node | None:
    """The first block of the turn that stood elsewhere in the answer; None if all fit."""
    last = -1
    for block in turn.blocks:
        places = [n for n, known in enumerate(answer) if _is_that(block.value, known)]
        if places:
            last = next((place for place in places if place > last), -1)
            if last < 0:
                return block
    return None


def _is_that(block: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    if block["type"] == "tool_use":
        return bool(known["type"] == "tool_use" and known["id"] == block["id"])
    keys = ("type", "text") if block["type"] == "text" else ("type", "signature", "data")
    return all(block.get(key) == known.get(key) for key in keys)


def _start_of_loop(turns: Sequence[_Turn]) -> int:
    """The first turn after the user last said something that was no result of a tool."""
    asked = [
        n for n, turn in enumerate(turns) if turn.role == "user" and not turn.of("tool_result")
    ]
    return asked[-1] + 1 if asked else 0


def _as_handed_out(block: Node, ledger: Ledger) -> None:
    signature = _signature(block.value)
    known = ledger.signatures.get(signature)
    if not isinstance(known, SignedBlock):
        field = "data" if block.value["type"] == "redacted_thinking" else "signature"
        block.child(field).refuse(
            f"Invalid `signature` in `{block.value['type']}` block",
            "a signature comes from this server and from no other",
        )
    if block.value != known.block:
        block.refuse(
            "`thinking` or `redacted_thinking` blocks cannot be modified",
            "these blocks remain as they were in the original response",
        )


def _thought_before(
    call: Node, before: Sequence[str], answers: Sequence[Sequence[str]], *, required: bool
) -> None:
    """What was thought before a call stands before it again, in the same order.

    ``answers`` has what was thought before a call of that id, for each answer that had one.
    """
    kept = [signature for signature in before if any(signature in each for each in answers)]
    if kept in answers or not (kept or required):
        return
    call.refuse(
        f"the thinking before the call {call.value['id']!r} is missing or out of order",
        "when thinking is enabled, a turn's thinking blocks come back, in order, before its calls",
    )


def _starts_with_thinking(turn: _Turn, ledger: Ledger) -> None:
    """As the API asks of calls it knows nothing of; of its own it knows what was thought before."""
    calls = turn.of("tool_use")
    first = turn.blocks[0]
    if not calls or calls[0].value["id"] in ledger.calls or first.value["type"] in _THINKING:
        return
    first.child("type").refuse(
        f"Expected `thinking` or `redacted_thinking`, but found `{first.value['type']}`",
        "when thinking is enabled, a final assistant turn starts with a thinking block",
    )


def _signature(block: Mapping[str, Any]) -> str:
    signature = block["data"] if block["type"] == "redacted_thinking" else block["signature"]
    assert isinstance(signature, str)
    return signature
