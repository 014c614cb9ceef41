"""What compaction makes of a history: which messages stay, in which order, and at which size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_hookspecs import CoreMessage, Usage
from agent_hookspecs.errors import ContextLengthError, ServerError
from agent_host import Session
from agent_host_context.compaction import ACKNOWLEDGED, GONE, HEADING, LATEST, compact
from agent_host_context.estimate import message_tokens, text_tokens
from agent_host_context.summary import summarise
from agent_host_context.trimming import clip_text
from agent_host_context.view import View


def said(role: str, content: str, **metadata: Any) -> CoreMessage:
    return {"role": role, "content": content, "metadata": metadata}  # type: ignore[typeddict-item]


def exchange(number: int, results: Sequence[int], *, text: str = "") -> list[CoreMessage]:
    """An answer with calls, and a result of so many characters for each."""
    ids = [f"call_{number}_{place}" for place in range(len(results))]
    calls = [
        {"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for each in ids
    ]
    answers = [
        said("tool", "x" * size, tool_call_id=each, tool_name="look")
        for each, size in zip(ids, results, strict=True)
    ]
    return [said("assistant", text, tool_calls=calls, reasoning="Hm."), *answers]


def view_of(messages: Sequence[CoreMessage]) -> View:
    session = Session(messages)
    return View(session, [*range(session.count)])


def tell(instructions: str, text: str) -> tuple[str, Usage]:
    return "A summary.", {"input": text_tokens(text), "output": 3}


def check_pairs(messages: Sequence[CoreMessage]) -> None:
    """Every result follows its call, and every call has its result."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["metadata"]["tool_call_id"] in waiting
            waiting.remove(message["metadata"]["tool_call_id"])
        else:
            assert not waiting
            waiting = [call["id"] for call in message["metadata"].get("tool_calls") or ()]
    assert not waiting


PICTURE = {"type": "image", "content": {"url": "data:image/png;base64,AAAA"}}


