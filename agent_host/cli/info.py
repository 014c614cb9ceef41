"""``agent-host plugins info``: all that is known of one plugin, and of its settings in force."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import UnknownPluginError
from agent_hookspecs.logs import MASK, names_secret, redact
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest
from agent_host.cli.choice import Choice, choice_options, find_provider, load_chosen_catalog
from agent_host.cli.options import complete_with
from agent_host.cli.outside import clean_text
from agent_host.cli.records import (
    access_of,
    describe_access,
    describe_state,
    mark_state,
    report_unusable,
    summary_of,
)
from agent_host.cli.render import print_heading, print_json, print_pairs, print_table, print_text
from agent_host.config import Layers, LoadedConfig
from agent_host.plugins.inspect.about import CONFORMANCE_NAME, about_bundle
from agent_host.plugins.inspect.search import find_records
from agent_host.plugins.settings import Setting, merge_schemas
from agent_host.redaction import holds_secrets

if TYPE_CHECKING:
    from agent_host.plugins.bundle import Bundle
    from agent_host.plugins.catalog import Catalog, PluginRecord

__all__ = ["info"]


@dataclass(frozen=True, slots=True)
class _ClassFacts:
    """What the class itself says, once it is imported: its hooks and its settings."""

    hooks: tuple[str, ...]
    schema: object


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins info echo\n"
    "  agent-host plugins info read_file\n"
    "  agent-host plugins info extension:echo_reasoning --hooks --json"
)
@click.argument("name", shell_complete=complete_with("complete_name"))
@click.option("--hooks", "with_hooks", is_flag=True,
              help="Import it, and show its hooks and all of its settings.")  # fmt: skip
@choice_options
def info(choice: Choice, name: str, with_hooks: bool, as_json: bool, strict: bool) -> int:
    """Show all that is known of the plugin, bundle, distribution or tool called NAME.

    Imports nothing, unless --hooks is given or NAME may be that of a class without a descriptor.
    Settings are shown with their value and the place that
    it comes from, for the request that config and options describe.
    """
    config = choice.load_config() or LoadedConfig()
    catalog = load_chosen_catalog(config)
    find_provider(choice, config, catalog)
    found = _find(catalog, name)
    known = _ask_classes(found, config) if with_hooks else {}
    if as_json:
        print_json(
            {
                "plugins": [
                    {
                        **summary_of(record, access_of(record, config)),
                        **_details(record),
                        "settings": [
                            _setting_facts(setting, *_value_of(setting, record, config, choice))
                            for setting in _settings(record, known)
                        ],
                        **({"hooks": list(known[record.key].hooks)} if record.key in known else {}),
                    }
                    for record in found
                ]
            }
        )
    else:
        for number, record in enumerate(found):
            if number:
                click.echo()
            _print_record(record, catalog, config, choice, known)
    return report_unusable(catalog, strict)


def _find(catalog: Catalog, name: str) -> list[PluginRecord]:
    """Everything that goes by the name; else whoever offers a tool that does."""
    offering = [r for r in catalog if r.entry and name in r.entry.tools]
    if offering and not catalog.find(name):
        return offering
    # Plugins may print while they are imported; our output must stay readable by scripts.
    with redirect_stdout(sys.stderr):
        found = find_records(catalog, name)
    if found:
        return found
    names = {record.name for record in catalog} | {record.bundle.name for record in catalog}
    names |= {tool for record in catalog if record.entry for tool in record.entry.tools}
    raise UnknownPluginError(
        f"there is no plugin, bundle, distribution or tool {name!r}",
        plugins=(name,),
        hint=suggest(name, names) or "see agent-host plugins list",
    )


def _ask_classes(records: Sequence[PluginRecord], config: LoadedConfig) -> dict[str, _ClassFacts]:
    """What the usable ones say of themselves; one that is broken is an error that names it."""
    from agent_host.plugins.activate import Activator

    os.environ.update(config.values.get("env", {}))
    activator, known = Activator(), {}
    with redirect_stdout(sys.stderr):
        for record in records:
            if record.usable:
                plugin = activator.load(replace(record, entry=activator.identify(record)))
                asked = "get_config_schema" in plugin.implementations
                schema = plugin.ask("get_config_schema") if asked else plugin.entry.config_schema
                known[record.key] = _ClassFacts(tuple(sorted(plugin.implementations)), schema)
    return known


def _details(record: PluginRecord) -> dict[str, Any]:
    from dataclasses import asdict

    about = asdict(about_bundle(record.bundle))
    del about["readme"]
    details: dict[str, Any] = {"file": record.bundle.file, "about": about}
    details["tier"] = _tier_facts(record.bundle)
    if record.bundle.descriptor:
        details["api"] = record.bundle.descriptor.api
    return details | (asdict(record.entry) if record.entry else {})


def _tier_facts(bundle: Bundle) -> dict[str, Any]:
    """What its tier is and how that is known; most packages say nothing of it."""
    from dataclasses import asdict

    claims = bundle.descriptor is not None and bundle.descriptor.tier is not None
    proof = os.path.join(os.path.dirname(bundle.file), CONFORMANCE_NAME)
    if not claims and not (bundle.file and os.path.isfile(proof)):
        return {"claimed": None, "proved": None, "words": ""}
    # Not above: it brings pydantic.
    from agent_host.plugins.inspect.conformance import standing_of

    return asdict(standing_of(bundle))


def _settings(record: PluginRecord, known: Mapping[str, _ClassFacts]) -> list[Setting]:
    described: object = record.entry.config_schema if record.entry else {}
    if record.key in known:
        described = known[record.key].schema
    return [*merge_schemas([(record.name, described)]).settings.values()]


def _value_of(
    setting: Setting, record: PluginRecord, config: LoadedConfig, choice: Choice
) -> tuple[Any, str]:
    """The value that a request would have for a setting, and where it stands; None if nowhere."""
    for where, layer in reversed(_layers(record, config, choice)):
        if layer.get(setting.key) is not None:
            return layer[setting.key], f"{where}.{setting.key}" if where else "the command line"
    access = access_of(record, config)
    if setting.key == "api_key" and access is not None and access.where:
        return MASK, access.where
    return None, ""


def _layers(record: PluginRecord, config: LoadedConfig, choice: Choice) -> Layers:
    """The settings of a request to the plugin, if it is a provider, and else of the usual one."""
    layers = config.request_layers(**choice.request)
    if record.role == "provider" and record.name != config.provider_plugin(**choice.request):
        _, layers = config.requests_to(record.name)[0]
    filled, _ = config.fill_layers(layers)
    return filled


def _is_secret(setting: Setting) -> bool:
    return holds_secrets(setting.schema) or names_secret(setting.key)


def _setting_facts(setting: Setting, value: Any, where: str) -> dict[str, Any]:
    secret = _is_secret(setting)
    return {
        "key": setting.key,
        "type": _type_name(setting.schema),
        "choices": list(setting.schema.get("enum") or ()),
        "default": setting.schema.get("default"),
        "required": setting.required,
        "secret": secret,
        "help": setting.schema.get("description") or "",
        "value": MASK if secret and value is not None else value,
        "from": where,
    }


def _type_name(schema: Mapping[str, Any]) -> str:
    wanted = schema.get("type")
    names = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return " or ".join(str(name) for name in names if name) or "any"


def _print_record(
    record: PluginRecord,
    catalog: Catalog,
    config: LoadedConfig,
    choice: Choice,
    known: Mapping[str, _ClassFacts],
) -> None:
    access, bundle, entry = access_of(record, config), record.bundle, record.entry
    state = describe_state(record, access, catalog.settings)
    about = about_bundle(bundle)
    print_pairs(
        [
            ("Name", clean_text(record.name)),
            ("Role", record.role or "unknown until it is imported"),
            ("State", mark_state(state or _usual_state(record))),
            ("Reason", clean_text(record.reason)),
            ("Key", clean_text(describe_access(access)) if access else ""),
            ("Label", clean_text(entry.label if entry else "")),
            ("Description", clean_text(entry.description if entry else "")),
            *_tag_rows(record),
            *_order_rows(record),
            ("Hooks", _hooks_text(record, known)),
            ("Bundle", clean_text(bundle.name)),
            ("Distribution", clean_text(f"{bundle.distribution} {bundle.version}".strip())),
            ("Source", clean_text(bundle.source)),
            ("Descriptor", clean_text(bundle.file)),
            ("Contract", about.contract),
            ("Python", clean_text(about.python)),
            ("Homepage", clean_text(about.homepage)),
            ("Docs", clean_text(about.documentation)),
            ("Issues", clean_text(about.issues)),
            ("Licence", clean_text(about.license)),
            ("Tier", clean_text(_tier_facts(bundle)["words"])),
            ("Class", clean_text(entry.entry if entry else "")),
            ("Options", clean_text(", ".join(entry.options)) if entry else ""),
            ("Commands", clean_text(", ".join(entry.commands)) if entry else ""),
        ]
    )
    if entry is not None and entry.tools:
        print_heading("Tools")
        print_table(("NAME", "EFFECT"), [(clean_text(t), e) for t, e in entry.tools.items()])
    _print_settings(record, config, choice, known)


def _usual_state(record: PluginRecord) -> str:
    if record.entry is None or record.entry.short:
        return ""
    entry = record.entry
    if entry.required_tags or entry.forbidden_tags:
        return "takes part where the tags are right"
    needs = ", ".join(entry.required_plugins)
    return f"takes part wherever {needs} does" if needs else "takes part in every request"


def _tag_rows(record: PluginRecord) -> Iterator[tuple[str, str]]:
    entry = record.entry
    if entry is None:
        return
    for label, tags in (
        ("Required tags", entry.required_tags),
        ("Forbidden tags", entry.forbidden_tags),
        ("Provides tags", entry.provides_tags),
    ):
        yield label, clean_text(", ".join(tags))
    yield "Needs plugins", clean_text(", ".join(entry.required_plugins))
    yield "Asked for", ", ".join(entry.dynamic)


def _order_rows(record: PluginRecord) -> Iterator[tuple[str, str]]:
    entry = record.entry
    if entry is not None:
        yield "Before", clean_text(", ".join(entry.before))
        yield "After", clean_text(", ".join(entry.after))
        yield "Priority", str(entry.priority or "")


def _hooks_text(record: PluginRecord, known: Mapping[str, _ClassFacts]) -> str:
    if record.key in known:
        return clean_text(", ".join(known[record.key].hooks) or "none")
    return "shown with --hooks, which imports it" if record.usable else ""


def _print_settings(
    record: PluginRecord, config: LoadedConfig, choice: Choice, known: Mapping[str, _ClassFacts]
) -> None:
    settings = _settings(record, known)
    asked = record.entry is not None and "get_config_schema" in record.entry.dynamic
    if not settings and not asked:
        return
    print_heading("Settings")
    for setting in settings:
        facts = _setting_facts(setting, *_value_of(setting, record, config, choice))
        print_text(clean_text(_title(facts)), indent=2)
        if facts["help"]:
            print_text(clean_text(facts["help"]), indent=6)
        if facts["from"]:
            shown = "set" if facts["secret"] else f"is {redact(_as_text(facts['value']))}"
            print_text(clean_text(f"{shown}, from {facts['from']}"), indent=6)
    if asked and record.key not in known:
        print_text("  Only its class knows its settings: --hooks imports it and shows them.")


def _title(facts: Mapping[str, Any]) -> str:
    """The key and what its value may be, in one line."""
    choices = ", ".join(map(str, facts["choices"]))
    kind = f"{facts['type']}: {choices}" if choices else facts["type"]
    default = "" if facts["default"] is None else f"default {_as_text(facts['default'])}"
    required = "required" if facts["required"] else ""
    secret = "secret" if facts["secret"] else ""
    return f"{facts['key']}  ({'; '.join(filter(None, (kind, required, secret, default)))})"


def _as_text(value: object) -> str:
    """A value as people write it in a config."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
