"""A memory: models write notes with tools, and every model is told of them later.

The tools ``{{ cookiecutter.__snake }}_remember`` and ``{{ cookiecutter.__snake }}_forget`` change a file; the feature
``{{ cookiecutter.plugin_id }}`` speaks of what is in it, in words that every provider sends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_hookspecs import Config, FeaturePlugin, ToolRetry
from agent_hookspecs.authoring import ToolContext, tool, tools

from {{ cookiecutter.package }}._version import __version__

__all__ = ["Memory", "Notes"]

SETTING = "{{ cookiecutter.__snake }}_file"
DEFAULT = "{{ cookiecutter.plugin_id }}.txt"


def notes_file(config: Config) -> Path:
    return Path(config.get(SETTING) or DEFAULT).expanduser()


def read_notes(config: Config) -> list[str]:
    file = notes_file(config)
    return file.read_text("utf-8").splitlines() if file.exists() else []


def write_notes(config: Config, notes: list[str]) -> None:
    notes_file(config).write_text("".join(f"{note}\n" for note in notes), "utf-8")


class Memory(FeaturePlugin):
    """Tells every model what is in the notes."""

    name = "{{ cookiecutter.plugin_id }}"
    version = __version__

    def get_config_schema(self) -> dict[str, Any]:
        return {
            SETTING: {
                "type": "string",
                "required": False,
                "default": DEFAULT,
                "description": "The file with the notes.",
            }
        }

    def get_instructions(self, config: Config) -> str | None:
        # The same text for the same notes, so that prompt caches hold.
        notes = read_notes(config)
        return "You were asked to remember:\n" + "\n".join(notes) if notes else None


@tool(effect="write", name="{{ cookiecutter.__snake }}_remember", concurrency=1)
def remember(note: str, context: ToolContext[None]) -> str:
    """Remember something for later conversations.

    Args:
        note: What to remember, in one line.
    """
    write_notes(context.config, [*read_notes(context.config), " ".join(note.split())])
    return "noted"


@tool(effect="write", name="{{ cookiecutter.__snake }}_forget", concurrency=1)
def forget(note: str, context: ToolContext[None]) -> str:
    """Forget something that was remembered.

    Args:
        note: The note, exactly as it was remembered.
    """
    notes = read_notes(context.config)
    if note not in notes:
        raise ToolRetry(f"There is no such note. There are: {'; '.join(notes) or 'none'}.")
    write_notes(context.config, [each for each in notes if each != note])
    return "forgotten"


Notes = tools(
    remember,
    forget,
    name="{{ cookiecutter.__snake }}_notes",
    label="Notes",
    version=__version__,
)
