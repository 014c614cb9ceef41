"""Compares a loaded plugin with its descriptor and with the contract's fine print.

Gating and ordering believe the descriptor, so where the code says otherwise somebody is misled.
Used by ``plugins doctor``; a request does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import AgentError
from agent_hookspecs.roles import FeaturePlugin, ProviderExtensionPlugin, ProviderPlugin, ToolPlugin
from agent_host.checking import suggest
from agent_host.plugins.activate import LoadedPlugin, entry_from_class
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.descriptor import descriptor_schema
from agent_host.plugins.registry import ordering_markers

__all__ = ["disagreements", "habits", "unknown_keys"]

_BASES = {
    "provider": ProviderPlugin,
    "extension": ProviderExtensionPlugin,
    "feature": FeaturePlugin,
    "tool": ToolPlugin,
}
#: Models are always asked for, since no descriptor can list them.
_MUST_BE_ASKED = ("get_tags", "is_enabled")
_KEY_FLAGS = ("requires_api_key", "optional_api_key", "requires_base_url")


def disagreements(plugin: LoadedPlugin) -> Iterator[str]:
    """What the class says otherwise than its descriptor."""
    if not plugin.record.described:
        return
    stated = plugin.entry
    try:
        actual = entry_from_class(stated.entry, plugin.instance, plugin.role)
    except AgentError as error:
        yield error.message
        return
    yield from _differing_tags(plugin, stated, actual)
    for hook in _MUST_BE_ASKED:
        if hook in actual.dynamic and hook not in stated.dynamic and _matters(hook, stated, plugin):
            yield f"the class has {hook}, but 'dynamic' does not name it, so it is never asked"
    for hook in stated.dynamic:
        if hook in plugin.implementations:
            continue
        if hook == "get_models" and "models_request" in plugin.implementations:
            continue
        yield f"'dynamic' names {hook}, but the class does not have it"
    base = _BASES[plugin.role]
    flags = _KEY_FLAGS if plugin.role == "provider" else ()
    for attribute in ("default_enabled", "priority", "before", "after", *flags):
        value, default = getattr(plugin.instance, attribute, None), getattr(base, attribute)
        value = tuple(value) if isinstance(value, (list, tuple)) else value
        if value not in (None, default, getattr(stated, attribute)):
            yield (
                f"{attribute} is {value!r} in the class but {getattr(stated, attribute)!r} in the "
                "descriptor"
            )
    yield from _differing_settings(plugin, stated)
    if plugin.role == "tool" and dict(actual.tools) != dict(stated.tools):
        yield f"effects is {dict(actual.tools)} in the class but {dict(stated.tools)} in 'tools'"


def _differing_settings(plugin: LoadedPlugin, stated: Entry) -> Iterator[str]:
    if "get_config_schema" in stated.dynamic:
        return
    for implementation in plugin.implementations.get("get_config_schema", ()):
        said, does = stated.config_schema, implementation.call()
        if said != does and isinstance(does, dict):
            keys = sorted(key for key in {*said, *does} if said.get(key) != does.get(key))
            yield f"config_schema and get_config_schema differ in {', '.join(keys)}"


def _differing_tags(plugin: LoadedPlugin, stated: Entry, actual: Entry) -> Iterator[str]:
    for attribute in ("required_tags", "forbidden_tags"):
        if attribute not in plugin.implementations:
            continue
        said, does = set(getattr(stated, attribute)), set(getattr(actual, attribute))
        if said != does:
            yield f"{attribute} is {sorted(does)} in the class but {sorted(said)} in the descriptor"


def _matters(hook: str, stated: Entry, plugin: LoadedPlugin) -> bool:
    # A static provides_tags may stand for get_tags when both always agree.
    if hook != "get_tags" or not stated.provides_tags:
        return True
    try:
        implementation = plugin.implementations["get_tags"][0]
        return set(implementation.call({}, [])) != set(stated.provides_tags)
    except Exception:
        return True


def habits(plugin: LoadedPlugin) -> Iterator[str]:
    """What works but may surprise the author."""
    for implementations in plugin.implementations.values():
        for implementation in implementations:
            if implementation.by_position:
                yield (
                    f"hook {implementation.hook!r} names arguments otherwise than the contract; "
                    "they are bound by position"
                )
    for method in ordering_markers(plugin.instance):
        yield f"{method} is marked tryfirst or trylast, which has no effect; use before and after"


def unknown_keys(bundle: Bundle) -> Iterator[str]:
    """Keys of the descriptor that mean nothing, with the one that was probably meant."""
    for path in bundle.descriptor.unknown_keys if bundle.descriptor else ():
        parent, _, key = path.rpartition(".")
        known = Entry.__match_args__ if parent else descriptor_schema()["properties"]
        meant = suggest(key, known)
        yield f"unknown key {path!r}" + (f"; {meant}" if meant else "")
