"""Breakages of the provider of Cohere's chat."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite

__all__ = ["BREAKAGES"]

_SUITE = Suite("cohere", "test_cohere_conformance", "TestCohere")


def _breakage(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("cohere", _SUITE, name, kind, sentence, red, changes)


BREAKAGES = (
    _breakage(
        "cohere-leaves-instructions-in-the-middle",
        "instructions",
        "Instructions stand where they were said, and not before everything else.",
        ("test_messages_keep_their_order",),
        Change(
            "outgoing.py",
            "            self._system.append(native)\n",
            "            self._messages.append(native)\n",
        ),
    ),
    _breakage(
        "cohere-sends-text-as-arguments",
        "calls",
        "Arguments that are no object go back as the text that they are.",
        ("test_malformed_calls",),
        Change("messages.py", "[sanitize(call) for call in made]", "[*made]"),
    ),
    _breakage(
        "cohere-counts-what-is-billed",
        "usage",
        "The tokens that are billed are told, and not those that the model read and wrote.",
        ("test_usage_is_counted_once",),
        Change(
            "answers.py",
            'raw.get("tokens") or raw.get("billed_units")',
            'raw.get("billed_units")',
        ),
    ),
    _breakage(
        "cohere-overlooks-errors",
        "broken streams",
        "An answer that ended in an error is taken for one.",
        ("test_mid_stream_failure",),
        Change("provider.py", "        if error is not None:\n", "        if False:\n"),
    ),
    _breakage(
        "cohere-copies-growing-blocks",
        "cost",
        "The block so far is copied at every fragment, which costs its square.",
        ("test_linear_cost[text]", "test_linear_cost[reasoning]"),
        Change(
            "answers.py",
            "        block.append_text(kind, text)\n",
            '        block[kind] = f"{block.get(kind) or str()}{text}"\n',
        ),
    ),
    _breakage(
        "cohere-ends-early",
        "broken streams",
        "A stream that was cut is taken for a whole one.",
        ("test_truncated_text", "test_truncated_calls"),
        Change(
            "provider.py",
            'return bool((state["partial"] or {}).get("finish_reason"))',
            "return True",
        ),
    ),
    _breakage(
        "cohere-leaves-calls-open",
        "results",
        "A call that nobody answered is sent without a result.",
        (
            "test_cohere_requests.py::test_a_call_without_a_result_gets_one_and_a_stray_result_is_told",
        ),
        Change(
            "outgoing.py",
            "            self._messages += self._missing_results()\n",
            "            pass\n",
        ),
    ),
    _breakage(
        "cohere-loses-plans",
        "the vendor's own",
        "What a model is about to do is forgotten.",
        (
            "test_cohere_answers.py"
            "::test_a_plan_is_neither_text_nor_reasoning_and_goes_back_with_its_calls",
        ),
        Change("answers.py", 'if kind == "tool-plan-delta":', 'if kind == "tool-plan":'),
    ),
)
