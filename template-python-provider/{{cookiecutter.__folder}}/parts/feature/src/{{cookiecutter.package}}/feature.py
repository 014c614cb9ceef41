"""The feature ``{{ cookiecutter.plugin_id }}``: keeps personal data from the model.

It works with every provider, because it changes nothing but the texts in what is about to be sent.
The session keeps what was said. An action counts what would be hidden.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agent_hookspecs import (
    Action,
    ActionResult,
    Config,
    ConfigError,
    FeaturePlugin,
    NativeMessage,
    Session,
    State,
)

from {{ cookiecutter.package }}._version import __version__

__all__ = ["Redaction"]

PATTERNS = {
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "card": re.compile(r"(?<![\w-])(?:\d{4}[ -]){3}\d{4}(?![\w-])"),
    "iban": re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
}


class Redaction(FeaturePlugin):
    """Sends ``[email]``, ``[card]`` and ``[iban]`` in place of what they stand for."""

    name = "{{ cookiecutter.plugin_id }}"
    version = __version__
    forbidden_tags = ("trusted_endpoint",)

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "redact": {
                "type": "array",
                "items": {"enum": [*PATTERNS]},
                "required": False,
                "default": [*PATTERNS],
                "description": "What is hidden from the model.",
            }
        }

    def init(self, config: Config, state: State) -> State:
        unknown = [name for name in _chosen(config) if name not in PATTERNS]
        if unknown:
            raise ConfigError(
                f"redact names {', '.join(map(repr, unknown))}, which nobody can recognise",
                key="redact",
                hint=f"name any of: {', '.join(PATTERNS)}",
            )
        return state

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        request = state["request"]
        sent = request.get("messages", native_messages)
        hidden = redacted(sent, _chosen(state["config"]))
        # The list that is sent, not the history: the session keeps what was said.
        if hidden != sent:
            request["messages"] = hidden
        return native_messages, state

    def get_actions(self) -> list[Action]:
        return [
            {
                "id": "{{ cookiecutter.__snake }}_report",
                "label": "What is hidden",
                "description": "Count what the model does not get to see, by kind.",
                "inputs": {},
            }
        ]

    def execute_action(self, action_id: str, session: Session, state: State) -> ActionResult:
        if action_id != "{{ cookiecutter.__snake }}_report":
            return {"error": {"type": "unknown_action", "message": f"no action {action_id!r}"}}
        texts = [message["content"] for message in session.messages]
        counts = {
            name: sum(len(PATTERNS[name].findall(text)) for text in texts)
            for name in _chosen(state["config"])
        }
        return {"session_metadata": {action_id: counts}}


def redacted(value: Any, names: Sequence[str]) -> Any:
    """A copy of the value in which no text has any of what the names stand for."""
    if isinstance(value, str):
        for name in names:
            value = PATTERNS[name].sub(f"[{name}]", value)
        return value
    if isinstance(value, list):
        return [redacted(item, names) for item in value]
    if isinstance(value, dict):
        return {key: redacted(item, names) for key, item in value.items()}
    return value


def _chosen(config: Config) -> list[str]:
    named = config.get("redact")
    return [*PATTERNS] if named is None else [str(name) for name in named]
