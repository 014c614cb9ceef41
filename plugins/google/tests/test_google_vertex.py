"""Gemini on Vertex: where requests go, which kind of key they bear, and what is refused before."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hookspecs import ConfigError
from agent_host_google.provider import GoogleProvider
from agent_host_google.requests import endpoint, headers_of

WHOLE = "https://eu-x1-aiplatform.googleapis.com/v1/projects/p/locations/eu-x1/publishers/google"


@pytest.mark.parametrize(
    ("config", "above"),
    [
        ({"vertex_project": "p"}, "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global"),
        (
            {"vertex_project": "p", "vertex_region": "eu-x1"},
            "https://eu-x1-aiplatform.googleapis.com/v1beta1/projects/p/locations/eu-x1",
        ),
        (
            {"vertex_project": "p", "vertex_region": "us"},
            "https://aiplatform.us.rep.googleapis.com/v1beta1/projects/p/locations/us",
        ),
        (
            {"vertex_project": "p", "base_url": "http://gateway/"},
            "http://gateway/v1beta1/projects/p/locations/global",
        ),
        ({"base_url": WHOLE}, WHOLE.removesuffix("/publishers/google")),
    ],
)  # fmt: skip
def test_project_and_region_are_in_the_address(config: dict[str, Any], above: str) -> None:
    url = endpoint({"model": "gemini-2.5-pro", **config}, stream=True)
    place = f"{above}/publishers/google/models/gemini-2.5-pro"
    assert url == f"{place}:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(
    ("key", "config", "header"),
    [
        ("ya29.token", {"vertex_project": "p"}, "authorization"),
        ("opaque-token", {"base_url": WHOLE}, "authorization"),
        ("AIza-key", {"vertex_project": "p"}, "x-goog-api-key"),
        ("AQ.key", {"base_url": WHOLE}, "x-goog-api-key"),
        ("ya29.token", {}, "authorization"),
        ("AIza-key", {}, "x-goog-api-key"),
        ("opaque-key", {}, "x-goog-api-key"),
    ],
)
def test_keys_and_access_tokens_travel_in_different_headers(
    key: str, config: dict[str, Any], header: str
) -> None:
    expected = f"Bearer {key}" if header == "authorization" else key
    assert headers_of({"api_key": key, **config}) == {header: expected}


@pytest.mark.parametrize(
    ("config", "key", "says"),
    [
        ({"vertex_region": "eu-x1"}, "vertex_project", "without vertex_project"),
        ({"base_url": WHOLE, "vertex_project": "q"}, "vertex_project", "and so do the settings"),
        ({"base_url": WHOLE, "vertex_region": "us"}, "vertex_region", "and so do the settings"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_a_way_out(
    config: dict[str, Any], key: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        GoogleProvider().init({"model": "m", **config})
    assert caught.value.key == key
    assert caught.value.hint


def test_vertex_is_not_asked_about_strangers() -> None:
    assert GoogleProvider().models_request({"model": "stranger", "vertex_project": "p"}) is None


def test_a_history_of_vertex_is_told_from_one_of_google_ai() -> None:
    state = GoogleProvider().init({"model": "m", "vertex_project": "p"})
    assert state["config"]["base_url"].endswith("/locations/global/publishers/google")
