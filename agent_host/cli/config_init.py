"""``agent-host config init``: asks whom to use and how, and writes a config file with comments.

What is asked is what the plugins suggest: their elements and the settings of their schemas. Keys go
to the key store; of other secrets only the name of an environment variable is written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.config_values import write_checked
from agent_host.cli.elements import ask_choice, ask_element, element_of
from agent_host.cli.options import complete_with
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_json, print_wrapped, style_text
from agent_host.cli.screen import quiet_logs
from agent_host.config.document import ConfigDocument, own_document_file
from agent_host.plugins.settings import Setting
from agent_host.redaction import is_secret

if TYPE_CHECKING:
    from agent_hookspecs.descriptor import Entry
    from agent_host.application import AgentApplication

__all__ = ["init"]

#: What is asked before anything else, or written by itself.
_FIRST = ("provider", "model", "api_key", "base_url")
#: Defaults of these kinds can be shown in a line.
_PLAIN = (str, int, float, bool, list)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@click.command(
    epilog="\b\nExamples:\n  agent-host config init\n"
    "  agent-host config init --provider echo --no-input\n"
    "  agent-host config init --file agent-host.toml"
)
@click.option("--provider", metavar="NAME", shell_complete=complete_with("complete_provider"),
              help="The provider to set up; else it is asked for.")  # fmt: skip
@click.option("--model", metavar="ID", shell_complete=complete_with("complete_model"),
              help="The model; else it is asked for.")  # fmt: skip
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False),
              help="The file to write; by default your own.")  # fmt: skip
@click.option("--no-input", is_flag=True, help="Ask nothing, and write the defaults.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def init(
    provider: str | None, model: str | None, file: Path | None, no_input: bool, as_json: bool
) -> None:
    """Ask whom to use and how, and write a config file with comments.

    What is in the file already stays, unless you answer otherwise. Nothing that is typed as a key
    is written to it: keys are kept as agent-host keys set keeps them.
    """
    from agent_host.application import AgentApplication

    quiet_logs()
    file = file or own_document_file()
    document = ConfigDocument.read(file)
    with AgentApplication({}) as app:
        entries = {
            record.name: record.entry
            for record in app.core.stacks.catalog.usable("provider")
            if record.entry is not None
        }
        if provider is None:
            provider = _ask_provider(app, entries, no_input)
        elif provider not in entries:
            raise app.config.unknown_error("provider", provider, entries, "provider")
        answers = _Answers(app, entries[provider], provider, no_input, {"model": model})
        answers.ask_access()
        settings = answers.ask_settings()
    _fill_document(document, provider, entries[provider], settings, answers.known)
    write_checked(file, document.text)
    if as_json:
        print_json({"file": str(file), "provider": provider, "settings": sorted(settings)})
    else:
        print_wrapped(f"{clean_text(file)} is written.", err=False)
        print_wrapped("Try: agent-host run 'Hello'", err=False)


def _ask_provider(app: AgentApplication, entries: dict[str, Entry], no_input: bool) -> str:
    from agent_host.cli.records import access_of, describe_state

    chosen = app.select()
    plain = next((name for name, entry in entries.items() if entry.fallback), None)
    default = chosen.provider or plain
    if no_input and default is not None:
        return default
    catalog = app.core.stacks.catalog
    options = []
    for record in catalog.usable("provider"):
        state = describe_state(record, access_of(record, None), catalog.settings)
        label = record.entry.label if record.entry else ""
        options.append((record.name, f"{label or record.name}, {state}"))
    found = None
    while found is None:
        found = ask_choice("Provider", options, default)
    return str(found)


class _Answers:
    """Asks for the settings of one provider; ``known`` are those that there are."""

    def __init__(
        self,
        app: AgentApplication,
        entry: Entry,
        name: str,
        no_input: bool,
        settings: dict[str, Any],
    ) -> None:
        self._app = app
        self._entry = entry
        self._name = name
        self._no_input = no_input
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self.known: dict[str, Setting] = {}

    def ask_access(self) -> None:
        """The address if one is needed, and the key if none is set."""
        from agent_host.key_store import KeyStore, stored_names
        from agent_host.plugins.access import find_access, stored_name

        if self._no_input:
            return
        if self._entry.requires_base_url:
            about = {"type": "string", "description": "The address of the server."}
            setting = Setting("base_url", self._name, about, required=True)
            address = None
            while address is None:
                address = ask_element({"type": "text", "label": "Address"}, setting)
            self._settings["base_url"] = address
        kept = stored_name(self._entry, stored_names(), self._name)
        access = find_access(self._entry, self._app.config.env, stored=kept)
        if access.key == "missing":
            typed = click.prompt(
                f"Key of {clean_text(self._name)} (nothing to set it later)",
                default="", hide_input=True, show_default=False, err=True,
            ).strip()  # fmt: skip
            if typed:
                KeyStore().write(self._name, self._name, typed)
        elif access.where:
            print_wrapped(style_text(f"the key is from {access.where}", dim=True))

    def ask_settings(self) -> dict[str, Any]:
        """The model, and whatever else the plugins that take part can be told."""
        config = {"provider": self._name, **self._settings}
        elements, self.known = self._find_suggestions(config)
        by_key = {str(element.get("key")): element for element in elements}
        model = self.known.get("model")
        if model is not None and "model" not in self._settings:
            usual = self._entry.default_model or model.schema.get("default")
            self._settings["model"] = usual if self._no_input else (
                ask_element(by_key.get("model") or element_of(model), model, usual) or usual
            )  # fmt: skip
        if not self._no_input:
            for setting in self._choose_further(by_key):
                value = self._ask_setting(by_key.get(setting.key) or element_of(setting), setting)
                if value is not None:
                    self._settings[setting.key] = value
        return {key: value for key, value in self._settings.items() if value is not None}

    def _choose_further(self, by_key: dict[str, Any]) -> Iterator[Setting]:
        """What plugins suggest if that is wanted, and then everything, if that is wanted too."""
        rest = [setting for key, setting in self.known.items() if key not in _FIRST]
        for question, wanted in (
            ("Set what is usually set", [each for each in rest if each.key in by_key]),
            ("Set anything else", [each for each in rest if each.key not in by_key]),
        ):
            if wanted and click.confirm(f"{question} ({len(wanted)})?", default=False, err=True):
                yield from wanted

    def _ask_setting(self, element: dict[str, Any], setting: Setting) -> Any:
        if not is_secret(setting.schema):
            usual = setting.schema.get("default")
            value = ask_element(element, setting, usual)
            # What is the default anyway need not stand in the file.
            return None if value == usual else value
        label = clean_text(element.get("label") or setting.key)
        while True:
            # Hidden, because some will type the secret itself all the same.
            typed = click.prompt(
                f"{label}: the environment variable that has it", default="", hide_input=True,
                show_default=False, err=True,
            ).strip()  # fmt: skip
            if not typed or _VARIABLE.fullmatch(typed):
                return f"${{env:{typed}}}" if typed else None
            print_wrapped(style_text("that is no name of a variable", fg="yellow"))

    def _find_suggestions(
        self, config: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], dict[str, Setting]]:
        """Elements and settings of the stack; of the descriptor alone, if no stack can be made."""
        from agent_host.plugins.settings import merge_schemas

        app, own = self._app, {k: v for k, v in config.items() if k != "provider"}
        try:
            request = app.request_config(provider=self._name, settings=own)
            with _progress(self._no_input):
                elements = app.core.get_ui_elements(request)
                known = app.core.stack(request).schema.settings
            return elements, dict(known)
        except AgentError as error:
            print_wrapped(style_text(clean_text(f"warning: {error.explain()}"), fg="yellow"))
            return [], dict(merge_schemas([(self._name, self._entry.config_schema)]).settings)


class _progress:
    """Says that the provider is being asked, while it is."""

    def __init__(self, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> None:
        if self._shown:
            click.echo(style_text("asking for its models…", dim=True), nl=False, err=True)

    def __exit__(self, *error: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def _fill_document(
    document: ConfigDocument,
    provider: str,
    entry: Entry,
    settings: dict[str, Any],
    known: dict[str, Setting],
) -> None:
    """Put the answers into the file, each with what it is for."""
    section = ["providers", provider]
    about = entry.description or entry.label
    document.set([*section, "provider"], provider, about)
    for key, value in settings.items():
        document.set([*section, key], value, _describe(known.get(key)))
    if entry.requires_api_key or entry.optional_api_key:
        document.add_comment(
            section, f"The key is not here: agent-host keys set {provider} keeps it."
        )
    for key, setting in known.items():
        default = setting.schema.get("default")
        if key not in settings and key not in _FIRST and isinstance(default, _PLAIN):
            document.add_comment(section, f"{key} = {_toml(default)}")
    document.set(["agents", "default", "provider"], provider, "Who is asked if nobody is named.")


def _describe(setting: Setting | None) -> str:
    return str(setting.schema.get("description") or "") if setting is not None else ""


def _toml(value: Any) -> str:
    from importlib import import_module

    return str(import_module("tomlkit").item(value).as_string())
