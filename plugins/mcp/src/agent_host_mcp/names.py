"""The names under which models know the tools of servers, and people their prompts.

They have the letters and the length that every provider takes, and two tools never share one: a
name says where its server's part ends, and a part that had to be changed ends with a digest.
"""

from __future__ import annotations

import hashlib
import re

__all__ = ["PREFIX", "prompt_name", "wire_name"]

PREFIX = "mcp_"
#: What the strictest provider takes.
_MAX_LENGTH = 64
_MAX_SERVER = 24
_DIGEST = 8
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
#: The first two underscores in a row after the prefix end such a name, and no other.
_SERVER = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")


def wire_name(server: str, tool: str) -> str:
    """The name of a server's tool, such as ``mcp_git__log``."""
    head = f"{PREFIX}{_server_part(server)}__"
    name = head + tool
    if tool and not _FOREIGN.search(tool) and len(name) <= _MAX_LENGTH:
        return name
    room = _MAX_LENGTH - len(head) - _DIGEST - 1
    return f"{head}{_FOREIGN.sub('_', tool)[:room]}-{_digest(tool)}"


def prompt_name(server: str, prompt: str) -> str:
    """The name of a server's prompt, such as ``git:summary``, as it can be typed."""
    head = f"{_server_part(server)}:"
    if prompt and not _FOREIGN.search(prompt) and len(prompt) <= _MAX_LENGTH:
        return head + prompt
    return f"{head}{_FOREIGN.sub('_', prompt)[:_MAX_LENGTH]}-{_digest(prompt)}"


def _server_part(server: str) -> str:
    if len(server) <= _MAX_SERVER and _SERVER.fullmatch(server):
        return server
    plain = re.sub(r"[^A-Za-z0-9]+", "-", server).strip("-")[: _MAX_SERVER - _DIGEST - 1]
    return f"{plain}-{_digest(server)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
