"""Paths as models write them, taken apart into names.

Owns what a path may look like. It must not touch a file system: whether a name is a link, or exists
at all, is for those to say who open it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from agent_hookspecs import ToolArgumentsError

__all__ = ["MAX_PARTS", "WorkspacePath", "parse_file", "parse_folder", "printable"]

MAX_BYTES = 4096
MAX_NAME_BYTES = 255
#: Folders are opened one by one, so the depth of a path is what opening it costs.
MAX_PARTS = 100

# Control characters would break the line-by-line results; lone surrogates stand for undecodable
# bytes, which no model can write down.
_UNSPEAKABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
_WINDOWS_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """The names from the workspace's root down; no names at all is the root itself."""

    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return printable("/".join(self.parts)) or "."

    @property
    def folder(self) -> WorkspacePath:
        return WorkspacePath(self.parts[:-1])

    @property
    def name(self) -> str:
        return self.parts[-1]

    def child(self, name: str) -> WorkspacePath:
        return WorkspacePath((*self.parts, name))


def printable(text: str) -> str:
    """``text`` with what cannot be shown on one line replaced."""
    return _UNSPEAKABLE.sub("\ufffd", text)


def parse_file(given: object) -> WorkspacePath:
    """The path of a file; a `ToolArgumentsError` says what is wrong with it."""
    path = parse_folder(given)
    if not path.parts or str(given).endswith(("/", "/.")):
        raise _refused(given, "names a folder, not a file")
    return path


def parse_folder(given: object) -> WorkspacePath:
    """The path of a folder or file; ``.`` is the root."""
    if not isinstance(given, str):
        raise ToolArgumentsError(f"a path must be text, not {type(given).__name__}")
    if not given:
        raise ToolArgumentsError("the path is empty; use '.' for the workspace itself")
    if _UNSPEAKABLE.search(given):
        raise _refused(given, "has control or undecodable characters")
    if len(given.encode()) > MAX_BYTES:
        raise _refused(given, f"is longer than {MAX_BYTES} bytes")
    if given.startswith(("/", "\\")) or _DRIVE.match(given):
        raise _refused(given, "is absolute; paths are relative to the workspace")
    if given.startswith("~"):
        raise _refused(given, "begins with '~'; paths are relative to the workspace")
    if "\\" in given:
        raise _refused(given, "has a backslash; put '/' between folders")
    parts = tuple(part for part in given.split("/") if part not in ("", "."))
    if ".." in parts:
        raise _refused(given, "has '..'; write the path without it")
    if len(parts) > MAX_PARTS:
        raise _refused(given, f"has more than {MAX_PARTS} folders")
    for part in parts:
        if len(part.encode()) > MAX_NAME_BYTES:
            raise _refused(given, f"has a name longer than {MAX_NAME_BYTES} bytes")
        if os.name == "nt" and _special_on_windows(part):
            raise _refused(given, "has a name that Windows gives a meaning of its own")
    return WorkspacePath(parts)


def _special_on_windows(name: str) -> bool:
    """Streams, devices, and endings that Windows drops so that another file is meant."""
    return ":" in name or name[-1] in ". " or _WINDOWS_DEVICE.fullmatch(name) is not None


def _refused(given: object, why: str) -> ToolArgumentsError:
    shown = printable(str(given))
    if len(shown) > 120:
        shown = f"{shown[:117]}…"
    return ToolArgumentsError(f"the path '{shown}' {why}")
