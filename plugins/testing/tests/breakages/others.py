"""Breakages of the reference extension, feature and tool."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, descriptor

__all__ = ["BREAKAGES"]

EXTENSION = "reference_extension"
FEATURE = "reference_feature"
TOOL = "reference_tool"

_CHUNK = """    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: list[dict[str, Any]],
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> Any:
        {}
        return super().process_chunk(
            native_chunk, partial_messages, final_messages, native_messages, state
        )

    def extract_delta("""


def _in_chunks(line: str) -> Change:
    """A line that the extension runs for each chunk before anything else."""
    return Change("    def extract_delta(", _CHUNK.format(line))


BREAKAGES = (
    Breakage(
        EXTENSION,
        "extension-replaces-the-state",
        "The state of a request has only what the extension knows of it.",
        ("test_init_keeps_the_state",),
        (
            Change(
                'return {**state, "seed"',
                'return {"config": state["config"], "request": state["request"], "seed"',
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-replaces-the-payload",
        "The payload has the seed and nothing else.",
        ("test_request_is_decorated",),
        (
            Change(
                'state["request"].setdefault("payload", {})["seed"] = state["seed"]',
                'state["request"]["payload"] = {"seed": state["seed"]}',
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-needs-a-chunk",
        "Without a chunk, as when the provider did the I/O, the extension fails.",
        ("test_no_chunk_is_tolerated",),
        (_in_chunks("native_chunk.get(KEY)"),),
    ),
    Breakage(
        EXTENSION,
        "extension-begins-anew",
        "What others have accumulated is gone with the extension's first chunk.",
        ("test_partial_is_merged",),
        (
            Change(
                "        accumulated[KEY] = delta[KEY]", "        accumulated = {KEY: delta[KEY]}"
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-hides-what-others-show",
        "The partial messages of a chunk are dropped.",
        ("test_partial_messages_are_patched",),
        (_in_chunks("partial_messages = []"),),
    ),
    Breakage(
        EXTENSION,
        "extension-keeps-chunks-in-the-history",
        "Chunks are put into the native history as they come.",
        ("test_history_is_passed_on",),
        (
            _in_chunks(
                "native_messages = [*native_messages, native_chunk][: None if native_chunk else -1]"
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-remembers-requests",
        "The instance keeps the first fingerprint that it ever saw.",
        ("test_requests_do_not_see_each_other",),
        (
            Change(
                "        accumulated[KEY] = delta[KEY]",
                '        seen = self.__dict__.setdefault("seen", [])\n'
                "        seen.append(delta[KEY])\n"
                '        accumulated[KEY] = f"{delta[KEY]} {len(seen)}"',
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-shortens-the-history",
        "The native history is only the last message.",
        ("test_finalize_keeps_the_history",),
        (
            Change(
                "        return final_messages, native_messages, state\n\n    def to_native",
                "        return final_messages, native_messages[-1:], state\n\n    def to_native",
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-writes-natives-anew",
        "Natives lose what the extension does not know.",
        ("test_natives_keep_what_is_not_mapped",),
        (Change("            else native\n", '            else {"role": native["role"]}\n'),),
    ),
    Breakage(
        EXTENSION,
        "extension-writes-metadata-anew",
        "The metadata of messages is only the extension's.",
        ("test_messages_keep_what_is_not_mapped",),
        (Change("            else message\n", '            else {**message, "metadata": {}}\n'),),
    ),
    Breakage(
        EXTENSION,
        "extension-pairs-what-is-no-pair",
        "Messages are paired with natives that are not theirs.",
        ("test_lists_of_other_lengths_are_passed_on",),
        (
            Change(
                "        if len(messages) != len(native_messages):\n            return messages\n",
                "        messages = messages[: len(native_messages)]\n",
            ),
        ),
    ),
    Breakage(
        EXTENSION,
        "extension-gates-by-unknown-models",
        "The extension's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        (
            Change(
                '    required_tags = ("provider:echo",)\n',
                '    required_tags = ("provider:echo",)\n\n'
                "    def is_enabled(self, models: Any) -> bool:\n"
                '        return bool(models[0]["id"])\n',
            ),
            descriptor(
                '"required_tags": ["provider:echo"]',
                '"required_tags": ["provider:echo"], "dynamic": ["is_enabled"]',
            ),
        ),
    ),
    Breakage(
        FEATURE,
        "feature-gates-by-unknown-models",
        "The feature's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        (
            Change(
                '    required_tags = ("provider:echo",)\n',
                '    required_tags = ("provider:echo",)\n\n'
                "    def is_enabled(self, models: list[dict[str, str]]) -> bool:\n"
                '        return bool(models[0]["id"])\n',
            ),
            descriptor(
                '"required_tags": ["provider:echo"]',
                '"required_tags": ["provider:echo"], "dynamic": ["is_enabled"]',
            ),
        ),
    ),
    Breakage(
        FEATURE,
        "feature-takes-no-part",
        "The feature asks for a tag that no provider gives.",
        ("test_takes_part_in_a_request", "test_actions_change_nothing_themselves"),
        (
            Change('    required_tags = ("provider:echo",)', '    required_tags = ("reference",)'),
            descriptor('"required_tags": ["provider:echo"]', '"required_tags": ["reference"]'),
        ),
    ),
    Breakage(
        FEATURE,
        "feature-says-more-than-actions-can",
        "The action's result has a key that means nothing.",
        ("test_actions_change_nothing_themselves",),
        (Change('{"session_metadata": {"title": said[:40]}}', '{"title": said[:40]}'),),
    ),
    Breakage(
        FEATURE,
        "feature-replaces-the-state",
        "The state of a request has only what the feature knows of it.",
        ("test_init_keeps_the_state",),
        (
            Change(
                'return {**state, "asker"',
                'return {"config": state["config"], "request": state["request"], "asker"',
            ),
        ),
    ),
    Breakage(
        FEATURE,
        "feature-replaces-the-headers",
        "The headers of the request are gone.",
        ("test_request_is_decorated",),
        (
            Change(
                '        state["request"].setdefault',
                '        state["request"]["headers"] = {}\n        state["request"].setdefault',
            ),
        ),
    ),
    Breakage(
        FEATURE,
        "feature-swallows-answers",
        "The final message is dropped.",
        ("test_finalize_keeps_the_history", "test_takes_part_in_a_request"),
        (
            Change(
                "        return final_messages, native_messages, state\n",
                "        return [], native_messages, state\n",
            ),
        ),
    ),
    Breakage(
        FEATURE,
        "feature-is-described-as-another",
        "The descriptor has another label than the class.",
        ("test_descriptor_equals_code",),
        (descriptor('"label": "Reference feature"', '"label": "Feature"'),),
    ),
    Breakage(
        FEATURE,
        "feature-starts-a-thread",
        "Importing the package starts a thread.",
        ("test_import_does_no_work",),
        (
            Change(
                '__all__ = ["ReferenceFeature"]\n',
                '__all__ = ["ReferenceFeature"]\n\n'
                "import threading\n\n"
                "threading.Thread(target=threading.active_count).start()\n",
            ),
        ),
    ),
    Breakage(
        TOOL,
        "tool-gates-by-unknown-models",
        "The tool's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        (
            Change(
                "    def init(self",
                "    def is_enabled(self, models: list[dict[str, str]]) -> bool:\n"
                '        return bool(models[0]["id"])\n\n'
                "    def init(self",
            ),
            descriptor('"role": "tool",', '"role": "tool", "dynamic": ["is_enabled"],'),
        ),
    ),
    Breakage(
        TOOL,
        "tool-does-not-say-what-it-is-for",
        "A tool is declared without a description.",
        ("test_schemas",),
        (Change('"description": "Remember a text."', '"description": ""'),),
    ),
    Breakage(
        TOOL,
        "tool-hides-an-effect",
        "Class and descriptor have no effect for a tool on offer.",
        ("test_effects",),
        (
            Change('{"note": "write", "count_notes": "read"}', '{"count_notes": "read"}'),
            descriptor('{"note": "write", "count_notes": "read"}', '{"count_notes": "read"}'),
        ),
    ),
    Breakage(
        TOOL,
        "tool-reads-another-key",
        "The tool looks for its argument under a name that is not in the schema.",
        ("test_samples_run",),
        (Change('payload["text"]', 'payload["note"]'),),
    ),
    Breakage(
        TOOL,
        "tool-differs-when-awaited",
        "With an event loop around it, the tool says something else.",
        ("test_sync_equals_async",),
        (
            Change(
                '        return f"There are',
                "        import threading\n\n"
                "        if threading.current_thread() is not threading.main_thread():\n"
                '            return "Perhaps."\n'
                '        return f"There are',
            ),
        ),
    ),
    Breakage(
        TOOL,
        "tool-takes-anything",
        "Its schema is none, so that nothing is checked before a call runs, nor by the tool.",
        ("test_schemas", "test_invalid_payloads"),
        (
            Change('text = {"type": "string"', 'text = {"type": "words"'),
            Change('payload["text"]', 'payload.get("text")'),
        ),
    ),
    Breakage(
        TOOL,
        "tool-answers-to-any-name",
        "A name that is not on offer is run all the same.",
        ("test_unknown_tools",),
        (Change('        elif tool_name != "count_notes":', "        elif not tool_name:"),),
    ),
    Breakage(
        TOOL,
        "tool-looks-for-keys",
        "The tool finds the provider's key in the frames of its callers.",
        ("test_no_secrets_of_others",),
        (
            Change(
                '        return {"notes": [], "open": True}',
                "        import inspect\n\n"
                "        frames = [each.frame for each in inspect.stack()]\n"
                '        found = [str(frame.f_locals.get("config")) for frame in frames]\n'
                '        return {"notes": [], "open": True, "found": found}',
            ),
        ),
    ),
    Breakage(
        TOOL,
        "tool-goes-on-for-nobody",
        "A call goes on for ever once nobody waits for it.",
        ("test_cancelled_calls_end",),
        (
            Change(
                '        if not state["open"]:',
                '        while context["cancelled"]():\n'
                "            import time\n\n"
                "            time.sleep(0.05)\n"
                '        if not state["open"]:',
            ),
        ),
    ),
    Breakage(
        TOOL,
        "tool-shares-its-state",
        "The state that was closed is given to the next stack.",
        ("test_close",),
        (
            Change(
                '        return {"notes": [], "open": True}',
                '        return self.__dict__.setdefault("kept", {"notes": [], "open": True})',
            ),
        ),
    ),
)
