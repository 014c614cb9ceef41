"""What a person has approved: servers, and the definitions of their tools, each by its digest.

Owns the file, what counts as the same, and the words for what differs. It starts no server and asks
nobody.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from agent_hookspecs import ConfigError
from agent_host_mcp.servers import Server

__all__ = [
    "Approvals",
    "ApprovedServer",
    "Definition",
    "Differences",
    "compare",
    "describe_change",
    "find_excess",
]

_FILE = "approved.json"
#: What a definition may hold: nobody reads more before approving it, and no model needs it.
_MAX_LETTERS = 100_000
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Definition:
    """What is said of a tool or a prompt: the name that its server gave it, and what it takes."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)

    @property
    def digest(self) -> str:
        return _digest(self.to_plain())

    def to_plain(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "schema": dict(self.schema)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Definition:
        return cls(plain["name"], plain["description"], plain["schema"])


@dataclass(frozen=True, slots=True)
class ApprovedServer:
    """A server as it was approved, with the tools and prompts that it had then, by their names."""

    shown: Mapping[str, Any]
    tools: Mapping[str, Definition] = field(default_factory=dict)
    prompts: Mapping[str, Definition] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.shown["name"])


@dataclass(frozen=True, slots=True)
class Differences:
    """How the tools that a server has differ from those that were approved, by name."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class Approvals:
    """The file of approvals in a folder that is the plugin's own; read again when it has changed.

    A server is known by the digest of what it is, so that servers of one name in two projects are
    two.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, _FILE)
        self._stamp: tuple[int, int, int] | None = None
        self._servers: dict[str, ApprovedServer] = {}

    @property
    def stamp(self) -> tuple[int, int, int] | None:
        """What changes whenever the file does; None where there is none."""
        try:
            status = os.stat(self._path)
        except OSError:
            # Nothing is lost: without a file nothing is approved.
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def find(self, server: Server) -> ApprovedServer | None:
        """The server as it was approved; None if it never was, or is another one by now."""
        return self._read().get(_digest(server.shown))

    def others(self, server: Server) -> list[ApprovedServer]:
        """Servers of the same name that were approved; the latest comes last."""
        own = _digest(server.shown)
        known = self._read().items()
        return [each for digest, each in known if each.name == server.name and digest != own]

    def approve(
        self, server: Server, tools: Iterable[Definition], prompts: Iterable[Definition] = ()
    ) -> None:
        """Approve the server, and of its tools and prompts these."""
        known = dict(self._read())
        known.pop(_digest(server.shown), None)
        approved = ApprovedServer(server.shown, _by_name(tools), _by_name(prompts))
        self._write({**known, _digest(server.shown): approved})

    def approve_tool(self, server: Server, tool: Definition) -> None:
        """Approve one more tool of a server that is approved, or another definition of one."""
        found = self.find(server)
        if found is not None:
            tools = {**found.tools, tool.name: tool}
            self._write({**self._read(), _digest(server.shown): replace(found, tools=tools)})

    def remove(self, name: str) -> int:
        """Forget every server of a name; how many there were."""
        known = self._read()
        left = {digest: each for digest, each in known.items() if each.name != name}
        if len(left) < len(known):
            self._write(left)
        return len(known) - len(left)

    def names(self) -> list[str]:
        """The names of all servers that were approved."""
        return [*dict.fromkeys(each.name for each in self._read().values())]

    def _read(self) -> dict[str, ApprovedServer]:
        stamp = self.stamp
        if stamp == self._stamp:
            return self._servers
        if stamp is None:
            self._servers = {}
        else:
            try:
                with open(self._path, "rb") as file:
                    self._servers = _parse(json.load(file))
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise ConfigError(
                    f"plugin 'mcp': {self._path} cannot be read: {type(error).__name__}",
                    key="mcp",
                    hint="remove the file and approve your servers again: agent-host mcp approve",
                ) from error
        self._stamp = stamp
        return self._servers

    def _write(self, servers: Mapping[str, ApprovedServer]) -> None:
        content = {
            "servers": {
                digest: {
                    "shown": dict(each.shown),
                    "tools": [tool.to_plain() for tool in each.tools.values()],
                    "prompts": [prompt.to_plain() for prompt in each.prompts.values()],
                }
                for digest, each in servers.items()
            }
        }
        folder = os.path.dirname(self._path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        beside = f"{self._path}.{secrets.token_hex(8)}.tmp"
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file, ensure_ascii=True, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except OSError as error:
            with suppress(OSError):
                # Nothing is lost: the error that led here is raised below.
                os.unlink(beside)
            raise ConfigError(
                f"plugin 'mcp': {self._path} cannot be written: {error.strerror}",
                key="mcp",
                hint="make your config folder writable; agent-host config path names it",
            ) from error
        self._stamp, self._servers = self.stamp, dict(servers)


def _parse(content: Any) -> dict[str, ApprovedServer]:
    found = {}
    for digest, each in content["servers"].items():
        shown = {**each["shown"], "name": str(each["shown"]["name"])}
        found[digest] = ApprovedServer(
            shown,
            _by_name(map(Definition.of, each["tools"])),
            # A server that was approved before there were any has none that is approved.
            _by_name(map(Definition.of, each.get("prompts", ()))),
        )
    return found


def _by_name(definitions: Iterable[Definition]) -> dict[str, Definition]:
    return {each.name: each for each in definitions}


def find_excess(definition: Definition) -> str:
    """Why a definition is too much to be looked at; empty if it is not."""
    level: list[object] = [definition.schema]
    for _ in range(_MAX_DEPTH):
        level = [inner for each in level for inner in _parts_of(each)]
        if not level:
            break
    else:
        return f"its schema is deeper than {_MAX_DEPTH} levels"
    letters = len(json.dumps(definition.to_plain()))
    if letters > _MAX_LETTERS:
        return f"it has {letters:,} letters, and {_MAX_LETTERS:,} are allowed"
    return ""


def _parts_of(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def compare(approved: Mapping[str, Definition], current: Mapping[str, Definition]) -> Differences:
    """How the tools or prompts that there are differ from those that were approved."""
    return Differences(
        added=tuple(name for name in current if name not in approved),
        changed=tuple(
            name
            for name, tool in current.items()
            if name in approved and approved[name].digest != tool.digest
        ),
        removed=tuple(name for name in approved if name not in current),
    )


def describe_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The difference between two plain descriptions, line by line; unseen letters are spelt out."""
    old, new = (spell_out(_pretty(each)).split("\n") for each in (before, after))
    lines = [*difflib.unified_diff(old, new, lineterm="", n=1)][2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))


def spell_out(text: str) -> str:
    """``text`` with everything written out that a person would not see and a model would read."""
    return "".join(
        letter if letter == "\n" or not is_unseen(letter) else f"\\u{{{ord(letter):x}}}"
        for letter in text
    )


def is_unseen(letter: str) -> bool:
    """Whether nothing is seen of a letter, or it changes how others are shown."""
    return letter != " " and unicodedata.category(letter) in (
        *("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"),
    )


def _pretty(value: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for key, item in value.items():
        if isinstance(item, str):
            first, *more = item.split("\n")
            parts += [f"{key}: {first}", *(f"  {line}" for line in more)]
        else:
            text = json.dumps(item, indent=1, ensure_ascii=False, sort_keys=True)
            parts += f"{key}: {text}".split("\n")
    return "\n".join(parts)


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def unseen_letters(value: object) -> Iterator[str]:
    """The letters in any text of a description that a person would not see."""
    if isinstance(value, str):
        yield from (each for each in value if each not in "\n\t\r" and is_unseen(each))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from unseen_letters(key)
            yield from unseen_letters(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from unseen_letters(item)


def without_unseen(value: Any) -> Any:
    """A description as models get it: without letters that nobody could see who approved it."""
    if isinstance(value, str):
        return "".join(each for each in value if each in "\n\t" or not is_unseen(each))
    if isinstance(value, Mapping):
        return {without_unseen(key): without_unseen(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_unseen(item) for item in value]
    return value
