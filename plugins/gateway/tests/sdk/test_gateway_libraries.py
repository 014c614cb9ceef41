"""Libraries on top of the vendors' SDKs, as clients of the gateway.

They are skipped where they are missing; one environment of tox has them.

Each runs in a process of its own: they leave connections to the garbage collector, which tests take
for a mistake.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_bench import Upstreams
from gateway_process import running_gateway

NAMES = ("google.generate", "anthropic.messages", "openai.responses")

PYDANTIC = """
import json, sys
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

url, *names = sys.argv[1:]


def weather(city: str) -> str:
    return f"7 degrees in {city}"


def models(name):
    openai = OpenAIProvider(base_url=f"{url}/v1", api_key="any")
    yield OpenAIChatModel(name, provider=openai)
    yield OpenAIResponsesModel(name, provider=openai)
    yield AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key="any"))


told = []
for name in names:
    for model in models(name):
        agent = Agent(model, tools=[weather])
        told.append(agent.run_sync("What is the weather?").output)
print(json.dumps(told))
"""

LITELLM = """
import json, sys
import litellm

url, *names = sys.argv[1:]
said = [{"role": "user", "content": "Hello there"}]
told = []
for name in names:
    for vendor, base in (("openai", f"{url}/v1"), ("anthropic", url)):
        asked = {"model": f"{vendor}/{name}", "messages": said, "max_tokens": 100}
        asked |= {"api_base": base, "api_key": "any"}
        told.append(litellm.completion(**asked).choices[0].message.content)
        chunks = litellm.completion(**asked, stream=True)
        told.append("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
print(json.dumps(told))
"""


@pytest.fixture
def bench() -> Iterator[tuple[Upstreams, str]]:
    with Upstreams(*NAMES) as upstreams, running_gateway(upstreams.config) as address:
        yield upstreams, f"http://{address}"


def run(script: str, bench: tuple[Upstreams, str]) -> list[Any]:
    upstreams, url = bench
    names = [upstreams.model(name) for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, url, *names],
        capture_output=True,
        text=True,
        timeout=300,
        # Prices come with the library, and are not to be fetched from anywhere.
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [server.problems for server in upstreams.servers.values()] == [[]] * len(NAMES)
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_agents_of_pydantic_ai_call_their_tools(bench: tuple[Upstreams, str]) -> None:
    pytest.importorskip("pydantic_ai.models.anthropic", reason="needs pydantic-ai and the SDKs")
    told = run(PYDANTIC, bench)
    assert len(told) == 3 * len(NAMES)
    assert all("7 degrees" in each for each in told)


def test_litellm_is_a_client(bench: tuple[Upstreams, str]) -> None:
    pytest.importorskip("litellm", reason="needs litellm")
    assert run(LITELLM, bench) == ["You said: Hello there"] * 4 * len(NAMES)
