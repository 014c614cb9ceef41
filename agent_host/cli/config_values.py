"""``agent-host config get``, ``set`` and ``edit``: one value, or the whole file.

Nothing is written that would not be valid, and nothing else in the file changes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agent_hookspecs.errors import AgentError, ConfigError
from agent_hookspecs.logs import names_secret
from agent_host.cli.options import complete_with, decode_value
from agent_host.cli.outside import clean_text
from agent_host.cli.render import (
    is_terminal,
    print_error,
    print_json,
    print_json_value,
    print_wrapped,
    style_text,
)
from agent_host.config.document import (
    ConfigDocument,
    own_document_file,
    split_key,
    write_document,
)

__all__ = ["edit", "get", "set_value", "write_checked"]

_FILE = click.Path(path_type=Path, dir_okay=False)
_CONFIG = click.option(
    "--config", "config_file", type=_FILE, help="The file to change; by default your own."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def write_checked(file: Path, text: str) -> None:
    """Replace a config file, if what it would say is valid with the plugins there are."""
    from agent_host.config import parse_config
    from agent_host.config.catalog import configured_catalog
    from agent_host.config.check import check_loading, check_request
    from agent_host.config.placeholders import placeholders
    from agent_host.plugins.activate import Activator

    values = ConfigDocument(file, text).values
    config = parse_config(values, file)
    unset = [name for name in dict.fromkeys(placeholders(values)) if name not in config.env]
    if unset:
        # They may be set when the config is used; what else is wrong is looked for all the same.
        names = ", ".join(map(clean_text, unset))
        print_wrapped(style_text(f"warning: not set in the environment yet: {names}", fg="yellow"))
        known = {**values.get("env", {}), **dict.fromkeys(unset, "unset")}
        config = replace(config, values={**values, "env": known})
    catalog = configured_catalog(config)
    check_loading(config, catalog)
    for way in config.ways_to_run():
        check_request(config, catalog, Activator(), way["agent"], way["provider"])
    write_document(file, text)


@click.command(
    epilog="\b\nExamples:\n  agent-host config get\n"
    "  agent-host config get agents.default.model\n  agent-host config get providers --json"
)
@click.argument("key", required=False, shell_complete=complete_with("complete_config_key"))
@click.option("--config", "config_file", type=_FILE, help="The config file.")
@_JSON
def get(key: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print the value of KEY in the config in force, with secrets masked; of none, all of it."""
    from agent_host.config import load_config
    from agent_host.redaction import mask_config

    value: Any = mask_config(load_config(config_file).values)
    for step in split_key(key) if key else ():
        if not isinstance(value, dict) or step not in value:
            raise ConfigError(
                f"{key} is not set",
                key=key,
                hint="agent-host config get prints what is; agent-host config schema what may be",
            )
        value = value[step]
    if as_json:
        print_json({"key": key, "value": value})
    elif isinstance(value, str):
        click.echo(clean_text(value))
    else:
        print_json_value(value)


@click.command(
    "set",
    epilog="\b\nExamples:\n  agent-host config set agents.default.model PROVIDER/MODEL\n"
    "  agent-host config set tools.max_turns 50\n"
    "  agent-host config set agents.reviewer.system 'You review code.'\n"
    "  agent-host config set tools.max_turns --unset",
)
@click.argument("key", shell_complete=complete_with("complete_config_key"))
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Take the value out.")
@_CONFIG
@_JSON
def set_value(
    key: str, value: str | None, unset: bool, config_file: Path | None, as_json: bool
) -> None:
    """Set KEY to VALUE, which may be JSON, in your own config file.

    Comments and everything else stay as they are. What would not be valid is not written.
    """
    if (value is None) != unset:
        raise click.UsageError("give a VALUE, or --unset")
    steps = split_key(key)
    if value is not None and names_secret(steps[-1]) and "${env:" not in value:
        name = steps[1] if steps[0] == "providers" and len(steps) > 2 else "PROVIDER"
        raise click.UsageError(
            "a secret on the command line is seen by others, and a config is no place for it; "
            f"run: agent-host keys set {clean_text(name)}"
        )
    file = config_file or own_document_file()
    document = ConfigDocument.read(file)
    if value is None:
        if not document.remove(steps):
            raise ConfigError(f"{file} does not set {key}", key=key, file=str(file))
    else:
        document.set(steps, decode_value(value))
    write_checked(file, document.text)
    if as_json:
        print_json({"file": str(file), "key": key, "set": not unset})
    else:
        print_wrapped(
            f"{clean_text(key)} is {'no longer ' if unset else ''}set in {clean_text(file)}.",
            err=False,
        )


@click.command(
    epilog="\b\nExamples:\n  agent-host config edit\n"
    "  EDITOR=nano agent-host config edit --config agent-host.toml"
)
@_CONFIG
@_JSON
def edit(config_file: Path | None, as_json: bool) -> int:
    """Open the config file in $VISUAL or $EDITOR, and keep it if it is valid.

    If it is not, you may go on editing, or go back to what it was.
    """
    file = config_file or own_document_file()
    before = file.read_text(encoding="utf-8") if file.exists() else ConfigDocument.read(file).text
    with tempfile.TemporaryDirectory(prefix="agent-host-") as folder:
        # A copy, so that what is half done is never in force.
        copy = Path(folder, file.name)
        copy.write_text(before, encoding="utf-8")
        while True:
            _run_editor(copy)
            after = copy.read_text(encoding="utf-8", errors="replace")
            if after == before and file.exists():
                return _report_edit(file, "is as it was", False, as_json)
            try:
                write_checked(file, after)
            except AgentError as error:
                print_error(error.message.replace(str(copy), str(file)), error.hint)
                if not _wants_more():
                    return _report_edit(file, "is as it was", False, as_json) or 1
                continue
            return _report_edit(file, "is changed", True, as_json)


def _run_editor(file: Path) -> None:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _usual_editor()
    try:
        done = subprocess.run([*shlex.split(command), str(file)], check=False)
    except OSError as error:
        raise ConfigError(
            f"the editor {command!r} cannot be run: {error.strerror}",
            key="EDITOR",
            hint="set EDITOR to one that is installed",
        ) from error
    if done.returncode:
        raise ConfigError(
            f"the editor {command!r} ended with {done.returncode}; nothing was changed",
            key="EDITOR",
            hint="set EDITOR to one that waits until the file is closed",
        )


def _usual_editor() -> str:
    return "notepad" if sys.platform == "win32" else "vi"


def _wants_more() -> bool:
    if not is_terminal(sys.stdin):
        return False
    return bool(click.confirm("Edit it again? Else it stays as it was", default=True, err=True))


def _report_edit(file: Path, what: str, changed: bool, as_json: bool) -> int:
    if as_json:
        print_json({"file": str(file), "changed": changed})
    else:
        click.echo(f"{clean_text(file)} {what}.")
    return 0
