"""Breakages of the provider of the Messages API."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, change_descriptor

__all__ = ["BREAKAGES"]

_SUITE = Suite("anthropic", "test_anthropic_conformance", "TestAnthropic")


def _breakage(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("anthropic", _SUITE, name, kind, sentence, red, changes)


BREAKAGES = (
    _breakage(
        "anthropic-takes-a-cut-for-an-end",
        "endings",
        "An answer that was cut off looks like a complete one.",
        (
            "test_an_answer_that_is_cut_off_says_so[whole]",
            "test_an_answer_that_is_cut_off_says_so[streamed]",
        ),
        Change("provider.py", '"max_tokens": "length"', '"max_tokens": "stop"'),
    ),
    _breakage(
        "anthropic-forgets-betas",
        "knobs",
        "A setting of the provider's own is offered, and read by nobody.",
        ("test_settings_move_the_request",),
        Change("requests.py", 'betas := config.get("betas")', "betas := None"),
    ),
    _breakage(
        "anthropic-shows-thoughts-as-it-likes",
        "knobs",
        "A setting that counts only while the model thinks is read by nobody.",
        ("test_settings_move_the_request",),
        Change("reasoning.py", 'display := config.get("thinking_display")', "display := None"),
    ),
    _breakage(
        "anthropic-cuts-addresses",
        "media",
        "The address of a picture loses its query.",
        ("test_pictures_by_address",),
        Change(
            "media.py",
            '            return {"type": "url", "url": address}\n',
            '            return {"type": "url", "url": address.partition("?")[0]}\n',
        ),
    ),
    _breakage(
        "anthropic-forgets-schemas-beside-tools",
        "knobs",
        "A schema for the answer is sent only where there are no tools.",
        ("test_a_schema_goes_with_tools",),
        Change(
            "structured.py",
            "        if schema:\n",
            '        if schema and not state["config"].get("tools"):\n',
        ),
    ),
    _breakage(
        "anthropic-loses-signatures",
        "reasoning",
        "The signature that closes a thinking block in a stream is not kept.",
        (
            "test_reasoning_round_trip",
            "test_streamed_equals_whole[reasoning]",
            "test_changed_instructions_leave_the_history",
        ),
        Change(
            "answers.py",
            'block["signature"] = _text(delta, "signature")',
            'block["signature"] = ""',
        ),
    ),
    _breakage(
        "anthropic-drops-redacted-thinking",
        "reasoning",
        "Thinking that the API keeps for itself is left out of the history.",
        ("test_wire_shape[19]", "test_wire_shape[19-whole]"),
        Change(
            "answers.py",
            "            content.append(finished)\n",
            '            if finished.get("type") != "redacted_thinking":\n'
            "                content.append(finished)\n",
        ),
    ),
    _breakage(
        "anthropic-respells-signatures",
        "exact bytes",
        "Signatures are written in the other alphabet of base64.",
        ("test_recording[searched]",),
        Change(
            "answers.py",
            'block["signature"] = _text(delta, "signature")',
            'block["signature"] = _text(delta, "signature").replace("_", "/").replace("-", "+")',
        ),
    ),
    _breakage(
        "anthropic-forgets-citations",
        "answers",
        "What an answer refers to is not in its metadata.",
        ("test_recording[searched]",),
        Change("answers.py", 'metadata["citations"] = citations', "pass"),
    ),
    _breakage(
        "anthropic-forgets-what-a-search-found",
        "exact bytes",
        "A search of tools goes back without what it found, so that nothing stays found.",
        ("test_deferred_tools_are_found_and_stay_found",),
        Change("found.py", 'if each.get("tool_name") in known]', "if not known]"),
    ),
    _breakage(
        "anthropic-sends-half-a-search",
        "broken streams",
        "A search that was cut off goes back without its result, and the API refuses all turns.",
        ("test_a_search_that_was_cut_off_does_no_harm",),
        Change("found.py", "if not _is_search(block) or block", "if True or block"),
    ),
    _breakage(
        "anthropic-empties-results-of-its-own-tools",
        "answers",
        "What the API's own tools found is left out of the history.",
        ("test_recording[searched]",),
        Change(
            "answers.py",
            "            content.append(finished)\n",
            '            if finished.get("type") == "web_search_tool_result":\n'
            '                finished["content"] = []\n'
            "            content.append(finished)\n",
        ),
    ),
    _breakage(
        "anthropic-signs-for-others",
        "reasoning",
        "Signed thinking is put into core messages and sent to whoever comes next.",
        ("test_signatures_stay_with_their_origin",),
        Change(
            "answers.py",
            '    if calls:\n        metadata["tool_calls"] = calls\n',
            '    metadata["thoughts"] = [dict(block) for block in blocks if "thinking" in block]\n'
            '    if calls:\n        metadata["tool_calls"] = calls\n',
        ),
        Change(
            "messages.py",
            "        blocks = _contents(message, unsent)\n",
            '        blocks = [*metadata.get("thoughts", ()), *_contents(message, unsent)]\n',
        ),
    ),
    _breakage(
        "anthropic-adds-counts-up",
        "usage",
        "Reports of usage that grow are added up.",
        ("test_usage_is_counted_once", "test_streamed_equals_whole"),
        Change(
            "usage.py",
            "            known[key] = value\n",
            "            before = known.get(key, 0)\n"
            "            known[key] = before + value if isinstance(value, int) else value\n",
        ),
    ),
    _breakage(
        "anthropic-forgets-the-cache",
        "usage",
        "Tokens of the prompt that the cache took are not counted.",
        ("test_usage_is_counted_once",),
        Change("usage.py", " + written + read", ""),
    ),
    _breakage(
        "anthropic-invents-usage",
        "usage",
        "An answer that counts nothing has a usage of zeros.",
        ("test_usage_is_not_invented",),
        Change(
            "answers.py",
            '        if counts.get("input") or counts.get("output"):\n',
            "        if counts:\n",
        ),
        Change(
            "answers.py",
            '    usage = known.get("usage")\n    if isinstance(usage, Mapping):\n',
            '    usage = known.get("usage") or {}\n    if isinstance(usage, Mapping):\n',
        ),
    ),
    _breakage(
        "anthropic-forgets-the-end-of-whole-answers",
        "endings",
        "Only streams say why the model stopped.",
        ("test_streamed_equals_whole", "test_an_answer_that_is_cut_off_says_so[whole]"),
        Change(
            "answers.py",
            '        self.learn(message, message.get("usage"))\n',
            '        self.learn({**message, "stop_reason": None}, message.get("usage"))\n',
        ),
    ),
    _breakage(
        "anthropic-differs-when-awaited",
        "answers",
        "With an event loop around it, the provider forgets why the model stopped.",
        ("test_sync_equals_async",),
        Change(
            "answers.py",
            '            "finish_reason": about.get("stop_reason"),\n',
            '            "finish_reason": None if _is_awaited() else about.get("stop_reason"),\n',
        ),
        Change(
            "answers.py",
            "def _finished(",
            "def _is_awaited() -> bool:\n"
            "    import asyncio\n\n"
            "    return asyncio._get_running_loop() is not None\n\n\n"
            "def _finished(",
        ),
    ),
    _breakage(
        "anthropic-tidies-up-text",
        "exact text",
        "Line ends and spaces in an answer are made single spaces.",
        ("test_text", "test_streamed_text"),
        Change(
            "answers.py",
            '"".join(_text(dict(b), "text") for b in blocks if b.get("type") == "text"),',
            '" ".join("".join(_text(dict(b), "text") for b in blocks).split()),',
        ),
    ),
    _breakage(
        "anthropic-copies-growing-text",
        "cost",
        "The text so far is copied at every fragment, which costs its square.",
        ("test_linear_cost[text]",),
        Change(
            "provider.py",
            '        partial.append_text("content", text)\n',
            '        partial["content"] = partial.get("content", "") + text\n',
        ),
    ),
    _breakage(
        "anthropic-calls-everything-a-server-error",
        "errors",
        "An overloaded server that breaks off is told as one that failed.",
        ("test_mid_stream_failure",),
        Change("errors.py", '    "overloaded_error": OverloadedError,\n', ""),
    ),
    _breakage(
        "anthropic-says-the-key",
        "secrets",
        "The key is printed.",
        ("test_secrets_stay_secret",),
        Change(
            "requests.py",
            'headers["x-api-key"] = str(key)\n',
            'headers["x-api-key"] = str(key)\n            print("key", key)\n',
        ),
    ),
    _breakage(
        "anthropic-says-other-things-of-itself",
        "packages",
        "The descriptor has another label than the class.",
        ("test_descriptor_equals_code",),
        change_descriptor('"label": "Anthropic",', '"label": "Messages",'),
    ),
    _breakage(
        "anthropic-leaves-system-in-place",
        "instructions",
        "System messages stay among the turns.",
        (
            "test_conversation_reaches_the_wire",
            "test_what_features_say_is_sent",
            "test_what_features_say_needs_no_system_prompt",
            "test_changed_instructions_leave_the_history",
        ),
        Change("outgoing.py", 'if role == "system":', 'if role == "developer":'),
    ),
    _breakage(
        "anthropic-leaves-calls-unanswered",
        "results",
        "A call that was never run has no result.",
        (
            "test_anthropic_conversation.py::"
            "test_results_of_parallel_calls_stand_first_in_one_turn_and_in_order",
        ),
        Change(
            "outgoing.py",
            "*(results.get(call_id) or _no_result(call_id) for call_id in waiting), *others]",
            "*results.values(), *others]",
        ),
    ),
    _breakage(
        "anthropic-hides-failures",
        "results",
        "The result of a tool that failed looks like any other.",
        ("test_failed_results_say_so",),
        Change("messages.py", '        **({"is_error": True} if failed else {}),\n', ""),
    ),
    _breakage(
        "anthropic-forgets-when-a-batch-was-made",
        "batches",
        "A batch that is listed has no time by which it could be found again.",
        ("test_a_batch_is_found_again",),
        Change("batches.py", 'created=_time(batch.get("created_at")),', "created=None,"),
    ),
    _breakage(
        "anthropic-takes-a-cancelled-line-for-an-answer",
        "batches",
        "A line that was never asked has a status, as if it had been answered.",
        ("test_what_a_batch_leaves_unanswered_has_no_status",),
        Change(
            "batches.py",
            'yield BatchReply(id, None, problem=f"it was {other}")',
            "yield BatchReply(id, 200, {})",
        ),
    ),
)
