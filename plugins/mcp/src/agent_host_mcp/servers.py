"""The servers that a config names: the setting ``mcp``, and files in the ``mcpServers`` form.

Owns what may stand there, and which environment a server gets. Nothing here starts or reaches one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_hookspecs import Config, ConfigError
from agent_hookspecs.logs import get_logger

__all__ = ["CONFIG_SCHEMA", "Limits", "Server", "read_limits", "read_servers"]

log = get_logger(__name__)

Mode = Literal["auto", "legacy"]

CONFIG_SCHEMA: dict[str, Any] = {
    "mcp": {
        "type": "object",
        "required": False,
        "description": "MCP servers: 'servers' by name, or 'files' in the mcpServers form.",
        "properties": {
            "servers": {
                "type": "object",
                "description": "Servers by name: 'command', 'args', 'env' and 'cwd', or 'url' and "
                "'headers'.",
            },
            "files": {
                "type": "array",
                "description": "Paths of JSON files with servers under 'mcpServers'.",
            },
            "connect_seconds": {
                "type": "number",
                "default": 30,
                "description": "How long a server may take to start and to say what it has.",
            },
            "call_seconds": {
                "type": "number",
                "default": 300,
                "description": "How long a call may take without a sign of progress.",
            },
            "max_message_bytes": {
                "type": "integer",
                "default": 16_777_216,
                "description": "The largest message that a server may send.",
            },
            "max_tools": {
                "type": "integer",
                "default": 1_000,
                "description": "How many tools, or prompts, a server may have.",
            },
            "max_resource_bytes": {
                "type": "integer",
                "default": 1_000_000,
                "description": "How much of a resource is attached; a longer text is cut.",
            },
        },
    }
}

#: What a program needs to find itself and its user, and nothing that could be a credential.
_INHERITED = (
    (
        *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT"),
        *("PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT"),
        *("TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
    )
    if sys.platform == "win32"
    else (
        *("HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM"),
        *("TMPDIR", "TZ", "USER"),
    )
)
_KNOWN = frozenset({"args", "command", "cwd", "disabled", "env", "headers", "mode", "type", "url"})
_HTTP_TYPES = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long servers are waited for, how much they may say at once, and how much they may have.

    ``back_off`` are the waits before a server that has ended is started again, each time it ends
    without having answered a call; after the last it is left alone.
    """

    connect_seconds: float = 30.0
    call_seconds: float = 300.0
    message_bytes: int = 16_777_216
    max_tools: int = 1_000
    resource_bytes: int = 1_000_000
    back_off: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Server:
    """One server as the config describes it: a program to start, or an address to reach.

    ``origin`` is where it stands: ``config``, or the path of a file.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    mode: Mode = "auto"
    disabled: bool = False
    origin: str = "config"

    @property
    def shown(self) -> dict[str, Any]:
        """What a person approves, with digests in place of values that may be secret.

        A variable may decide what a program runs, so that another value is another server; headers
        cannot, and a token that is renewed must not ask again.
        """
        described: dict[str, Any] = {"name": self.name}
        if self.url:
            described |= {"url": self.url, "headers": sorted(self.headers)}
        else:
            described |= {
                "command": self.command,
                "args": [*self.args],
                "cwd": self.cwd,
                "env": {name: _digest(value) for name, value in sorted(self.env.items())},
            }
        return described

    def environment(self, marker: str) -> dict[str, str]:
        """What the program finds: the system's own variables and what the config names.

        ``marker`` is told by a variable that it hands on, by which what it starts is known.
        """
        system = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**system, **self.env, MARKER: marker}


#: The variable by which everything that a server has started can be found again.
MARKER = "AGENT_HOST_MCP_SERVER"


def read_limits(config: Config) -> Limits:
    """The limits that the setting ``mcp`` has."""
    given = _settings(config)
    described = CONFIG_SCHEMA["mcp"]["properties"]
    numbers: dict[str, Any] = {}
    for key in (
        *("connect_seconds", "call_seconds"),
        *("max_message_bytes", "max_tools", "max_resource_bytes"),
    ):
        value = given.get(key)
        value = described[key]["default"] if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 2**40:
            raise _wrong(f"mcp.{key}", "is no number above 0", "set a number above 0")
        numbers[key] = value
    return Limits(
        float(numbers["connect_seconds"]),
        float(numbers["call_seconds"]),
        int(numbers["max_message_bytes"]),
        int(numbers["max_tools"]),
        int(numbers["max_resource_bytes"]),
    )


def read_servers(config: Config) -> tuple[Server, ...]:
    """Every server that the config names, in its order; a `ConfigError` if one cannot be read."""
    given = _settings(config)
    found: dict[str, Server] = {}
    for server in _all_servers(given):
        if server.name in found:
            other = found[server.name].origin
            raise _wrong(
                "mcp.servers",
                f"has the server {server.name!r} twice: in {other} and in {server.origin}",
                "give one of them another name",
            )
        found[server.name] = server
    return tuple(found.values())


def _settings(config: Config) -> Mapping[str, Any]:
    given = config.get("mcp")
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise _wrong("mcp", "is not an object", "set mcp.servers")
    known = CONFIG_SCHEMA["mcp"]["properties"]
    for key in given:
        if key not in known:
            raise _wrong(f"mcp.{key}", "is no setting", f"there are: {', '.join(known)}")
    return given


def _all_servers(given: Mapping[str, Any]) -> Iterator[Server]:
    yield from _read_map(given.get("servers"), "mcp.servers", "config", None)
    files = given.get("files") or ()
    if isinstance(files, str) or not isinstance(files, Sequence):
        raise _wrong("mcp.files", "is not a list of paths", "give a list")
    for path in files:
        if not isinstance(path, str) or not path:
            raise _wrong("mcp.files", "has something that is no path", "give paths of JSON files")
        yield from _read_file(os.path.abspath(os.path.expanduser(path)))


def _read_file(path: str) -> Iterator[Server]:
    try:
        with open(path, "rb") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise _wrong("mcp.files", f"names {path}, which cannot be read: {why}", _FORM) from error
    if not isinstance(content, dict) or not isinstance(content.get("mcpServers"), dict):
        raise _wrong("mcp.files", f"names {path}, which has no object 'mcpServers'", _FORM)
    yield from _read_map(content["mcpServers"], f"{path}: mcpServers", path, os.path.dirname(path))


_FORM = 'a file reads {"mcpServers": {"name": {"command": "…", "args": […]}}}'


def _read_map(given: object, key: str, origin: str, folder: str | None) -> Iterator[Server]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise _wrong(key, "is not an object", "give servers by name")
    for name, described in given.items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise _wrong(key, f"has a server with the name {name!r}", "use plain letters")
        where = f"{key}.{name}"
        if not isinstance(described, Mapping):
            raise _wrong(where, "is not an object", "give it a command, or a url")
        # Only in files: what stands in the config has the host's own placeholders.
        expand = folder is not None
        yield _Reader(where, described, expand).server(name, origin, folder)


class _Reader:
    """Reads the keys of one server."""

    def __init__(self, where: str, given: Mapping[str, Any], expand: bool) -> None:
        self._where = where
        self._given = given
        self._expand = expand

    def server(self, name: str, origin: str, folder: str | None) -> Server:
        ignored = sorted(str(key) for key in self._given if key not in _KNOWN)
        if ignored:
            # Also what other programs take for an approval, which is none here.
            log.warning("mcp_keys_ignored", server=name, keys=", ".join(ignored), origin=origin)
        command, url = self._text("command"), self._text("url")
        kind = self._text("type")
        if kind == "sse":
            raise _wrong(
                f"{self._where}.type",
                "is 'sse', the transport that Streamable HTTP has replaced",
                "use the server's Streamable HTTP address, with type http",
            )
        if kind and kind not in {"stdio", *_HTTP_TYPES}:
            raise _wrong(f"{self._where}.type", f"is {kind!r}", "use stdio or http")
        if bool(command) == bool(url):
            raise _wrong(self._where, "needs either 'command' or 'url'", "give it one of them")
        if kind and (kind == "stdio") != bool(command):
            wanted = "command" if kind == "stdio" else "url"
            raise _wrong(f"{self._where}.type", f"is {kind!r} without {wanted!r}", "remove type")
        if url and not re.match(r"https?://[^/\s]", url):
            raise _wrong(f"{self._where}.url", "is no address", "begin it with https://")
        mode = self._text("mode") or "auto"
        if mode not in ("auto", "legacy"):
            raise _wrong(f"{self._where}.mode", f"is {mode!r}", "use auto or legacy")
        cwd = self._text("cwd") or folder
        disabled = self._given.get("disabled", False)
        if not isinstance(disabled, bool):
            raise _wrong(f"{self._where}.disabled", "is neither true nor false", "use true")
        return Server(
            name=name,
            command=command,
            args=tuple(self._texts("args")),
            env=self._map("env"),
            cwd=os.path.abspath(os.path.expanduser(cwd)) if cwd and command else None,
            url=url,
            headers=self._map("headers"),
            mode="legacy" if mode == "legacy" else "auto",
            disabled=disabled,
            origin=origin,
        )

    def _text(self, key: str) -> str:
        value = self._given.get(key)
        if value is None:
            return ""
        return self._read_text(key, value)

    def _texts(self, key: str) -> Iterable[str]:
        value = self._given.get(key) or ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise _wrong(f"{self._where}.{key}", "is not a list of texts", "give a list")
        return [self._read_text(key, each) for each in value]

    def _map(self, key: str) -> dict[str, str]:
        value = self._given.get(key) or {}
        if not isinstance(value, Mapping):
            raise _wrong(f"{self._where}.{key}", "is not an object", "give texts by name")
        return {str(name): self._read_text(f"{key}.{name}", each) for name, each in value.items()}

    def _read_text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or "\0" in value:
            raise _wrong(f"{self._where}.{key}", "is not text", "give text")
        return _VARIABLE.sub(self._value_of, value) if self._expand else value

    def _value_of(self, match: re.Match[str]) -> str:
        name, default = match.groups()
        value = os.environ.get(name, default)
        if value is None:
            raise _wrong(
                self._where,
                f"needs the environment variable {name}, which is not set",
                f"set {name}, or write ${{{name}:-default}}",
            )
        return str(value)


def _digest(value: str) -> str:
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"sha256:{digest[:12]}"


def _wrong(key: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"plugin 'mcp': {key} {what}", key=key, hint=hint)
