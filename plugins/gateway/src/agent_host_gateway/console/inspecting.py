"""What the command line says of the plugins, asked in a process of its own.

A plugin that hangs or ends its process while it is looked at does neither to the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from starlette.requests import Request

from agent_host_gateway.access import Caller
from agent_host_gateway.console.bodies import Row
from agent_host_gateway.console.forms import request_options
from agent_host_gateway.refusals import Refused
from agent_host_gateway.server import Gateway

__all__ = ["Inspecting"]

_SECONDS = 90.0
_MAX_AT_ONCE = 2


class Inspecting:
    """Asks the host's own command line."""

    def __init__(self, gateway: Gateway, application: Any) -> None:
        self._gateway = gateway
        self._file = application.config.file
        self._turns = asyncio.Semaphore(_MAX_AT_ONCE)

    def routes(self) -> list[Row]:
        return [
            ("GET", "plugins", self._list),
            ("GET", "plugins/doctor", self._examine),
            ("GET", "plugins/explain", self._explain),
        ]

    async def _list(self, request: Request, caller: Caller) -> Any:
        return await self._ask("list")

    async def _examine(self, request: Request, caller: Caller) -> Any:
        return await self._ask("doctor")

    async def _explain(self, request: Request, caller: Caller) -> Any:
        """Who takes part and why, in words and as a picture."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "picture.svg")
            choice = self._choice(request, caller)
            told = await self._ask("explain", *choice, f"--graph={file}")
            return {"told": told, "picture": file.read_text(encoding="utf-8")}

    def _choice(self, request: Request, caller: Caller) -> list[str]:
        model = request.query_params.get("model", "")
        options = request_options(self._gateway, caller, model)
        return [f"--{name}={value}" for name, value in options.items() if value]

    async def _ask(self, *words: str) -> Any:
        """What a command says of the plugins, as JSON; it may say so and end with a code."""
        config = [] if self._file is None else [f"--config={self._file}"]
        command = [sys.executable, "-P", "-m", "agent_host", "plugins", *words, *config, "--json"]
        if sys.version_info < (3, 11):
            command.remove("-P")
        async with self._turns:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "NO_COLOR": "1"},
            )
            try:
                out, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
            except asyncio.TimeoutError:
                raise Refused(
                    f"agent-host plugins {words[0]} took longer than {_SECONDS:g} s", kind="timeout"
                ) from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        try:
            told = json.loads(out)
        except ValueError:
            raise Refused(
                f"agent-host plugins {words[0]} ended with {process.returncode}", kind="internal"
            ) from None
        if isinstance(told, dict) and set(told) == {"error"}:
            raise Refused(str(told["error"].get("message")), kind="invalid")
        return told
