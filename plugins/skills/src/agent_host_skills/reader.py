"""The tool plugin ``skill_reader``: a skill's name in, its instructions or one of its files out.

What a model names is looked up in what was found, never made into a path. How files are opened is
the package's concern.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from agent_hookspecs import (
    Config,
    State,
    ToolArgumentsError,
    ToolError,
    ToolPlugin,
    UnknownToolError,
)
from agent_hookspecs.protection import ProtectedPaths
from agent_host_skills._version import __version__
from agent_host_skills.declarations import CONFIG_SCHEMA, EFFECTS, SCHEMA, TOOL
from agent_host_skills.frontmatter import split_head
from agent_host_skills.library import Library, open_library
from agent_host_skills.package import describe_os_error
from agent_host_skills.settings import Settings
from agent_host_skills.skill import MAX_FILE_BYTES, SKILL_FILE, Skill, decode_text
from agent_host_skills.sources import user_folder

__all__ = ["SkillReader"]

#: How many files of a skill are listed below its instructions.
_MAX_LISTED = 100


class SkillReader(ToolPlugin):
    """Reads skills and their files for a model that asks."""

    name = "skill_reader"
    version = __version__
    label = "Skills"
    effects = EFFECTS

    def get_config_schema(self) -> dict[str, Any]:
        return deepcopy(CONFIG_SCHEMA)

    def init(self, config: Config) -> State:
        settings = Settings.of(config)
        return {
            "library": open_library(settings.folders, settings.patterns),
            "limit": settings.file_bytes,
            "protected": ProtectedPaths.of(config),
        }

    def get_tool_schemas(self, state: State) -> list[dict[str, Any]]:
        """Nothing where there is nothing to read: a model would only try."""
        library: Library = state["library"]
        return [deepcopy(SCHEMA)] if library.skills else []

    def execute_tool(self, tool_name: str, payload: Any, state: State) -> dict[str, Any]:
        if tool_name != TOOL:
            raise UnknownToolError(
                f"plugin 'skill_reader' has no tool {tool_name!r}", tool=tool_name
            )
        name, file, offset = _arguments(payload)
        library: Library = state["library"]
        found = library.skills.get(name)
        if found is None:
            raise ToolArgumentsError(
                f"there is no skill {name[:100]!r}; {_suggest(name, library.skills)}", tool=TOOL
            )
        skill = found.skill
        text = read_text(skill, file, state["protected"])
        if file == SKILL_FILE:
            text = split_head(text)[1].strip("\n")
        shown, notes = _cut(text, offset, state["limit"])
        parts = [shown, *notes]
        if file == SKILL_FILE and offset == 1:
            parts += _appendix(skill, state["protected"])
        return {
            "text": "\n".join(parts),
            "display": {"kind": "skill", "skill": name, "file": file, "folder": skill.path},
        }

    def format_tool_result(self, tool_name: str, result: Any) -> dict[str, Any]:
        return {
            "role": "tool",
            "content": result["text"],
            "toolResult": {"type": "tool_result", "text": result["text"]},
            "metadata": {"display": result["display"]},
        }


def read_text(skill: Skill, file: str, protected: ProtectedPaths | None = None) -> str:
    """The text of a file of a skill, by the path under which it was found; else a `ToolError`."""
    listed = skill.files.get(file)
    if listed is None:
        raise ToolArgumentsError(
            f"the skill {skill.name!r} has no file {file[:200]!r}; {_suggest(file, skill.files)}",
            tool=TOOL,
        )
    if protected is not None and _is_protected(skill, listed.parts, protected):
        raise _refused(skill, file, "belongs to the host itself")
    try:
        data, status = skill.package.read(listed, MAX_FILE_BYTES + 1)
    except OSError as error:
        hint = "start the program anew to use it as it is now"
        raise _refused(skill, file, describe_os_error(error), hint) from None
    if protected is not None and protected.holds_status(status):
        raise _refused(skill, file, "belongs to the host itself")
    if len(data) > MAX_FILE_BYTES:
        raise _refused(skill, file, f"has more than {MAX_FILE_BYTES} bytes")
    try:
        text = decode_text(data)
    except UnicodeDecodeError:
        raise _refused(skill, file, f"is no text; it has {len(data)} bytes") from None
    if "\0" in text:
        raise _refused(skill, file, f"is no text; it has {len(data)} bytes")
    return text


def _is_protected(skill: Skill, parts: tuple[str, ...], protected: ProtectedPaths) -> bool:
    """Whether a file is the host's own by its name; the user's skills are for models to read."""
    path = skill.package.path(parts)
    own = os.path.realpath(user_folder())
    return protected.holds(path) and not path.startswith(own + os.sep)


def _refused(skill: Skill, file: str, why: str, hint: str = "") -> ToolError:
    return ToolError(f"{file} of the skill {skill.name!r} {why}", tool=TOOL, hint=hint)


def _arguments(payload: object) -> tuple[str, str, int]:
    if not isinstance(payload, Mapping):
        raise ToolArgumentsError(f"{TOOL} takes an object of named arguments", tool=TOOL)
    known = SCHEMA["parameters"]["properties"]
    unknown = [str(key) for key in payload if key not in known]
    if unknown:
        raise ToolArgumentsError(
            f"{TOOL} has no argument {unknown[0][:100]!r}; it has {', '.join(known)}", tool=TOOL
        )
    name = payload.get("skill")
    # Some models write null, or nothing, for what they leave out.
    file, offset = payload.get("file") or SKILL_FILE, payload.get("offset")
    if not isinstance(name, str) or not isinstance(file, str):
        raise ToolArgumentsError(f"'skill' and 'file' of {TOOL} must be texts", tool=TOOL)
    if offset is None:
        offset = 1
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 1:
        raise ToolArgumentsError(
            f"'offset' of {TOOL} must be a whole number of at least 1", tool=TOOL
        )
    return name, file.removeprefix("./"), offset


def _suggest(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name[:200], [*known], n=3) or [*known][:20]
    more = "" if len(near) == len(known) else ", …"
    return f"there are: {', '.join(near)}{more}"


def _cut(text: str, offset: int, limit: int) -> tuple[str, list[str]]:
    """The lines from ``offset`` on that ``limit`` bytes hold, and notes on what is missing."""
    lines = text.split("\n")
    if offset > len(lines):
        raise ToolArgumentsError(f"there is no line {offset}; the file has {len(lines)}", tool=TOOL)
    shown: list[str] = []
    used = 0
    for line in lines[offset - 1 :]:
        used += len(line.encode()) + 1
        if used > limit + 1:
            break
        shown.append(line)
    last = offset - 1 + len(shown)
    if not shown:
        cut = lines[offset - 1].encode()[:limit].decode(errors="ignore")
        note = f"[truncated: line {offset} is longer than {limit} bytes and was cut"
        more = f"; go on with offset {offset + 1}]" if offset < len(lines) else "]"
        return cut, [note + more]
    if last < len(lines):
        note = f"[truncated: lines {offset} to {last} of {len(lines)}; "
        note += f"go on with offset {last + 1}]"
        return "\n".join(shown), [note]
    return "\n".join(shown), []


def _appendix(skill: Skill, protected: ProtectedPaths) -> list[str]:
    """What the instructions may speak of: requirements, the folder, and the other files."""
    parts = []
    if skill.compatibility:
        parts.append(f"[compatibility: {' '.join(skill.compatibility.split())}]")
    others = [path for path in skill.files if path != SKILL_FILE]
    if others:
        if not protected.holds(skill.path):
            parts.append(f"[folder of this skill: {skill.path}]")
        more = f", and {len(others) - _MAX_LISTED} more" if len(others) > _MAX_LISTED else ""
        names = ", ".join(others[:_MAX_LISTED])
        parts.append(f"[files of this skill, to be read with {TOOL}: {names}{more}]")
    return ["", *parts] if parts else []
