"""The differences between two requests that no API minds, each with a reason.

Owns the list and what each entry does to a conversation before two are compared. It must not know
how a protocol writes its requests, nor who compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from agent_host_testing.corpus.comparing import signature_digest
from agent_host_testing.corpus.entries import Block, Entry, merge_neighbours, text_block
from agent_host_testing.corpus.recording import Recording

__all__ = ["ASK_FOR_REASONING", "HARMLESS", "Entries", "Harmless", "rebuilt", "sent_back"]

Entries = list[Entry]
Change = Callable[[Entries, Entries, Sequence[Recording]], tuple[Entries, Entries]]


@dataclass(frozen=True, slots=True)
class Harmless:
    """A difference that is none.

    ``change`` is given our entries, the recorded ones and the recordings before, and gives both
    without the difference; None where reading a request makes it disappear already.
    """

    name: str
    reason: str
    change: Change | None = None


def _both(change: Callable[[Entries], Entries]) -> Change:
    return lambda ours, theirs, before: (change(ours), change(theirs))


def _blocks(entries: Entries, change: Callable[[Entry, Block], Block | None]) -> Entries:
    """The entries with their blocks changed, or left out where the change gives None."""
    return [
        replace(
            entry,
            blocks=tuple(
                new for block in entry.blocks if (new := change(entry, block)) is not None
            ),
        )
        for entry in entries
    ]


def _without_empty(entries: Entries) -> Entries:
    def change(entry: Entry, block: Block) -> Block | None:
        if block.kind == "result":
            content = tuple(b for b in block.value["content"] if not _is_empty(b))
            return replace(block, value={**block.value, "content": content})
        return None if _is_empty(block) else block

    return [entry for entry in _blocks(entries, change) if entry.blocks]


def _is_empty(block: Block) -> bool:
    return block.kind == "text" and not block.value["text"] and not block.value.get("signature")


def _is_blank(block: Block) -> bool:
    """Whether a block is a text of spaces, which some APIs give and refuse to take."""
    return (
        block.kind == "text"
        and not block.value["text"].strip()
        and not block.value.get("signature")
    )


#: What some recorders write in place of typographic signs.
_QUOTES = str.maketrans("‘’“”", "''\"\"")


def _plain_quotes(entries: Entries) -> Entries:
    def change(entry: Entry, block: Block) -> Block:
        if block.kind in ("text", "reasoning"):
            text = block.value["text"].translate(_QUOTES)
            return replace(block, value={**block.value, "text": text})
        return block

    return _blocks(entries, change)


def _one_instruction(entries: Entries) -> Entries:
    """The instructions at the beginning as one; those that come later stay where they are."""
    said = list(takewhile(lambda entry: entry.role == "system", entries))
    text = "\n\n".join(block.value["text"] for entry in said for block in entry.blocks)
    rest = entries[len(said) :]
    return [Entry("system", (text_block(text),)), *rest] if text else rest


def _without_argument_texts(entries: Entries) -> Entries:
    def change(entry: Entry, block: Block) -> Block:
        if block.kind != "call":
            return block
        known = {key: value for key, value in block.value.items() if key != "text"}
        return replace(block, value=known)

    return _blocks(entries, change)


def _one_text(entries: Entries) -> Entries:
    """Texts of the model in a row as one, with the signature that stands on the last of them."""
    joined: Entries = []
    for entry in entries:
        blocks: list[Block] = []
        for block in entry.blocks:
            last = blocks[-1] if blocks else None
            if (
                entry.role == "assistant"
                and last is not None
                and block.kind == last.kind == "text"
                and not last.value.get("signature")
                and not (last.value.get("citations") or block.value.get("citations"))
            ):
                text = last.value["text"] + block.value["text"]
                blocks[-1] = replace(block, value={**block.value, "text": text})
            else:
                blocks.append(block)
        joined.append(replace(entry, blocks=tuple(blocks)))
    return joined


def _numbered_signatures(
    ours: Entries, theirs: Entries, before: Sequence[Recording]
) -> tuple[Entries, Entries]:
    numbers: dict[str, str] = {}
    for recording in before:
        wanted = recording.expected.get("signature_sha256_16") or ()
        other = recording.expected.get("signature_sha256_16_item_done") or ()
        for digests in (wanted, other):
            for number, digest in enumerate(digests):
                numbers[digest] = f"signature {number} of {recording.name}"

    def change(entry: Entry, block: Block) -> Block:
        value = block.value
        signed = value.get("signature")
        if isinstance(signed, str):
            named = numbers.get(signature_digest(signed) or "", signed)
            return replace(block, value={**value, "signature": named})
        return block

    return _blocks(ours, change), _blocks(theirs, change)


def _unsigned_reasoning(
    ours: Entries, theirs: Entries, before: Sequence[Recording]
) -> tuple[Entries, Entries]:
    """Without unsigned reasoning of ours or theirs that the other side does not have."""
    return _only_shared(ours, theirs), _only_shared(theirs, ours)


def _only_shared(entries: Entries, others: Entries) -> Entries:
    known = [block.value for entry in others for block in entry.blocks if block.kind == "reasoning"]

    def change(entry: Entry, block: Block) -> Block | None:
        unsigned = block.kind == "reasoning" and not block.value["signature"]
        return None if unsigned and block.value not in known else block

    return _blocks(entries, change)


def _lost_by_them(
    ours: Entries, theirs: Entries, before: Sequence[Recording]
) -> tuple[Entries, Entries]:
    """Ours without the signed reasoning of a recorded answer that the recorded client dropped."""
    recorded = {recording.name for recording in before}
    known = [block.value for entry in theirs for block in entry.blocks if block.kind == "reasoning"]

    def change(entry: Entry, block: Block) -> Block | None:
        signed = str(block.value.get("signature") or "")
        from_answer = any(signed.endswith(f" of {name}") for name in recorded)
        lost = block.kind == "reasoning" and from_answer and block.value not in known
        return None if lost else block

    return _blocks(ours, change), theirs


def _made_up_ids(
    ours: Entries, theirs: Entries, before: Sequence[Recording]
) -> tuple[Entries, Entries]:
    """Without ids of calls whose answer had none."""
    answers = (call for recording in before for call in recording.expected.get("tool_calls") or ())
    nameless = {call["name"] for call in answers if call["id"] is None}

    def change(entry: Entry, block: Block) -> Block:
        if block.kind in ("call", "result") and block.value["name"] in nameless:
            return replace(block, value={**block.value, "id": None})
        return block

    return ours, _blocks(theirs, change)


def _result_names(entries: Entries) -> Entries:
    names = {
        block.value["id"]: block.value["name"]
        for entry in entries
        for block in entry.blocks
        if block.kind == "call" and block.value["id"]
    }

    def change(entry: Entry, block: Block) -> Block:
        if block.kind != "result":
            return block
        name = block.value["name"] or names.get(block.value["id"])
        return replace(block, value={**block.value, "name": name})

    return _blocks(entries, change)


#: In this order.
HARMLESS: tuple[Harmless, ...] = (
    Harmless("key order and spacing", "a JSON object has neither"),
    Harmless(
        "parameters",
        "they come from the settings, not from the session; a recorded client has its own defaults",
    ),
    Harmless("stream flags", "how an answer is sent does not change what was asked"),
    Harmless("cache markers", "they change the price and not the conversation"),
    Harmless("a text or a list with one text", "every API reads both"),
    Harmless(
        "arguments as text or as an object, in any spelling",
        "recorded clients write them anew; that we do not is seen against the answer itself",
        _both(_without_argument_texts),
    ),
    Harmless("the key around the result of a tool", "Gemini takes any object"),
    Harmless("a result as an object or as its JSON", "our tools give text; the model reads both"),
    Harmless("ids and status of items that are told apart by call_id", "they are optional"),
    Harmless(
        "all of a request that the API refused",
        "it shows what must not be sent rather than what must",
    ),
    Harmless(
        "typographic quotes",
        "some recorders wrote plain ones in their place",
        _both(_plain_quotes),
    ),
    Harmless(
        "empty, null and absent content",
        "no API tells them apart beside calls",
        _both(_without_empty),
    ),
    Harmless(
        "the form of the first instructions",
        "as messages, or apart from the messages, the model is told them first",
        _both(_one_instruction),
    ),
    Harmless(
        "neighbours of one role",
        "APIs that want roles to alternate join them; the others read them as one",
        _both(merge_neighbours),
    ),
    Harmless(
        "the name on a result",
        "it is the name of the call with that id",
        _both(_result_names),
    ),
    Harmless(
        "pieces of a text",
        "a stream cuts a text anywhere; a signature on its last piece is the text's",
        _both(_one_text),
    ),
    Harmless(
        "which of two signatures of one item",
        "a stream may give another one in its last event; both are good",
        _numbered_signatures,
    ),
    Harmless(
        "ids that the recorded client made up",
        "a call that was given no id must not get one from us",
        _made_up_ids,
    ),
    Harmless(
        "unsigned reasoning",
        "those who ask for it back are told apart where answers are compared",
        _unsigned_reasoning,
    ),
    Harmless(
        "signed reasoning that the recorded client lost",
        "we send back what was signed, as the API wants it",
        _lost_by_them,
    ),
    Harmless(
        "keys that the recorded client dropped from what the model said",
        "we send back what we got; others drop what their types do not have",
    ),
    Harmless(
        "keys that the recorded client added to what the model said",
        "we send back what we got, and no answer before had such a key",
    ),
)


#: The providers that ask for the reasoning that led to calls, though nobody signed it.
ASK_FOR_REASONING = ("deepseek", "moonshot", "zai")


def sent_back(blocks: Sequence[Block], *, with_reasoning: bool) -> list[Block]:
    """What of an answer must be sent again to the letter; unsigned reasoning only if asked for."""
    kept = [
        block
        for block in blocks
        if with_reasoning or block.kind != "reasoning" or block.value["signature"]
    ]
    entries = _one_text(_without_empty([Entry("assistant", tuple(kept))]))
    return [block for entry in entries for block in entry.blocks if not _is_blank(block)]


def rebuilt(entries: Entries) -> Entries:
    """A conversation as far as a session can be made of it: what was said, called and given back.

    The ids of calls that were made elsewhere are the provider's to choose.
    """
    kept = ("text", "name", "arguments", "content", "error")

    def change(entry: Entry, block: Block) -> Block | None:
        if entry.role not in ("assistant", "tool"):
            return block
        if block.kind not in ("text", "call", "result"):
            return None
        return replace(block, value={key: block.value[key] for key in kept if key in block.value})

    return [entry for entry in _blocks(entries, change) if entry.blocks]
