"""What the package knows of models, from its own facts and from the listing."""

from __future__ import annotations

import pytest

from agent_hookspecs.authoring import load_facts
from agent_host_google.models import facts_of, listed_models, tags_of

ALWAYS = {"provider:google", "wire:google.generate_content", "supports_streaming"}


IMAGES = {"images", "image_urls"}
WITH_TOOLS = {"structured_output_with_tools"}
MEDIA = {*IMAGES, "documents", "file_urls", "audio", "video"}


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("gemini-2.5-pro", {"tools", "reasoning", "structured_output"} | MEDIA),
        ("models/gemini-2.5-flash", {"tools", "reasoning", "structured_output"} | MEDIA),
        ("gemini-3-pro-preview", {"tools", "reasoning", "structured_output"} | WITH_TOOLS | MEDIA),
        ("gemini-2.0-flash", {"tools", "structured_output"} | MEDIA),
        ("gemini-2.5-flash-image", IMAGES),
        ("gemini-2.5-flash-preview-tts", set()),
        ("gemma-3-27b-it", IMAGES),
        ("nobody-knows-it", {"tools"} | MEDIA),
        (None, {"tools"} | MEDIA),
    ],
)
def test_tags_follow_what_is_known_of_the_model(model: str | None, more: set[str]) -> None:
    tags = [tag for tag in tags_of({"model": model}, []) if not tag.startswith("accepts:")]
    assert set(tags) == ALWAYS | {f"supports_{each}" for each in more}


def test_the_listing_tells_more_than_the_facts() -> None:
    models = listed_models(
        {
            "models": [
                {
                    "name": "models/new-one",
                    "displayName": "New One",
                    "supportedGenerationMethods": ["generateContent"],
                    "inputTokenLimit": 10,
                    "outputTokenLimit": 5,
                    "thinking": True,
                },
                {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
                {"displayName": "no name", "supportedGenerationMethods": ["generateContent"]},
                "nonsense",
            ]
        }
    )
    assert models == [
        {
            "id": "new-one",
            "name": "New One",
            "input_token_limit": 10,
            "output_token_limit": 5,
            "capabilities": {"reasoning": True},
        }
    ]
    alone = {"name": "models/new-one", "supportedGenerationMethods": ["generateContent"]}
    assert listed_models(alone) == [{"id": "new-one", "name": "new-one"}]
    assert "supports_reasoning" in tags_of({"model": "new-one"}, models)
    assert "supports_reasoning" in tags_of({"model": "models/new-one"}, models)
    assert "supports_reasoning" not in tags_of({"model": "new-one"}, [])


@pytest.mark.parametrize("body", [None, [], {}, {"models": None}, {"models": {"a": 1}}])
def test_a_listing_of_another_shape_is_empty(body: object) -> None:
    assert listed_models(body) == []


def test_every_row_of_facts_has_levels_or_a_budget_or_says_no() -> None:
    for row in load_facts("agent_host_google"):
        thinking = row["thinking"]
        assert thinking is False or ("levels" in thinking) != ("budget" in thinking), row


def test_facts_are_found_by_the_last_part_of_a_qualified_name() -> None:
    name = "projects/p/locations/l/publishers/google/models/gemini-2.5-pro"
    assert facts_of({"model": name}) == facts_of({"model": "gemini-2.5-pro"}) != {}