@st.composite
def histories(draw: st.DrawFn) -> list[CoreMessage]:
    """Conversations of any shape: calls, parallel ones, pictures, reasoning, no system prompt."""
    messages = [said("system", "Be kind.")] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 12))):
        user = said("user", f"Question {number}. " * draw(st.integers(1, 40)))
        if draw(st.integers(0, 5)) == 0:
            user["multipartContent"] = [PICTURE]  # type: ignore[list-item]
        messages.append(user)
        for turn in range(draw(st.integers(0, 4))):
            sizes = draw(st.lists(st.sampled_from([5, 300, 3000, 9000]), min_size=1, max_size=3))
            messages += exchange(100 * number + turn, sizes, text="Ü" * draw(st.integers(0, 9)))
        if draw(st.booleans()):
            messages.append(said("assistant", f"Answer {number}. " * 30))
    return messages


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.integers(500, 6000), st.booleans(), st.integers(0, 400))
def test_whatever_the_history_pairs_order_and_the_latest_part_are_kept(
    messages: list[CoreMessage], limit: int, wants_summary: bool, overhead: int
) -> None:
    view = view_of(messages)
    done = compact(view, overhead, limit, limit // 2, tell, wants_summary=wants_summary)
    check_pairs(done.view.messages)
    places = [item for item in done.view.items if isinstance(item, int)]
    assert places == sorted(places)
    system = [each for each in messages if each["role"] == "system"]
    assert done.view.messages[: len(system)] == system
    last_units = view.messages[view.cuts()[-2] :] if len(view.cuts()) > 1 else []
    assert [m["role"] for m in done.view.messages[-len(last_units) :]] == [
        m["role"] for m in last_units
    ]
    if done.tokens > limit:
        # Only what nobody may shorten can be too long: the latest words of people and models.
        kept = done.view.messages[len(system) :]
        assert all(len(m["content"]) <= 500 for m in kept if m["role"] == "tool")
    for before, after in zip(done.view.messages, done.view.messages[1:], strict=False):
        # Nothing that was told apart is joined: no two of the user's in a row that were not.
        if after["metadata"].get("from_host") or before["metadata"].get("from_host"):
            assert (before["role"], after["role"]) != ("user", "user")


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(2000, 8000))
def test_compacting_again_and_again_keeps_all_of_that(
    messages: list[CoreMessage], limit: int
) -> None:
    done = compact(view_of(messages), 0, limit, limit // 2, tell)
    session = Session([*messages, said("user", "And now?"), *exchange(9999, [8000, 20])])
    items = [*done.view.items, *range(len(messages), session.count)]
    again = compact(View(session, items), 0, limit, limit // 2, tell)
    check_pairs(again.view.messages)
    assert sum(HEADING in m["content"] for m in again.view.messages) <= 1


def test_old_results_are_trimmed_first_and_told_in_their_place() -> None:
    messages = [said("user", "Look."), *exchange(1, [8000]), *exchange(2, [10]), *exchange(3, [10])]
    done = compact(view_of(messages), 0, 1600, 1000, tell)
    assert (done.trimmed, done.summarised) == (1, 0)
    trimmed = done.view.messages[2]
    assert trimmed["content"].startswith("[This result of 8,000 characters was left out")
    assert trimmed["metadata"]["tool_call_id"] == "call_1_0"
    assert done.view.items[:2] == [0, 1]


def test_a_summary_takes_the_place_of_the_beginning() -> None:
    messages = [said("system", "Be kind."), said("user", "Do it. " * 300), *exchange(1, [10])]
    messages += [
        said("assistant", "Done. " * 300),
        said("user", "More?"),
        said("assistant", "Yes."),
    ]
    done = compact(view_of(messages), 0, 600, 300, tell)
    assert done.summarised == 4
    assert [message["role"] for message in done.view.messages] == [
        *("system", "user", "assistant", "user", "assistant")
    ]
    assert done.view.messages[1]["content"] == f"{HEADING}\n\nA summary."
    assert done.view.messages[2]["content"] == ACKNOWLEDGED
    assert done.view.items[3:] == [5, 6]
    assert done.usage


def test_what_the_user_wants_now_is_kept_word_for_word_in_a_long_run() -> None:
    messages = [said("user", "Paint the door red.")]
    for number in range(12):
        messages += exchange(number, [40], text="Painting. " * 40)
    done = compact(view_of(messages), 0, 600, 300, tell)
    assert f"{LATEST}\n\nPaint the door red." in done.view.messages[0]["content"]
    check_pairs(done.view.messages)


def test_a_result_that_does_not_fit_alone_is_cut_in_the_middle() -> None:
    messages = [said("user", "Look."), *exchange(1, [100_000, 50])]
    done = compact(view_of(messages), 100, 2000, 1000, tell)
    assert done.tokens <= 2000
    assert "characters were left out here" in done.view.messages[2]["content"]
    assert done.view.items[3] == 3


def test_a_summary_that_fails_leaves_what_was_trimmed_if_that_fits() -> None:
    def fail(instructions: str, text: str) -> tuple[str, Usage]:
        raise ServerError("the model is on holiday")

    messages = [said("user", "Words. " * 300), *exchange(1, [4000]), *exchange(2, [10])]
    done = compact(view_of(messages), 0, 1200, 300, fail)
    assert (done.trimmed, done.summarised) == (1, 0)
    assert done.problem == "the model is on holiday"


def test_a_summary_that_fails_where_trimming_is_not_enough_leaves_what_the_user_said() -> None:
    def fail(instructions: str, text: str) -> tuple[str, Usage]:
        raise ServerError("the model is on holiday")

    messages = [said("user", "Paint it."), said("assistant", "Painting. " * 900)]
    messages += [said("user", "And now?"), said("assistant", "Done.")]
    done = compact(view_of(messages), 0, 600, 300, fail)
    first = done.view.messages[0]["content"]
    assert first.startswith(GONE.format(count=2))
    assert "- Paint it." in first
    assert done.tokens <= 600


def test_what_does_not_fit_the_model_that_summarises_is_given_in_pieces() -> None:
    sent: list[str] = []

    def ask(instructions: str, text: str) -> tuple[str, Usage]:
        if text_tokens(text) > 900:
            raise ContextLengthError("too long")
        sent.append(text)
        return f"Summary {len(sent)}.", {"input": 10, "output": 2}

    messages = [said("user", f"Word {number}. " * 100) for number in range(10)]
    summary = summarise(ask, messages, most=500, piece_tokens=4000)
    assert summary.text == f"Summary {len(sent)}."
    assert len(sent) > 2
    assert all("Summary 1." in text for text in sent[1:2])
    assert summary.usage == {"input": 10 * len(sent), "output": 2 * len(sent)}
    told = "".join(sent)
    assert all(f"Word {number}." in told for number in range(10))


def test_a_model_that_takes_nothing_at_all_is_not_asked_for_ever() -> None:
    asked: list[str] = []

    def refuse(instructions: str, text: str) -> tuple[str, Usage]:
        asked.append(text)
        raise ContextLengthError("too long")

    summary = summarise(refuse, [said("user", "Words. " * 1000)], most=500, piece_tokens=4000)
    assert summary.text == ""
    assert summary.problem == "too long"
    assert len(asked) < 10


def test_a_wish_of_the_person_goes_with_the_instructions() -> None:
    told: list[str] = []

    def ask(instructions: str, text: str) -> tuple[str, Usage]:
        told.append(instructions)
        return "Kept.", {}

    summarise(ask, [said("user", "Hello")], most=300, piece_tokens=1000, wish="keep the colours")
    assert told[0].endswith("The user asks of this summary: keep the colours")


def test_an_answer_without_text_is_no_summary() -> None:
    summary = summarise(
        lambda *_: ("  ", Usage()), [said("user", "Hello")], most=300, piece_tokens=1000
    )
    assert summary.problem == "the model gave no text"


def test_nothing_is_summarised_twice_in_a_row() -> None:
    messages = [said("user", "x" * 8000), said("assistant", "y" * 8000)]
    first = compact(view_of(messages), 0, 1000, 500, tell)
    again = compact(first.view, 0, 1000, 500, tell)
    assert again.view.items == first.view.items


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("äöü", 3)])
def test_texts_are_estimated_by_characters(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


def test_a_picture_costs_the_same_whatever_its_bytes() -> None:
    small, large = said("user", ""), said("user", "")
    small["multipartContent"] = [PICTURE]  # type: ignore[list-item]
    url = "data:image/png;base64," + "A" * 99_999
    large["multipartContent"] = [{"type": "image", "content": {"url": url}}]
    assert message_tokens(small) == message_tokens(large)


def test_a_text_is_clipped_in_the_middle() -> None:
    clipped = clip_text("a" * 900 + "b" * 100, 90)
    assert clipped.startswith("a" * 60)
    assert clipped.endswith("b" * 30)
    assert "[910 characters were left out here to save room]" in clipped


def test_a_call_that_waits_for_its_result_is_not_cut_off_and_one_that_never_gets_any_is() -> None:
    waiting = exchange(1, [5, 5])[:-1]
    assert view_of([said("user", "Hello"), *waiting]).cuts() == [0, 1]
    assert view_of([said("user", "Hello"), *waiting, said("user", "Oh")]).cuts() == [0, 1, 3, 4]
    assert view_of([said("user", "Hello"), *exchange(1, [5, 5])]).cuts() == [0, 1, 4]
