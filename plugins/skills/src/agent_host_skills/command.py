"""``agent-host skills``: which skills there are, what they say, and whether a folder is valid.

For people and for scripts; it changes nothing. Text of skills is shown as data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from agent_hookspecs import ConfigError
from agent_host_skills.handover import server_settings
from agent_host_skills.library import FoundPackage, FoundSkill, Library, Shelf, open_library
from agent_host_skills.listing import describe_skills
from agent_host_skills.problems import Problem
from agent_host_skills.reader import read_text
from agent_host_skills.settings import Settings
from agent_host_skills.showing import describe_problem, show_line, show_lines
from agent_host_skills.skill import SKILL_FILE
from agent_host_skills.sources import Source, data_folder

__all__ = ["make_command"]

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
_config_option = click.option(
    "--config", "config_file", type=click.Path(dir_okay=False), help="Use this config file alone."
)
_agent_option = click.option("--agent", metavar="NAME", help="Use the settings of this agent.")


def make_command(open_application: Callable[..., Any]) -> click.Group:
    """The command group; ``open_application`` makes the application when a command needs it."""

    def load(config_file: str | None, agent: str | None) -> tuple[Settings, Library]:
        with open_application(config_file) as application:
            settings = Settings.of(application.request_config(agent=agent))
        return settings, open_library(settings.folders, settings.patterns)

    @click.group(
        epilog="\b\nExamples:\n  agent-host skills list\n  agent-host skills show pdf-forms\n"
        "  agent-host skills validate ./my-skill"
    )
    def skills() -> None:
        """See and check the skills that models can ask for."""

    @skills.command(
        "list",
        epilog="\b\nExamples:\n  agent-host skills list\n  agent-host skills list --agent writer\n"
        "  agent-host skills list --json",
    )
    @_config_option
    @_agent_option
    @_json_option
    def list_skills(config_file: str | None, agent: str | None, as_json: bool) -> None:
        """List the skills that models are told of, what else was found, and what is left out."""
        settings, library = load(config_file, agent)
        _print_json(_library_data(settings, library)) if as_json else _print_library(library)

    @skills.command(
        epilog="\b\nExamples:\n  agent-host skills show pdf-forms\n"
        "  agent-host skills show pdf-forms references/fields.md\n"
        "  agent-host skills show --package acme-tools",
    )
    @click.argument("name")
    @click.argument("file", default=SKILL_FILE)
    @click.option("--package", "as_package", is_flag=True, help="NAME is that of a package.")
    @_config_option
    @_agent_option
    @_json_option
    def show(
        name: str,
        file: str,
        as_package: bool,
        config_file: str | None,
        agent: str | None,
        as_json: bool,
    ) -> None:
        """Show the skill NAME as a model reads it, or FILE of it, or a package and its servers."""
        _, library = load(config_file, agent)
        if as_package:
            packages = {found.manifest.name: found for found in library.packages}
            found = _find("package", name, packages)
            data = _package_data(found)
            _print_json(data) if as_json else _print_package(found, data)
            return
        skill = _find("skill", name, library.skills)
        text = read_text(skill.skill, file)
        if as_json:
            _print_json({**_skill_data(skill), "file": file, "text": text})
        else:
            _print_skill(skill, file, text)

    @skills.command(
        epilog="\b\nExamples:\n  agent-host skills validate ./my-skill\n"
        "  agent-host skills validate ./skills ./my-package --strict --json",
    )
    @click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="FOLDER...")
    @click.option("--strict", is_flag=True, help="Exit with 1 for mere advice, too.")
    @_json_option
    def validate(paths: tuple[str, ...], strict: bool, as_json: bool) -> int:
        """Check skills and Agent Plugins packages; exit with 1 if a rule is broken.

        FOLDER is a skill, a package, or a folder of such. Nothing of it is run, and no config is
        read.
        """
        shelf = Shelf()
        for path in paths:
            shelf.add_folder(Source("config", path, os.path.abspath(path)))
        broken = [problem for problem in shelf.problems if strict or not problem.advice]
        if as_json:
            _print_json(
                {
                    "valid": not broken,
                    "skills": [found.skill.name for found in shelf.skills],
                    "packages": [found.manifest.name for found in shelf.packages],
                    "problems": [problem.to_dict() for problem in shelf.problems],
                }
            )
        else:
            _print_verdict(shelf, bool(broken))
        return 1 if broken else 0

    return skills


def _find(what: str, name: str, known: Mapping[str, Any]) -> Any:
    if name in known:
        return known[name]
    names = ", ".join([*known][:20]) or "none"
    raise ConfigError(
        f"there is no {what} {show_line(name)!r}",
        hint=f"there are: {names}; agent-host skills list says what is left out and why",
    )


def _print_json(value: object) -> None:
    # In ASCII: what a terminal would obey is written as an escape.
    click.echo(json.dumps(value, indent=2))


def _print_library(library: Library) -> None:
    if library.skills:
        width = max(len(name) for name in library.skills)
        for name, found in library.skills.items():
            description = show_line(" ".join(found.skill.description.split()))
            click.echo(f"{name:<{width}}  {_shorten(description)}")
            click.echo(f"{'':<{width}}  {show_line(_origin(found))}")
    else:
        click.echo("There are no skills.")
    _print_section(
        "MCP servers of packages, which are not started here",
        (
            show_line(f"{server.name} ({server.transport}), of package {found.manifest.name}")
            for found in library.packages
            for server in found.servers
        ),
        "agent-host skills show --package NAME prints them as settings for agent-host-mcp",
    )
    _print_section(
        "Hidden by another skill of the same name",
        (show_line(f"{found.skill.path}: {found.winner} counts") for found in library.shadowed),
    )
    _print_section(
        "Not named in use_skills",
        (show_line(f"{found.skill.name}: {found.skill.path}") for found in library.switched_off),
    )
    _print_section("Left out", _problem_lines(library.problems, lost=True))
    _print_section("Against the rules, but used", _problem_lines(library.problems, lost=False))


def _problem_lines(problems: Iterable[Problem], *, lost: bool) -> list[str]:
    return [
        describe_problem(problem)
        for problem in problems
        if bool(problem.lost) is lost and not problem.advice
    ]


def _print_section(title: str, lines: Iterable[str], note: str = "") -> None:
    shown = [*lines]
    if shown:
        click.echo(f"\n{title}:")
        for line in shown:
            click.echo(f"  {line}")
        if note:
            click.echo(f"  {note}")


def _shorten(text: str, most: int = 100) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _origin(found: FoundSkill) -> str:
    of = f"package {found.skill.plugin}, " if found.skill.plugin else ""
    whose = {"config": "config", "user": "yours", "distribution": found.source.label}
    return f"{of}{whose[found.source.kind]}: {found.skill.path}"


def _print_skill(found: FoundSkill, file: str, text: str) -> None:
    skill = found.skill
    if file == SKILL_FILE:
        click.echo(f"Skill          {skill.name}")
        click.echo(f"From           {show_line(_origin(found))}")
        if skill.allowed_tools:
            click.echo(f"Asks for       {show_line(skill.allowed_tools)} (the policy decides)")
        others = [show_line(path) for path in skill.files if path != SKILL_FILE]
        if others:
            click.echo(f"Files          {', '.join(others)}")
        click.echo()
    click.echo("\n".join(f"  {line}" for line in show_lines(text).rstrip("\n").split("\n")))


def _print_package(found: FoundPackage, data: Mapping[str, Any]) -> None:
    manifest = found.manifest
    click.echo(f"Package        {manifest.name} {show_line(manifest.version)}".rstrip())
    click.echo(f"Folder         {show_line(found.path)}")
    if manifest.description:
        click.echo(f"Description    {show_line(manifest.description)}")
    click.echo(f"Skills         {', '.join(map(show_line, found.skills)) or 'none'}")
    if found.servers:
        click.echo("\nMCP servers, which are not started here; give this to agent-host-mcp:")
        click.echo(json.dumps({"mcpServers": data["mcpServers"]}, indent=2))
        if any(server.transport == "stdio" for server in found.servers):
            click.echo(f"Before that, make the folder {show_line(data['data'])}")


def _print_verdict(shelf: Shelf, is_broken: bool) -> None:
    for problem in shelf.problems:
        click.echo(f"{'advice' if problem.advice else 'error'}: {describe_problem(problem)}")
    found = [f"skill {each.skill.name}" for each in shelf.skills]
    found += [f"package {each.manifest.name}" for each in shelf.packages]
    verdict = "invalid" if is_broken else "valid"
    click.echo(f"{verdict}: {', '.join(found) or 'nothing that can be used'}")


def _skill_data(found: FoundSkill) -> dict[str, Any]:
    skill = found.skill
    return {
        "name": skill.name,
        "description": skill.description,
        "folder": skill.path,
        "source": {"kind": found.source.kind, "label": found.source.label},
        "package": skill.plugin,
        "license": skill.license or None,
        "compatibility": skill.compatibility or None,
        "allowed_tools": skill.allowed_tools or None,
        "metadata": dict(skill.metadata),
        "files": [*skill.files],
    }


def _package_data(found: FoundPackage) -> dict[str, Any]:
    data = os.path.join(data_folder(), "plugin-data", found.manifest.name)
    return {
        "name": found.manifest.name,
        "version": found.manifest.version or None,
        "description": found.manifest.description or None,
        "folder": found.path,
        "data": data,
        "skills": [*found.skills],
        "mcpServers": {
            server.name: server_settings(found.path, data, server) for server in found.servers
        },
    }


def _library_data(settings: Settings, library: Library) -> dict[str, Any]:
    counting = [found.skill for found in library.skills.values()]
    text, width = describe_skills(counting, settings.list_bytes)
    return {
        "skills": [_skill_data(found) for found in library.skills.values()],
        "packages": [_package_data(found) for found in library.packages],
        "hidden": [{**_skill_data(each), "by": each.winner} for each in library.shadowed],
        "switched_off": [_skill_data(found) for found in library.switched_off],
        "problems": [problem.to_dict() for problem in library.problems],
        "list_bytes": len(text.encode()),
        "descriptions_cut_to": width,
    }
