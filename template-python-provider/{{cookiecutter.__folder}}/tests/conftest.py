"""What the tests share: the real model, if the environment names one, and what to do next."""

from __future__ import annotations

{%- if cookiecutter.kind in ("openai-compatible", "custom-format", "tool", "mix") %}

import os
from typing import Any

import pytest
from agent_host import AgentApplication
{%- else %}

import pytest
{%- endif %}

{%- set id, snake = cookiecutter.plugin_id, cookiecutter.__snake %}

NEXT = """
{%- if cookiecutter.kind in ("openai-compatible", "custom-format", "mix") %}
  agent-host plugins explain --provider {{ id }} &&
  python tests/try_offline.py Hello
{%- elif cookiecutter.kind == "extension" %}
  agent-host plugins explain --set 'add_tags=["supports_citations"]' &&
  agent-host run --set 'add_tags=["supports_citations"]' Hello
{%- elif cookiecutter.kind == "feature-tool" %}
  agent-host plugins info {{ id }} &&
  agent-host run --yes '/call {{ snake }}_remember {"note": "Hello."}'
{%- elif cookiecutter.kind == "store" %}
  agent-host plugins info {{ id }} &&
  echo 'store = "{{ cookiecutter.__scheme }}:sessions.db"' > store.toml &&
  agent-host run --config store.toml Hello && agent-host sessions list --config store.toml
{%- elif cookiecutter.kind == "feature" %}
  agent-host plugins info {{ id }} &&
  agent-host run "Write to ada@example.org"
{%- else %}
  agent-host plugins info {{ id }} &&
  agent-host run --yes "/call {{ snake }}_units"
{%- endif %}
"""


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    if exitstatus == 0 and terminalreporter.stats.get("passed"):
        terminalreporter.write_line(f"Next:{NEXT}")
{%- if cookiecutter.kind in ("openai-compatible", "custom-format", "tool", "mix") %}


def _live(*tags: str, **settings: Any) -> dict[str, Any]:
    """How to reach the real model: arguments for `AgentApplication.run`.

    Without one, or if it cannot do what the tags say, the test is expected to fail.
    """
    names = ("PROVIDER", "MODEL", "BASE_URL", "API_KEY")
    given = {name: os.environ.get(f"{{ cookiecutter.__variable }}_{name}", "") for name in names}
{%- if cookiecutter.kind != "tool" %}
    given["PROVIDER"] = "{{ id }}"
{%- endif %}
    missing = [f"{{ cookiecutter.__variable }}_{name}" for name in names[:2] if not given[name]]
    if missing:
        pytest.xfail(f"set {' and '.join(missing)} to test with a real model")
    places = {"base_url": given["BASE_URL"], "api_key": given["API_KEY"]}
    settings |= {key: value for key, value in places.items() if value}
    who = {"provider": given["PROVIDER"], "model": given["MODEL"]}
    with AgentApplication({}) as app:
        lacking = {*tags} - {*app.core.get_tags({**who, **settings})}
    if lacking:
        pytest.xfail(f"the model {who['model']} lacks {', '.join(sorted(lacking))}")
    return {**who, "settings": settings}


@pytest.fixture
def live() -> dict[str, Any]:
    return _live()


@pytest.fixture
def live_tools() -> dict[str, Any]:
    return _live("supports_tools")


@pytest.fixture
def live_reasoning() -> dict[str, Any]:
    return _live("supports_reasoning", effort="low")


@pytest.fixture
def live_tools_reasoning() -> dict[str, Any]:
    return _live("supports_tools", "supports_reasoning", effort="low")
{%- endif %}
