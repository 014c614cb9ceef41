"""Azure's three forms of address, its two kinds of key, and combinations that it does not have."""

from __future__ import annotations

from typing import Any

import pytest
from openai_compatible_bench import Scripted, core, serve

from agent_hookspecs import ConfigError
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.requests import request_headers
from agent_host_openai_compatible.servers import Server, endpoint

AZURE = Server(name="azure", azure=True)
ANY = Server(name="custom")
OPENAI, FOUNDRY = "https://r.openai.azure.com", "https://r.services.ai.azure.com"
DATED = "2024-10-21"
CHAT, RESPONSES = "/chat/completions", "/responses"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2lnbmF0dXJl"


@pytest.mark.parametrize("server", [AZURE, ANY], ids=["azure", "any"])
@pytest.mark.parametrize(
    ("base_url", "api_version", "expected"),
    [
        (OPENAI, None, f"{OPENAI}/openai/v1/chat/completions"),
        (f"{OPENAI}/", None, f"{OPENAI}/openai/v1/chat/completions"),
        (f"{OPENAI}/openai", None, f"{OPENAI}/openai/v1/chat/completions"),
        (f"{OPENAI}/openai/v1/", None, f"{OPENAI}/openai/v1/chat/completions"),
        (f"{OPENAI}/openai/v1", "preview", f"{OPENAI}/openai/v1{CHAT}?api-version=preview"),
        (f"{OPENAI}/openai/v1/chat/completions", None, f"{OPENAI}/openai/v1{CHAT}"),
        (FOUNDRY, None, f"{FOUNDRY}/openai/v1/chat/completions"),
        (f"{FOUNDRY}/api/projects/p", None, f"{FOUNDRY}/api/projects/p/openai/v1{CHAT}"),
        (OPENAI, DATED, f"{OPENAI}/openai/deployments/m{CHAT}?api-version={DATED}"),
        (f"{OPENAI}/openai", DATED, f"{OPENAI}/openai/deployments/m{CHAT}?api-version={DATED}"),
        (
            f"{OPENAI}/openai/deployments/mine",
            DATED,
            f"{OPENAI}/openai/deployments/mine{CHAT}?api-version={DATED}",
        ),
        (
            f"{OPENAI}/openai/deployments/mine{CHAT}?api-version={DATED}",
            None,
            f"{OPENAI}/openai/deployments/mine{CHAT}?api-version={DATED}",
        ),
        (
            f"https://gateway.example/x/openai/deployments/mine?api-version={DATED}&a=b",
            DATED,
            f"https://gateway.example/x/openai/deployments/mine{CHAT}?a=b&api-version={DATED}",
        ),
        (f"{FOUNDRY}/models", DATED, f"{FOUNDRY}/models{CHAT}?api-version={DATED}"),
        (f"{FOUNDRY}", DATED, f"{FOUNDRY}/models{CHAT}?api-version={DATED}"),
        (
            f"{FOUNDRY}/models{CHAT}?api-version=2024-05-01-preview",
            None,
            f"{FOUNDRY}/models{CHAT}?api-version=2024-05-01-preview",
        ),
    ],
)
def test_each_form_of_address_is_understood(
    server: Server, base_url: str, api_version: str | None, expected: str
) -> None:
    config = {"base_url": base_url, "model": "m", "api_version": api_version}
    assert endpoint(server, config) == expected


@pytest.mark.parametrize(
    ("base_url", "api_version", "expected"),
    [
        (OPENAI, None, f"{OPENAI}/openai/v1/responses"),
        (f"{OPENAI}/openai/v1/responses", None, f"{OPENAI}/openai/v1/responses"),
        (OPENAI, DATED, f"{OPENAI}/openai/responses?api-version={DATED}"),
        (
            f"{OPENAI}/openai/responses?api-version=2025-03-01-preview",
            None,
            f"{OPENAI}/openai/responses?api-version=2025-03-01-preview",
        ),
    ],
)
def test_the_responses_api_has_addresses_of_its_own(
    base_url: str, api_version: str | None, expected: str
) -> None:
    config = {"base_url": base_url, "model": "m", "api_version": api_version}
    assert endpoint(ANY, config, RESPONSES) == expected


@pytest.mark.parametrize(
    ("base_url", "api_version", "path", "key", "says"),
    [
        (f"{OPENAI}/openai/deployments/d", None, CHAT, "api_version", "needs a version"),
        (f"{FOUNDRY}/models", None, CHAT, "api_version", "needs a version"),
        (f"{OPENAI}/openai/v1", DATED, CHAT, "api_version", "takes no dated version"),
        (f"{OPENAI}?api-version=2023-05-15", DATED, CHAT, "api_version", "names the API version"),
        (OPENAI, 20241021, CHAT, "api_version", "api_version is int"),
        (f"{OPENAI}/openai/deployments/d", DATED, RESPONSES, "base_url", "no Responses API"),
        (f"{FOUNDRY}/models", DATED, RESPONSES, "base_url", "no Responses API"),
        (f"{OPENAI}/openai/responses", DATED, CHAT, "base_url", "the address of responses"),
        (f"{FOUNDRY}/models", DATED, "/models", "model", "no list of models"),
    ],
)
def test_what_azure_does_not_have_is_refused_with_a_way_out(
    base_url: str, api_version: Any, path: str, key: str, says: str
) -> None:
    config = {"base_url": base_url, "model": "m", "api_version": api_version}
    with pytest.raises(ConfigError, match=says) as caught:
        endpoint(AZURE, config, path)
    assert caught.value.key == key
    assert caught.value.hint


def test_models_are_listed_for_the_resource() -> None:
    at_v1 = {"base_url": f"{OPENAI}/openai/v1"}
    assert endpoint(AZURE, at_v1, "/models") == f"{OPENAI}/openai/v1/models"
    deployed = {"base_url": f"{OPENAI}/openai/deployments/d", "api_version": DATED}
    assert endpoint(AZURE, deployed, "/models") == f"{OPENAI}/openai/models?api-version={DATED}"


def test_a_key_and_an_access_token_travel_in_different_headers() -> None:
    anywhere = {"base_url": "http://127.0.0.1:1", "api_key": "0123abcd"}
    assert request_headers(AZURE, anywhere)["api-key"] == "0123abcd"
    assert "Authorization" not in request_headers(AZURE, anywhere)
    token = request_headers(AZURE, {**anywhere, "api_key": TOKEN})
    assert token["Authorization"] == f"Bearer {TOKEN}"
    assert "api-key" not in token
    assert request_headers(ANY, {"base_url": OPENAI, "api_key": "k"})["api-key"] == "k"
    assert request_headers(ANY, anywhere)["Authorization"] == "Bearer 0123abcd"


def test_only_azure_has_a_version_among_its_settings() -> None:
    assert "api_version" in ChatCompletionsProvider(name="azure", azure=True).get_config_schema()
    assert "api_version" not in ChatCompletionsProvider().get_config_schema()


def test_a_deployment_is_asked_over_the_wire() -> None:
    choice = {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
    script = Scripted({"id": "1", "choices": [choice]})
    with serve(script) as url, core() as host:
        config = {
            "provider": "azure", "model": "gpt-4.1", "api_key": "0123abcd", "retries": 0,
            "base_url": f"{url}/openai/deployments/mine", "api_version": DATED,
        }  # fmt: skip
        session = host.create_session().with_added(
            {"role": "user", "content": "hi", "metadata": {}}
        )
        _, finals = host.send_request(session, config)
    assert finals[0]["content"] == "yes"
