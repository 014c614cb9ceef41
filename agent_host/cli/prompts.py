"""What a person types as a prompt: text, the files that ``@`` names in it, and what is attached.

Only what was typed names files. What is piped or pasted in comes from somewhere else, and must not
choose which files are sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_host.input import File, Part, Prompt

__all__ = [
    "describe_parts",
    "find_addresses",
    "find_files",
    "is_foreign_address",
    "make_prompt",
    "named_file",
    "without_repeats",
]

_NAMED = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
#: How much is shown of a part that goes with a message.
_LONGEST_LINE = 200
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


def find_addresses(typed: str) -> list[str]:
    """What stands in a text as ``@NAME:ADDRESS`` and is no file: a plugin may know it."""
    named = [each[1] or each[2].rstrip(_ENDS) for each in _NAMED.finditer(typed)]
    return without_repeats(name for name in named if is_foreign_address(name))


def is_foreign_address(name: str) -> bool:
    """Whether a name may be an address of a plugin's: not a file, and nothing of the web."""
    before, colon, after = name.partition(":")
    return (
        bool(colon and after and before.isprintable() and not before.startswith((".", "~", "/")))
        and before not in ("http", "https", "data", "file")
        and not os.path.exists(os.path.expanduser(name))
    )


def without_repeats(names: Iterable[str]) -> list[str]:
    """Files and addresses in their order, each once, by whatever names a file is given."""
    found: dict[str, str] = {}
    for name in names:
        path = os.path.expanduser(name)
        found.setdefault(os.path.realpath(path) if os.path.exists(path) else name, name)
    return [*found.values()]


def make_prompt(
    text: str,
    files: Iterable[str],
    found: Mapping[str, Sequence[Part]] | None = None,
    parts: Sequence[Part] = (),
) -> Prompt:
    """A text with files or addresses beside it, each once; it is looked at when the run begins.

    ``found`` is what plugins have given for some of the addresses, ``parts`` what they have given
    without one.
    """
    names = without_repeats(files)
    if not names and not parts:
        return text
    pieces: list[Part] = [text] if text else []
    for name in names:
        pieces += (found or {}).get(name) or [named_file(name)]
    return [*pieces, *parts]


def describe_parts(parts: Iterable[Part]) -> Iterator[str]:
    """What goes with a message beside its text, in a line each."""
    for part in parts:
        shown: object = part
        if isinstance(part, Mapping):
            content = part["content"]
            shown = content.get("text") or content.get("name") or part["type"]
        words = " ".join(str(shown).split())
        yield words if len(words) <= _LONGEST_LINE else f"{words[:_LONGEST_LINE]}…"


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
