"""Plugins of every design that is right: each of these packages must pass its whole suite.

A check that one of them fails asks for more than the contract does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from testing_reference_formats import (
    FramesFormat,
    LadderFormat,
    LinesFormat,
    MemoFormat,
    SpoutFormat,
)

from agent_host_testing import (
    Answer,
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    Reply,
    Text,
)

REFERENCES = Path(__file__).parent / "references"


class Reference(ProviderConformance):
    folder = REFERENCES
    settings: ClassVar[dict[str, Any]] = {"model": "reference-1"}


class TestWholeAnswers(Reference):
    """Nothing but `call_api`: no streams, no wire."""

    package, plugin = "reference_whole", "whole"
    expects = ()

    def prompt_for(self, answer: Answer) -> str | None:
        if not isinstance(answer, Reply) or answer.failure is not None:
            return None
        texts = [part.text for part in answer.parts if isinstance(part, Text)]
        return "".join(texts) if len(texts) == len(answer.parts) else None


class TestWithoutTools(Reference):
    """Text alone, over the host's own wire."""

    package, plugin = "reference_plain", "plain"
    wire = LinesFormat()
    expects = ("supports_streaming",)


class TestAnotherLibrary(Reference):
    """Its own I/O with another library."""

    package, plugin = "reference_library", "library"
    wire = LinesFormat()
    expects = ("supports_streaming",)


class TestLocalIds(Reference):
    """Whole documents, ids at random, and two finals where a model talks and calls."""

    package, plugin = "reference_memo", "memo"
    wire = MemoFormat()
    expects = ("supports_tools",)


class TestGrowingChunks(Reference):
    """Every chunk repeats what came before."""

    package, plugin = "reference_ladder", "ladder"
    wire = LadderFormat()
    expects = ("supports_streaming",)


class TestBinaryFrames(Reference):
    """Frames that the host does not know, read in `stream_api`."""

    package, plugin = "reference_library", "frames"
    wire = FramesFormat()
    expects = ("supports_streaming",)


class TestAlwaysStreams(Reference):
    """Streams whether it is asked to or not, which its requests say."""

    package, plugin = "reference_spout", "spout"
    wire = SpoutFormat()
    expects = ("supports_streaming",)


class TestQuietFeature(FeatureConformance):
    """None of a hook that folds one thing: it stays as it was."""

    folder = REFERENCES
    package, plugin = "reference_quiet", "quiet_feature"
    expects = ("init",)


class TestQuietExtension(ExtensionConformance):
    """The same, where messages are mapped too."""

    folder = REFERENCES
    package, plugin = "reference_quiet", "quiet_extension"
    also = ("agent_host_echo",)
    wire = "openai.chat"
    expects = ("from_native_messages", "init", "to_native_messages")
