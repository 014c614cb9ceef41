"""What a model is told of all skills before it asks for one: a line for each, within a budget.

The same skills give the same bytes. What a skill is, and how it is read, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_host_skills.skill import Skill

__all__ = ["DEFAULT_LIST_BYTES", "describe_skills"]

#: About ten thousand tokens of English.
DEFAULT_LIST_BYTES = 40_000
#: To how many characters descriptions are cut, one after the other, until all have room.
_WIDTHS = (1024, 512, 256, 128, 64, 32, 0)

_HEAD = (
    "Skills are instructions for particular tasks. If a task fits the description of one, call "
    "read_skill with its name before you begin, and follow it."
)
_CUT = "Descriptions are cut short here; read_skill has the whole of each skill."


def describe_skills(skills: Iterable[Skill], limit: int) -> tuple[str, int | None]:
    """The text, and to how many characters descriptions had to be cut; None if they are whole."""
    lines = [(skill.name, " ".join(skill.description.split())) for skill in skills]
    if not lines:
        return "", None
    for width in _WIDTHS:
        is_cut = any(len(description) > width for _, description in lines)
        head = f"{_HEAD} {_CUT}" if is_cut else _HEAD
        text = "\n".join([head, *(_line(name, description, width) for name, description in lines)])
        if len(text.encode()) <= limit:
            break
    return text, width if is_cut else None


def _line(name: str, description: str, width: int) -> str:
    if len(description) > width:
        description = f"{description[:width].rstrip()}…" if width else ""
    return f"- {name}: {description}" if description else f"- {name}"
