"""Breakages of the reference provider of generateContent."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, own_error

__all__ = ["BREAKAGES"]

PACKAGE = "reference_google_generate"

BREAKAGES = (
    Breakage(
        PACKAGE,
        "generate-moves-signatures",
        "The signature of a call is put on the thought before it.",
        ("test_reasoning_round_trip",),
        (
            Change(
                "    else:\n        parts.append(Partial(part))",
                "    else:\n"
                '        if "functionCall" in part and "text" in last:\n'
                "            part = {**part}\n"
                '            last.update(thoughtSignature=part.pop("thoughtSignature", ""))\n'
                "        parts.append(Partial(part))",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "generate-loses-call-ids",
        "Results do not say which call they are of, though the API gave it an id.",
        (
            "test_tools_round_trip",
            "test_parallel_calls",
            "test_arguments_are_replayed_exactly",
            "test_tool_names_are_made_legal",
            "test_reasoning_round_trip",
        ),
        (Change('            if response["id"] not in given:', "            if given:"),),
    ),
    Breakage(
        PACKAGE,
        "generate-scatters-results",
        "The results of one turn are sent in contents of their own.",
        ("test_parallel_calls",),
        (
            Change(
                '            if "functionResponse" not in contents[-1]["parts"][0]:\n'
                '                contents.append({"role": "user", "parts": []})\n',
                '            contents.append({"role": "user", "parts": []})\n',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "generate-runs-malformed-calls",
        "A call whose arguments are no object is not marked as one that must not run.",
        ("test_malformed_calls",),
        (Change('            "tool_call_errors": _problems(made),\n', ""),),
    ),
    Breakage(
        PACKAGE,
        "generate-counts-thoughts-twice",
        "Thoughts are counted as output, and once more.",
        ("test_usage_is_counted_once",),
        (
            Change(
                '(raw.get("candidatesTokenCount") or 0) + thoughts',
                '(raw.get("candidatesTokenCount") or 0) + 2 * thoughts',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "generate-forgets-instructions",
        "System messages are never sent.",
        ("test_conversation_reaches_the_wire",),
        (
            Change(
                '            body["systemInstruction"] = {"parts": system}\n',
                "            del system\n",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "generate-lists-paths",
        "Models are listed under a path instead of the name they are asked by.",
        ("test_models_are_listed",),
        (Change('model["name"].removeprefix("models/")', 'model["name"]'),),
    ),
    Breakage(
        PACKAGE,
        "generate-shows-thoughts-as-text",
        "Thoughts are part of what the model says.",
        ("test_reasoning_is_shown",),
        (Change('if "text" in p and not p.get("thought"))', 'if "text" in p)'),),
    ),
    Breakage(
        PACKAGE,
        "generate-takes-cut-text",
        "A stream that ends inside a text counts as complete.",
        ("test_truncated_text",),
        (
            Change(
                '        return bool(state["answer"]["finish"])',
                '        answer = state["answer"]\n'
                '        return bool(answer["finish"] or not _calls(answer["parts"]))',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "generate-blocks-the-loop",
        "Every chunk waits a moment, and the event loop with it.",
        ("test_event_loop_is_not_blocked",),
        (
            Change(
                "        parts = _parts(native_chunk)\n        for part",
                "        import time\n\n"
                "        time.sleep(0.0001)\n"
                "        parts = _parts(native_chunk)\n        for part",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "generate-promises-other-tags",
        "The class does not give a tag that the descriptor promises.",
        ("test_tags",),
        (Change('return [TAG, "supports_streaming", ', "return [TAG, "),),
    ),
    Breakage(
        PACKAGE,
        "generate-asks-again-what-cannot-get-better",
        "A request that is refused for what it says is sent again.",
        (
            "test_errors_are_typed[invalid_request]",
            "test_lasting_refusals_are_not_retried[invalid_request]",
        ),
        (
            own_error(
                'status == 400 and b"API_KEY_INVALID" not in body and b"tokens" not in body',
                "InvalidRequestError",
                retryable=True,
            ),
        ),
    ),
)
