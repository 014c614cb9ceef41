"""Writes the reference pages that are made from the code: hooks, descriptor and events.

Run it after changing a specification: ``python docs/generate.py``. A test compares the pages with
what it would write.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args, get_type_hints

from agent_hookspecs import events
from agent_hookspecs.descriptor import DESCRIPTOR_NAME, DESCRIPTOR_SCHEMA
from agent_hookspecs.specs import SPECS, hooks_of

__all__ = ["PAGES", "render_descriptor", "render_events", "render_hooks"]

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py from the code; change it there. -->"


def render_hooks() -> str:
    """Every hook of every role with its exact signature and its docstring."""
    lines = ["# Hooks", "", NOTE, ""]
    lines += [
        "Every hook a plugin may implement, by role. A public method named like a hook of its role",
        "is an implementation; it takes any of the arguments, by name, in any order. *Mode* says",
        "what becomes of the results of several implementations.",
        "",
    ]
    lines += [f"- [{role}](#{role}): {', '.join(hooks_of(role))}" for role in SPECS]
    for role, spec in SPECS.items():
        lines += ["", f"## {role}", "", _flat(inspect.getdoc(spec) or ""), ""]
        for hook in hooks_of(role).values():
            lines += [f"### {role}: {hook.name}", "", "```python", hook.signature, "```", ""]
            lines += _paragraphs(hook.doc)
    return "\n".join(lines).rstrip() + "\n"


def _paragraphs(doc: str) -> list[str]:
    lines: list[str] = []
    facts: list[str] = []
    for paragraph in doc.split("\n\n"):
        found = [f"- **{key}:** {_flat(text)}" for key, text in _facts(paragraph)]
        facts += found
        lines += [] if found else [_flat(paragraph), ""]
    return [*lines, *facts, ""]


def _facts(paragraph: str) -> list[tuple[str, str]]:
    """The labelled lines of a hook's docstring, continuation lines joined."""
    facts: list[tuple[str, str]] = []
    for line in paragraph.splitlines():
        key, found, text = line.partition(": ")
        if found and key in ("Fires", "May change", "On exception", "Mode"):
            facts.append((key, text.strip()))
        elif facts:
            facts[-1] = (facts[-1][0], f"{facts[-1][1]} {line.strip()}")
    return facts


def _flat(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def render_descriptor() -> str:
    """The keys of a descriptor, from its JSON Schema."""
    entry = DESCRIPTOR_SCHEMA["properties"]["entries"]["items"]["anyOf"][1]
    lines = ["# The descriptor", "", NOTE, ""]
    lines += [
        f"`{DESCRIPTOR_NAME}` lies inside the package as package data. The host reads it without",
        "importing anything, and believes it: what it says statically is not asked of the class.",
        "[Writing a plugin](plugins.md) shows it at work.",
        "",
        "## The file",
        "",
        *_table(DESCRIPTOR_SCHEMA),
        "",
        "## An entry",
        "",
        "An entry is an object with these keys, or in short form just the class as a string; then",
        "the class is imported whenever a request's stack is resolved.",
        "",
        *_table(entry),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required", ())
    rows = ["| key | value | meaning |", "|---|---|---|"]
    for key, value in schema["properties"].items():
        if key == "$schema":
            continue
        mark = " (required)" if key in required else ""
        rows.append(f"| `{key}`{mark} | {_kind(value)} | {value.get('description', '')} |")
    return rows


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema["type"] == "array" and "anyOf" not in schema["items"]:
        return f"list of {_kind(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object: name to {_kind(schema['additionalProperties'])}"
    return {"array": "list of entries", "integer": "whole number"}.get(
        schema["type"], schema["type"]
    )


def render_events() -> str:
    """The events of a run."""
    lines = ["# Events", "", NOTE, ""]
    lines += [
        "A run is a sequence of plain dicts told apart by `type`. Exactly one `done` or `error`",
        "ends it. All values can be written as JSON but one: `session` of `final` is the session",
        "itself, ready for the next turn; its `to_dict()` can be written.",
        "",
        "| type | keys | meaning |",
        "|---|---|---|",
    ]
    for kind in get_args(events.Event):
        hints = get_type_hints(kind)
        keys = ", ".join(f"`{key}`" for key in hints if key != "type")
        (name,) = get_args(hints["type"])
        lines.append(f"| `{name}` | {keys} | {_flat(inspect.getdoc(kind) or '')} |")
    return "\n".join(lines).rstrip() + "\n"


PAGES = {
    "hooks.md": render_hooks,
    "descriptor.md": render_descriptor,
    "events.md": render_events,
}

if __name__ == "__main__":
    for name, render in PAGES.items():
        (HERE / name).write_text(render(), encoding="utf-8")
