"""Breakages of the provider of generateContent."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite

__all__ = ["BREAKAGES"]

_SUITE = Suite("google", "test_google_conformance", "TestGoogleThree")


def _breakage(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("google", _SUITE, name, kind, sentence, red, changes)


BREAKAGES = (
    _breakage(
        "google-overlooks-errors",
        "broken streams",
        "An error in the middle of a stream is taken for nothing.",
        ("test_mid_stream_failure",),
        Change("answers.py", '    if chunk.get("error"):\n', "    if False:\n"),
    ),
    _breakage(
        "google-moves-signatures",
        "reasoning",
        "The signature of a call is put on the thought before it.",
        ("test_reasoning_round_trip", "test_changed_instructions_leave_the_history"),
        Change(
            "answers.py",
            "            self._open = None\n"
            "            self._parts.append(self._about.keep(part))\n",
            "            self._open = None\n"
            '            if "functionCall" in part and self._parts:\n'
            "                part = {**part}\n"
            '                moved = part.pop("thoughtSignature", "")\n'
            '                self._parts[-1]["thoughtSignature"] = moved\n'
            "            self._parts.append(self._about.keep(part))\n",
        ),
    ),
    _breakage(
        "google-loses-call-ids",
        "calls",
        "Results do not say which call they are of, though the API gave it an id.",
        (
            "test_tools_round_trip",
            "test_parallel_calls",
            "test_arguments_are_replayed_exactly",
            "test_tool_names_are_made_legal",
            "test_reasoning_round_trip",
            "test_changed_instructions_leave_the_history",
        ),
        Change(
            "calls.py",
            'identity = {"id": call["id"]} if call.get("id") else {}',
            "identity: JsonObject = {}",
        ),
    ),
    _breakage(
        "google-makes-ids-up",
        "calls",
        "Results name calls that had no id by one.",
        ("test_wire_shape[29-absent]", "test_provider_switch"),
        Change(
            "calls.py",
            'identity = {"id": call["id"]} if call.get("id") else {}',
            'identity = {"id": call.get("id") or "made-up"}',
        ),
    ),
    _breakage(
        "google-scatters-results",
        "results",
        "The results of one turn are sent in contents of their own.",
        ("test_parallel_calls",),
        Change(
            "outgoing.py",
            'if contents and _is_result(parts) and _is_result(contents[-1]["parts"]):',
            "if contents and not parts:",
        ),
    ),
    _breakage(
        "google-runs-malformed-calls",
        "calls",
        "A call whose arguments are no object is not marked as one that must not run.",
        ("test_malformed_calls",),
        Change(
            "provider.py",
            '            partial.setdefault("tool_calls", []).extend(answer.new_calls)\n',
            '            partial.setdefault("tool_calls", [])\n',
        ),
    ),
    _breakage(
        "google-counts-thoughts-twice",
        "usage",
        "Thoughts are counted as output, and once more.",
        ("test_usage_is_counted_once",),
        Change(
            "usage.py", "(answer or 0) + (thoughts or 0)", "(answer or 0) + 2 * (thoughts or 0)"
        ),
    ),
    _breakage(
        "google-forgets-instructions",
        "instructions",
        "System messages are never sent.",
        (
            "test_conversation_reaches_the_wire",
            "test_what_features_say_is_sent",
            "test_what_features_say_needs_no_system_prompt",
            "test_changed_instructions_leave_the_history",
        ),
        Change("outgoing.py", "            self.instructions += parts\n", ""),
    ),
    _breakage(
        "google-lists-paths",
        "models",
        "Models are listed under a path instead of the name they are asked by.",
        ("test_models_are_listed",),
        Change("models.py", 'model["name"].removeprefix("models/")', 'model["name"]'),
    ),
    _breakage(
        "google-speaks-its-thoughts",
        "reasoning",
        "Thoughts are part of what the model says.",
        ("test_reasoning_is_shown",),
        Change(
            "answers.py",
            'return bool(part["text"]) and part.get("thought") is not True',
            'return bool(part["text"])',
        ),
    ),
    _breakage(
        "google-takes-cut-text",
        "broken streams",
        "A stream that ends inside a text counts as complete.",
        ("test_truncated_text",),
        Change(
            "provider.py",
            '        return state["answer"].finish is not None\n',
            '        return state["answer"].finish is not None or not state["answer"]._call_ids\n',
        ),
    ),
    _breakage(
        "google-blocks-the-loop",
        "blocking",
        "Every chunk waits a moment, and the event loop with it.",
        ("test_event_loop_is_not_blocked",),
        Change(
            "provider.py",
            "        answer.read(native_chunk)\n",
            "        import time\n\n"
            "        time.sleep(0.0001)\n"
            "        answer.read(native_chunk)\n",
        ),
    ),
    _breakage(
        "google-promises-other-tags",
        "claims",
        "The class does not give a tag that the descriptor promises.",
        ("test_tags",),
        Change("models.py", 'WIRE_TAG, "supports_streaming"]', "WIRE_TAG]"),
    ),
    _breakage(
        "google-asks-again-what-cannot-get-better",
        "retries",
        "A request that is refused for what it says is sent again.",
        (
            "test_errors_are_typed[invalid_request]",
            "test_lasting_refusals_are_not_retried[invalid_request]",
        ),
        Change(
            "provider.py",
            "        return quota_error(status, headers, body)\n",
            '        if status != 400 or b"API_KEY_INVALID" in body or b"tokens" in body:\n'
            "            return quota_error(status, headers, body)\n"
            "        from agent_hookspecs import InvalidRequestError\n\n"
            '        about = {"status": status, "request_id": headers["x-request-id"]}\n'
            "        return InvalidRequestError(body.decode(), retryable=True, **about)\n",
        ),
    ),
    _breakage(
        "google-loses-signatures-of-text",
        "reasoning",
        "The signature that follows a text is not kept.",
        (
            "test_reasoning_round_trip",
            "test_streamed_equals_whole[reasoning]",
            "test_wire_shape[27-empty]",
        ),
        Change("answers.py", "grown.update(rest)", "grown.update({})"),
    ),
    _breakage(
        "google-takes-any-finish",
        "endings",
        "An answer that was blocked or malformed counts as one.",
        (
            "test_wire_shape[30-malformed-function-call]",
            "test_wire_shape[30-unexpected-tool-call]",
            "test_wire_shape[30-whole]",
        ),
        Change(
            "answers.py",
            'if self.finish is not None and self.finish != "STOP":',
            'if self.finish == "NEVER":',
        ),
        Change(
            "errors.py",
            '"MALFORMED_FUNCTION_CALL": "tool_calls"',
            '"MALFORMED_FUNCTION_CALL": "stop"',
        ),
        Change(
            "errors.py", '"UNEXPECTED_TOOL_CALL": "tool_calls"', '"UNEXPECTED_TOOL_CALL": "stop"'
        ),
    ),
    _breakage(
        "google-overlooks-refused-prompts",
        "endings",
        "A prompt that was blocked gives an empty answer.",
        ("test_wire_shape[31-blocked]", "test_wire_shape[31-blocked-whole]"),
        Change(
            "answers.py",
            "if isinstance(feedback, dict) and isinstance(reason, str) and reason:",
            'if isinstance(feedback, dict) and reason == "NEVER":',
        ),
    ),
    _breakage(
        "google-gives-ids-twice",
        "calls",
        "Two calls may have the same id.",
        ("test_google_answers.py::test_ids_are_unique_over_the_conversation",),
        Change("provider.py", "taken_call_ids(native_messages, state, ids_in)", "()"),
    ),
    _breakage(
        "google-forgets-the-mark-of-a-batch",
        "batches",
        "A batch that is listed does not say what it was submitted with.",
        ("test_a_batch_is_found_again",),
        Change("batches.py", 'mark=str(metadata.get("displayName") or ""),', 'mark="",'),
    ),
    _breakage(
        "google-takes-a-code-for-a-status",
        "batches",
        "A refusal within a batch has the code of another protocol as its status.",
        ("test_batches_bring_what_requests_bring",),
        Change(
            "batches.py",
            'status = _STATUSES.get(int(error.get("code") or 0), 500)',
            'status = int(error.get("code") or 0)',
        ),
    ),
)
