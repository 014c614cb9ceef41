"""The JSON documents of an Agent Plugins package, version 1.0.0: plugin.json and mcp.json.

Owns their rules and how far each failure reaches: an unknown field costs nothing, an entry that is
wrong costs itself, a document that is wrong costs all that it speaks for. Nothing is started, and
no schema is fetched.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agent_host_skills.package import OutsideError, Package, describe_os_error
from agent_host_skills.problems import Loss, Problem

__all__ = ["MANIFEST", "SERVERS", "Manifest", "Server", "read_manifest", "read_servers"]

MANIFEST = "plugin.json"
SERVERS = "mcp.json"
MAX_DOCUMENT_BYTES = 256 * 1024
MAX_NAME = 64

_SCHEMAS = "https://agent-plugins.org/schemas/1.0.0/"
_MANIFEST_SCHEMA = f"{_SCHEMAS}plugin.schema.json"
_SERVERS_SCHEMA = f"{_SCHEMAS}mcp.schema.json"
_NAME = re.compile(r"(?!.*(--|\.\.))[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_TEXTS = ("version", "description", "homepage", "repository", "license")
_AUTHOR = ("name", "email", "url")
_KNOWN = ("$schema", "name", *_TEXTS, "author", "keywords", "extensions")
_STDIO = ("type", "command", "args", "env", "cwd")
_REMOTE = ("type", "url", "headers")
_RESERVED = ("PLUGIN_ROOT", "PLUGIN_DATA")
_CWD = re.compile(r"\./.*|\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}(/.*)?", re.DOTALL)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\uffff]*")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a package says of itself."""

    name: str
    version: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """An MCP server that a package describes. ``settings`` are as its entry has them."""

    name: str
    settings: Mapping[str, Any]

    @property
    def transport(self) -> str:
        return str(self.settings["type"])


class _DocumentError(ValueError):
    """A document cannot be used at all."""


def read_manifest(package: Package) -> tuple[Manifest | None, list[Problem]]:
    """The manifest, None if it breaks a rule that costs the package; and all that is wrong."""
    file = package.path((MANIFEST,))

    def wrong(key: str, message: str, hint: str = "", lost: Loss = "package") -> Problem:
        return Problem(file, message, hint, key, lost=lost)

    try:
        document = _read_document(package, MANIFEST)
    except _DocumentError as error:
        return None, [wrong("", str(error))]
    problems = [
        wrong(key, "is no field of a manifest and is ignored", "put it under 'extensions'", "")
        for key in document
        if key not in _KNOWN
    ]
    problems += (wrong(*each) for each in _manifest_problems(document))
    if not isinstance(document.get("extensions", {}), dict):
        problems.append(wrong("extensions", "is no object and is ignored", "", ""))
    else:
        problems += (
            wrong(f"extensions.{key}", "is no object")
            for key, value in document.get("extensions", {}).items()
            if not isinstance(value, dict)
        )
    if any(problem.lost for problem in problems):
        return None, problems
    return Manifest(
        document["name"], document.get("version", ""), document.get("description", "")
    ), problems


