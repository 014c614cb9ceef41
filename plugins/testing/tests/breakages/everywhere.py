"""The same mistakes in several providers: what one author gets wrong, others do too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakages.breakage import Breakage, Change, Suite, add, change_descriptor
from breakages.wrapping import around

__all__ = ["BREAKAGES"]


@dataclass(frozen=True, slots=True)
class _Subject:
    """A provider: where its class is, and the suite that judges it."""

    distribution: str
    file: str
    owner: str
    suite: Suite

    def around(self, hook: str, lines: str) -> Change:
        return around(self.file, self.owner, hook, lines)


def _subject(distribution: str, owner: str, suite: str, file: str = "provider.py") -> _Subject:
    name = distribution.replace("-", "_")
    judge = Suite(distribution, f"test_{name}_conformance", suite)
    return _Subject(distribution, file, owner, judge)


_CHAT = ("openai-compatible", "ChatCompletionsProvider")
_SUBJECTS = {
    "anthropic": _subject("anthropic", "AnthropicProvider", "TestAnthropic"),
    "cohere": _subject("cohere", "CohereProvider", "TestCohere"),
    "google": _subject("google", "GoogleProvider", "TestGoogleThree"),
    "ollama": _subject("ollama", "OllamaProvider", "TestOllama"),
    "responses": _subject("openai", "OpenAIProvider", "TestResponses"),
    "openai-chat": _subject("openai", "OpenAIProvider", "TestChat"),
    "chat": _subject(*_CHAT, "TestCustom", "chat.py"),
    "vllm": _subject(*_CHAT, "TestReasoningServer", "chat.py"),
    "openrouter": _subject("openrouter", "OpenRouterProvider", "TestOpenRouter"),
    "echo": _subject("echo", "EchoProvider", "TestEcho"),
}


#: Those whose formats send calls each in its own way.
_CALLING = ("anthropic", "cohere", "google", "ollama", "responses", "chat")


def _make(
    name: str, kind: str, sentence: str, red: tuple[str, ...], hook: str, lines: str, *subjects: str
) -> Iterator[Breakage]:
    """The breakage of each of these subjects."""
    for each in subjects:
        subject = _SUBJECTS[each]
        yield Breakage(
            subject.distribution,
            subject.suite,
            f"{each}-{name}",
            kind,
            sentence,
            red,
            (subject.around(hook, lines),),
        )


def _request(lines: str) -> str:
    """Lines about the request that is about to be sent."""
    return f'spec = ask()\nbody, config = spec["body"], state["config"]\n{lines}\nreturn spec'


def _told(lines: str) -> str:
    """Lines about the core messages that are made of native ones."""
    return f"""\
messages = ask()
for message in messages:
    metadata = message["metadata"]
    {lines}
