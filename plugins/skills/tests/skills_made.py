"""Skills and packages as tests need them: written to a folder, valid unless told otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_host_skills.library import Shelf
from agent_host_skills.sources import Source

__all__ = ["MANIFEST_SCHEMA", "MCP_SCHEMA", "look", "messages", "write_package", "write_skill"]

MANIFEST_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MCP_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"


def write_skill(
    parent: Path, name: str = "pdf-forms", head: str | None = None, body: str = "Fill them.\n"
) -> Path:
    """A skill below a folder; ``head`` stands for its fields."""
    folder = parent / name
    folder.mkdir(parents=True, exist_ok=True)
    fields = f"name: {name}\ndescription: Fills forms.\n" if head is None else head
    (folder / "SKILL.md").write_text(f"---\n{fields}---\n{body}", encoding="utf-8")
    return folder


def write_package(folder: Path, servers: Any = None, **fields: Any) -> Path:
    """An Agent Plugins package with one skill; a field that is None is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {"$schema": MANIFEST_SCHEMA, "name": "acme-tools", **fields}
    manifest = {key: value for key, value in given.items() if value is not None}
    (folder / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")
    write_skill(folder / "skills")
    if servers is not None:
        document = {"$schema": MCP_SCHEMA, "mcpServers": servers}
        (folder / "mcp.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def look(folder: Path) -> Shelf:
    """What is found in a folder."""
    shelf = Shelf()
    shelf.add_folder(Source("config", str(folder), str(folder)))
    return shelf


def messages(shelf: Shelf) -> str:
    """All that is wrong, in lines."""
    return "\n".join(
        f"{Path(each.file).name} {each.key} {each.message} [{each.lost}]" for each in shelf.problems
    )
