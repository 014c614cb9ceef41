"""``agent-host keys``: keep the keys of providers, see where they come from, and try them out.

A key is typed where nobody sees it, or piped in; it is never an argument, which others could read,
and never printed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import (
    AgentError,
    AuthenticationError,
    ConnectionFailedError,
    ModelNotFoundError,
    RequestTimeoutError,
)
from agent_host.checking import suggest_name
from agent_host.cli.options import complete_with
from agent_host.cli.outside import clean_text
from agent_host.cli.render import is_terminal, print_json, print_table, style_text
from agent_host.cli.screen import quiet_logs
from agent_host.key_store import TOOL_PREFIX, KeyStore

if TYPE_CHECKING:
    from agent_hookspecs.descriptor import Entry
    from agent_host.config import LoadedConfig

__all__ = ["keys"]

_CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The config file, whose aliases may have keys of their own.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
_NAME = click.argument(
    "name", metavar="PROVIDER", shell_complete=complete_with("complete_provider")
)


@click.group(
    epilog="\b\nExamples:\n  agent-host keys set PROVIDER\n"
    "  pass show my-key | agent-host keys set PROVIDER\n"
    "  agent-host keys list\n  agent-host keys test\n  agent-host keys remove PROVIDER"
)
def keys() -> None:
    """Keep and try out the keys of providers.

    A key is kept in the system's keyring if there is one, else in a file that only you may read. A
    key in an environment variable counts for more than one that is kept.
    """


@keys.command(
    "set",
    epilog="\b\nExamples:\n  agent-host keys set PROVIDER\n"
    "  pass show my-key | agent-host keys set PROVIDER",
)
@_NAME
@_CONFIG
@_JSON
def set_key(name: str, config_file: Path | None, as_json: bool) -> None:
    """Keep the key of PROVIDER, a provider or an alias of the config.

    It is asked for where nobody sees it, or read from standard input.
    """
    config, entries = _load(config_file)
    entry = _find_entry(name, config, entries)
    if not (entry.requires_api_key or entry.optional_api_key or entry.key_variable):
        raise click.UsageError(f"{clean_text(name)} needs no key")
    key = _read_key(name)
    stored = KeyStore().write(name, str(entry.name), key)
    shadow = entry.key_variable if entry.key_variable and config.env.get(entry.key_variable) else ""
    if as_json:
        print_json({"name": name, "place": stored.place, "hidden_by": shadow or None})
        return
    click.echo(f"The key of {clean_text(name)} is kept {_describe_place(stored.place)}.")
    if shadow:
        text = f"warning: {shadow} is set and counts for more; unset it to use this one"
        click.echo(style_text(text, fg="yellow"), err=True)


def _read_key(name: str) -> str:
    if is_terminal(sys.stdin):
        key: str = click.prompt(
            f"Key of {clean_text(name)}", hide_input=True, err=True, prompt_suffix=": "
        )
    else:
        key = sys.stdin.read() if sys.stdin is not None else ""
    key = key.strip()
    if not key:
        raise click.UsageError("no key was given: type it, or pipe it in")
    if len(key.split()) > 1 or not key.isprintable():
        # Not the key itself, nor a part of it.
        raise click.UsageError("this is no key: it has spaces or control characters in it")
    return key


def _describe_place(place: str) -> str:
    if place == "keyring":
        return "in the system's keyring"
    from agent_host.places import config_folder

    return f"in keys.json, in {config_folder()}, which only you may read"


@keys.command("list", epilog="\b\nExamples:\n  agent-host keys list\n  agent-host keys list --json")
@_CONFIG
@_JSON
def list_keys(config_file: Path | None, as_json: bool) -> None:
    """Show which providers have a key, and where it comes from. No key is shown."""
    config, entries = _load(config_file)
    rows = _key_rows(config, entries)
    if as_json:
        print_json({"keys": rows})
    elif rows:
        print_table(
            ["PROVIDER", "KEY FROM", "NOTE"],
            [[clean_text(row[key]) for key in ("name", "from", "note")] for row in rows],
        )
    else:
        click.echo("No provider has a key. agent-host keys set PROVIDER keeps one.")


def _key_rows(config: LoadedConfig, entries: dict[str, Entry]) -> list[dict[str, str]]:
    """Every key that is set or kept, with what hides it."""
    from agent_host.plugins.access import KEY_SETTINGS

    kept = {key.name: key for key in KeyStore().list_keys()}
    rows: list[dict[str, str]] = []
    aliases = config.values.get("providers", {})
    for name, entry in [
        *((alias, entries.get(str(of.get("provider")))) for alias, of in aliases.items()),
        *entries.items(),
    ]:
        configured = [key for key in KEY_SETTINGS if aliases.get(name, {}).get(key)]
        if configured:
            rows.append({"name": name, "from": f"{configured[0]} in the config", "note": ""})
            continue
        stored, variable = kept.pop(name, None), entry.key_variable if entry else None
        if name not in aliases and variable and config.env.get(variable):
            note = "a key that is kept is not used while it is set" if stored else ""
            rows.append({"name": name, "from": variable, "note": note})
        elif stored is not None:
            note = "" if entry and stored.provider == entry.name else f"kept for {stored.provider}"
            rows.append({"name": name, "from": _where(stored.place), "note": note})
    for name, stored in kept.items():
        note = "there is no such provider or alias here"
        if stored.provider.startswith(TOOL_PREFIX):
            note = f"kept by the tool {stored.provider.removeprefix(TOOL_PREFIX)}"
        rows.append({"name": name, "from": _where(stored.place), "note": note})
    return rows


def _where(place: str) -> str:
    return "the system's keyring" if place == "keyring" else "keys.json"


@keys.command(epilog="\b\nExamples:\n  agent-host keys remove PROVIDER")
@click.argument("name", metavar="PROVIDER", shell_complete=complete_with("complete_key"))
@_JSON
def remove(name: str, as_json: bool) -> None:
    """Forget the key that is kept for PROVIDER."""
    store = KeyStore()
    names = [key.name for key in store.list_keys()]
    if not store.remove(name):
        raise click.UsageError(
            f"no key is kept for {clean_text(name)!r}; {suggest_name(name, names)}"
        )
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        click.echo(f"The key of {clean_text(name)} is forgotten.")


@keys.command(epilog="\b\nExamples:\n  agent-host keys test\n  agent-host keys test --json")
@click.argument(
    "names", metavar="[PROVIDER]...", nargs=-1, shell_complete=complete_with("complete_provider")
)
@_CONFIG
@_JSON
def test(names: tuple[str, ...], config_file: Path | None, as_json: bool) -> int:
    """Ask providers for their models, and say what is wrong: by default all that have a key.

    Exits with 1 if one of them cannot be used.
    """
    from agent_host.application import AgentApplication
    from agent_host.cli.models import show_progress
    from agent_host.listing import ask_providers

    quiet_logs()
    config, entries = _load(config_file)
    for name in names:
        _find_entry(name, config, entries)
    wanted = names or tuple(row["name"] for row in _key_rows(config, entries))
    with AgentApplication(config) as app, show_progress(len(wanted)) as on_done:
        found = ask_providers(app, wanted, refresh=True, on_done=on_done)
    results = [
        {
            "name": each.name,
            "works": each.error is None,
            "models": len(each.models),
            "problem": describe_problem(each.error),
            "hint": each.error.hint if each.error else "",
        }
        for each in found
    ]
    if as_json:
        print_json({"keys": results})
    elif results:
        print_table(["PROVIDER", "WORKS", ""], [_result_row(result) for result in results])
    else:
        click.echo("No provider has a key. agent-host keys set PROVIDER keeps one.")
    return 0 if all(result["works"] for result in results) else 1


def _result_row(result: dict[str, Any]) -> list[str]:
    if result["works"]:
        return [clean_text(result["name"]), style_text("yes", fg="green"),
                f"{result['models']} models"]  # fmt: skip
    hint = f" ({result['hint']})" if result["hint"] else ""
    text = clean_text(f"{result['problem']}{hint}")
    return [clean_text(result["name"]), style_text("no", fg="red"), text]


def describe_problem(error: AgentError | None) -> str:
    """What kind of thing is wrong, in the words of whoever set the key."""
    match error:
        case None:
            return ""
        case AuthenticationError():
            return f"the key was refused: {error.message}"
        case ModelNotFoundError():
            return f"the address is wrong: {error.message}"
        case ConnectionFailedError() | RequestTimeoutError():
            return f"no network, or nobody answers there: {error.message}"
    return error.message


def _load(config_file: Path | None) -> tuple[LoadedConfig, dict[str, Entry]]:
    """The config, and the providers that can be used, by name."""
    from agent_host.config import load_config
    from agent_host.config.catalog import configured_catalog

    config = load_config(config_file)
    catalog = configured_catalog(config)
    return config, {
        record.name: record.entry for record in catalog.usable("provider") if record.entry
    }


def _find_entry(name: str, config: LoadedConfig, entries: dict[str, Entry]) -> Entry:
    alias = config.values.get("providers", {}).get(name)
    entry = entries.get(str(alias["provider"]) if alias else name)
    if entry is None:
        known = {*config.values.get("providers", {}), *entries}
        raise config.unknown_error("provider", name, known, "provider", is_from_caller=True)
    return entry