return messages"""


def _said(lines: str) -> str:
    """Lines about the core messages that are about to become native ones."""
    copied = "import copy\n\nmessages = copy.deepcopy(list(messages))"
    return f"{copied}\n{lines}\nreturn ask(messages=messages)"


def _shown(lines: str) -> str:
    """Lines about what is shown of a chunk."""
    made = "partials, finals, natives, state"
    return f"{made} = ask()\n{lines}\nreturn {made}"


_LIMITS = (
    "'max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens', 'num_predict'"
)
_SCHEMAS = (
    "'response_format', 'format', 'text', 'output_config', 'responseSchema', 'responseMimeType'"
)
_EFFORTS = "'think', 'thinking', 'reasoning', 'reasoning_effort', 'thinkingConfig', 'output_config'"

_KNOBS = (
    *_make(
        "forgets-the-temperature",
        "knobs",
        "The temperature that was asked for is not sent.",
        ("test_knobs_move_the_request",),
        "build_request",
        _request("_drop(body, 'temperature')"),
        *("anthropic", "cohere", "google", "ollama", "chat", "openrouter"),
    ),
    *_make(
        "never-stops",
        "knobs",
        "The texts at which the model should stop are not sent.",
        ("test_knobs_move_the_request",),
        "build_request",
        _request("_drop(body, 'stop', 'stop_sequences', 'stopSequences')"),
        *("anthropic", "cohere", "google", "openai-chat"),
    ),
    *_make(
        "has-no-limit",
        "knobs",
        "The longest answer that was asked for is not sent.",
        ("test_knobs_move_the_request",),
        "build_request",
        _request(f"_drop(body, {_LIMITS})"),
        *("cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "sows-nothing",
        "knobs",
        "The seed is not sent.",
        ("test_knobs_move_the_request",),
        "build_request",
        _request("_drop(body, 'seed')"),
        *("google", "ollama", "openai-chat"),
    ),
    *_make(
        "rounds-the-temperature",
        "knobs",
        "The temperature is sent as a whole number.",
        ("test_knobs_move_the_request",),
        "build_request",
        _request(
            "for holder in (body, body.get('generationConfig'), body.get('options')):\n"
            "    if isinstance(holder, dict) and 'temperature' in holder:\n"
            "        holder['temperature'] = int(holder['temperature'])"
        ),
        *("google", "chat"),
    ),
    *_make(
        "lets-the-model-choose",
        "knobs",
        "Whichever tool was chosen, the model may choose for itself.",
        ("test_tool_choice",),
        "build_request",
        _request("_drop(body, 'tool_choice', 'toolConfig')"),
        *("anthropic", "cohere", "google", "responses", "chat", "openrouter"),
    ),
    *_make(
        "forbids-nothing",
        "knobs",
        "Where no tool may be called, the model is told to choose.",
        ("test_tool_choice",),
        "build_request",
        _request(
            "if body.get('tool_choice') in ('none', {'type': 'none'}):\n"
            "    said = body['tool_choice'] == 'none'\n"
            "    body['tool_choice'] = 'auto' if said else {'type': 'auto'}\n"
            "calling = (body.get('toolConfig') or {}).get('functionCallingConfig') or {}\n"
            "if calling.get('mode') == 'NONE':\n"
            "    calling['mode'] = 'AUTO'"
        ),
        *("anthropic", "google", "responses", "openai-chat"),
    ),
    *_make(
        "keeps-to-no-schema",
        "knobs",
        "The schema of the answer is not sent.",
        ("test_knobs_move_the_request",),
        "build_request",
        _request(f"_drop(body, {_SCHEMAS})"),
        *("anthropic", "google", "ollama", "responses", "openai-chat"),
    ),
    *_make(
        "lets-the-schema-win",
        "knobs",
        "A schema of the answer takes the place of the other settings.",
        ("test_knobs_go_together",),
        "build_request",
        _request(
            f"if any(each in holder for each in ({_SCHEMAS})\n"
            "       for holder in (body, body.get('generationConfig') or {})):\n"
            "    _drop(body, 'temperature', 'stop', 'stop_sequences', 'stopSequences')"
        ),
        *("anthropic", "google", "ollama", "openai-chat"),
    ),
    *_make(
        "thinks-as-it-likes",
        "knobs",
        "However hard the model should think, the request is the same.",
        ("test_effort_moves_the_request",),
        "build_request",
        _request(f"_drop(body, {_EFFORTS})"),
        *("anthropic", "cohere", "google", "ollama", "responses", "vllm", "openrouter"),
    ),
    *_make(
        "asks-its-favourite-model",
        "knobs",
        "Whatever model is chosen, another is asked for.",
        ("test_model_can_be_chosen",),
        "build_request",
        _request("body['model'] = 'favourite'"),
        *("anthropic", "cohere", "ollama", "responses", "chat"),
    ),
    *_make(
        "ignores-additions",
        "knobs",
        "What the setting extra_body has is not sent.",
        ("test_additions_are_sent",),
        "build_request",
        _request("_drop(body, *(config.get('extra_body') or {}))"),
        *("anthropic", "google", "ollama", "chat", "responses"),
    ),
    *_make(
        "sets-a-temperature",
        "knobs",
        "A temperature that nobody asked for is sent.",
        ("test_knobs_nobody_set_are_not_sent",),
        "build_request",
        _request(
            "holder = body.setdefault('options', {}) if 'messages' in body and 'stream' in body "
            "and 'options' in body else body\n"
            "holder.setdefault('temperature', 0.7)"
        ),
        *("anthropic", "cohere", "chat"),
    ),
)

_MORE_KNOBS = (
    *_make(
        "thinks-or-chooses",
        "knobs",
        "While the model reasons, the choice of a tool is not sent.",
        ("test_tool_choice_with_reasoning",),
        "build_request",
        _request(
            f"if any(key in body or key in (body.get('generationConfig') or {{}})\n"
            f"       for key in ({_EFFORTS})):\n"
            "    _drop(body, 'tool_choice', 'toolConfig')"
        ),
        *("google", "responses", "vllm", "openrouter"),
    ),
)

_CLAIMS = (
    *_make(
        "says-nothing-of-tools",
        "claims",
        "The tags do not say that the model can call tools.",
        ("test_claims",),
        "get_tags",
        "return [tag for tag in ask() if tag != 'supports_tools']",
        *("anthropic", "google", "ollama", "openrouter", "responses", "echo"),
    ),
    *_make(
        "says-nothing-of-reasoning",
        "claims",
        "The tags do not say that the model can reason.",
        ("test_claims",),
        "get_tags",
        "return [tag for tag in ask() if tag != 'supports_reasoning']",
        *("anthropic", "cohere", "google", "ollama", "openrouter"),
    ),
    *_make(
        "says-nothing-of-pictures",
        "claims",
        "The tags do not say that the model takes pictures.",
        ("test_claims",),
        "get_tags",
        "return [tag for tag in ask() if tag != 'supports_images']",
        *("responses", "openrouter"),
    ),
)

_TEXTS = (
    *_make(
        "trims-what-is-said",
        "exact text",
        "White space at the ends of messages is not sent.",
        ("test_edges_are_sent",),
        "build_request",
        _request("spec['body'] = _edit_texts(body, str.strip)"),
        *("anthropic", "cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "escapes-what-is-said",
        "exact text",
        "Markup in messages is escaped.",
        ("test_texts_are_sent_exactly",),
        "build_request",
        _request("import html\n\nspec['body'] = _edit_texts(body, html.escape)"),
        *("google", "chat"),
    ),
    *_make(
        "composes-what-is-said",
        "exact text",
        "Combining marks in messages are made one character with their letter.",
        ("test_texts_are_sent_exactly",),
        "build_request",
        _request(
            "import unicodedata\n\n"
            "spec['body'] = _edit_texts(body, lambda text: unicodedata.normalize('NFC', text))"
        ),
        *("cohere", "ollama"),
    ),
    *_make(
        "trims-answers",
        "exact text",
        "White space at the ends of answers is not kept.",
        ("test_answers_are_exact",),
        "from_native_messages",
        _told("message['content'] = message['content'].strip()"),
        *("anthropic", "cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "trims-thoughts",
        "exact text",
        "White space at the ends of thoughts is not kept.",
        ("test_reasoning_is_exact",),
        "from_native_messages",
        _told(
            "if metadata.get('reasoning'): metadata['reasoning'] = metadata['reasoning'].strip()"
        ),
        *("cohere", "google", "ollama"),
    ),
    *_make(
        "tidies-up-results",
        "exact text",
        "Line ends and tabs in results are made single blanks.",
        ("test_arguments_and_results_are_exact",),
        "to_native_messages",
        _said(
            "for message in messages:\n"
            "    if message['role'] == 'tool':\n"
            "        message['content'] = ' '.join(message['content'].split())\n"
            "        message.pop('toolResult', None)"
        ),
        *("anthropic", "google", "ollama", "chat"),
    ),
    *_make(
        "joins-parts-with-lines",
        "exact text",
        "Texts that come in several parts get line ends between them.",
        ("test_parts_are_not_joined_with_anything",),
        "to_native_messages",
        _said(
            "for message in messages:\n"
            "    for part in (message.get('multipartContent') or [])[:-1]:\n"
            "        if part.get('type') == 'text':\n"
            "            part['content']['text'] += '\\n'"
        ),
        *("anthropic", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "unescapes-answers",
        "exact text",
        "Entities in answers are taken for markup.",
        ("test_answers_are_exact",),
        "from_native_messages",
        _told("import html; message['content'] = html.unescape(message['content'])"),
        *("anthropic", "ollama"),
    ),
    *_make(
        "begins-without-a-space",
        "display",
        "White space at the beginning of what is shown is dropped.",
        ("test_answers_are_exact",),
        "process_chunk",
        _shown(
            "for partial in partials:\n"
            "    if not state.get('begun_to_show'):\n"
            "        partial['content'] = partial.get('content', '').lstrip()\n"
            "        state['begun_to_show'] = bool(partial['content'])"
        ),
        *("anthropic", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "shows-everything-twice",
        "display",
        "Every fragment is shown twice.",
        ("test_streamed_text",),
        "process_chunk",
        _shown("partials = [*partials, *partials]"),
        *("cohere", "ollama", "responses"),
    ),
    *_make(
        "shows-nothing",
        "display",
        "Nothing is shown before the answer is complete.",
        ("test_streamed_text",),
        "process_chunk",
        _shown("partials = []"),
        *("anthropic", "google", "echo"),
    ),
)

_HISTORY = (
    *_make(
        "sends-names-as-they-are",
        "calls",
        "Calls in a history that was made anew have the tools' own names.",
        ("test_tool_names_are_legal_in_history",),
        "to_native_messages",
        """\
