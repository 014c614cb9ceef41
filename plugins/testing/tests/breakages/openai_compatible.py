"""Breakages of the providers of chat completions."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add, change_descriptor

__all__ = ["BREAKAGES"]

_SUITE = Suite("openai-compatible", "test_openai_compatible_conformance", "TestCustom")
#: A server that shows its reasoning.
_REASONING = Suite("openai-compatible", _SUITE.file, "TestReasoningServer")

#: A server that asks for it back.
_DEMANDING = Suite("openai-compatible", _SUITE.file, "TestServerThatDemandsReasoning")

_CALLS = "[registry.sanitize_tool_call(call) for call in calls]\n"


_CHUNK = """\
def _process_chunk(
    self: object,
    native_chunk: Any,
    native_messages: list[NativeMessage],
    state: State,
    event: str | None = None,
) -> Any:
    {line}
    return _known(self, native_chunk, native_messages, state, event)


_known = ChatCompletionsProvider.process_chunk
ChatCompletionsProvider.process_chunk = _process_chunk
"""


def _in_chunks(line: str) -> Change:
    """A line that the provider runs for each chunk before anything else."""
    return add("chat.py", _CHUNK.format(line=line))


_END = """\
def _stream_complete(self: Any, state: State) -> bool:
    return {answer}


