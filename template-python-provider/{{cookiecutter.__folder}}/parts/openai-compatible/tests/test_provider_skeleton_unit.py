"""What is particular to this server, without a server."""

from __future__ import annotations

from typing import Any

from {{ cookiecutter.package }}.provider import {{ cookiecutter.__class }}Provider


def request(**config: Any) -> dict[str, Any]:
    """What the provider would send for one message of a user."""
    provider = {{ cookiecutter.__class }}Provider()
    state = provider.init({"model": "small", **config})
    natives = provider.to_native_messages(
        [{"role": "user", "content": "Hello", "metadata": {}}],
        state,
    )
    natives, state = provider.initialize_request(natives, state, {})
    return dict(provider.build_request(natives, state, True, {}))


def test_requests_go_to_the_address_in_the_row() -> None:
    assert request()["url"] == "http://localhost:8000/v1/chat/completions"


def test_the_config_can_name_another_address() -> None:
    url = request(base_url="https://models.example")["url"]
    assert url == "https://models.example/v1/chat/completions"


def test_a_key_is_sent_if_there_is_one() -> None:
    assert "Authorization" not in request()["headers"]
    assert request(api_key="k")["headers"]["Authorization"] == "Bearer k"


def test_the_length_of_answers_has_the_name_that_the_server_knows() -> None:
    assert request(max_output_tokens=7)["body"]["max_tokens"] == 7


def test_facts_about_models_become_tags() -> None:
    provider = {{ cookiecutter.__class }}Provider()
    assert "supports_reasoning" in provider.get_tags({"model": "big-think"}, [])
    assert "supports_reasoning" not in provider.get_tags({"model": "small"}, [])
    assert "supports_tools" not in provider.get_tags({"model": "embed-1"}, [])
