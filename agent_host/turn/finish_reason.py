"""How an answer ended, in the words that all providers share.

Owns the one step from a server's word to ours. The words themselves are data of the provider
(``finish_reasons``). An answer that is none never passes for one: what ended without content, for
whatever reason but a plain stop, a lack of room, a refusal or a pause, is an error here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from agent_hookspecs.errors import (
    ContentBlockedError,
    ContractError,
    MalformedCallError,
    ProtocolError,
    ProviderError,
    ServerError,
)
from agent_hookspecs.messages import CoreMessage, Finish

if TYPE_CHECKING:
    from agent_host.plugins.activate import LoadedPlugin
    from agent_host.turn.turn import Turn

__all__ = ["note_finish"]

#: What a server may mean; where a run stops by itself is no server's to say.
_FINISHES: tuple[str, ...] = tuple(each for each in get_args(Finish) if each != "limit")

#: What it is that ended so with nothing in it: an error, its words, and the way out.
_NO_ANSWER: dict[Finish | None, tuple[type[ProviderError], str, str]] = {
    "blocked": (ContentBlockedError, "withheld its answer, {}", "word the request otherwise"),
    "tool_calls": (
        MalformedCallError,
        "ended its answer with {}, but there is no call in it",
        "ask again",
    ),
    None: (
        ProtocolError,
        "ended its answer with {}, and there is nothing in it",
        "what that means is not known here; ask again or otherwise",
    ),
}
_BROKEN_OFF = (ServerError, "broke its answer off, {}", "ask again")


def note_finish(
    turn: Turn, messages: Sequence[CoreMessage], *, has_unread_calls: bool = False
) -> None:
    """Set how the turn ended, and write it into the message that has the server's word for it.

    Calls that no plugin reads are calls all the same: the model has said something.
    """
    spoken = [message for message in messages if message["role"] == "assistant"]
    with_word = [each for each in spoken if each["metadata"].get("finish_reason")]
    last = with_word[-1] if with_word else spoken[-1] if spoken else None
    word = str(last["metadata"]["finish_reason"]) if with_word and last else None
    known = "stop" if word is None else _map_word(word, turn.stack.provider)
    turn.finish_reason = word
    turn.finish = _checked_finish(turn, word, known, spoken, has_unread_calls)
    if last is not None:
        last["metadata"]["finish"] = turn.finish


def _map_word(word: str, provider: LoadedPlugin) -> Finish | None:
    """Our word for the server's; None if nobody knows it."""
    words: Mapping[str, Any] = getattr(provider.instance, "finish_reasons", {})
    known = words.get(word, words.get(word.lower(), word.lower()))
    if known in _FINISHES:
        return cast(Finish, known)
    if word in words or word.lower() in words:
        raise ContractError(
            f"provider {provider.name!r}: finish_reasons maps {word!r} to {known!r}",
            plugin=provider.name,
            hint=f"map it to one of {', '.join(_FINISHES)}",
        )
    return None


def _checked_finish(
    turn: Turn,
    word: str | None,
    known: Finish | None,
    spoken: Sequence[CoreMessage],
    has_unread_calls: bool,
) -> Finish:
    """The finish as the content of the answer has it; raises if there is no answer."""
    metadata = [message["metadata"] for message in spoken]
    has_calls = has_unread_calls or any(each.get("tool_calls") for each in metadata)
    has_refusal = any(each.get("refusal") for each in metadata)
    has_content = has_calls or has_refusal or any(map(_says_something, spoken))
    wrong = _BROKEN_OFF if known == "error" else None if has_content else _NO_ANSWER.get(known)
    if wrong is not None:
        kind, words, hint = wrong
        message = f"{turn.provider} {words.format(word)}"
        raise kind(message, provider=turn.provider, code=word, hint=hint)
    if known == "stop" and not has_content:
        turn.warnings.add(f"the answer of {turn.provider} is empty", turn.provider)
    if known is None:
        turn.warnings.add(
            f"{turn.provider} ended its answer with {word!r}, which is not known here; "
            "it is taken to be complete",
            turn.provider,
        )
    if known in (None, "stop", "tool_calls"):
        # Servers say stop beside calls and refusals, and some say nothing at all.
        return "tool_calls" if has_calls else "refusal" if has_refusal else "stop"
    return known


def _says_something(message: CoreMessage) -> bool:
    return bool(message["content"] or message.get("multipartContent"))
