"""Breakages of the reference provider of the Responses API."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, own_error

__all__ = ["BREAKAGES"]

PACKAGE = "reference_openai_responses"

BREAKAGES = (
    Breakage(
        PACKAGE,
        "responses-loses-encrypted-reasoning",
        "Reasoning is asked for without the encrypted content that lets it come back.",
        ("test_wire_shape[32]", "test_wire_shape[32-whole]"),
        (Change('        payload["include"] = ["reasoning.encrypted_content"]\n', ""),),
    ),
    Breakage(
        PACKAGE,
        "responses-orphans-calls",
        "Reasoning items are left out of the history, but not the calls they led to.",
        ("test_reasoning_round_trip",),
        (
            Change(
                'if item["type"] != "reasoning" or item.get("encrypted_content")',
                'if item["type"] != "reasoning"',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "responses-loses-text-beside-calls",
        "A message with calls has no text.",
        ("test_text_beside_calls_is_kept",),
        (
            Change(
                '    return {"role": "assistant", "content": _text(native["output"]), "metadata": '
                "metadata}",
                '    said = "" if calls else _text(native["output"])\n'
                '    return {"role": "assistant", "content": said, "metadata": metadata}',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "responses-hides-calls",
        "Calls are not shown while they come.",
        ("test_tools_round_trip",),
        (Change("        if call:\n", '        if "index" in call:\n'),),
    ),
    Breakage(
        PACKAGE,
        "responses-sends-a-key-of-its-process",
        "Requests carry something that another process cannot know.",
        ("test_natives_survive_another_host",),
        (
            Change(
                '        body = {**request["payload"], "input": items}',
                '        body = {**request["payload"], "input": items}\n'
                '        body["prompt_cache_key"] = f"cache-{id(self)}"',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "responses-forgets-when-to-retry",
        "The provider's own error for HTTP 429 does not say how long to wait.",
        ("test_retry_after_is_understood",),
        (own_error("status == 429", "RateLimitError"),),
    ),
    Breakage(
        PACKAGE,
        "responses-gives-up-too-soon",
        "A server that failed is not asked again.",
        ("test_errors_are_typed[server]", "test_refusals_are_retried[server]"),
        (own_error("status == 500", "ServerError", retryable=False),),
    ),
    Breakage(
        PACKAGE,
        "responses-keeps-the-last-words",
        "What was shown before a stream breaks is lost but for its last characters.",
        ("test_mid_stream_failure", "test_broken_connections", "test_cancellation"),
        (
            Change(
                '        state["partial"].append_text("content", text)',
                '        state["partial"]["content"] = text[-4:]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "responses-asks-again-after-output",
        "When a stream breaks off after something was shown, the request is sent once more.",
        ("test_mid_stream_failure",),
        (
            Change(
                '            response = native_chunk.get("response") or native_chunk\n',
                "            import contextlib\n"
                "            import json\n"
                "            import urllib.request\n\n"
                "            again = self.build_request(native_messages, state, False)\n"
                "            with contextlib.suppress(OSError):\n"
                "                urllib.request.urlopen(\n"
                "                    urllib.request.Request(\n"
                '                        again["url"],\n'
                '                        json.dumps(again["body"]).encode(),\n'
                '                        again["headers"],\n'
                "                    )\n"
                "                )\n"
                '            response = native_chunk.get("response") or native_chunk\n',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "responses-imports-an-sdk",
        "Importing the package imports an HTTP library.",
        ("test_import_does_no_work",),
        (Change("import re\n", "import re\n\nimport httpx\n"),),
    ),
    Breakage(
        PACKAGE,
        "responses-remembers-requests",
        "The instance counts its requests, and each answer differs by it from the one before.",
        ("test_every_split_of_bytes",),
        (
            Change(
                '            "finish_reason": response["status"],',
                '            "finish_reason": response["status"],\n'
                '            "number": self.__dict__.setdefault("asked", []).append(1)\n'
                '            or len(self.__dict__["asked"]),',
            ),
        ),
    ),
)
