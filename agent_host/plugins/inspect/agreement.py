"""Compares a loaded plugin with its descriptor and with the contract's fine print.

Gating and ordering believe the descriptor, so where the code says otherwise somebody is misled.
Used by ``plugins doctor``, ``plugins validate``, ``plugins describe`` and the conformance kit; a
request does not pay for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import AgentError, ContractError
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest
from agent_host.plugins.activate import LoadedPlugin, entry_from_class
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.descriptor import descriptor_schema
from agent_host.plugins.implementations import can_list_models

__all__ = ["Difference", "differences", "disagreements", "habits", "settings_of", "unknown_keys"]

_MUST_BE_ASKED = ("get_models", "get_tags", "is_enabled")
_TAGS = ("required_tags", "forbidden_tags")
_ATTRIBUTES = ("label", "default_enabled", "priority", "before", "after", "required_plugins")
_KEY_FLAGS = ("requires_api_key", "optional_api_key", "requires_base_url")


@dataclass(frozen=True, slots=True)
class Difference:
    """A key on which class and descriptor differ: what the class says, as JSON, and in words."""

    key: str
    value: Any
    messages: tuple[str, ...]


def disagreements(plugin: LoadedPlugin) -> Iterator[str]:
    """What the class says otherwise than its descriptor, in words."""
    try:
        for difference in differences(plugin):
            yield from difference.messages
    except AgentError as error:
        yield error.message


def differences(plugin: LoadedPlugin) -> Iterator[Difference]:
    """The keys on which the class says otherwise than its descriptor.

    Raises `ContractError` for a class that says what no descriptor may.
    """
    if not plugin.record.described:
        return
    stated = plugin.entry
    actual = entry_from_class(stated.entry, plugin.instance, plugin.role)
    yield from _differing_keys(plugin, stated, actual)
    yield from _differing_hooks(plugin, stated, actual)
    yield from _differing_settings(plugin, stated)
    if plugin.role == "tool" and dict(actual.tools) != dict(stated.tools):
        said = f"effects is {dict(actual.tools)} in the class but {dict(stated.tools)} in 'tools'"
        yield Difference("tools", dict(actual.tools), (said,))


def _differing_keys(plugin: LoadedPlugin, stated: Entry, actual: Entry) -> Iterator[Difference]:
    """A class that leaves an attribute as its base has it says nothing of it."""
    usual = Entry.of_class(stated.entry)
    spoken = [key for key in _TAGS if key in plugin.implementations]
    attributes = (*_ATTRIBUTES, *_KEY_FLAGS)
    spoken += [key for key in attributes if getattr(actual, key) != getattr(usual, key)]
    for key in spoken:
        does, said = _plain_value(getattr(actual, key)), _plain_value(getattr(stated, key))
        if does != said:
            words = f"{key} is {does!r} in the class but {said!r} in the descriptor"
            yield Difference(key, does, (words,))


def _plain_value(value: object) -> object:
    """As JSON has it; the order of tags and names means nothing."""
    return sorted(value) if isinstance(value, tuple) else value


def _differing_hooks(plugin: LoadedPlugin, stated: Entry, actual: Entry) -> Iterator[Difference]:
    missing = [
        hook
        for hook in _MUST_BE_ASKED
        if hook in actual.dynamic
        and hook not in stated.dynamic
        and _is_missed(hook, stated, plugin)
    ]
    has = {*plugin.implementations}
    absent = [
        hook
        for hook in stated.dynamic
        if hook not in has and not (hook == "get_models" and can_list_models(has))
    ]
    if missing or absent:
        asked = [*(hook for hook in stated.dynamic if hook not in absent), *missing]
        words = [_missing_words(hook, has) for hook in missing]
        words += [f"'dynamic' names {hook}, but the class does not have it" for hook in absent]
        yield Difference("dynamic", asked, tuple(words))


def _missing_words(hook: str, has: Collection[str]) -> str:
    if hook in has:
        return f"the class has {hook}, but 'dynamic' does not name it, so it is never asked"
    # The only hook that another one may stand for.
    return f"the class has models_request, but 'dynamic' does not name {hook}, so it is never asked"


def _is_missed(hook: str, stated: Entry, plugin: LoadedPlugin) -> bool:
    # A static provides_tags may stand for get_tags when both always agree.
    if hook != "get_tags" or not stated.provides_tags:
        return True
    try:
        return set(plugin.ask("get_tags", config={}, models=[])) != set(stated.provides_tags)
    except Exception:
        # Nothing is lost: the finding is that the hook has to be asked.
        return True


def _differing_settings(plugin: LoadedPlugin, stated: Entry) -> Iterator[Difference]:
    if "get_config_schema" in stated.dynamic:
        return
    said, does = stated.config_schema, settings_of(plugin)
    if does is not None and said != does:
        keys = sorted(key for key in {*said, *does} if said.get(key) != does.get(key))
        words = f"config_schema and get_config_schema differ in {', '.join(keys)}"
        yield Difference("config_schema", does, (words,))


def settings_of(plugin: LoadedPlugin) -> dict[str, Any] | None:
    """What ``get_config_schema`` returns, as a descriptor can say it; None if it is not there."""
    schema = plugin.ask("get_config_schema")
    if not isinstance(schema, dict):
        return None
    try:
        document: dict[str, Any] = json.loads(json.dumps(schema))
    except (TypeError, ValueError) as error:
        raise ContractError(
            f"get_config_schema returns what cannot be written as JSON: {error}",
            plugin=plugin.name,
            hint="use texts, numbers, lists and objects alone",
        ) from error
    return document


def habits(plugin: LoadedPlugin) -> Iterator[str]:
    """What works but may surprise the author."""
    ordered = plugin.entry.before or plugin.entry.after or plugin.entry.priority
    for each in (i for several in plugin.implementations.values() for i in several):
        hook = f"hook {each.hook.name!r}"
        if each.by_position:
            yield f"{hook} names arguments otherwise than the contract; they are bound by position"
        if ordered and (each.first or each.last):
            yield (
                f"{hook} is marked tryfirst or trylast, which only breaks ties; before, after and "
                "priority come first"
            )


def unknown_keys(bundle: Bundle) -> Iterator[str]:
    """Keys of the descriptor that mean nothing, with the one that was probably meant."""
    for path in bundle.descriptor.unknown_keys if bundle.descriptor else ():
        parent, _, key = path.rpartition(".")
        known = Entry.__match_args__ if parent else descriptor_schema()["properties"]
        meant = suggest(key, known)
        yield f"unknown key {path!r}" + (f"; {meant}" if meant else "")
