"""The echo package meets the contract of its three roles."""

from __future__ import annotations

import json

from agent_host_testing import (
    Answer,
    Call,
    ExtensionConformance,
    Failure,
    FeatureConformance,
    ProviderConformance,
    Raw,
    Text,
    Thought,
)

SETTINGS = {"model": "echo-reasoner"}
FAILURES = {
    "authentication": "auth",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "server": "server",
}


class TestEcho(ProviderConformance):
    package = "agent_host_echo"
    plugin = "echo"
    expects = (
        "supports_audio",
        "supports_documents",
        "supports_file_urls",
        "supports_image_urls",
        "supports_images",
        "supports_reasoning",
        "supports_streaming",
        "supports_tools",
        "supports_video",
    )
    settings = SETTINGS

    def prompt_for(self, answer: Answer) -> str | None:
        if isinstance(answer, Raw):
            return None
        if isinstance(answer, Failure):
            kind = FAILURES.get(answer.kind)
            return f"/fail {kind} {answer.message}" if kind else None
        lines = []
        for part in answer.parts:
            if isinstance(part, Text):
                # Lines are what separates the parts of a prompt, and blanks around it do not count.
                if (
                    part.text != part.text.strip()
                    or sum(isinstance(p, Text) for p in answer.parts) > 1
                ):
                    return None
                lines.append(part.text)
            elif isinstance(part, Thought) and not part.redacted:
                lines.append(f"/think {part.text}")
            elif isinstance(part, Call):
                lines.append(f"/call {part.name} {_arguments(part)}")
            else:
                return None
        if answer.failure is not None:
            failing = self.prompt_for(answer.failure)
            if failing is None:
                return None
            lines.append(failing)
        return "\n".join(lines)


class TestEchoReasoning(ExtensionConformance):
    package = "agent_host_echo"
    plugin = "echo_reasoning"
    expects = ("from_native_messages", "initialize_request", "process_chunk", "to_native_messages")
    chunks = (
        {"choices": [{"index": 0, "delta": {"role": "assistant", "reasoning": "A "}}]},
        {"choices": [{"index": 0, "delta": {"reasoning": "thought."}}]},
        {"choices": [{"index": 0, "delta": {"content": "Some text."}, "finish_reason": "stop"}]},
    )


class TestEchoTranscript(FeatureConformance):
    package = "agent_host_echo"
    plugin = "echo_transcript"
    expects = ("finalize", "get_actions")


def _arguments(part: Call) -> str:
    return part.arguments if isinstance(part.arguments, str) else json.dumps(dict(part.arguments))
