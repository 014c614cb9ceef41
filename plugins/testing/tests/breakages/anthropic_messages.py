"""Breakages of the reference provider of the Messages API."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, descriptor

__all__ = ["BREAKAGES"]

PACKAGE = "reference_anthropic_messages"

BREAKAGES = (
    Breakage(
        PACKAGE,
        "messages-drops-signatures",
        "The signature that closes a thinking block in a stream is not kept.",
        ("test_reasoning_round_trip", "test_streamed_equals_whole[reasoning]"),
        (Change('    "signature_delta": "signature",\n', ""),),
    ),
    Breakage(
        PACKAGE,
        "messages-drops-redacted-thinking",
        "Thinking that the API keeps for itself is left out of the history.",
        ("test_wire_shape[19]", "test_wire_shape[19-whole]"),
        (
            Change(
                'for _, block in sorted(answer["blocks"].items())]',
                'for _, block in sorted(answer["blocks"].items())]\n'
                '        blocks = [block for block in blocks if block["type"] != '
                '"redacted_thinking"]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-signs-for-others",
        "Signed thinking is put into core messages and sent to whoever comes next.",
        ("test_signatures_stay_with_their_origin",),
        (
            Change(
                "    if calls:\n        metadata",
                '    metadata["thoughts"] = [b for b in native["content"] if "thinking" in b]\n'
                "    if calls:\n        metadata",
            ),
            Change(
                '    return {"role": message["role"], "content": [*said, *made]}',
                '    thoughts = metadata.get("thoughts") or []\n'
                '    return {"role": message["role"], "content": [*thoughts, *said, *made]}',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-counts-usage-twice",
        "The counts at the end of a stream are added to those at its beginning.",
        ("test_usage_is_counted_once", "test_streamed_equals_whole"),
        (
            Change(
                '    answer["usage"] |= counted.get("usage") or {}',
                '    for key, count in (counted.get("usage") or {}).items():\n'
                "        if isinstance(count, int):\n"
                '            count += answer["usage"].get(key) or 0\n'
                '        answer["usage"][key] = count',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-leaves-out-cached-tokens",
        "Tokens from the cache are not counted as input.",
        ("test_usage_is_counted_once",),
        (
            Change(
                '(raw.get("input_tokens") or 0) + cached + written', 'raw.get("input_tokens") or 0'
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-invents-usage",
        "An answer that counts nothing has a usage of zeros.",
        ("test_usage_is_not_invented",),
        (Change(" if any(counts.values()) else None", ""),),
    ),
    Breakage(
        PACKAGE,
        "messages-forgets-the-end-of-whole-answers",
        "Only streams say why the model stopped.",
        ("test_streamed_equals_whole",),
        (
            Change(
                "            _learn(answer, message, message)",
                "            _learn(answer, {}, message)",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-differs-when-awaited",
        "With an event loop around it, the provider forgets why the model stopped.",
        ("test_sync_equals_async",),
        (
            Change(
                '            "finish_reason": answer["stop_reason"],',
                '            "finish_reason": answer["stop_reason"] * (not _awaited()),',
            ),
            Change(
                "def _base(",
                "def _awaited() -> bool:\n"
                "    import asyncio\n\n"
                "    return asyncio._get_running_loop() is not None\n\n\n"
                "def _base(",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-tidies-up-text",
        "Line ends and spaces in an answer are made single spaces.",
        ("test_text", "test_streamed_text"),
        (
            Change(
                '    return "".join(_fields(message, "text"))',
                '    return " ".join("".join(_fields(message, "text")).split())',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-copies-growing-text",
        "The text so far is copied at every fragment, which costs its square.",
        ("test_linear_cost[text]",),
        (
            Change(
                '        state["partial"].append_text("content", text)',
                '        known = state["partial"].get("content", "")\n'
                '        state["partial"]["content"] = known + text',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-calls-everything-a-server-error",
        "An overloaded server that breaks off is told as one that failed.",
        ("test_mid_stream_failure",),
        (Change('    "overloaded_error": OverloadedError,\n', ""),),
    ),
    Breakage(
        PACKAGE,
        "messages-says-the-key",
        "The key is printed.",
        ("test_secrets_stay_secret",),
        (
            Change(
                '    return {"x-api-key": config["api_key"]',
                '    print("key", config["api_key"])\n    return {"x-api-key": config["api_key"]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "messages-says-other-things-of-itself",
        "The descriptor has another label than the class.",
        ("test_descriptor_equals_code",),
        (descriptor('"label": "Reference messages",', '"label": "Messages",'),),
    ),
)
