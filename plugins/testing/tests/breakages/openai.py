"""Breakages of the provider of the Responses API."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add, change_descriptor

__all__ = ["BREAKAGES"]

_SUITE = Suite("openai", "test_openai_conformance", "TestResponses")

_OWN_ERROR = """\
def _map_error(
    self: object, status: int, headers: Mapping[str, str], body: bytes
) -> AgentError | None:
    from agent_hookspecs import errors

    if status != {status}:
        return _known_error(self, status, headers, body)
    about = {{"status": status, "request_id": headers["x-request-id"]}}
    return errors.{error}(body.decode(), provider="openai", **about, **{more!r})


_known_error = OpenAIProvider.map_error
OpenAIProvider.map_error = _map_error
"""


def _breakage(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("openai", _SUITE, name, kind, sentence, red, changes)


def _own_error(status: int, error: str, **more: object) -> Change:
    """An error of the provider's own for refusals with the status."""
    return add("provider.py", _OWN_ERROR.format(status=status, error=error, more=more))


BREAKAGES = (
    _breakage(
        "openai-hides-what-was-found-elsewhere",
        "calls",
        "Of tools that another provider's search has found the model sees nothing.",
        ("test_tools_found_elsewhere_stay_found",),
        Change("responses/replay.py", "return self._found - self._loaded", "return set()"),
    ),
    _breakage(
        "openai-takes-any-end",
        "broken streams",
        "An answer without its closing event counts as complete.",
        ("test_truncated_text", "test_truncated_calls"),
        Change("responses/events.py", 'return state["answer"]["about"] is not None', "return True"),
        Change(
            "responses/answers.py",
            "    if about is None:\n        # An end marker",
            "    about = about or {}\n    if about is None:\n        # An end marker",
        ),
    ),
    _breakage(
        "openai-hides-its-models",
        "models",
        "The class can list models, and the descriptor says not to ask it.",
        ("test_descriptor_equals_code", "test_models_are_listed"),
        change_descriptor('"dynamic": ["get_models", "get_tags"]', '"dynamic": ["get_tags"]'),
    ),
    _breakage(
        "openai-asks-for-no-encryption",
        "reasoning",
        "Reasoning is asked for without the encrypted content that lets it come back.",
        ("test_wire_shape[32]", "test_wire_shape[32-whole]"),
        Change(
            "responses/reasoning.py",
            '[_ENCRYPTED, *payload.get("include", ())]',
            '[*payload.get("include", ())]',
        ),
    ),
    _breakage(
        "openai-orphans-calls",
        "reasoning",
        "Reasoning items are left out of the history, but not the calls they led to.",
        ("test_reasoning_round_trip", "test_changed_instructions_leave_the_history"),
        Change(
            "responses/replay.py",
            "            if not alone:\n                kept.append(item)\n",
            "            if alone:\n                kept.append(item)\n",
        ),
    ),
    _breakage(
        "openai-loses-text-beside-calls",
        "calls",
        "A message with calls has no text.",
        ("test_text_beside_calls_is_kept",),
        Change(
            "responses/answers.py",
            '    content = "".join(map(text_of, items))\n',
            '    content = "" if "tool_calls" in metadata else "".join(map(text_of, items))\n',
        ),
    ),
    _breakage(
        "openai-hides-calls",
        "display",
        "Calls are not shown while they come.",
        ("test_tools_round_trip",),
        add("responses/tools.py", "del OpenAIResponsesTools.process_chunk\n"),
    ),
    _breakage(
        "openai-sends-a-key-of-its-process",
        "exact bytes",
        "Requests carry something that another process cannot know.",
        (
            "test_natives_survive_another_host",
            "test_history_is_sent_again_as_it_was",
            "test_speaking_keeps_the_beginning",
        ),
        Change(
            "responses/requests.py",
            "    if stream:\n",
            '    payload["prompt_cache_key"] = f"cache-{id(config)}"\n    if stream:\n',
        ),
    ),
    _breakage(
        "openai-is-mistaken-about-when-to-retry",
        "retries",
        "The provider's own error for HTTP 429 says another wait than the server did.",
        ("test_retry_after_is_understood",),
        _own_error(429, "RateLimitError", retry_after=0.5),
    ),
    _breakage(
        "openai-gives-up-too-soon",
        "retries",
        "A server that failed is not asked again.",
        ("test_errors_are_typed[server]", "test_refusals_are_retried[server]"),
        _own_error(500, "ServerError", retryable=False),
    ),
    _breakage(
        "openai-keeps-the-last-words",
        "broken streams",
        "What was shown before a stream breaks is lost but for its last characters.",
        ("test_mid_stream_failure", "test_broken_connections", "test_cancellation"),
        Change(
            "responses/events.py",
            '            state["partial"].append_text("content", text)\n'
            '            state["answer"]["heard"] = True\n',
            '            state["partial"]["content"] = text[-4:]\n'
            '            state["answer"]["heard"] = True\n',
        ),
    ),
    _breakage(
        "openai-asks-again-after-output",
        "broken streams",
        "When a stream breaks off after something was shown, the request is sent once more.",
        ("test_mid_stream_failure",),
        Change(
            "responses/requests.py",
            "    return payload\n\n\ndef _takes_reasoning",
            '    state["again"] = payload\n    return payload\n\n\ndef _takes_reasoning',
        ),
        Change(
            "responses/events.py",
            "    raise failed_response(event)\n\n\ndef usage_told",
            "    import contextlib\n"
            "    import json\n"
            "    import urllib.request\n\n"
            '    body = json.dumps(state["again"]).encode()\n'
            '    url = state["config"]["base_url"] + "/responses"\n'
            "    key = f\"Bearer {state['config']['api_key']}\"\n"
            '    headers = {"authorization": key, "content-type": "application/json"}\n'
            "    with contextlib.suppress(OSError):\n"
            "        urllib.request.urlopen(urllib.request.Request(url, body, headers))\n"
            "    raise failed_response(event)\n\n\ndef usage_told",
        ),
    ),
    _breakage(
        "openai-imports-an-sdk",
        "packages",
        "Importing the package imports an HTTP library.",
        ("test_import_does_no_work",),
        add("provider.py", "import httpx\n"),
    ),
    _breakage(
        "openai-remembers-requests",
        "shared instances",
        "The instance counts its requests, and each answer differs by it from the one before.",
        ("test_every_split_of_bytes",),
        Change(
            "provider.py",
            "        return self._api(state).finalize(native_messages, state, context)\n",
            '        asked = self.__dict__.setdefault("asked", [])\n'
            "        asked.append(1)\n"
            "        finals, natives, state = self._api(state).finalize(\n"
            "            native_messages, state, context\n"
            "        )\n"
            '        finals[0].setdefault("_metadata", {})["number"] = len(asked)\n'
            "        return finals, natives, state\n",
        ),
    ),
    _breakage(
        "openai-leaves-reasoning-alone",
        "reasoning",
        "A reasoning item that led to nothing is sent.",
        (
            "test_openai_responses_requests.py::"
            "test_shape_32_reasoning_that_led_to_nothing_is_not_replayed",
        ),
        Change(
            "responses/replay.py",
            '    while kept and kept[-1].get("type") == "reasoning":\n',
            '    while kept and kept[-1].get("type") == "thought":\n',
        ),
    ),
    _breakage(
        "openai-leaves-calls-unanswered",
        "results",
        "A call that was never run has no answer.",
        (
            "test_openai_responses_requests.py::"
            "test_shape_32_a_call_that_was_never_answered_gets_an_answer",
        ),
        Change("responses/replay.py", "reversed(self._open.items())", "()"),
    ),
    _breakage(
        "openai-keeps-broken-arguments",
        "calls",
        "Arguments that are no JSON stay in the history.",
        ("test_malformed_calls",),
        Change(
            "responses/answers.py", "item = registry.sanitize_tool_call(item)", "item = dict(item)"
        ),
    ),
    _breakage(
        "openai-forgets-the-cache",
        "usage",
        "Cached tokens are looked for under another name.",
        ("test_usage_is_counted_once",),
        Change("responses/usage.py", '"cached_tokens"', '"cached"'),
    ),
    _breakage(
        "openai-sends-empty-reasoning",
        "reasoning",
        "A reasoning item without its encrypted content is sent as if it were stored.",
        (
            "test_openai_responses_requests.py::"
            "test_shape_34_reasoning_without_content_is_dropped_and_its_items_lose_their_ids",
        ),
        Change(
            "responses/replay.py",
            'return bool(item.get("encrypted_content") or item.get("content"))',
            "return bool(item)",
        ),
    ),
    _breakage(
        "openai-fetches-no-refusals-of-a-batch",
        "batches",
        "Of a batch that is over, only the file with the answers is fetched.",
        ("test_batches_bring_what_requests_bring",),
        Change(
            "batches.py",
            'files = (batch.get("output_file_id"), batch.get("error_file_id"))',
            'files = (batch.get("output_file_id"),)',
        ),
    ),
)
