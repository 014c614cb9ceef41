"""What the feature hides, from whom, and what the session keeps."""

from __future__ import annotations

from typing import Any

import pytest
from agent_hookspecs import ConfigError
from agent_host import AgentCore
from agent_host.plugins.load import load_catalog

from {{ cookiecutter.package }}.feature import PATTERNS, redacted


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("write to ada@example.org, please", "write to [email], please"),
        ("paid with 4111 1111 1111 1111.", "paid with [card]."),
        ("to GB82 WEST 1234 5698 7654 32 today", "to [iban] today"),
        ("4 of 5 in 2024-01-01 @home", "4 of 5 in 2024-01-01 @home"),
    ],
)
def test_personal_data_is_recognised(text: str, hidden: str) -> None:
    assert redacted({"parts": [{"text": text}]}, [*PATTERNS]) == {"parts": [{"text": hidden}]}


def ask(text: str, **config: Any) -> tuple[str, str]:
    """What the user has said by the session, and what the model got; the model echoes it."""
    with AgentCore(catalog=load_catalog()) as core:
        session = core.add_message(core.create_session(), "user", text)
        session, _ = core.send_request(session, {"provider": "echo", **config})
    said, answer = session.messages
    return said["content"], answer["content"]


def test_the_model_does_not_see_what_the_session_keeps() -> None:
    said, got = ask("I am ada@example.org")
    assert said == "I am ada@example.org"
    assert got == "I am [email]"


def test_the_config_chooses_what_is_hidden() -> None:
    assert ask("I am ada@example.org", redact=["card"])[1] == "I am ada@example.org"


def test_an_unknown_name_is_an_error_that_says_what_there_is() -> None:
    with pytest.raises(ConfigError, match="shoe") as caught:
        ask("Hello", redact=["shoe"])
    assert "email" in caught.value.hint


def test_an_endpoint_that_is_trusted_gets_everything() -> None:
    assert ask("I am ada@example.org", add_tags=["trusted_endpoint"])[1] == "I am ada@example.org"


def test_the_action_counts_what_is_hidden() -> None:
    action = "{{ cookiecutter.__snake }}_report"
    with AgentCore(catalog=load_catalog()) as core:
        session = core.add_message(core.create_session(), "user", "a@b.org and c@d.org")
        session, _ = core.execute_session_action(session, action, {"provider": "echo"})
    assert session.metadata[action] == {"email": 2, "card": 0, "iban": 0}
