"""Breakages of the repairs: features that change what is sent, in whatever format it is."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add

__all__ = ["BREAKAGES"]

_FILE = "test_repairs_conformance"
_HOOKS = "test_repairs_hooks.py::"


def _breakage(
    name: str, kind: str, sentence: str, suite: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    judge = Suite("repairs", _FILE, suite)
    return Breakage("repairs", judge, f"repair-{name}", kind, sentence, red, changes)


BREAKAGES = (
    _breakage(
        "keeps-what-it-mends",
        "shared instances",
        "The messages of the last request stay on the instance.",
        "TestRouting",
        ("test_nothing_of_a_request_is_kept",),
        Change(
            "routing.py",
            "        payload = payload_of(state)\n",
            '        self.__dict__["latest"] = native_messages\n'
            "        payload = payload_of(state)\n",
        ),
    ),
    _breakage(
        "changes-the-history",
        "what others keep",
        "Messages of the history are changed in place.",
        "TestReasoningContent",
        ("test_every_format_is_borne[openai.chat]",),
        Change(
            "reasoning.py",
            '    return {**message, "reasoning_content": ""}\n',
            '    message["reasoning_content"] = ""\n    return message\n',
        ),
    ),
    _breakage(
        "knows-one-kind-of-tools",
        "what others keep",
        "Tools that are no functions of OpenAI's make the feature fail.",
        "TestDescriptions",
        ("test_every_format_is_borne",),
        Change(
            "descriptions.py",
            '    function = tool.get("function") if isinstance(tool, dict) else None\n',
            '    function = {**tool["function"]}\n',
        ),
    ),
    _breakage(
        "expects-text",
        "what others keep",
        "An answer whose content is no text makes the feature fail.",
        "TestToolCallTags",
        ("test_every_format_is_borne",),
        Change(
            "tags.py",
            '        and isinstance(final.get("content"), str)\n'
            '        and _OPEN in final["content"]\n',
            '        and _OPEN in final["content"].lower()\n',
        ),
    ),
    _breakage(
        "expects-roles",
        "what others keep",
        "A message without a role makes the feature fail.",
        "TestSignaturePlaceholder",
        ("test_every_format_is_borne[openai.responses]",),
        Change(
            "signature.py",
            '    if message.get("role") == "assistant" and isinstance(calls, list):\n',
            '    if message["role"] == "assistant" and isinstance(calls, list):\n',
        ),
    ),
    _breakage(
        "empties-the-payload",
        "what others keep",
        "Routing takes the place of everything else in the payload.",
        "TestRouting",
        ("test_request_is_decorated",),
        Change("routing.py", "    merged = {**payload, **knobs}\n", "    merged = {**knobs}\n"),
    ),
    _breakage(
        "remembers-what-it-mended",
        "persistence",
        "What was mended is noted in a file.",
        "TestSwitch",
        ("test_nothing_is_written_elsewhere",),
        add(
            "switch.py",
            "def _noting(known):\n"
            "    def init(self, config, state):\n"
            '        open("repairs.log", "a").close()\n'
            "        return known(self, config, state)\n\n"
            "    return init\n\n\n"
            "RepairSwitch.init = _noting(RepairSwitch.init)\n",
        ),
    ),
    _breakage(
        "signs-every-call",
        "the vendor's own",
        "All of several parallel calls get the placeholder.",
        "TestSignaturePlaceholder",
        (f"{_HOOKS}test_geminis_own_messages_are_signed_on_the_part",),
        Change(
            "signature.py",
            '        return {**message, "parts": '
            '_with(parts, places[0], {"thoughtSignature": PLACEHOLDER})}\n',
            "        for place in places:\n"
            '            parts = _with(parts, place, {"thoughtSignature": PLACEHOLDER})\n'
            '        return {**message, "parts": parts}\n',
        ),
    ),
    _breakage(
        "yields-to-the-payload",
        "the vendor's own",
        "What the payload has already is stronger than the setting.",
        "TestRouting",
        (f"{_HOOKS}test_a_setting_is_stronger_than_the_payload",),
        Change("routing.py", "{**payload, **knobs}", "{**knobs, **payload}"),
    ),
)
