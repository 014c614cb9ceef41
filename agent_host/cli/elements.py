"""Asks a person for settings on a plain terminal, as plugins suggest with `get_ui_elements`.

Every kind of element is shown; what is typed is checked against the setting's schema at once, and
asked for again until it fits. It must not know what becomes of the answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_wrapped, style_text
from agent_host.plugins.settings import Setting, value_objection

__all__ = ["ask_choice", "ask_element", "element_of"]

_YES = ("y", "yes", "true", "on", "1")
_NO = ("n", "no", "false", "off", "0")
#: A longer list is not shown at once.
_MOST_OPTIONS = 30


def element_of(setting: Setting) -> dict[str, Any]:
    """The element for a setting for which no plugin suggests one."""
    schema = setting.schema
    choices = schema.get("enum")
    shown = {"key": setting.key, "label": setting.key}
    if isinstance(choices, (list, tuple)):
        options = [{"value": choice, "label": str(choice)} for choice in choices]
        return {"type": "select", **shown, "options": options}
    kinds = {"boolean": "checkbox", "integer": "number", "number": "number"}
    kind = schema.get("type")
    return {"type": kinds.get(kind, "text") if isinstance(kind, str) else "text", **shown}


def ask_element(element: Mapping[str, Any], setting: Setting, default: Any = None) -> Any:
    """What a person wants a setting to be; None to leave it as it is.

    An element of a kind that nobody knows is a line of text.
    """
    label = clean_text(element.get("label") or setting.key)
    about = clean_text(setting.schema.get("description") or "")
    if about:
        print_wrapped(style_text(about, dim=True))
    while True:
        value = _ask_once(element, label, setting, default)
        if value is None or value == "":
            return None
        objection = value_objection(setting, value)
        if objection is None:
            return value
        print_wrapped(style_text(clean_text(f"it {objection[0]}: {objection[1]}"), fg="yellow"))


def _ask_once(element: Mapping[str, Any], label: str, setting: Setting, default: Any) -> Any:
    match element.get("type"):
        case "select":
            options = [
                (option["value"], str(option.get("label") or option["value"]))
                for option in element.get("options") or ()
                if isinstance(option, Mapping) and "value" in option
            ]
            return ask_choice(label, options, default) if options else _ask_text(label, default)
        case "checkbox":
            return _ask_flag(label, default)
        case "number":
            return _ask_number(label, setting, default)
    return _read_text(_ask_text(label, default), setting)


def ask_choice(label: str, options: Sequence[tuple[Any, str]], default: Any = None) -> Any:
    """One of some values, by its number, itself, or a part of it that no other has."""
    first = options[:_MOST_OPTIONS]
    width = max((len(str(value)) for value, _ in first), default=0)
    for number, (value, shown) in enumerate(first, 1):
        name = str(value) if shown == str(value) else f"{value!s:<{width}}  {shown}"
        # Not wrapped by words, which would pull the columns together.
        click.echo(f"{number:>3}. {clean_text(name)}", err=True)
    if len(options) > _MOST_OPTIONS:
        more = len(options) - _MOST_OPTIONS
        print_wrapped(style_text(f"     and {more} more, by a part of the name", dim=True))
    while True:
        typed = str(_ask_text(f"{label} (number or name)", default)).strip()
        if not typed or (default is not None and typed == str(default)):
            return default if typed else None
        found = _match_option(typed, options)
        if len(found) == 1:
            return found[0]
        some = ", ".join(clean_text(value) for value in found[:8])
        words = f"it may be any of {some}" if found else "that is none of them"
        print_wrapped(style_text(words, fg="yellow"))


def _match_option(typed: str, options: Sequence[tuple[Any, str]]) -> list[Any]:
    exact = [value for value, shown in options if typed in (str(value), shown)]
    if exact:
        return exact[:1]
    if typed.isdecimal() and 0 < int(typed) <= len(options):
        return [options[int(typed) - 1][0]]
    wanted = typed.lower()
    return [value for value, shown in options if wanted in f"{value} {shown}".lower()]


def _ask_flag(label: str, default: Any) -> bool | None:
    shown = {True: "yes", False: "no"}.get(default, default)
    while True:
        typed = str(_ask_text(f"{label} (yes or no)", shown)).strip().lower()
        if not typed:
            return None
        if typed in _YES or typed in _NO:
            return typed in _YES
        print_wrapped(style_text("type yes or no, or nothing to leave it", fg="yellow"))


def _ask_number(label: str, setting: Setting, default: Any) -> int | float | None:
    while True:
        typed = str(_ask_text(f"{label} (a number)", default)).strip()
        if not typed:
            return None
        try:
            value = json.loads(typed)
        except ValueError:
            # Nothing is lost: it is asked for again.
            value = None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        print_wrapped(style_text("that is no number", fg="yellow"))


def _ask_text(label: str, default: Any) -> Any:
    shown = default if default is not None else ""
    return click.prompt(label, default=shown, show_default=default is not None, err=True, type=str)


def _read_text(typed: Any, setting: Setting) -> Any:
    """Typed text as its schema wants it: lists and objects are JSON, or words with commas."""
    kind = setting.schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    if not typed or "string" in kinds or not kinds:
        return typed
    try:
        return json.loads(typed)
    except ValueError:
        # Nothing is lost: it may be a plain list, and is checked afterwards.
        return [word.strip() for word in typed.split(",")] if "array" in kinds else typed
