"""What the plugins of this package declare: settings, and the tool as models see it."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Effect
from agent_host_skills.listing import DEFAULT_LIST_BYTES

__all__ = ["CONFIG_SCHEMA", "EFFECTS", "SCHEMA", "TOOL"]

TOOL = "read_skill"
EFFECTS: dict[str, Effect] = {TOOL: "read"}

CONFIG_SCHEMA: dict[str, Any] = {
    "skills_folders": {
        "type": "array",
        "required": False,
        "items": {"type": "string"},
        "description": "Folders with skills or Agent Plugins packages; relative to the config.",
    },
    "use_skills": {
        "type": "array",
        "required": False,
        "items": {"type": "string"},
        "description": "Patterns of the names of skills that are offered; all by default.",
    },
    "max_skill_bytes": {
        "type": "integer",
        "required": False,
        "default": 100_000,
        "description": "How much of a file read_skill returns at once.",
    },
    "max_skill_list_bytes": {
        "type": "integer",
        "required": False,
        "default": DEFAULT_LIST_BYTES,
        "description": "How long the list of names and descriptions may be that models are sent.",
    },
}

SCHEMA: dict[str, Any] = {
    "type": "function",
    "name": TOOL,
    "description": "Read a skill's instructions, or a file that belongs to it.",
    "parameters": {
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The name of the skill."},
            "file": {
                "type": "string",
                "description": "A file of the skill, as its instructions list it; without it the "
                "instructions themselves.",
            },
            "offset": {
                "type": "integer",
                "minimum": 1,
                "description": "The line to begin with, if an earlier result was cut.",
            },
        },
        "required": ["skill"],
        "additionalProperties": False,
    },
}