def _manifest_problems(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    schema, name = document.get("$schema"), document.get("name")
    if schema is None:
        yield "$schema", "is missing", f"set it to {_MANIFEST_SCHEMA}"
    elif schema != _MANIFEST_SCHEMA:
        yield "$schema", "names no version that is supported", f"set it to {_MANIFEST_SCHEMA}"
    if name is None:
        yield "name", "is missing", "add the name of the package"
    elif not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        yield (
            "name",
            "is no name of a package",
            f"write 1 to {MAX_NAME} of a-z, 0-9, '-' and '.', no '--' or '..', and begin and end "
            "with a letter or digit",
        )
    for key in _TEXTS:
        if not isinstance(document.get(key, ""), str):
            yield key, "is no text", ""
    author = document.get("author", {})
    if not isinstance(author, dict):
        yield "author", "is no object", 'write {"name": …}'
    else:
        for key, value in author.items():
            if key not in _AUTHOR:
                yield f"author.{key}", "is no field of an author", f"use {', '.join(_AUTHOR)}"
            elif not isinstance(value, str):
                yield f"author.{key}", "is no text", ""
    keywords = document.get("keywords", [])
    if not isinstance(keywords, list) or not all(isinstance(each, str) for each in keywords):
        yield "keywords", "is no list of texts", ""


def read_servers(package: Package) -> tuple[list[Server], list[Problem]]:
    """The servers that an mcp.json describes and that are valid; and all that is wrong."""
    file = package.path((SERVERS,))
    try:
        document = _read_document(package, SERVERS)
    except _DocumentError as error:
        return [], [Problem(file, str(error), lost="servers")]
    problems = []
    if document.get("$schema") != _SERVERS_SCHEMA:
        what = "names no version that is supported, or not that of plugin.json"
        problems.append(Problem(file, what, f"set it to {_SERVERS_SCHEMA}", "$schema"))
    entries = document.get("mcpServers")
    if not isinstance(entries, dict):
        problems.append(Problem(file, "is missing or no object", "", "mcpServers"))
    problems += (
        Problem(file, "is no field of mcp.json", "remove it", key)
        for key in document
        if key not in ("$schema", "mcpServers")
    )
    if problems or not isinstance(entries, dict):
        # One that is wrong in any of these ways counts as a whole.
        return [], [_costing(problem, "servers") for problem in problems]
    servers = []
    for name, settings in entries.items():
        found = [
            Problem(file, what, hint, f"mcpServers.{name}{key}", lost="server")
            for key, what, hint in _server_problems(package, settings)
        ]
        problems += found
        if not found:
            servers.append(Server(name, settings))
    return servers, problems


def _costing(problem: Problem, lost: Loss) -> Problem:
    return Problem(problem.file, problem.message, problem.hint, problem.key, lost=lost)


def _server_problems(package: Package, settings: object) -> Iterator[tuple[str, str, str]]:
    if not isinstance(settings, dict):
        yield "", "is no object", ""
        return
    kind = settings.get("type")
    if kind not in ("stdio", "streamable-http", "sse"):
        yield ".type", "is no transport", "use stdio, streamable-http or sse"
        return
    known = _STDIO if kind == "stdio" else _REMOTE
    for key in settings:
        if key not in known:
            yield f".{key}", f"is no field of a {kind} server", f"it has {', '.join(known)}"
    if kind == "stdio":
        yield from _stdio_problems(package, settings)
    else:
        yield from _remote_problems(settings)


def _stdio_problems(
    package: Package, settings: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    command = settings.get("command")
    hint = "name a program, or a file of the package as './…'"
    if not isinstance(command, str) or not command.strip():
        yield ".command", "is missing or no text", hint
    elif command.startswith("./"):
        yield from ((".command", what, hint) for what in _escapes(package, command))
    elif re.search(r"[\s/\\\0]", command):
        yield ".command", "is neither the name of a program nor a file of the package", hint
    arguments = settings.get("args", [])
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        yield ".args", "is no list of texts", ""
    env = settings.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(each, str) for each in env.values()):
        yield ".env", "is no object of texts", ""
    else:
        for name in env:
            if name in _RESERVED or (os.name == "nt" and name.upper() in _RESERVED):
                yield f".env.{name}", "is set by the client alone", "remove it"
    cwd = settings.get("cwd", "./")
    if not isinstance(cwd, str) or not _CWD.fullmatch(cwd):
        hint = "begin it with './', '${PLUGIN_ROOT}' or '${PLUGIN_DATA}'"
        yield ".cwd", "is no folder of the package or its data", hint
    elif cwd.startswith("${PLUGIN_DATA}"):
        # The folder is made when a server is started; what cannot lead out of it has no '..'.
        if ".." in re.split(r"[/\\]", cwd):
            yield ".cwd", "leads out of the package's data", "write it without '..'"
    else:
        inside = cwd.replace("${PLUGIN_ROOT}", ".", 1)
        yield from ((".cwd", what, "") for what in _escapes(package, inside))


def _escapes(package: Package, path: str) -> Iterator[str]:
    if "\0" in path:
        yield "has a NUL character"
        return
    try:
        package.resolve(tuple(part for part in path.split("/") if part not in ("", ".")))
    except OutsideError:
        yield "leads out of the package"
    except OSError as error:
        yield describe_os_error(error)


def _remote_problems(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    url = settings.get("url")
    if not isinstance(url, str) or not url:
        yield ".url", "is missing or no text", ""
    else:
        problem = _url_problem(url)
        if problem:
            yield ".url", problem, "write an absolute https address"
    headers = settings.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        yield ".headers", "is no object of texts", ""
        return
    seen: set[str] = set()
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            yield f".headers.{name}", "is no valid header", ""
        if name.lower() in seen:
            yield f".headers.{name}", "stands there twice", "keep one of the two"
        seen.add(name.lower())


def _url_problem(url: str) -> str:
    if any(not each.isprintable() or each.isspace() for each in url):
        return "has characters that no address has"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "is no address"
    if parts.scheme.lower() not in ("http", "https") or not host:
        return "is no absolute http or https address"
    if parts.username is not None or parts.password is not None:
        return "has a user name or password in it"
    if "#" in url:
        return "has a fragment"
    if parts.scheme.lower() == "http" and not _is_loopback(host):
        return "uses http for a host that is not this machine"
    return ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_document(package: Package, name: str) -> dict[str, Any]:
    """A JSON object; a `_DocumentError` says why there is none."""
    try:
        data, _ = package.read(package.find_file((name,)), MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        raise _DocumentError("is a link that leads nowhere") from None
    except OSError as error:
        raise _DocumentError(describe_os_error(error)) from None
    if len(data) > MAX_DOCUMENT_BYTES:
        raise _DocumentError(f"has more than {MAX_DOCUMENT_BYTES} bytes")
    try:
        document = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_unique_pairs,
            parse_constant=_refuse_constant,
        )
    except _DocumentError:
        raise
    except UnicodeDecodeError:
        raise _DocumentError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _DocumentError(f"is not JSON: {error.msg} in line {error.lineno}") from None
    except (ValueError, RecursionError):
        raise _DocumentError("is not JSON that can be read") from None
    if not isinstance(document, dict):
        raise _DocumentError("is no JSON object")
    return document


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DocumentError(f"has the key {key[:64]!r} twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> None:
    raise _DocumentError(f"is not JSON: {name} is no number of it")
