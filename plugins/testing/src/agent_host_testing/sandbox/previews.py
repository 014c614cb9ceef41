"""What a tool says that a call would change, beside what the call has changed.

Owns which files of a world a preview is about. It knows that a preview may be of texts that are no
files, and judges only what is certainly about a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

__all__ = ["compare_preview"]

_Files = Mapping[str, bytes]
_Change = Mapping[str, Any]

#: Times and counts in a text may be others when the call comes.
_NUMBERS = re.compile(r"\d+")


def compare_preview(shown: Sequence[_Change], before: _Files, after: _Files) -> Iterator[str]:
    """What of a preview is not what the call did, in sentences."""
    known = {**before, **after}
    changed = [path for path in sorted(known) if before.get(path) != after.get(path)]
    named = {path: _files_of(path, known) for each in shown for path in _paths_of(each)}
    untold = [path for path in changed if not any(path in each for each in named.values())]
    for change in shown:
        path, *target = _paths_of(change)
        for each in (path, *target):
            if untold and not any(file in changed for file in named[each]):
                if named[each] and (target or change.get("before") != change.get("after")):
                    yield f"it says that {each} changes, and the call changes {untold[0]}"
                elif not named[each] and (wrong := _file_with(change.get("after"), untold, after)):
                    yield f"it names {each}, and the call writes that text to {wrong}"
        if change.get("note") or (change.get("before") is None and change.get("after") is None):
            continue
        if not _is_text_of(change.get("before"), named[path], before):
            yield f"what it shows of {path} as the text before is not in the file"
        if not _is_text_of(change.get("after"), named[[path, *target][-1]], after):
            yield f"what it shows of {path} as the text after is not what the call writes"


def _paths_of(change: _Change) -> list[str]:
    target = change.get("target")
    return [str(change.get("path")), *([str(target)] if target else [])]


def _files_of(path: str, known: _Files) -> list[str]:
    """The files that a path may mean: it may be relative to a folder that only the tool knows."""
    parts = PurePath(path).parts
    return [each for each in sorted(known) if PurePath(each).parts[-len(parts) :] == parts]


def _is_text_of(said: Any, files: Sequence[str], content: _Files) -> bool:
    """Whether it is the text of one of the files, or None for one that is not there.

    What is no file, or holds no text, is not judged.
    """
    texts = [_text_of(content.get(file)) for file in files]
    wanted = said if said is None else _plain(str(said))
    return not files or wanted in texts or any(text is Ellipsis for text in texts)


def _file_with(said: Any, files: Sequence[str], content: _Files) -> str:
    """The file that has this text; empty if none has, or if there is nothing in it."""
    if said is None or not str(said).strip():
        return ""
    return next((file for file in files if _text_of(content.get(file)) == _plain(str(said))), "")


def _text_of(data: bytes | None) -> Any:
    """The text of a file, None if there is no file, and an ellipsis if it is no text."""
    if data is None:
        return None
    try:
        return _plain(data.decode("utf-8"))
    except UnicodeDecodeError:
        # Nothing is lost: what is no text is not compared.
        return ...


def _plain(text: str) -> str:
    return _NUMBERS.sub("0", text.removeprefix("\ufeff").replace("\r\n", "\n"))
