"""What models are told of the tool: name, description, parameters, and the settings' names.

Data only. The descriptor says the same of effects and settings; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Effect

__all__ = ["CONFIG_SCHEMA", "EFFECTS", "SCHEMAS"]

EFFECTS: Mapping[str, Effect] = {"run_command": "execute"}

CONFIG_SCHEMA: dict[str, Any] = {
    "root": {
        "type": "string",
        "required": False,
        "description": "The folder the tools work in; the working folder by default.",
    },
    "max_command_seconds": {
        "type": "number",
        "required": False,
        "default": 120,
        "description": "How long a command may run.",
    },
    "max_output_bytes": {
        "type": "integer",
        "required": False,
        "default": 30_000,
        "description": "How much of a command's output is kept: its beginning and its end.",
    },
    "command_network": {
        "type": "boolean",
        "required": False,
        "default": False,
        "description": "Whether commands in the sandbox may use the network.",
    },
    "readable_paths": {
        "type": "array",
        "required": False,
        "default": [],
        "description": "Places of the home folder that commands in the sandbox may read.",
    },
    "command_environment": {
        "type": "array",
        "required": False,
        "default": [],
        "description": "Names of environment variables that commands get besides the harmless few.",
    },
    "without_sandbox": {
        "type": "string",
        "required": False,
        "default": "refuse",
        "enum": ["refuse", "ask"],
        "description": "What becomes of commands where there is no sandbox: they are refused, or a "
        "person is asked about each.",
    },
}

SCHEMAS: tuple[dict[str, Any], ...] = (
    {
        "name": "run_command",
        "description": (
            "Run a shell command in the workspace and get its output and exit code. It runs in a "
            "sandbox: only the workspace and /tmp can be written, the home folder is hidden, /tmp "
            "is new each time, and usually there is no network. There is no terminal and no input. "
            "Processes that are left in the background are ended with the command."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command line, as for bash -c, or sh -c without bash.",
                },
                "seconds": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "End the command after so many seconds; as long as is allowed "
                    "by default.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    },
)
