"""What models are told of the tools: names, descriptions, parameters, and the settings' names.

Data only. The descriptor says the same of effects and settings; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Effect
from agent_host_files.patching import GRAMMAR

__all__ = ["CONFIG_SCHEMA", "EFFECTS", "SCHEMAS"]

EFFECTS: Mapping[str, Effect] = {
    "read_file": "read",
    "list_files": "read",
    "search_files": "read",
    "write_file": "write",
    "apply_patch": "write",
}

CONFIG_SCHEMA: dict[str, Any] = {
    "root": {
        "type": "string",
        "required": False,
        "description": "The folder the tools work in; the working folder by default.",
    },
    "max_read_bytes": {
        "type": "integer",
        "required": False,
        "default": 100_000,
        "description": "How much of a file read_file returns at once.",
    },
    "max_write_bytes": {
        "type": "integer",
        "required": False,
        "default": 1_000_000,
        "description": "How large a file may be that write_file or apply_patch leaves behind.",
    },
    "max_results": {
        "type": "integer",
        "required": False,
        "default": 500,
        "description": "How many entries list_files or search_files returns.",
    },
    "max_search_seconds": {
        "type": "number",
        "required": False,
        "default": 10,
        "description": "How long list_files or search_files may take.",
    },
}

_GLOB = {
    "type": "string",
    "description": "Only paths that match: *, ?, [abc], {a,b}, and ** for any folders. Without '/' "
    "it is compared with the name alone, at any depth. Hidden names match only if the glob has a "
    "name that begins with a dot.",
}


def _function(
    name: str, description: str, required: list[str], **properties: dict[str, Any]
) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if required:
        parameters["required"] = required
    return {"name": name, "description": description, "parameters": parameters}


SCHEMAS: tuple[dict[str, Any], ...] = (
    _function(
        "read_file",
        "Read a text file of the workspace, or look at a PNG, JPEG, GIF or WebP picture.",
        ["path"],
        path={"type": "string", "description": "The file, relative to the workspace."},
        offset={
            "type": "integer",
            "minimum": 1,
            "description": "The line to begin with; the first is 1.",
        },
        limit={"type": "integer", "minimum": 1, "description": "How many lines to read."},
    ),
    _function(
        "list_files",
        "List files and folders of the workspace. Folders end with '/', symbolic links with '@'.",
        [],
        path={"type": "string", "description": "The folder; the workspace itself by default."},
        glob=_GLOB,
        depth={
            "type": "integer",
            "minimum": 1,
            "description": "How many levels to go down: 1 by default, all if there is a glob.",
        },
    ),
    _function(
        "search_files",
        "Find the lines of text files that match a regular expression. Results are "
        "'path:line: text'.",
        ["pattern"],
        pattern={"type": "string", "description": "A regular expression as Python writes them."},
        path={"type": "string", "description": "A folder or a file; everything by default."},
        glob=_GLOB,
        ignore_case={"type": "boolean", "description": "Whether case does not matter."},
    ),
    _function(
        "write_file",
        "Create a text file or replace all of its content; missing folders are made.",
        ["path", "content"],
        path={"type": "string", "description": "The file, relative to the workspace."},
        content={"type": "string", "description": "The whole new content."},
    ),
    {
        "type": "custom",
        "name": "apply_patch",
        "description": (
            "Add, update, move or delete text files of the workspace. The input is a patch in the "
            "form below, not JSON. All of it is applied or nothing.\n\n"
            "*** Begin Patch\n"
            "*** Add File: path/new.txt\n"
            "+every line begins with a plus\n"
            "*** Update File: path/old.py\n"
            "*** Move to: path/renamed.py\n"
            "@@ class Example:\n"
            " a line that stays\n"
            "-a line that goes\n"
            "+a line that comes\n"
            "*** Delete File: path/obsolete.txt\n"
            "*** End Patch\n\n"
            "Give about three lines of context around each change, exactly as they are in the "
            "file. If they occur more than once, put '@@ ' and a line that comes before, such as "
            "the head of the function. Hunks of a file stand in its order, each begins with '@@', "
            "and one that reaches the end of the file may end with '*** End of File'. 'Move to' "
            "is optional. Paths are relative to the workspace."
        ),
        "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
    },
)
