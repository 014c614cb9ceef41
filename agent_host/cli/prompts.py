"""What a person types as a prompt: text, the files that ``@`` names in it, and what is attached.

Only what was typed names files. What is piped or pasted in comes from somewhere else, and must not
choose which files are sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_host.input import File, Prompt

__all__ = ["find_files", "make_prompt", "named_file", "without_repeats"]

_NAMED = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
#: What ends a sentence is rarely the end of a file's name.
_ENDS = ".,;:!?)]}'\""


def find_files(typed: str) -> list[str]:
    """The files that stand in a text as ``@FILE`` or ``@"A FILE"``; other words with @ are text."""
    found: list[str] = []
    for named in _NAMED.finditer(typed):
        name = named[1] or named[2]
        for candidate in (name, name.rstrip(_ENDS)):
            if os.path.isfile(os.path.expanduser(candidate)):
                found.append(candidate)
                break
    return without_repeats(found)


def without_repeats(names: Iterable[str]) -> list[str]:
    """Files and addresses in their order, each once, by whatever names a file is given."""
    found: dict[str, str] = {}
    for name in names:
        path = os.path.expanduser(name)
        found.setdefault(os.path.realpath(path) if os.path.exists(path) else name, name)
    return [*found.values()]


def make_prompt(text: str, files: Iterable[str]) -> Prompt:
    """A text with files or addresses beside it, each once; it is looked at when the run begins."""
    names = without_repeats(files)
    if not names:
        return text
    return [text, *map(named_file, names)]


def named_file(name: str) -> File:
    """The file or address that a person names.

    Not one outside of the working folder that a link in there leads to: whoever put the link there
    would choose what is sent.
    """
    from agent_host.input import File, InputError

    path, folder = os.path.expanduser(name), os.getcwd()
    if _is_below(os.path.abspath(path), folder) and os.path.exists(path):
        real = os.path.realpath(path)
        if not _is_below(real, os.path.realpath(folder)):
            raise InputError(
                f"{name} is a link to {real}, outside of this folder",
                part=name,
                hint="name that file itself, if it is what you want to send",
            )
    return File(path)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))
