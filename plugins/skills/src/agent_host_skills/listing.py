"""What a model is told of all skills before it asks for one: a line for each, within a budget.

The same skills give the same bytes. What a skill is, and how it is read, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agent_host_skills.skill import Skill

__all__ = ["DEFAULT_LIST_BYTES", "SkillList", "list_skills"]

#: About ten thousand tokens of English.
DEFAULT_LIST_BYTES = 40_000
#: To how many characters descriptions are cut, one after the other, until all have room.
_WIDTHS = (1024, 512, 256, 128, 64, 32, 0)

_HEAD = (
    "Skills are instructions for particular tasks. If a task fits the description of one, call "
    "read_skill with its name before you begin, and follow it."
)
_CUT = "Descriptions are cut short here; read_skill has the whole of each skill."
_UNLISTED = "There are more skills than are listed."


@dataclass(frozen=True, slots=True)
class SkillList:
    """The text; to how many characters descriptions are cut, if they are; how many have no line."""

    text: str
    width: int | None = None
    unlisted: int = 0


def list_skills(skills: Sequence[Skill], limit: int) -> SkillList:
    """A line for each skill in at most ``limit`` bytes, and whole descriptions if they fit."""
    if not skills:
        return SkillList("")
    lines = [(skill.name, " ".join(skill.description.split())) for skill in skills]
    for width in _WIDTHS:
        is_cut = any(len(description) > width for _, description in lines)
        head = f"{_HEAD} {_CUT}" if is_cut else _HEAD
        shown = [_line(name, description, width) for name, description in lines]
        text = "\n".join([head, *shown])
        if len(text.encode()) <= limit:
            return SkillList(text, width if is_cut else None)
    # Names are ASCII, so that lines have as many bytes as letters.
    room = limit - len(f"{head} {_UNLISTED}\n")
    ends = accumulate(len(line) + 1 for line in shown)
    kept = [line for line, end in zip(shown, ends, strict=True) if end <= room]
    return SkillList("\n".join([f"{head} {_UNLISTED}", *kept]), 0, len(shown) - len(kept))


def _line(name: str, description: str, width: int) -> str:
    if len(description) > width:
        description = f"{description[:width].rstrip()}…" if width else ""
    return f"- {name}: {description}" if description else f"- {name}"
