"""``agent-host mcp``: see servers and what they have, try them out, approve them and forget them.

What a server says of itself is shown as data: spelt out where it could not be seen, and behind a
margin. Only what a person has approved is started, but for `approve` itself, which asks before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from agent_hookspecs import AgentError, Config, ConfigError, ToolError
from agent_hookspecs.logs import redact
from agent_host_mcp.approvals import (
    Approvals,
    ApprovedServer,
    Definition,
    Differences,
    compare,
    describe_change,
    spell_out,
    unseen_letters,
)
from agent_host_mcp.connections import Connections, Side
from agent_host_mcp.names import prompt_name, wire_name
from agent_host_mcp.servers import Limits, Server, read_limits, read_servers

__all__ = ["make_group"]

OpenApplication = Callable[..., Any]

_MARGIN = "  "
#: The provider that is always there: whom a run asks is of no interest here.
_ANY_PROVIDER = "echo"

_CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The config file that names the servers.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
_NAMES = click.argument("names", metavar="[NAME]...", nargs=-1)


@dataclass(frozen=True, slots=True)
class _Configured:
    """What the config says of servers, and what was approved."""

    servers: tuple[Server, ...]
    limits: Limits
    approvals: Approvals
    keys: Any

    def find_servers(self, names: Sequence[str]) -> list[Server]:
        """The servers of these names, or all that are not disabled."""
        if not names:
            return [server for server in self.servers if not server.disabled]
        known = {server.name: server for server in self.servers}
        for name in names:
            if name not in known:
                there = ", ".join(known) or "none"
                raise ConfigError(
                    f"the config has no MCP server {name!r}",
                    key="mcp.servers",
                    hint=f"there are: {there}",
                )
        return [known[name] for name in names]

    def state(self, server: Server) -> str:
        if server.disabled:
            return "disabled"
        if self.approvals.find(server) is not None:
            return "approved"
        return "changed" if self.approvals.others(server) else "not approved"


def make_group(open_application: OpenApplication) -> click.Group:
    """The group of commands; the application is opened when one of them needs it."""

    def read_configured(config_file: Path | None) -> _Configured:
        with open_application(config_file) as application:
            config = _own_config(application)
        return _Configured(
            read_servers(config),
            read_limits(config),
            Approvals(config["plugin_folder"]),
            config["plugin_keys"],
        )

    @click.group(
        "mcp",
        epilog="\b\nExamples:\n  agent-host mcp list\n  agent-host mcp approve git\n"
        "  agent-host mcp test\n  agent-host mcp tools git\n  agent-host mcp serve",
    )
    def group() -> None:
        """Use tools of MCP servers, and offer your own to MCP clients.

        The config names servers under mcp.servers in request_defaults, or files in the mcpServers
        form under mcp.files. A server is started, and its tools are offered, once you approve it.
        """

    @group.command(
        "list", epilog="\b\nExamples:\n  agent-host mcp list\n  agent-host mcp list --json"
    )
    @_CONFIG
    @_JSON
    def list_servers(config_file: Path | None, as_json: bool) -> None:
        """List the servers that the config names; none is started."""
        found = read_configured(config_file)
        if as_json:
            _print_json([_describe_server(found, server) for server in found.servers])
            return
        if not found.servers:
            click.echo("The config names no MCP servers.")
            return
        rows = [("NAME", "STATE", "TOOLS", "SERVER")]
        for server in found.servers:
            approved = found.approvals.find(server)
            count = str(len(approved.tools)) if approved is not None else "-"
            rows.append((server.name, found.state(server), count, _where(server)))
        _print_rows(rows)

    @group.command(
        "tools",
        epilog="\b\nExamples:\n  agent-host mcp tools\n  agent-host mcp tools git --json",
    )
    @_NAMES
    @_CONFIG
    @_JSON
    def list_tools(names: tuple[str, ...], config_file: Path | None, as_json: bool) -> None:
        """List the tools that were approved, as models get them; no server is started."""
        found = read_configured(config_file)
        tools = [*_approved_tools(found, found.find_servers(names))]
        if as_json:
            _print_json(tools)
            return
        if not tools:
            click.echo("No tool is approved. See: agent-host mcp list")
        for tool in tools:
            click.echo(spell_out(tool["name"]))
            _print_outside(tool["description"] or "(it says nothing of itself)")

    @group.command(
        "prompts",
        epilog="\b\nExamples:\n  agent-host mcp prompts\n  agent-host mcp prompts git --json",
    )
    @_NAMES
    @_CONFIG
    @_JSON
    def list_prompts(names: tuple[str, ...], config_file: Path | None, as_json: bool) -> None:
        """List the prompts that were approved, as a conversation has them; nothing is started."""
        found = read_configured(config_file)
        prompts = [*_approved_prompts(found, found.find_servers(names))]
        if as_json:
            _print_json(prompts)
            return
        if not prompts:
            click.echo("No prompt is approved. See: agent-host mcp list")
        for prompt in prompts:
            required = prompt["schema"].get("required", ())
            arguments = [
                f"{name}=…" if name in required else f"[{name}=…]"
                for name in prompt["schema"].get("properties", ())
            ]
            click.echo(spell_out(" ".join([f"/{prompt['name']}", *arguments])))
            _print_outside(prompt["description"] or "(it says nothing of itself)")

    @group.command(
        "resources",
        epilog="\b\nExamples:\n  agent-host mcp resources\n  agent-host mcp resources docs --json",
    )
    @_NAMES
    @_CONFIG
    @_JSON
    def list_resources(names: tuple[str, ...], config_file: Path | None, as_json: bool) -> None:
        """List what approved servers have to attach; starts them, or reaches them.

        @NAME:ADDRESS in a message attaches it, and so does --attach of agent-host run. What stands
        in braces in an address is to be filled in.
        """
        found = read_configured(config_file)
        resources = _find_resources(found, found.find_servers(names))
        if as_json:
            _print_json(resources)
            return
        if not resources:
            click.echo("No approved server has resources.")
        for each in resources:
            click.echo(spell_out(f"@{each['address']}"))
            about = [each["title"], each["description"], each["media_type"]]
            _print_outside(" · ".join(filter(None, about)) or "(it says nothing of itself)")

    @group.command(
        "test", epilog="\b\nExamples:\n  agent-host mcp test\n  agent-host mcp test git --json"
    )
    @_NAMES
    @_CONFIG
    @_JSON
    def test_servers(names: tuple[str, ...], config_file: Path | None, as_json: bool) -> None:
        """Start servers, or reach them, and see whether they are as they were approved.

        The exit code is 1 if one cannot be used, or is not as it was approved.
        """
        found = read_configured(config_file)
        reports = _test(found, found.find_servers(names))
        if as_json:
            _print_json(reports)
        for report in () if as_json else reports:
            click.echo(spell_out(f"{report['name']}: {report['says']}"))
        if not all(report["ok"] for report in reports):
            raise click.exceptions.Exit(1)

    @group.command(
        "approve",
        epilog="\b\nExamples:\n  agent-host mcp approve git\n"
        "  agent-host mcp approve git --yes --json",
    )
    @click.argument("names", metavar="NAME...", nargs=-1, required=True)
    @click.option("--yes", is_flag=True, help="Ask nothing: start the servers and approve them.")
    @_CONFIG
    @_JSON
    def approve(names: tuple[str, ...], yes: bool, config_file: Path | None, as_json: bool) -> None:
        """Look at servers and at what their tools say of themselves, and approve them.

        A server is started only after you have seen what would be. What you approve is remembered
        word by word: whatever changes later is not used until you have seen the difference.
        """
        if as_json and not yes:
            raise click.UsageError("--json asks nothing, so it needs --yes")
        found = read_configured(config_file)
        reports = [_approve(found, server, yes, as_json) for server in found.find_servers(names)]
        if as_json:
            _print_json(reports)
        if not all(report["approved"] for report in reports):
            raise click.exceptions.Exit(1)

    @group.command(
        "remove",
        epilog="\b\nExamples:\n  agent-host mcp remove git\n  agent-host mcp remove git --json",
    )
    @click.argument("name")
    @_CONFIG
    @_JSON
    def remove(name: str, config_file: Path | None, as_json: bool) -> None:
        """Forget that a server was approved; the config stays as it is."""
        found = read_configured(config_file)
        count = found.approvals.remove(name)
        if as_json:
            _print_json({"name": name, "removed": count})
        elif count:
            click.echo(f"{spell_out(name)} is not approved any more.")
        if not count:
            known = ", ".join(found.approvals.names()) or "none"
            raise ConfigError(f"no MCP server {name!r} is approved", hint=f"there are: {known}")

    @group.command(
        "login",
        epilog="\b\nExamples:\n  agent-host mcp login docs\n"
        "  agent-host mcp login docs --no-browser",
    )
    @click.argument("name")
    @click.option("--no-browser", is_flag=True, help="Only print the address to open.")
    @click.option("--yes", is_flag=True, help="Ask nothing: reach the server at once.")
    @_CONFIG
    def log_in(name: str, no_browser: bool, yes: bool, config_file: Path | None) -> None:
        """Log in with a server that has an address, in your browser.

        Tokens are kept with your keys, for that address alone, and renewed by themselves.
        """
        found = read_configured(config_file)
        (server,) = found.find_servers([name])
        _check_login(server)
        if found.approvals.find(server) is None:
            _show_server(found, server)
            if not yes and not _confirm("Reach it to log in?"):
                raise click.exceptions.Exit(1)
        if _log_in(found, server, opens=not no_browser):
            click.echo(f"You are logged in with {spell_out(name)}.")
            if found.approvals.find(server) is None:
                click.echo(f"Now see what it has: agent-host mcp approve {spell_out(name)}")
        else:
            click.echo(f"{spell_out(name)} wants no login.")

    @group.command("logout", epilog="\b\nExamples:\n  agent-host mcp logout docs\n")
    @click.argument("name")
    @_CONFIG
    def log_out(name: str, config_file: Path | None) -> None:
        """Forget the login with a server; the server itself is not told."""
        from agent_host_mcp.logins import forget_login

        found = read_configured(config_file)
        (server,) = found.find_servers([name])
        if not forget_login(server, found.keys):
            raise ConfigError(f"there is no login with {name!r}", hint="see: agent-host keys list")
        click.echo(f"The login with {spell_out(name)} is forgotten.")

    @group.command(
        "serve",
        epilog="\b\nExamples:\n  agent-host mcp serve\n"
        "  agent-host mcp serve --http 127.0.0.1:8811\n"
        "  agent-host mcp serve --agent reader --config agent-host.toml\n"
        "  agent-host mcp serve --json",
    )
    @click.option("--agent", metavar="NAME", help="Offer the tools of this agent of the config.")
    @click.option("--http", metavar="HOST:PORT", help="Serve at this address, not over stdio.")
    @_CONFIG
    @click.option("--json", "as_json", is_flag=True, help="Print what would be offered, and end.")
    def serve(agent: str | None, http: str | None, config_file: Path | None, as_json: bool) -> None:
        """Offer the installed tools to an MCP client, over standard input and output.

        The client starts this command. The policy of the config decides about each call; what it
        would ask, the client asks. With --http clients come to http://HOST:PORT/mcp instead: from
        this machine alone, unless AGENT_HOST_MCP_TOKEN has a token, which every request must have
        then.
        """
        from agent_host_mcp.serving import offered_tools, read_place, serve_on_http, serve_on_stdio

        place = read_place(http) if http is not None else None
        with open_application(config_file) as application:
            options = {"agent": agent, "provider": _ANY_PROVIDER}
            if as_json:
                _print_json(offered_tools(application, options))
                return
            # A config that is wrong is told here, and not to the client at every request.
            application.stack(**options)
            if place is None:
                serve_on_stdio(application, options)
            else:
                serve_on_http(application, options, place, lambda text: click.echo(text, err=True))

    return group


def _own_config(application: Any) -> Config:
    """The settings as the plugin gets them in a run."""
    stack = application.stack(provider=_ANY_PROVIDER)
    for tool in stack.tools:
        if tool.plugin.name == "mcp":
            config: Config = tool.config
            return config
    for text, plugin in stack.warnings:
        if plugin == "mcp":
            raise ConfigError(text, key="mcp", hint="look at mcp in request_defaults")
    raise ConfigError(
        "the plugin 'mcp' takes no part with this config",
        key="denied_plugins",
        hint="run: agent-host plugins explain",
    )


def _describe_server(found: _Configured, server: Server) -> dict[str, Any]:
    approved = found.approvals.find(server)
    return {
        **server.shown,
        "state": found.state(server),
        "login": _has_login(found, server),
        "origin": server.origin,
        "tools": [*approved.tools] if approved is not None else [],
    }


def _has_login(found: _Configured, server: Server) -> bool:
    if not server.url:
        return False
    from agent_host_mcp.logins import has_login

    return has_login(server, found.keys)


def _where(server: Server) -> str:
    return redact(server.url or " ".join([server.command, *server.args]))


def _approved_tools(found: _Configured, servers: Sequence[Server]) -> Iterator[dict[str, Any]]:
    for server in servers:
        approved = found.approvals.find(server)
        for tool in approved.tools.values() if approved is not None else ():
            name = wire_name(server.name, tool.name)
            yield {"name": name, "server": server.name, "tool": tool.name, **_rest_of(tool)}


def _approved_prompts(found: _Configured, servers: Sequence[Server]) -> Iterator[dict[str, Any]]:
    for server in servers:
        approved = found.approvals.find(server)
        for prompt in approved.prompts.values() if approved is not None else ():
            name = prompt_name(server.name, prompt.name)
            yield {"name": name, "server": server.name, "prompt": prompt.name, **_rest_of(prompt)}


def _find_resources(found: _Configured, servers: Sequence[Server]) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    with _opening(found) as connections:
        approved = [server for server in servers if found.approvals.find(server) is not None]
        listings = [(each, connections.list_resources(each, Side())) for each in approved]
        for server, listing in listings:
            resources, templates = listing.result()
            for resource in resources:
                described.append(_describe_resource(server, resource.uri, resource))
            for template in templates:
                described.append(_describe_resource(server, template.uri_template, template))
    return described


def _describe_resource(server: Server, uri: str, said: Any) -> dict[str, Any]:
    return {
        "address": f"{server.name}:{uri}",
        "title": said.title or said.name or "",
        "description": said.description or "",
        "media_type": said.mime_type or "",
    }


def _rest_of(tool: Definition) -> dict[str, Any]:
    return {"description": tool.description, "schema": tool.schema, "digest": tool.digest}


@contextmanager
def _opening(found: _Configured) -> Iterator[Connections]:
    connections = Connections(found.limits, lambda server, tools: None, found.keys)
    try:
        yield connections
    finally:
        connections.close()


def _test(found: _Configured, servers: Sequence[Server]) -> list[dict[str, Any]]:
    """What becomes of each server; all are started at once."""
    with _opening(found) as connections:
        begun = time.monotonic()
        approved = [server for server in servers if found.approvals.find(server) is not None]
        futures = {server.name: connections.open(server) for server in approved}
        return [_report(found, server, futures, begun) for server in servers]


def _report(
    found: _Configured, server: Server, futures: Mapping[str, Any], begun: float
) -> dict[str, Any]:
    report: dict[str, Any] = {"name": server.name, "state": found.state(server), "ok": False}
    if server.name not in futures:
        says = (
            f"{report['state']}, so it was not started; run: agent-host mcp approve {server.name}"
        )
        return {**report, "says": says}
    try:
        opened = futures[server.name].result()
    except ToolError as error:
        return {**report, "state": "failed", "says": error.message}
    seconds = round(time.monotonic() - begun, 2)
    approved = found.approvals.find(server)
    differences = compare(approved.tools if approved is not None else {}, opened.tools)
    in_prompts = compare(approved.prompts if approved is not None else {}, opened.prompts)
    said = f"{_count(opened.tools, 'tool')}, {_count(opened.prompts, 'prompt')}, "
    said += f"protocol {opened.version}, {seconds} s"
    if differences or in_prompts:
        words = [_words(differences), f"prompts {_words(in_prompts)}" if in_prompts else ""]
        said += f"; not as it was approved: {'; '.join(filter(None, words))}; "
        said += f"run: agent-host mcp approve {server.name}"
    return {
        **report,
        "ok": not differences and not in_prompts,
        "says": said,
        "server": opened.title,
        "protocol": opened.version,
        "tools": [*opened.tools],
        "prompts": [*opened.prompts],
        "seconds": seconds,
        "added": [*differences.added],
        "changed": [*differences.changed],
        "removed": [*differences.removed],
    }


def _approve(found: _Configured, server: Server, yes: bool, quiet: bool) -> dict[str, Any]:
    """Show a server and its tools, ask, and approve them."""
    before = found.approvals.find(server)
    report: dict[str, Any] = {"name": server.name, "approved": False}
    if before is None:
        if not quiet:
            _show_server(found, server)
        verb = "Reach" if server.url else "Start"
        if not yes and not _confirm(f"{verb} it to see its tools?"):
            return report
    with _opening(found) as connections:
        opened = connections.open(server).result()
    known = before or ApprovedServer(server.shown)
    tools, prompts = compare(known.tools, opened.tools), compare(known.prompts, opened.prompts)
    report |= {
        "tools": [*opened.tools],
        "prompts": [*opened.prompts],
        "left_out": opened.left_out,
    }
    is_same = before is not None and not tools and not prompts
    if not quiet:
        if is_same:
            click.echo(f"{spell_out(server.name)} is approved already, and is as it was.")
        _show_definitions(known.tools, opened.tools, tools, partial(wire_name, server.name))
        _show_definitions(
            known.prompts,
            opened.prompts,
            prompts,
            lambda name: f"The prompt /{prompt_name(server.name, name)}",
        )
        for name, why in opened.left_out.items():
            click.echo(f"{spell_out(name)} is left out: {why}.")
    if is_same:
        return {**report, "approved": True}
    counts = _count(opened.tools, "tool") + (
        f" and {_count(opened.prompts, 'prompt')}" if opened.prompts else ""
    )
    if not yes and not _confirm(f"Approve the server with {counts}?"):
        return report
    found.approvals.approve(server, opened.tools.values(), opened.prompts.values())
    if not quiet:
        click.echo(f"{spell_out(server.name)} is approved, with {counts}.")
    return {**report, "approved": True}


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}" + "s" * (len(things) != 1)


def _check_login(server: Server) -> None:
    if not server.url:
        raise ConfigError(
            f"the MCP server {server.name!r} is a program, which has no login",
            hint="give it what it needs under env",
        )
    if any(header.casefold() == "authorization" for header in server.headers):
        raise ConfigError(
            f"the MCP server {server.name!r} has an Authorization header in the config",
            key=f"mcp.servers.{server.name}.headers",
            hint="remove it to log in instead",
        )


def _log_in(found: _Configured, server: Server, *, opens: bool) -> bool:
    import asyncio
    import webbrowser

    from agent_host_mcp.connection import log_in_person

    async def show(address: str) -> None:
        host = urlsplit(address).netloc
        click.echo(f"{spell_out(server.name)} sends you to {spell_out(host)} to log in:")
        _print_outside(address)
        if opens and not await asyncio.to_thread(webbrowser.open, address):
            click.echo("No browser could be opened: open the address yourself.")

    return asyncio.run(log_in_person(server, found.keys, found.limits, show))


def _confirm(question: str) -> bool:
    try:
        return click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("there is nobody to ask; --yes approves without asking") from None


def _show_server(found: _Configured, server: Server) -> None:
    earlier = found.approvals.others(server)
    click.echo(f"The server {spell_out(server.name)} from {spell_out(server.origin)}")
    if earlier:
        click.echo("is not as it was approved:")
        _print_outside(redact(describe_change(earlier[-1].shown, server.shown)))
        return
    click.echo("would be reached at:" if server.url else "would run:")
    _print_outside(_where(server))
    for key in ("cwd", "env", "headers"):
        if server.shown.get(key):
            names = server.shown[key]
            _print_outside(f"{key}: {names if isinstance(names, str) else ', '.join(names)}")


def _show_definitions(
    known: Mapping[str, Definition],
    current: Mapping[str, Definition],
    differences: Differences,
    label: Callable[[str], str],
) -> None:
    for name in differences.added:
        definition = current[name]
        click.echo(f"{label(name)} says of itself:")
        _print_outside(definition.description or "(nothing)")
        arguments = definition.schema.get("properties")
        if isinstance(arguments, Mapping) and arguments:
            _print_outside(f"arguments: {', '.join(map(str, arguments))}")
        unseen = len([*unseen_letters(definition.to_plain())])
        if unseen:
            click.echo(
                f"Beware: it holds {unseen} letters that are not seen; they are spelt out above, "
                "and models do not get them."
            )
    for name in differences.changed:
        click.echo(f"{label(name)} has changed:")
        _print_outside(describe_change(known[name].to_plain(), current[name].to_plain()))
    for name in differences.removed:
        click.echo(f"{label(name)} is gone.")


def _words(differences: Differences) -> str:
    kinds = ("added", "changed", "removed")
    found = {kind: getattr(differences, kind) for kind in kinds}
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in found.items() if names)


def _print_outside(text: str) -> None:
    """Print what others say, so that it cannot be taken for what we say."""
    for line in spell_out(text.replace("\t", " ")).split("\n"):
        click.echo(f"{_MARGIN}| {line}")


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    shown = [[spell_out(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _print_json(value: object) -> None:
    # Everything beyond plain letters is escaped, so that no terminal obeys it.
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise AgentError(f"{type(value).__name__} cannot be written as JSON")
