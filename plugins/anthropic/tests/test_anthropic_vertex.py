"""Claude on Vertex: where requests go, with what in them, and what is refused before."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic_built import Built

from agent_hookspecs import ConfigError
from agent_host_anthropic.facts import model_facts
from agent_host_anthropic.provider import AnthropicProvider

TOKEN = "ya29.token"
MODEL = "claude-sonnet-4-5@20250929"
WHOLE = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"


def built(**config: Any) -> Built:
    return Built(**{"model": MODEL, "api_key": TOKEN, **config})


@pytest.mark.parametrize(
    ("config", "above"),
    [
        (
            {"vertex_project": "p"},
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global",
        ),
        ({"vertex_project": "p", "vertex_region": "us-east5"}, WHOLE),
        (
            {"vertex_project": "p", "vertex_region": "eu"},
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu",
        ),
        (
            {"vertex_project": "p", "base_url": "http://gateway/v1/"},
            "http://gateway/v1/projects/p/locations/global",
        ),
        ({"base_url": WHOLE}, WHOLE),
        ({"base_url": f"{WHOLE}/publishers/anthropic/"}, WHOLE),
        ({"base_url": f"{WHOLE}/publishers/anthropic/models"}, WHOLE),
    ],
)
def test_project_and_region_are_in_the_address(config: dict[str, Any], above: str) -> None:
    for given in (config, {"base_url": "https://api.anthropic.com", **config}):
        place = f"{above}/publishers/anthropic/models/{MODEL}"
        assert built(**given).spec["url"] == f"{place}:streamRawPredict"
        assert built(stream=False, **given).spec["url"] == f"{place}:rawPredict"


def test_the_model_leaves_the_body_and_the_version_enters_it() -> None:
    request = built(vertex_project="p", betas=["b-1"], temperature=0.5)
    assert "model" not in request.body
    assert request.body["anthropic_version"] == "vertex-2023-10-16"
    assert request.body["temperature"] == 0.5
    assert request.spec["headers"] == {
        "authorization": f"Bearer {TOKEN}",
        "anthropic-beta": "b-1",
    }
    later = built(vertex_project="p", anthropic_version="vertex-2027-01-01")
    assert later.body["anthropic_version"] == "vertex-2027-01-01"


def test_a_version_in_the_name_of_a_model_hides_no_facts() -> None:
    assert model_facts(MODEL) == model_facts("claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("config", "key", "says"),
    [
        ({"vertex_region": "us-east5"}, "vertex_project", "without vertex_project"),
        ({"base_url": WHOLE, "vertex_project": "q"}, "vertex_project", "and so do the settings"),
        ({"base_url": WHOLE, "vertex_region": "eu"}, "vertex_region", "and so do the settings"),
        (
            {"vertex_project": "p", "anthropic_version": "2099-01-01"},
            "anthropic_version",
            "Vertex does not know",
        ),
        ({"vertex_project": "p", "api_key": "sk-ant-secret"}, "api_key", "one of Anthropic's"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_a_way_out(
    config: dict[str, Any], key: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        built(**config)
    assert caught.value.key == key
    assert caught.value.hint
    assert "sk-ant-secret" not in caught.value.explain()


def test_vertex_is_not_asked_for_models_and_anthropic_is() -> None:
    provider = AnthropicProvider()
    stranger = {"model": "claude-stranger", "api_key": TOKEN}
    assert provider.models_request({**stranger, "vertex_project": "p"}) is None
    assert provider.models_request(stranger) is not None


def test_a_history_of_vertex_is_told_from_one_of_anthropic() -> None:
    config = {"model": MODEL, "vertex_project": "p"}
    state = AnthropicProvider().init(config)
    assert state["config"]["base_url"].endswith("/locations/global/publishers/anthropic")
    assert config == {"model": MODEL, "vertex_project": "p"}