natives = ask()
given = {"messages": natives}
_edit_calls(given, lambda calls, turn: [call.update(name="kit:weather.now") for call in calls])
return natives""",
        *("anthropic", "cohere", "google", "ollama", "chat"),
    ),
    *_make(
        "leaves-its-notes",
        "answers",
        "How many chunks were seen stays in the metadata of the message.",
        ("test_nothing_is_left_over_in_messages",),
        "from_native_messages",
        _told('metadata["seen"] = len(message["content"])'),
        *("anthropic", "cohere", "google", "ollama"),
    ),
)

_MESSAGES = (
    *_make(
        "has-one-instruction",
        "instructions",
        "Of several system messages only the first is sent.",
        ("test_messages_keep_their_order",),
        "to_native_messages",
        _said(
            "systems = [message for message in messages if message['role'] == 'system']\n"
            "for message in systems[1:]:\n"
            "    message['content'] = ''"
        ),
        *("anthropic", "cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "puts-instructions-first",
        "instructions",
        "A system message in the middle of the conversation is put before it.",
        ("test_messages_keep_their_order",),
        "build_request",
        _request(
            "for key in ('messages', 'input'):\n"
            "    if key in body:\n"
            "        body[key] = sorted(body[key], key=lambda each: each.get('role') != 'system')"
        ),
        *("ollama", "responses", "chat"),
    ),
    *_make(
        "drops-pictures",
        "media",
        "Pictures are left out without a word.",
        ("test_media_are_sent_whole",),
        "build_request",
        _request("spec['body'] = _without_pictures(body)"),
        *("anthropic", "google", "ollama", "responses", "openai-chat", "openrouter"),
    ),
    *_make(
        "turns-pictures-round",
        "media",
        "The parts of a message are sent in the other order.",
        ("test_pictures_keep_their_places",),
        "to_native_messages",
        _said(
            "for message in messages:\n"
            "    if message.get('multipartContent'):\n"
            "        message['multipartContent'] = message['multipartContent'][::-1]"
        ),
        *("anthropic", "google", "responses"),
    ),
    *_make(
        "sends-any-file",
        "media",
        "Files are read from anywhere, whatever the setting says.",
        ("test_files_stay_where_they_may_not_be_sent",),
        "build_request",
        "state['config'] = {**state['config'], 'attachments_root': '/'}\nreturn ask()",
        *("anthropic", "google", "openai-chat"),
    ),
    *_make(
        "mixes-up-results",
        "results",
        "The results of two calls of one turn change places.",
        ("test_results_stand_beside_their_calls",),
        "to_native_messages",
        _said(
            "for one, two in zip(messages, messages[1:]):\n"
            "    if one['role'] == two['role'] == 'tool':\n"
            "        for key in ('content', 'toolResult'):\n"
            "            one[key], two[key] = two.get(key), one.get(key)\n"
            "        break"
        ),
        *("anthropic", "cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "sends-calls-round",
        "calls",
        "The calls of a turn go back in the other order.",
        ("test_results_stand_beside_their_calls",),
        "build_request",
        _request(
            "def turn_round(calls, parts):\n"
            "    if len(parts) > 1:\n"
            "        first, last = dict(parts[0]), dict(parts[-1])\n"
            "        [part.clear() for part in (parts[0], parts[-1])]\n"
            "        parts[0].update(last)\n"
            "        parts[-1].update(first)\n"
            "_edit_calls(body, turn_round)"
        ),
        *_CALLING,
    ),
    *_make(
        "sends-others-arguments",
        "calls",
        "Two calls of a turn go back with each other's arguments.",
        ("test_results_stand_beside_their_calls",),
        "build_request",
        _request(
            "def mix_up(calls, parts):\n"
            "    if len(calls) > 1:\n"
            "        _swap(calls[0], calls[1], 'arguments', 'args', 'input')\n"
            "_edit_calls(body, mix_up)"
        ),
        *_CALLING,
    ),
    *_make(
        "sends-others-names",
        "calls",
        "Two calls of a turn go back with each other's names.",
        ("test_results_stand_beside_their_calls",),
        "build_request",
        _request(
            "def mix_up(calls, parts):\n"
            "    if len(calls) > 1:\n"
            "        _swap(calls[0], calls[1], 'name')\n"
            "_edit_calls(body, mix_up)"
        ),
        *_CALLING,
    ),
    *_make(
        "sends-texts-last",
        "calls",
        "What was said between calls goes back after them.",
        ("test_parts_keep_their_places",),
        "build_request",
        _request(
            "for message in body.get('messages') or body.get('contents') or ():\n"
            "    for key in ('content', 'parts'):\n"
            "        if isinstance(message.get(key), list):\n"
            "            message[key] = sorted(message[key], key=lambda each: 'text' in each)"
        ),
        *("anthropic", "google"),
    ),
    *_make(
        "writes-arguments-anew",
        "exact bytes",
        "The arguments of calls are written anew when they go back.",
        ("test_arguments_are_replayed_exactly",),
        "build_request",
        _request(
            "import json\n\n"
            "def rewrite(calls, parts):\n"
            "    for call in calls:\n"
            "        call['arguments'] = json.dumps(json.loads(call['arguments']))\n"
            "_edit_calls(body, rewrite)"
        ),
        *("responses", "cohere"),
    ),
    *_make(
        "counts-streams-alone",
        "usage",
        "Of an answer that is not streamed nobody learns what it took.",
        ("test_streamed_equals_whole",),
        "process_chunk",
        "if native_chunk.get('object') in ('response', 'chat.completion'):\n"
        "    native_chunk = {k: v for k, v in native_chunk.items() if k != 'usage'}\n"
        "return ask(native_chunk=native_chunk)",
        *("responses", "chat"),
    ),
    *_make(
        "asks-for-more",
        "strange keys",
        "A key that the API does not know is sent.",
        ("test_text",),
        "build_request",
        _request("body['further_wishes'] = True"),
        *("anthropic", "cohere", "google", "responses", "chat"),
    ),
    *_make(
        "writes-notes-on-messages",
        "strange keys",
        "Messages are sent with a key of the plugin's own.",
        ("test_text",),
        "build_request",
        _request(
            "for message in body.get('messages') or body.get('contents') or body.get('input'):\n"
            "    message['note'] = 'ours'"
        ),
        *("anthropic", "cohere", "google", "responses", "chat"),
    ),
    *_make(
        "forgets-why-it-failed",
        "results",
        "The result of a call that failed is empty.",
        ("test_every_kind_of_result_is_sent",),
        "to_native_messages",
        _said(
            "for message in messages:\n"
            "    if (message.get('metadata') or {}).get('error'):\n"
            "        message['content'] = ''\n"
            "        message.pop('toolResult', None)"
        ),
        *("google", "ollama", "chat"),
    ),
    *_make(
        "turns-calls-round",
        "calls",
        "The calls of a turn are told in the other order.",
        ("test_parallel_calls",),
        "from_native_messages",
        _told("metadata.get('tool_calls') and metadata['tool_calls'].reverse()"),
        *("anthropic", "google", "chat"),
    ),
    *_make(
        "empties-calls",
        "calls",
        "The arguments of calls are lost.",
        ("test_tools_round_trip",),
        "from_native_messages",
        _told(
            "for call in metadata.get('tool_calls') or (): "
            "'function' in call and call['function'].update(arguments='{}')"
        ),
        *("cohere", "google", "echo"),
    ),
    *_make(
        "talks-or-calls",
        "calls",
        "A message with calls has no text.",
        ("test_text_beside_calls_is_kept",),
        "from_native_messages",
        _told("message['content'] = '' if metadata.get('tool_calls') else message['content']"),
        *("anthropic", "google", "ollama", "chat"),
    ),
)

_THOUGHTS = (
    *_make(
        "tells-everybody-its-thoughts",
        "reasoning",
        "Signed reasoning is made of core messages too, and sent to whoever comes next.",
        ("test_signatures_stay_with_their_origin",),
        "to_native_messages",
        "natives = ask()\n"
        "for message, native in zip(messages, natives):\n"
        "    details = (message.get('metadata') or {}).get('reasoning_details')\n"
        "    if details:\n"
        "        native['reasoning_details'] = details\n"
        "return natives",
        "openrouter",
    ),
    *_make(
        "thinks-first",
        "reasoning",
        "What was thought between texts and calls is put before everything.",
        ("test_reasoning_keeps_its_place",),
        "build_request",
        _request(
            "for message in body.get('messages') or body.get('contents') or ():\n"
            "    for key in ('content', 'parts'):\n"
            "        if isinstance(message.get(key), list):\n"
            "            message[key] = sorted(message[key], key=lambda each: not (\n"
            "                'thinking' in str(each.get('type')) or each.get('thought')))"
        ),
        "anthropic",
    ),
)

_ENDS = (
    *_make(
        "loses-the-counts",
        "usage",
        "What an answer took is not in its message.",
        ("test_usage_is_counted_once",),
        "from_native_messages",
        _told("metadata.pop('usage', None)"),
        *("anthropic", "google", "ollama"),
    ),
    *_make(
        "swaps-the-counts",
        "usage",
        "What the model read is told as what it wrote.",
        ("test_usage_is_counted_once",),
        "from_native_messages",
        _told(
            "usage = metadata.get('usage') or {}; usage.update("
            "{'input': usage.get('output'), 'output': usage.get('input')} if usage else {})"
        ),
        *("google", "responses", "ollama"),
    ),
    *_make(
        "forgets-how-it-ended",
        "endings",
        "Why an answer ended is not in its message.",
        ("test_an_answer_that_is_cut_off_says_so",),
        "from_native_messages",
        _told("metadata.pop('finish_reason', None)"),
        *("anthropic", "cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "blames-the-server",
        "errors",
        "Every refusal becomes an error of the server.",
        ("test_errors_are_typed",),
        "map_error",
        "from agent_hookspecs.errors import ServerError\n\n"
        "return ServerError(f'HTTP {status}', status=status)",
        *("cohere", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "never-waits",
        "retries",
        "A server that is busy is not asked again.",
        ("test_refusals_are_retried",),
        "map_error",
        "from agent_hookspecs.errors import RateLimitError\n\n"
        "if status == 429:\n"
        "    return RateLimitError('busy', status=status, retryable=False)\n"
        "return ask()",
        *("cohere", "google", "chat"),
    ),
    *_make(
        "takes-any-end",
        "broken streams",
        "A stream that was cut counts as complete.",
        ("test_truncated_text",),
        "stream_complete",
        "return True",
        *("anthropic", "cohere", "google", "ollama"),
    ),
)

_KEEPING = (
    *_make(
        "works-for-the-latest",
        "shared instances",
        "Chunks belong to whichever request began last.",
        ("test_chunks_reach_their_request",),
        "process_chunk",
        "if not state.get('seen_by_us'):\n"
        "    state['seen_by_us'] = True\n"
        "    self.__dict__['latest'] = state\n"
        "made = ask(state=self.__dict__['latest'])\n"
        "return made[0], made[1], native_messages, state",
        *("anthropic", "cohere", "google", "ollama", "responses"),
    ),
    *_make(
        "remembers-answers",
        "shared instances",
        "The last answer stays on the class.",
        ("test_nothing_of_a_request_is_kept",),
        "finalize",
        "made = ask()\ntype(self).last_answer = made[0]\nreturn made",
        *("anthropic", "google", "ollama", "chat", "cohere"),
    ),
    *_make(
        "marks-the-history",
        "exact bytes",
        "The first message of the history is changed in place at every request.",
        ("test_history_is_sent_again_as_it_was",),
        "build_request",
        _request(
            "for key in ('messages', 'input', 'contents'):\n"
            "    if key in body:\n"
            "        turns = len(body[key])\n"
            "        first = _edit_texts(body[key][0], lambda text: f'{text} ({turns})')\n"
            "        body[key] = [first, *body[key][1:]]"
        ),
        *("anthropic", "cohere", "google", "ollama", "responses"),
    ),
    *_make(
        "copies-all-chunks",
        "cost",
        "The text of all chunks so far is copied at every chunk.",
        ("test_linear_cost[text]",),
        "process_chunk",
        "state['written'] = state.get('written', '') + str(native_chunk)\n"
        "state['written'].count('{')\n"
        "return ask()",
        *("anthropic", "google", "ollama", "responses", "echo"),
    ),
)

_PLACES = (
    *_make(
        "puts-the-key-into-the-address",
        "addresses",
        "The key stands in the query of the address.",
        ("test_the_key_is_in_no_address",),
        "build_request",
        _request(
            "spec['url'] += ('&' if '?' in spec['url'] else '?') + f\"key={config.get('api_key')}\""
        ),
        *("anthropic", "google", "ollama", "responses", "chat"),
    ),
    *_make(
        "waits-as-long-as-it-likes",
        "addresses",
        "The user's timeout is replaced.",
        ("test_the_users_timeout_counts",),
        "build_request",
        _request("spec['timeout'] = {'connect': 5, 'first_byte': 9, 'idle': 9}"),
        *("anthropic", "google", "ollama", "chat"),
    ),
    *_make(
        "doubles-the-slash",
        "addresses",
        "A base URL with a slash at its end gives an address with two.",
        ("test_a_slash_at_the_end_of_the_address_does_not_matter",),
        "build_request",
        _request(
            "base = str(config.get('base_url') or '')\n"
            "if base.endswith('/'):\n"
            "    spec['url'] = spec['url'].replace(base.rstrip('/'), base, 1)"
        ),
        *("anthropic", "cohere", "google", "ollama", "chat"),
    ),
    *_make(
        "lists-no-models",
        "models",
        "The list of models is read as empty.",
        ("test_models_are_listed",),
        "parse_models",
        "return []",
        *("cohere", "chat", "openrouter"),
    ),
    *_make(
        "waits-for-its-tags",
        "blocking",
        "Whoever asks for the tags waits for them.",
        ("test_a_request_blocks_nothing",),
        "get_tags",
        "import time\n\ntime.sleep(0.001)\nreturn ask()",
        *("anthropic", "google", "ollama", "chat"),
    ),
    *_make(
        "reads-a-file-each-time",
        "blocking",
        "Every request reads a file.",
        ("test_a_request_blocks_nothing",),
        "build_request",
        "with open(__file__) as file:\n    file.read()\nreturn ask()",
        *("anthropic", "cohere", "google", "chat"),
    ),
    *_make(
        "keeps-the-key-in-messages",
        "secrets",
        "The key is in the metadata of every answer.",
        ("test_secrets_stay_secret",),
        "from_native_messages",
        _told("metadata['asked_with'] = state['config'].get('api_key')"),
        *("cohere", "google", "ollama", "responses"),
    ),
    *_make(
        "logs-its-settings",
        "secrets",
        "The settings of a request are logged, the key among them.",
        ("test_secrets_stay_secret",),
        "build_request",
        "import logging\n\n"
        "logging.getLogger('anywhere').warning('asking with %s', state['config'].get('api_key'))\n"
        "return ask()",
        *("google", "ollama", "cohere"),
    ),
)


def _ends_the_latest(each: str) -> Breakage:
    subject = _SUBJECTS[each]
    return Breakage(
        subject.distribution,
        subject.suite,
        f"{each}-ends-the-latest",
        "shared instances",
        "The answer that ends is that of whichever request began last.",
        ("test_requests_do_not_mix",),
        (
            subject.around("initialize_request", "self.__dict__['latest'] = state\nreturn ask()"),
            subject.around("finalize", "return ask(state=self.__dict__['latest'])"),
        ),
    )


def _spelt_wrong(each: str) -> Breakage:
    subject = _SUBJECTS[each]
    misspelt = "def _finalise(self, native_messages, state): ..."
    code = f"{misspelt}\n\n\n{subject.owner}.finalise = _finalise\n"
    return Breakage(
        subject.distribution,
        subject.suite,
        f"{each}-misspells-a-hook",
        "packages",
        "A method has nearly the name of a hook, and so is never called.",
        ("test_hooks_are_spelt_right",),
        (add(subject.file, code),),
    )


def _otherwise_described(each: str) -> Breakage:
    subject = _SUBJECTS[each]
    return Breakage(
        subject.distribution,
        subject.suite,
        f"{each}-is-described-as-another",
        "packages",
        "The class has another label than the descriptor.",
        ("test_descriptor_equals_code",),
        (add(subject.file, f'{subject.owner}.label = "Another"\n'),),
    )


def _working_at_import(each: str, what: str, code: str) -> Breakage:
    subject = _SUBJECTS[each]
    return Breakage(
        subject.distribution,
        subject.suite,
        f"{each}-{what}",
        "packages",
        "Importing the package does work.",
        ("test_import_does_no_work",),
        (add(subject.file, code),),
    )


def _other_variable(each: str, variable: str) -> Breakage:
    subject = _SUBJECTS[each]
    return Breakage(
        subject.distribution,
        subject.suite,
        f"{each}-looks-for-another-key",
        "addresses",
        "The key is looked for in another variable of the environment.",
        ("test_the_key_variable_is_the_right_one",),
        (change_descriptor(f'"key_variable": "{variable}"', '"key_variable": "ANOTHER_API_KEY"'),),
    )


def _never_declined(each: str) -> Breakage:
    subject = _SUBJECTS[each]
    code = (
        "_declined = ('refusal', 'blocked')\n"
        f"{subject.owner}.finish_reasons = {{\n"
        "    word: 'stop' if finish in _declined else finish\n"
        f"    for word, finish in {subject.owner}.finish_reasons.items()\n"
        "}\n"
    )
    return Breakage(
        subject.distribution,
        subject.suite,
        f"{each}-knows-no-refusals",
        "endings",
        "An answer that was declined looks like any other.",
        ("test_an_answer_that_is_declined_says_so",),
        (add(subject.file, code),),
    )


BREAKAGES: tuple[Breakage, ...] = (
    *_KNOBS,
    *_MORE_KNOBS,
    *_CLAIMS,
    *_TEXTS,
    *_HISTORY,
    *_MESSAGES,
    *_THOUGHTS,
    *_ENDS,
    *_KEEPING,
    *_PLACES,
    *map(_ends_the_latest, ("google", "ollama")),
    *map(_never_declined, ("google", "chat")),
    *map(_spelt_wrong, ("cohere", "google", "ollama")),
    *map(_otherwise_described, ("cohere", "google", "ollama")),
    _other_variable("anthropic", "ANTHROPIC_API_KEY"),
    _other_variable("cohere", "COHERE_API_KEY"),
    _other_variable("google", "GEMINI_API_KEY"),
    _working_at_import("cohere", "prints-at-import", 'print("hello")\n'),
    _working_at_import(
        "google", "starts-a-thread", "import threading\n\nthreading.Thread(target=int).start()\n"
    ),
    _working_at_import("chat", "sets-a-variable", 'import os\n\nos.environ["ACME"] = "1"\n'),
)
