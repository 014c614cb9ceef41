"""Breakages of the echo package: of its extension and of its feature."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add, change_descriptor

__all__ = ["BREAKAGES"]

_EXTENSION = Suite("echo", "test_echo_conformance", "TestEchoReasoning")
_FEATURE = Suite("echo", "test_echo_conformance", "TestEchoTranscript")

_INIT = """\
def _init(self: object, config: object, state: State) -> State:
    return {{"config": state["config"], "request": state["request"]}}


{plugin}.init = _init
"""
_CHUNK = """\
def _process_chunk(
    self: object,
    native_chunk: Any,
    partial_messages: list[dict[str, Any]],
    final_messages: list[NativeMessage],
    native_messages: list[NativeMessage],
    state: State,
) -> Any:
    {line}
    return _known(self, native_chunk, partial_messages, final_messages, native_messages, state)


_known = EchoReasoning.process_chunk
EchoReasoning.process_chunk = _process_chunk
"""
_IS_ENABLED = """\
def _is_enabled(self: object, models: Any) -> bool:
    return bool(models[0]["id"])


{plugin}.is_enabled = _is_enabled
"""


def _extension(name: str, kind: str, sentence: str, red: str, *changes: Change) -> Breakage:
    return Breakage("echo", _EXTENSION, f"extension-{name}", kind, sentence, (red,), changes)


def _feature(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("echo", _FEATURE, f"feature-{name}", kind, sentence, red, changes)


def _in_chunks(line: str) -> Change:
    """A line that the extension runs for each chunk before anything else."""
    return add("extension.py", _CHUNK.format(line=line))


def _in_finalize(line: str) -> Change:
    """A line that the feature runs for each answer before anything else."""
    return Change(
        "feature.py",
        "        for final in final_messages:\n",
        f"        {line}\n        for final in final_messages:\n",
    )


BREAKAGES = (
    _feature(
        "counts-on-itself",
        "shared instances",
        "What the feature counts stands on its instance before it is in the message.",
        ("test_requests_do_not_mix[threads]",),
        Change(
            "feature.py",
            "            # In place, because",
            '            self.__dict__["counts"] = counts\n'
            '            counts = self.__dict__["counts"]\n'
            "            # In place, because",
        ),
    ),
    _feature(
        "keeps-the-last-answer",
        "shared instances",
        "The last answer stays on the class.",
        ("test_nothing_of_a_request_is_kept",),
        _in_finalize("type(self).latest = final_messages  # type: ignore[attr-defined]"),
    ),
    _feature(
        "works-for-the-first",
        "shared instances",
        "The words of the first answer are told for all.",
        ("test_requests_do_not_mix[taking turns]", "test_requests_do_not_mix[threads]"),
        Change(
            "feature.py",
            "            # In place, because",
            '            counts = self.__dict__.setdefault("counts", counts)\n'
            "            # In place, because",
        ),
    ),
    _feature(
        "misspells-a-hook",
        "packages",
        "A method has nearly the name of a hook, and so is never called.",
        ("test_hooks_are_spelt_right",),
        add(
            "feature.py",
            "def _initialise_request(self: object, state: Any) -> None: ...\n\n\n"
            "EchoTranscript.initialise_request = _initialise_request\n",
        ),
    ),
    _feature(
        "says-a-list",
        "instructions",
        "The instructions of the feature are a list of sentences and no text.",
        ("test_what_it_says_arrives", "test_takes_part_in_a_request"),
        add(
            "feature.py",
            "def _get_instructions(self: object) -> list[str]:\n"
            '    return ["Be brief."]\n\n\n'
            "EchoTranscript.get_instructions = _get_instructions\n",
        ),
    ),
    _extension(
        "replaces-the-state",
        "what others keep",
        "The state of a request has only what the extension knows of it.",
        "test_init_keeps_the_state",
        add("extension.py", _INIT.format(plugin="EchoReasoning")),
    ),
    _extension(
        "replaces-the-payload",
        "what others keep",
        "The payload has the switch for reasoning and nothing else.",
        "test_request_is_decorated",
        Change(
            "extension.py",
            'state["request"].setdefault("payload", {})["reasoning"] = True',
            'state["request"]["payload"] = {"reasoning": True}',
        ),
    ),
    _extension(
        "needs-a-chunk",
        "what others keep",
        "Without a chunk, as when the provider did the I/O, the extension fails.",
        "test_no_chunk_is_tolerated",
        _in_chunks('native_chunk.get("choices")'),
    ),
    _extension(
        "begins-anew",
        "what others keep",
        "What others have accumulated is gone with the extension's first chunk.",
        "test_partial_is_merged",
        Change(
            "extension.py",
            "        return accumulate_reasoning(delta, accumulated)\n",
            "        return accumulate_reasoning(delta, {})\n",
        ),
    ),
    _extension(
        "hides-what-others-show",
        "what others keep",
        "The partial messages of a chunk are dropped.",
        "test_partial_messages_are_patched",
        _in_chunks("partial_messages = []"),
    ),
    _extension(
        "keeps-chunks-in-the-history",
        "what others keep",
        "Chunks are put into the native history as they come.",
        "test_history_is_passed_on",
        _in_chunks(
            "native_messages = [*native_messages, *([native_chunk] if native_chunk else [])]"
        ),
    ),
    _extension(
        "remembers-requests",
        "shared instances",
        "The instance counts the chunks that it ever saw.",
        "test_requests_do_not_see_each_other",
        Change(
            "extension.py",
            "        return accumulate_reasoning(delta, accumulated)\n",
            '        seen = self.__dict__.setdefault("seen", [])\n'
            "        seen.append(1)\n"
            '        accumulated["seen"] = len(seen)\n'
            "        return accumulate_reasoning(delta, accumulated)\n",
        ),
    ),
    _extension(
        "shortens-the-history",
        "what others keep",
        "The native history is only the last message.",
        "test_finalize_keeps_the_history",
        add(
            "extension.py",
            "def _finalize(\n"
            "    self: object, final_messages: Any, native_messages: Any, state: State\n"
            ") -> Any:\n"
            "    return final_messages, native_messages[-1:], state\n\n\n"
            "EchoReasoning.finalize = _finalize\n",
        ),
    ),
    _extension(
        "writes-natives-anew",
        "what others keep",
        "Natives lose what the extension does not know.",
        "test_natives_keep_what_is_not_mapped",
        Change(
            "extension.py", "        return native\n", '        return {"role": native["role"]}\n'
        ),
    ),
    _extension(
        "writes-metadata-anew",
        "what others keep",
        "The metadata of messages is only the extension's.",
        "test_messages_keep_what_is_not_mapped",
        Change(
            "extension.py",
            "        return message\n    metadata",
            '        return cast(CoreMessage, {**message, "metadata": {}})\n    metadata',
        ),
    ),
    _extension(
        "pairs-what-is-no-pair",
        "what others keep",
        "Messages are paired with natives that are not theirs.",
        "test_lists_of_other_lengths_are_passed_on",
        Change(
            "extension.py",
            "        if len(native_messages) != len(messages):\n            return messages\n",
            "        messages = messages[: len(native_messages)]\n"
            "        native_messages = native_messages[: len(messages)]\n",
        ),
    ),
    _extension(
        "gates-by-unknown-models",
        "gating",
        "The extension's is_enabled fails when the models are not known.",
        "test_gating_truth_table",
        add("extension.py", _IS_ENABLED.format(plugin="EchoReasoning")),
        change_descriptor(
            '"required_tags": ["provider:echo", "supports_reasoning"],',
            '"required_tags": ["provider:echo", "supports_reasoning"], "dynamic": ["is_enabled"],',
        ),
    ),
    _feature(
        "gates-by-unknown-models",
        "gating",
        "The feature's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        add("feature.py", _IS_ENABLED.format(plugin="EchoTranscript")),
        change_descriptor(
            '"default_enabled": false', '"default_enabled": false, "dynamic": ["is_enabled"]'
        ),
    ),
    _feature(
        "takes-no-part",
        "gating",
        "The feature asks for a tag that no provider gives.",
        ("test_takes_part_in_a_request", "test_actions_change_nothing_themselves"),
        Change("feature.py", 'required_tags = ("provider:echo",)', 'required_tags = ("nobody",)'),
        change_descriptor(
            '"required_tags": ["provider:echo"],\n      "default_enabled"',
            '"required_tags": ["nobody"],\n      "default_enabled"',
        ),
    ),
    _feature(
        "says-more-than-actions-can",
        "what others keep",
        "The action's result has a key that means nothing.",
        ("test_actions_change_nothing_themselves",),
        Change("feature.py", 'return {"session_metadata": patch}', 'return {"title": patch}'),
    ),
    _feature(
        "replaces-the-state",
        "what others keep",
        "The state of a request has only what the feature knows of it.",
        ("test_init_keeps_the_state",),
        add("feature.py", _INIT.format(plugin="EchoTranscript")),
    ),
    _feature(
        "replaces-the-headers",
        "what others keep",
        "The headers of the request are gone.",
        ("test_request_is_decorated",),
        add(
            "feature.py",
            "def _initialize_request(\n"
            "    self: object, native_messages: list[NativeMessage], state: State\n"
            ") -> tuple[list[NativeMessage], State]:\n"
            '    state["request"]["headers"] = {}\n'
            "    return native_messages, state\n\n\n"
            "EchoTranscript.initialize_request = _initialize_request\n",
        ),
    ),
    _feature(
        "swallows-answers",
        "what others keep",
        "The final message is dropped.",
        ("test_finalize_keeps_the_history", "test_takes_part_in_a_request"),
        Change(
            "feature.py",
            "        return final_messages, native_messages, state\n",
            "        return [], native_messages, state\n",
        ),
    ),
    _feature(
        "is-described-as-another",
        "packages",
        "The descriptor has another label than the class.",
        ("test_descriptor_equals_code",),
        change_descriptor('"label": "Echo transcript"', '"label": "Feature"'),
    ),
    _feature(
        "starts-a-thread",
        "packages",
        "Importing the package starts a thread.",
        ("test_import_does_no_work",),
        add(
            "feature.py",
            "import threading\n\nthreading.Thread(target=threading.active_count).start()\n",
        ),
    ),
    _feature(
        "keeps-a-diary",
        "persistence",
        "Every answer is written into a file.",
        ("test_nothing_is_written_elsewhere",),
        _in_finalize('open("diary.txt", "a").write(str(final_messages))'),
    ),
    _feature(
        "leaves-a-variable",
        "persistence",
        "The last answer is left in the environment.",
        ("test_nothing_is_written_elsewhere",),
        _in_finalize('__import__("os").environ["LAST_ANSWER"] = str(final_messages)'),
    ),
    _feature(
        "starts-a-program",
        "persistence",
        "Every answer starts a program.",
        ("test_nothing_is_written_elsewhere",),
        _in_finalize('__import__("os").system("true")'),
    ),
    _feature(
        "exports-by-itself",
        "persistence",
        "The action writes a file beside its result.",
        ("test_nothing_is_written_elsewhere",),
        Change(
            "feature.py",
            '        return {"session_metadata": patch}\n',
            '        open("transcript.txt", "w").write("\\n".join(lines))\n'
            '        return {"session_metadata": patch}\n',
        ),
    ),
    _feature(
        "changes-the-session-itself",
        "persistence",
        "The action writes into the session that it was given.",
        ("test_actions_change_nothing_themselves",),
        Change(
            "feature.py",
            '        return {"session_metadata": patch}\n',
            '        session.messages[0]["content"] = "read"\n'
            '        return {"session_metadata": patch}\n',
        ),
    ),
    _extension(
        "maps-nothing-back",
        "claims",
        "The extension has lost a hook, and with it what was asked of that.",
        "test_claims",
        add("extension.py", "del EchoReasoning.from_native_messages\n"),
    ),
    _extension(
        "reads-nothing",
        "answers",
        "Whatever comes, the extension makes nothing of it.",
        "test_something_is_made_of_the_sample",
        _in_chunks("native_chunk = None"),
    ),
    _feature(
        "has-lost-a-hook",
        "claims",
        "The feature has lost a hook, and with it what was asked of that.",
        ("test_claims",),
        add("feature.py", "del EchoTranscript.finalize\n"),
    ),
)
