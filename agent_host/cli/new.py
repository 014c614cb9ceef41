"""``agent-host plugins new``: a plugin package with tests that pass, from a few answers.

Owns the flags and the questions at a terminal. What is asked, allowed and made is the template's.
"""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_error, print_json, style_text
from agent_host.plugins.template import Question, Template

__all__ = ["new"]

_TEMPLATE = Template()
_CHOICES = {
    each.key: click.Choice(list(each.choices), case_sensitive=False) for each in _TEMPLATE.questions
}
_KINDS = next(each.choices for each in _TEMPLATE.questions if each.key == "kind")
_KIND_LINES = "\n".join(
    f"  {kind:<{max(map(len, _KINDS))}}  {words}" for kind, words in _KINDS.items()
)


@click.command(
    epilog=f"\b\nKinds:\n{_KIND_LINES}\n"
    "\n\n\b\nExamples:\n  agent-host plugins new\n"
    '  agent-host plugins new "Acme AI" --kind custom-format\n'
    "  agent-host plugins new Units --kind tool --license MIT --no-input\n"
    "\n\nWhat no flag says is asked, on a terminal; elsewhere, and with --no-input, NAME and "
    "--kind are needed and all else has its default. Every answer is checked before anything is "
    "written."
)
@click.argument("name", required=False)
@click.option(
    "--kind",
    type=_CHOICES["kind"],
    metavar="KIND",
    help="What to make: one of the kinds below.",
)
@click.option("--id", "plugin_id", metavar="ID", help="The plugin id; by default from NAME.")
@click.option("--distribution", metavar="NAME", help="By default agent-host-ID.")
@click.option("--package", metavar="NAME", help="By default from the distribution.")
@click.option("--description", metavar="TEXT", help="What it is good for, in one sentence.")
@click.option("--author", metavar="NAME", help="Who writes it.")
@click.option("--email", metavar="ADDRESS", help="How to reach the author.")
@click.option("--license", "licence", type=_CHOICES["licence"], help="Who may use it, and how.")
@click.option("--python", type=_CHOICES["python"], help="The oldest Python it works with.")
@click.option("--docs/--no-docs", default=None, help="Whether to add a folder with docs.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Where to make its folder; by default here.",
)
@click.option("--no-input", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Ask nothing and print JSON for scripts.")
def new(output: Path, no_input: bool, as_json: bool, **flags: Any) -> int:
    """Make a plugin package called NAME, with tests that pass at once."""
    _TEMPLATE.require_tools()
    given = {key: value for key, value in flags.items() if value is not None}
    if "author" in given:
        # The address that git knows is not somebody else's.
        given.setdefault("email", "")
    wrong = _TEMPLATE.problems(given, only=given) if given else []
    if wrong:
        raise AgentError(" ".join(wrong), hint="nothing was written")
    can_ask = sys.stdin.isatty() and sys.stdout.isatty() and not (no_input or as_json)
    kinds = f": one of {', '.join(_KINDS)}"
    for key, how, which in (("name", "NAME", ""), ("kind", "--kind", kinds)):
        if key not in given and not can_ask:
            raise click.UsageError(f"{how} is needed where nothing is asked{which}")
    answers = _collect_answers(given, output, can_ask)
    folder = _TEMPLATE.bake(answers, output)
    command = _next_command(folder, answers["python"])
    if as_json:
        print_json({"path": str(folder), "answers": answers, "next": command})
    else:
        made = f"Made {answers['distribution']} in {folder}."
        click.echo(style_text(clean_text(made), fg="green"))
        click.echo(f"Next:\n  {command}")
    return 0


def _collect_answers(given: dict[str, Any], output: Path, can_ask: bool) -> dict[str, Any]:
    """The answer to every question: by flag, by whom we can ask, or by default."""
    answers: dict[str, Any] = {}
    for question in _TEMPLATE.questions:
        default = _TEMPLATE.default(question, answers)
        answers[question.key] = given.get(question.key, default)
        while can_ask and question.key not in given:
            answers[question.key] = _ask_question(question, default)
            wrong = _TEMPLATE.problems(answers, only=[question.key])
            if not wrong and question.key == "distribution":
                folder = _TEMPLATE.target(answers, output)
                wrong = [f"{folder} is there already."] if folder.exists() else []
            if not wrong:
                break
            print_error(" ".join(wrong))
    return answers


def _ask_question(question: Question, default: str | bool) -> str | bool:
    if isinstance(default, bool):
        return click.confirm(question.words, default=default)
    names = list(question.choices)
    for number, (name, words) in enumerate(question.choices.items(), 1):
        click.echo(f"  {number}  {name:<{max(map(len, names))}}  {words}".rstrip())
    # A default that is empty stands for an answer that may be.
    answer: str = click.prompt(question.words, default=default, show_default=bool(default))
    answer = answer.strip()
    if names and answer.isdecimal() and 1 <= int(answer) <= len(names):
        return names[int(answer) - 1]
    return next((name for name in names if name.lower() == answer.lower()), answer)


def _next_command(folder: Path, oldest: str) -> str:
    """What to type next: install, and run the tests, which say how to go on.

    If the package is for newer Pythons than this one, it gets an environment of its own.
    """
    environment = ""
    if tuple(map(int, oldest.split("."))) > sys.version_info[:2]:
        environment = (
            f"py -{oldest} -m venv .venv && .venv\\Scripts\\activate && "
            if os.name == "nt"
            else f"python{oldest} -m venv .venv && . .venv/bin/activate && "
        )
    # Environments that uv makes have no pip, and those of venv have.
    has_pip = bool(environment) or find_spec("pip") is not None
    install = "python -m pip install" if has_pip else "uv pip install"
    test = f'{install} -e ".[test]" && python -m pytest'
    return f"cd {shlex.quote(str(folder))} && {environment}{test}"
