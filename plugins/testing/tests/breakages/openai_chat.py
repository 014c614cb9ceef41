"""Breakages of the reference provider of chat completions."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, descriptor

__all__ = ["BREAKAGES"]

PACKAGE = "reference_openai_chat"

BREAKAGES = (
    Breakage(
        PACKAGE,
        "chat-merges-parallel-calls",
        "Several calls of one turn become one with the arguments of all.",
        ("test_parallel_calls",),
        (
            Change(
                "registry.sanitize_tool_call(call) for call in calls]",
                "registry.sanitize_tool_call(call) for call in calls[:1]]\n"
                "                for call in calls[1:]:\n"
                '                    function = final["tool_calls"][0]["function"]\n'
                '                    function["arguments"] += call["function"]["arguments"]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-keeps-malformed-calls",
        "Arguments that are no JSON stay in the natives, which cannot be sent again.",
        ("test_malformed_calls",),
        (Change("registry.sanitize_tool_call(call) for call in calls", "call for call in calls"),),
    ),
    Breakage(
        PACKAGE,
        "chat-rewrites-arguments",
        "Arguments are parsed and written again, so that prompt caches miss.",
        ("test_arguments_are_replayed_exactly",),
        (
            Change(
                "registry.sanitize_tool_call(call) for call in calls]",
                "_rewritten(registry.sanitize_tool_call(call)) for call in calls]",
            ),
            Change(
                "def _base(",
                "def _rewritten(call: dict[str, Any]) -> dict[str, Any]:\n"
                "    import json\n\n"
                '    function = call["function"]\n'
                '    written = json.dumps(json.loads(function["arguments"]))\n'
                '    return {**call, "function": {**function, "arguments": written}}\n\n\n'
                "def _base(",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-keeps-wire-names",
        "Calls are stored under the name on the wire, which no tool has.",
        ("test_tool_names_are_made_legal",),
        (Change("_renamed(call, names.decode) for call in calls", "call for call in calls"),),
    ),
    Breakage(
        PACKAGE,
        "chat-sends-foreign-ids",
        "Ids of other providers' calls are sent as they are.",
        ("test_provider_switch",),
        (
            Change(
                'return re.sub(r"[^a-zA-Z0-9_-]", "_", str(call_id))[-40:]', "return str(call_id)"
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-drops-signed-reasoning",
        "Signed reasoning is left out of the natives.",
        ("test_reasoning_round_trip",),
        (
            Change(
                "        return accumulate_reasoning(delta, accumulated)",
                "        patch, accumulated = accumulate_reasoning(delta, accumulated)\n"
                '        accumulated.pop("reasoning_details", None)\n'
                "        return patch, accumulated",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-forgets-reasoning",
        "Reasoning is shown as it comes, but not kept with the message.",
        ("test_reasoning_is_shown",),
        (Change('if (text := native.get("reasoning"))', 'if (text := native.get("thinking"))'),),
    ),
    Breakage(
        PACKAGE,
        "chat-runs-half-calls",
        "A stream that ends inside a call counts as complete.",
        ("test_truncated_calls",),
        (
            Change(
                '        return bool((state.get("partial") or {}).get("finish_reason"))',
                '        partial = state.get("partial") or {}\n'
                '        return bool(partial.get("finish_reason") or partial.get("tool_calls"))',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-parses-growing-arguments",
        "The arguments so far are parsed at every fragment, which costs their square.",
        ("test_linear_cost[tools]",),
        (
            Change(
                "        return accumulate_tool_calls(delta, accumulated)",
                "        patch, accumulated = accumulate_tool_calls(delta, accumulated)\n"
                '        for call in accumulated.get("tool_calls") or ():\n'
                "            import json\n\n"
                "            try:\n"
                '                json.loads(call["function"]["arguments"] + \'"}\')\n'
                "            except ValueError:\n"
                "                continue\n"
                "        return patch, accumulated",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-ignores-errors-in-streams",
        "An error in the middle of a stream is taken for a chunk without content.",
        ("test_mid_stream_failure",),
        (
            Change(
                '            raise _error(native_chunk["error"])\n',
                "            native_chunk = {}\n",
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-forgets-refusals",
        "A model that refuses seems to have said nothing.",
        ("test_recording",),
        (Change('metadata["refusal"] = native["refusal"]', 'metadata["declined"] = True'),),
    ),
    Breakage(
        PACKAGE,
        "chat-logs-the-key",
        "The key is written to the log with the headers.",
        ("test_secrets_stay_secret",),
        (
            Change(
                '        config = state["config"]\n        state["request"] = {',
                '        config = state["config"]\n'
                "        import logging\n\n"
                '        logging.getLogger(NAME).debug("sending %s", _headers(config))\n'
                '        state["request"] = {',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-changes-the-prefix",
        "Each request says how long it is, so that none begins as the one before.",
        ("test_history_is_sent_again_as_it_was",),
        (
            Change(
                '        body = {**request["payload"], "messages": messages}',
                '        body = {**request["payload"], "messages": messages}\n'
                '        body["user"] = f"turn {len(messages)}"',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-gates-by-unknown-models",
        "An extension's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        (
            Change(
                '    required_tags = (TAG, "supports_reasoning")\n',
                '    required_tags = (TAG, "supports_reasoning")\n\n'
                "    def is_enabled(self, models: Sequence[ModelInfo]) -> bool:\n"
                '        return bool(models[0]["id"])\n',
            ),
            descriptor(
                '"required_tags": ["provider:reference_openai_chat", "supports_reasoning"]',
                '"required_tags": ["provider:reference_openai_chat", "supports_reasoning"],\n'
                '      "dynamic": ["is_enabled"]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "chat-bears-no-second-index",
        "Fragments of calls go to the call that was last seen, whatever their index says.",
        ("test_wire_shape[4]",),
        (
            Change(
                "        return accumulate_tool_calls(delta, accumulated)",
                '        calls = (delta.get("delta") or {}).get("tool_calls")\n'
                "        for call in calls if isinstance(calls, list) else ():\n"
                '            call.pop("index", None)\n'
                "        return accumulate_tool_calls(delta, accumulated)",
            ),
        ),
    ),
)