_known = ChatCompletionsProvider.stream_complete
ChatCompletionsProvider.stream_complete = _stream_complete
"""


def _at_the_end(answer: str) -> Change:
    """What the provider says when it is asked whether a stream is complete."""
    return add("chat.py", _END.format(answer=answer))


def _breakage(
    name: str,
    kind: str,
    sentence: str,
    red: tuple[str, ...],
    *changes: Change,
    suite: Suite = _SUITE,
) -> Breakage:
    return Breakage("openai-compatible", suite, name, kind, sentence, red, changes)


BREAKAGES = (
    _breakage(
        "chat-forgets-what-a-failure-cost",
        "usage",
        "The usage of an answer that fails is told nowhere.",
        ("test_wire_shape[48-failed-openai.chat]",),
        Change(
            "chat.py", "reported = super().usage_so_far(state)\n", "reported: Usage | None = None\n"
        ),
    ),
    _breakage(
        "chat-is-deaf-to-whole-messages",
        "answers",
        "A whole message beside an empty delta is not read.",
        ("test_wire_shape[45-message]",),
        _in_chunks(
            "native_chunk = {**native_chunk, 'choices': [{**each, 'message': None} if each and "
            "'delta' in each else each for each in native_chunk.get('choices') or ()]} "
            "if isinstance(native_chunk, dict) else native_chunk"
        ),
    ),
    _breakage(
        "chat-merges-parallel-calls",
        "calls",
        "Several calls of one turn become one with the arguments of all.",
        ("test_parallel_calls",),
        Change(
            "chat.py",
            _CALLS,
            "[registry.sanitize_tool_call(call) for call in calls[:1]]\n"
            "            for call in calls[1:]:\n"
            '                function = final["tool_calls"][0]["function"]\n'
            '                function["arguments"] += call["function"]["arguments"]\n',
        ),
    ),
    _breakage(
        "chat-keeps-malformed-calls",
        "calls",
        "Arguments that are no JSON stay in the natives, which cannot be sent again.",
        ("test_malformed_calls",),
        Change("chat.py", _CALLS, "[*calls]\n"),
    ),
    _breakage(
        "chat-rewrites-arguments",
        "exact bytes",
        "Arguments are parsed and written again, so that prompt caches miss.",
        (
            "test_arguments_are_replayed_exactly",
            "test_recording[weather-asked]",
            "test_recording[named-as-installed]",
        ),
        Change(
            "chat.py",
            _CALLS,
            "[_rewrite(registry.sanitize_tool_call(call)) for call in calls]\n",
        ),
        Change(
            "chat.py",
            "def _answers_tools(",
            "def _rewrite(call: dict[str, Any]) -> dict[str, Any]:\n"
            "    import json\n\n"
            '    function = call["function"]\n'
            '    written = json.dumps(json.loads(function["arguments"]))\n'
            '    return {**call, "function": {**function, "arguments": written}}\n\n\n'
            "def _answers_tools(",
        ),
    ),
    _breakage(
        "chat-keeps-wire-names",
        "calls",
        "Calls are stored under the name on the wire, which no tool has.",
        ("test_tool_names_are_made_legal",),
        Change("messages.py", "[_decoded(call, names) for call in calls]", "[*calls]"),
    ),
    _breakage(
        "chat-keeps-foreign-ids",
        "calls",
        "Ids of other providers' calls are sent as they are.",
        ("test_provider_switch",),
        Change("outgoing.py", "        self._put_new_ids(native)\n", ""),
    ),
    _breakage(
        "chat-forgets-reasoning",
        "reasoning",
        "Reasoning is shown as it comes, but not kept with the message.",
        ("test_reasoning_is_shown",),
        add(
            "reasoning.py",
            "def _from_native_messages(self: Any, native_messages: Any, messages: Any) -> Any:\n"
            "    return messages\n\n\n"
            "ChatThoughts.from_native_messages = _from_native_messages\n",
        ),
        suite=_REASONING,
    ),
    _breakage(
        "chat-runs-half-calls",
        "broken streams",
        "A stream that ends inside a call counts as complete.",
        ("test_truncated_calls",),
        _at_the_end('_known(self, state) or "tool_calls" in (state.get("partial") or {})'),
    ),
    _breakage(
        "chat-copies-growing-arguments",
        "cost",
        "The arguments so far are copied at every fragment, which costs their square.",
        ("test_linear_cost[tools]",),
        _in_chunks(
            'if "tool_calls" in str(native_chunk):\n'
            '        state["written"] = state.get("written", "") + str(native_chunk)\n'
            '        state["written"].count("{")'
        ),
    ),
    _breakage(
        "chat-overlooks-errors",
        "broken streams",
        "An error in the middle of a stream is taken for a chunk.",
        ("test_mid_stream_failure",),
        _in_chunks('native_chunk = {**native_chunk, "error": None}'),
    ),
    _breakage(
        "chat-forgets-refusals",
        "answers",
        "A model that refuses seems to have said nothing.",
        ("test_recording[refusal]",),
        Change("messages.py", 'metadata["refusal"] = refusal', 'metadata["declined"] = True'),
    ),
    _breakage(
        "chat-counts-output-twice",
        "usage",
        "The tokens of an answer are told as twice as many.",
        ("test_usage_is_counted_once", "test_recording"),
        Change("usage.py", 'usage["output"] = output\n', 'usage["output"] = 2 * output\n'),
    ),
    _breakage(
        "chat-forgets-who-answered",
        "answers",
        "Neither the id of an answer nor the model that gave it is kept.",
        ("test_recording",),
        Change("messages.py", '"finish_reason", "response_id", "model", ', '"finish_reason", '),
    ),
    _breakage(
        "chat-forgets-citations",
        "answers",
        "What an answer refers to is not in its metadata.",
        ("test_recording[cited]",),
        Change("messages.py", '_SHOWN = ("annotations", "citations")', "_SHOWN = ()"),
    ),
    _breakage(
        "chat-thinks-in-silence",
        "reasoning",
        "Reasoning is kept with the message, but not shown as it comes.",
        ("test_reasoning_is_shown", "test_recording[weather-asked]"),
        Change(
            "reasoning.py",
            'show_patch(partial_messages, {"reasoning": state.pop("new_reasoning")})',
            'state.pop("new_reasoning")',
        ),
        suite=_REASONING,
    ),
    _breakage(
        "chat-keeps-asked-reasoning-back",
        "reasoning",
        "A server that asks for the reasoning that led to calls does not get it.",
        (
            "test_reasoning_round_trip",
            "test_recording[weather-asked]",
            "test_changed_instructions_leave_the_history",
        ),
        Change(
            "chat.py",
            'with_reasoning="reasoning_content_required" in state.get("quirks", ())',
            "with_reasoning=False",
        ),
        suite=_DEMANDING,
    ),
    _breakage(
        "chat-logs-the-key",
        "secrets",
        "The key is written to the log with the headers.",
        ("test_secrets_stay_secret",),
        Change(
            "chat.py",
            '        request["headers"] = self.headers_for(state["config"])\n',
            '        request["headers"] = self.headers_for(state["config"])\n'
            "        import logging\n\n"
            '        logging.getLogger(self.name).debug("sending %s", request["headers"])\n',
        ),
    ),
    _breakage(
        "chat-changes-the-prefix",
        "exact bytes",
        "Each request says how long it is, so that none begins as the one before.",
        ("test_history_is_sent_again_as_it_was", "test_speaking_keeps_the_beginning"),
        Change(
            "requests.py",
            "    body.update(payload)\n",
            '    body.update(payload)\n    body["user"] = f"turn {len(body[\'messages\'])}"\n',
        ),
    ),
    _breakage(
        "chat-sends-the-first-paragraph",
        "instructions",
        "Of a system prompt only the first paragraph is sent.",
        ("test_what_features_say_is_sent",),
        Change(
            "messages.py",
            '    text = message.get("content") or ""\n    parts',
            '    text = message.get("content") or ""\n'
            '    if message["role"] == "system":\n'
            '        text = text.partition("\\n\\n")[0]\n'
            "    parts",
        ),
    ),
    _breakage(
        "chat-expects-a-prompt-with-others",
        "instructions",
        "A system message that is converted alone is taken for nothing.",
        (
            "test_what_features_say_is_sent",
            "test_what_features_say_needs_no_system_prompt",
            "test_changed_instructions_leave_the_history",
        ),
        Change(
            "messages.py",
            "    for message in messages:\n        role =",
            "    messages = list(messages)\n"
            '    if [message["role"] for message in messages] == ["system"] and not natives:\n'
            "        messages = []\n"
            "    for message in messages:\n        role =",
        ),
    ),
    _breakage(
        "chat-gates-by-unknown-models",
        "gating",
        "An extension's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        Change(
            "tools.py",
            '    required_tags = ("wire:openai-chat", "supports_tools")\n',
            '    required_tags = ("wire:openai-chat", "supports_tools")\n\n'
            "    def is_enabled(self, models: Any) -> bool:\n"
            '        return bool(models[0]["id"])\n',
        ),
        change_descriptor(
            '"required_tags": ["wire:openai-chat", "supports_tools"],',
            '"required_tags": ["wire:openai-chat", "supports_tools"], "dynamic": ["is_enabled"],',
        ),
    ),
    _breakage(
        "chat-bears-no-second-index",
        "calls",
        "Fragments of calls go to the call that was last seen, whatever their index says.",
        ("test_wire_shape[4]",),
        _in_chunks(
            'for choice in native_chunk.get("choices") or ():\n'
            '        calls = ((choice or {}).get("delta") or {}).get("tool_calls")\n'
            "        for call in calls if isinstance(calls, list) else ():\n"
            '            call.pop("index", None)'
        ),
    ),
    _breakage(
        "chat-loses-late-counts",
        "usage",
        "Usage in a chunk without choices is not counted.",
        ("test_usage_is_counted_once", "test_streamed_equals_whole"),
        _in_chunks(
            'if not native_chunk.get("choices"):\n'
            '        native_chunk = {**native_chunk, "usage": None}'
        ),
    ),
    _breakage(
        "chat-takes-any-end",
        "broken streams",
        "A stream that was cut counts as complete.",
        ("test_truncated_text", "test_truncated_calls"),
        _at_the_end("True"),
    ),
    _breakage(
        "chat-gives-ids-twice",
        "calls",
        "The id of a call may be that of an earlier one.",
        ("test_openai_compatible_calls.py::test_a_made_up_id_is_new_in_the_conversation",),
        Change(
            "chat.py",
            "taken=taken_call_ids(native_messages, state) if has_calls else (),",
            "taken=(),",
        ),
    ),
    _breakage(
        "chat-thinks-twice",
        "reasoning",
        "Reasoning that comes under two names is shown twice.",
        ("test_wire_shape[36-both]",),
        _in_chunks(
            'for choice in native_chunk.get("choices") or ():\n'
            '        delta = (choice or {}).get("delta") or {}\n'
            '        if delta.get("reasoning"):\n'
            '            delta["reasoning"] += delta.get("reasoning_content") or ""'
        ),
    ),
    _breakage(
        "chat-leaves-calls-unanswered",
        "results",
        "A call that was never run has no result.",
        (
            "test_openai_compatible_messages.py::"
            "test_a_call_that_was_never_answered_gets_a_result_that_says_so",
        ),
        Change("outgoing.py", "            self.messages += self.missing_results()\n", ""),
    ),
)
