"""Functions made tools, in the host: registered, called by a model, named by a descriptor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from agent_hookspecs.authoring import tool, tools
from agent_hookspecs.messages import Context
from agent_host.core import AgentCore
from agent_host_echo.provider import EchoProvider


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def python(source: str, *folders: Path) -> str:
    paths = os.pathsep.join([*map(str, folders), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def echo_core(*plugins: Any) -> Any:
    made = AgentCore()
    made.register_provider(EchoProvider)
    for plugin in plugins:
        made.register_tool(plugin)
    return made


def called(core: Any, prompt: str) -> list[Any]:
    """The results of the calls that the echo model makes when it is told to."""
    config = {"provider": "echo"}
    session = core.add_message(core.create_session(), "user", prompt)
    _, (answer,) = core.send_request(session, config)
    metadata = answer["metadata"]
    results: list[Any] = core.execute_tool_calls(
        metadata["tool_calls"], config, errors=metadata.get("tool_call_errors")
    )
    return results


def test_a_decorated_function_is_registered_and_called_by_a_model() -> None:
    with echo_core(add) as core:
        (descriptor,) = core.get_tool_schemas({"provider": "echo"})
        assert (descriptor.tool_name, descriptor.schema) == ("add", add.schema)
        results = called(core, '/call add {"a": 2, "b": 3}\n/call add {"a": 2}')
    assert [result["content"] for result in results] == ["5", "3"]


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


def halve(number: Annotated[int, AfterValidator(even)]) -> int:
    return number // 2


def test_what_only_the_types_can_check_is_a_result_that_names_the_field() -> None:
    with echo_core(tool(halve)) as core:
        good, wrong, odd = called(
            core,
            '/call halve {"number": 4}\n/call halve {"number": "x"}\n/call halve {"number": 3}',
        )
    assert good["content"] == "2"
    assert wrong["metadata"]["error"] is True
    assert "number" in wrong["content"]
    assert odd["metadata"]["error"] is True
    assert "number: Value error, must be even" in odd["content"]


def test_a_bundle_with_async_and_generator_tools_runs_in_the_host() -> None:
    async def later(a: int, context: Context) -> str:
        await asyncio.sleep(0)
        return f"{a} {'config' in context}"

    def stepwise(to: int) -> Generator[str, None, str]:
        yield "half way"
        return f"counted to {to}"

    with echo_core(tools(later, stepwise, name="several")) as core:
        results = called(core, '/call later {"a": 2}\n/call stepwise {"to": 9}')
    assert [result["content"] for result in results] == ["2 True", "counted to 9"]


def test_a_descriptor_may_name_a_decorated_function(tmp_path: Path) -> None:
    package = tmp_path / "pkg_adding"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from agent_hookspecs.authoring.function_tools import tool\n"
        '@tool(effect="read")\n'
        "def add(a: int, b: int) -> int:\n    return a + b\n",
        encoding="utf-8",
    )
    source = """
import json, sys
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.core import AgentCore
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import build_catalog
from agent_host_echo.provider import EchoProvider

entry = {"entry": "pkg_adding:add", "role": "tool", "name": "add", "tools": {"add": "read"}}
bundles = [
    Bundle("full", "pkg", "full", descriptor=parse_descriptor({"entries": [entry]})),
    Bundle("short", "pkg", "short", descriptor=parse_descriptor({"entries": ["pkg_adding.add"]})),
]
for bundle in bundles:
    with AgentCore(catalog=build_catalog([bundle])) as core:
        core.register_provider(EchoProvider)
        call = {"id": "1", "name": "add", "arguments": {"a": 1, "b": 2}}
        (result,) = core.execute_tool_calls([call], {"provider": "echo"})
        sys.stdout.write(result["content"])
"""
    assert python(source, tmp_path) == "33"
