"""The tool plugin ``files``: arguments in, text and a display payload out.

Owns the checking of arguments and settings and the wording of results. How files are reached is the
workspace's concern; nothing here opens a path.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from agent_hookspecs import (
    Config,
    ConfigError,
    State,
    ToolArgumentsError,
    ToolError,
    ToolPlugin,
    UnknownToolError,
)
from agent_hookspecs.protection import ProtectedPaths
from agent_host_files._version import __version__
from agent_host_files.changing import MAX_FILE_BYTES, Change, encoded, perform, plan
from agent_host_files.contents import Lines, decode, image_type
from agent_host_files.declarations import CONFIG_SCHEMA, EFFECTS, SCHEMAS
from agent_host_files.folders import ItemKind
from agent_host_files.patching import parse
from agent_host_files.paths import MAX_PARTS, WorkspacePath, parse_file, parse_folder
from agent_host_files.searching import Matcher, OutOfTime
from agent_host_files.walking import Glob, Walk
from agent_host_files.workspace import Snapshot, Workspace

__all__ = ["FilesTools"]

_MARKS: Mapping[ItemKind, str] = {"file": "", "folder": "/", "link": "@", "other": "?"}
_SIGNS = {"added": "A", "updated": "M", "deleted": "D", "moved": "R"}
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Characters of a change that an application gets to show.
_MAX_DISPLAY = 20_000
#: So many pairs of lines are compared at most to find what is alike between them.
_MAX_COMPARED = 40_000

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Limits:
    read_bytes: int
    write_bytes: int
    results: int
    seconds: float


class FilesTools(ToolPlugin):
    """Reads, lists, searches, writes and patches files below one folder."""

    name = "files"
    version = __version__
    label = "Files"
    effects = EFFECTS

    def get_config_schema(self) -> dict[str, Any]:
        return deepcopy(CONFIG_SCHEMA)

    def init(self, config: Config) -> State:
        limits = _Limits(
            read_bytes=int(_positive(config, "max_read_bytes")),
            write_bytes=int(_positive(config, "max_write_bytes")),
            results=int(_positive(config, "max_results")),
            seconds=_positive(config, "max_search_seconds"),
        )
        protected = ProtectedPaths.of(config)
        return {"workspace": _workspace(config.get("root"), protected), "limits": limits}

    def close(self, state: State) -> None:
        state["workspace"].close()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return deepcopy([*SCHEMAS])

    def preview_tool(self, tool_name: str, payload: Any, state: State) -> list[Result] | None:
        """What a call would change; None for tools that change nothing."""
        preview = _PREVIEWS.get(tool_name)
        if preview is None:
            return None
        return preview(_Arguments(tool_name, payload), state["workspace"], state["limits"])

    def execute_tool(self, tool_name: str, payload: Any, state: State) -> Result:
        """Run one call; the result has ``text``, ``display`` and, for a picture, ``image``."""
        run = _TOOLS.get(tool_name)
        if run is None:
            raise UnknownToolError(f"plugin 'files' has no tool {tool_name!r}", tool=tool_name)
        return run(_Arguments(tool_name, payload), state["workspace"], state["limits"])

    def format_tool_result(self, tool_name: str, result: Any) -> Result:
        text: str = result["text"]
        envelope: Result = {"type": "tool_result", "text": text}
        if "image" in result:
            envelope = {
                "type": "provider_native_tool_result",
                "format": "openai.chat_completions",
                "content": [
                    {"type": "text", "text": text},
                    {"type": "image_url", "image_url": {"url": result["image"]}},
                ],
            }
        return {
            "role": "tool",
            "content": text,
            "toolResult": envelope,
            "metadata": {"display": result["display"]},
        }


def _positive(config: Config, key: str) -> float:
    value = config.get(key)
    if value is None:
        value = CONFIG_SCHEMA[key]["default"]
    whole = CONFIG_SCHEMA[key]["type"] == "integer"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ConfigError(
            f"plugin 'files': setting {key!r} is {type(value).__name__}",
            key=key,
            hint="set a whole number" if whole else "set a number",
        )
    # Also refuses what is not a number; a timer takes neither that nor infinity.
    if not 0 < value < 2**40:
        raise ConfigError(
            f"plugin 'files': setting {key!r} is {value}", key=key, hint="set a number above 0"
        )
    return value


def _workspace(root: object, protected: ProtectedPaths) -> Workspace:
    if root is not None and not (isinstance(root, str) and root):
        raise ConfigError(
            "plugin 'files': setting 'root' is not the path of a folder",
            key="root",
            hint="set it to a folder, or leave it out for the working folder",
        )
    try:
        path = os.path.realpath(os.path.expanduser(root or "."))
        if path == os.path.realpath(os.sep):
            raise ConfigError(
                "plugin 'files': the top of the file system is no workspace",
                key="root",
                hint="set 'root' to the folder that the model may work in",
            )
        return Workspace.at(path, protected)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"plugin 'files': the folder {root or '.'!r} cannot be opened: {error}",
            key="root",
            hint="set 'root' to an existing folder",
        ) from error


class _Arguments:
    """The arguments of one call, each asked for with the type it must have."""

    __slots__ = ("_given", "_tool")

    def __init__(self, tool: str, payload: object) -> None:
        if tool == "apply_patch" and isinstance(payload, str):
            payload = {"input": payload}
        if not isinstance(payload, Mapping):
            raise ToolArgumentsError(f"{tool} takes an object of named arguments", tool=tool)
        known = _ARGUMENTS[tool]
        unknown = [str(key) for key in payload if key not in known]
        if unknown:
            raise ToolArgumentsError(
                f"{tool} has no argument {unknown[0]!r}; it has {', '.join(known)}", tool=tool
            )
        self._tool = tool
        # Some models write null for what they leave out.
        self._given = {key: value for key, value in payload.items() if value is not None}

    def required(self, key: str) -> str:
        if key not in self._given:
            raise ToolArgumentsError(f"{self._tool} needs the argument {key!r}", tool=self._tool)
        return self.text(key, "")

    def text(self, key: str, default: str) -> str:
        value = self._given.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        if _SURROGATE.search(value):
            raise self._wrong(key, "text without half surrogate pairs, which no file can hold")
        return value

    def positive(self, key: str, default: int) -> int:
        value = self._given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(key, "a whole number of at least 1")
        return value

    def flag(self, key: str) -> bool:
        value = self._given.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def glob(self) -> Glob | None:
        return Glob(self.text("glob", "")) if "glob" in self._given else None

    def _wrong(self, key: str, wanted: str) -> ToolArgumentsError:
        return ToolArgumentsError(
            f"the argument {key!r} of {self._tool} must be {wanted}", tool=self._tool
        )


_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    schema["name"]: tuple(schema["parameters"]["properties"])
    if "parameters" in schema
    else ("input",)
    for schema in SCHEMAS
}


def _read_file(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> Result:
    path = parse_file(arguments.required("path"))
    offset = arguments.positive("offset", 1)
    # No file has more lines than bytes.
    limit = arguments.positive("limit", MAX_FILE_BYTES)
    file = workspace.read(path, MAX_FILE_BYTES)
    media_type = image_type(file.data)
    if media_type is not None:
        return _picture(path, file, media_type, limits)
    text = decode(file.data) if file.complete else None
    if text is None:
        what = "is binary, or text that is neither UTF-8 nor marked as UTF-16"
        if not file.complete:
            what = f"is larger than the {MAX_FILE_BYTES} bytes that can be read"
        raise ToolError(f"'{path}' {what}; it has {file.size} bytes")
    lines = Lines.of(text.text).lines
    if offset > max(1, len(lines)):
        raise ToolArgumentsError(f"'{path}' has {_lines(len(lines))}; there is no line {offset}")
    shown, cut = _within(lines[offset - 1 : offset - 1 + limit], limits.read_bytes)
    last = offset - 1 + len(shown)
    body = "\n".join(shown) if shown else "[the file is empty]"
    notes = []
    if cut:
        notes.append(f"line {last} is longer than {limits.read_bytes} bytes and was cut")
    if offset > 1 or last < len(lines):
        notes.append(f"lines {offset} to {last} of {len(lines)}")
    if last < len(lines):
        notes.append(f"go on with offset {last + 1}")
    if notes:
        word = "truncated" if cut or last < len(lines) else "end of file"
        body = f"{body}\n[{word}: {'; '.join(notes)}]"
    elif text.text.endswith("\n"):
        body += "\n"
    display = {
        "kind": "file",
        "path": str(path),
        "lines": [offset, last],
        "total_lines": len(lines),
        "encoding": text.encoding,
    }
    return {"text": body, "display": display}


def _within(lines: tuple[str, ...], limit: int) -> tuple[list[str], bool]:
    """As many lines as ``limit`` bytes hold, one at least; whether that one had to be cut."""
    shown: list[str] = []
    used = 0
    for line in lines:
        size = len(line.encode()) + 1
        if used + size > limit + 1:
            if not shown:
                return [line.encode()[:limit].decode(errors="ignore")], True
            break
        shown.append(line)
        used += size
    return shown, False


def _picture(path: WorkspacePath, file: Snapshot, media_type: str, limits: _Limits) -> Result:
    if file.size > limits.read_bytes:
        raise ToolError(
            f"'{path}' is a picture ({media_type}) of {file.size} bytes; "
            f"at most {limits.read_bytes} can be shown"
        )
    data = base64.b64encode(file.data).decode("ascii")
    return {
        "text": f"'{path}' is a picture ({media_type}, {file.size} bytes).",
        "image": f"data:{media_type};base64,{data}",
        "display": {"kind": "image", "path": str(path), "media_type": media_type},
    }


def _list_files(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> Result:
    start = parse_folder(arguments.text("path", "."))
    glob = arguments.glob()
    depth = arguments.positive("depth", 1 if glob is None else MAX_PARTS)
    if workspace.kind(start) == "file":
        raise ToolError(f"'{start}' is a file; read_file reads it")
    walk = Walk(workspace, start, glob, depth, time.monotonic() + limits.seconds)
    entries = [f"{path}{_MARKS[kind]}" for path, kind in islice(walk, limits.results + 1)]
    more = len(entries) > limits.results
    entries = entries[: limits.results]
    notes = _walk_notes(walk, limits)
    if more:
        notes.append(
            f"[truncated: only the first {limits.results}; narrow 'path', 'glob' or 'depth']"
        )
    return {
        "text": "\n".join([*(entries or ["[no files]"]), *notes]),
        "display": {"kind": "files", "path": str(start), "count": len(entries), "more": more},
    }


def _search_files(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> Result:
    pattern = arguments.required("pattern")
    start = parse_folder(arguments.text("path", "."))
    glob = arguments.glob()
    ignore_case = arguments.flag("ignore_case")
    walk = Walk(workspace, start, glob, deadline=time.monotonic() + limits.seconds)
    files = [(start, "file")] if workspace.kind(start) == "file" else walk
    found: list[str] = []
    notes: list[str] = []
    skipped = 0
    path = start
    try:
        with Matcher(pattern, ignore_case=ignore_case, seconds=limits.seconds) as matcher:
            for path, kind in files:
                if kind != "file":
                    continue
                text = _searchable(workspace, path)
                if text is None:
                    skipped += 1
                    continue
                matches = matcher.matches(text, limits.results - len(found) + 1)
                found += [f"{path}:{number}: {line}" for number, line in matches]
                if len(found) > limits.results:
                    break
    except OutOfTime:
        # Nothing is lost: the note says where the search stopped.
        notes.append(
            f"[truncated: stopped at '{path}' after {limits.seconds:g} s; simplify the pattern, "
            "or narrow 'path' or 'glob']"
        )
    more = len(found) > limits.results
    found = found[: limits.results]
    notes += _walk_notes(walk, limits)
    if more:
        notes.append(
            f"[truncated: only the first {limits.results}; narrow 'pattern', 'path' or 'glob']"
        )
    if skipped:
        notes.append(f"[binary, too large or unreadable and not searched: {skipped}]")
    display = {"kind": "matches", "pattern": pattern, "count": len(found), "more": more}
    return {"text": "\n".join([*(found or ["[no matches]"]), *notes]), "display": display}


def _searchable(workspace: Workspace, path: WorkspacePath) -> str | None:
    try:
        file = workspace.read(path, MAX_FILE_BYTES)
    except ToolError:
        # Nothing is lost: the result counts files that were not searched.
        return None
    text = decode(file.data) if file.complete else None
    return None if text is None else text.text


def _walk_notes(walk: Walk, limits: _Limits) -> list[str]:
    notes = []
    if walk.out_of_time:
        notes.append(f"[truncated: stopped after {limits.seconds:g} s; narrow 'path' or 'glob']")
    if walk.unreadable:
        notes.append(f"[folders that could not be read: {len(walk.unreadable)}]")
    return notes


def _write_file(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> Result:
    path = parse_file(arguments.required("path"))
    content = arguments.required("content")
    exists = workspace.kind(path) is not None
    old = workspace.read(path, MAX_FILE_BYTES) if exists else None
    workspace.write(path, encoded(path, content, old, limits.write_bytes))
    before = decode(old.data) if old is not None and old.complete else None
    diff, removed, added = _difference(before.text if before else "", content)
    change = {
        "path": str(path),
        "change": "updated" if exists else "added",
        "added": added,
        "removed": removed,
    }
    counts = f"+{added} -{removed} lines" if exists else _lines(added)
    text = f"{'Updated' if exists else 'Created'} '{path}': {counts}."
    return {"text": text, "display": {"kind": "diff", "files": [change], "diff": diff}}


def _preview_write(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> list[Result]:
    path = parse_file(arguments.required("path"))
    content = arguments.required("content")
    workspace.require_replaceable(path)
    old = workspace.read(path, MAX_FILE_BYTES) if workspace.kind(path) is not None else None
    new = encoded(path, content, old, limits.write_bytes)
    return [_previewed(Change("added" if old is None else "updated", path, old, new))]


def _preview_patch(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> list[Result]:
    changes = plan(workspace, parse(arguments.required("input")), limits.write_bytes)
    return [*map(_previewed, changes)]


def _previewed(change: Change) -> Result:
    """A change as the host wants to know it: texts where there are, else how large it is."""
    shown: Result = {"path": str(change.path), "change": change.kind}
    if change.target is not None:
        shown["target"] = str(change.target)
    if change.old is not None and not change.old.complete:
        return {**shown, "note": f"the file is too large to compare: {change.old.size} bytes"}
    sizes = []
    for key, data in (("before", change.old.data if change.old else None), ("after", change.new)):
        text = decode(data) if data is not None else None
        shown[key] = text.text if text is not None else None
        sizes.append(f"{len(data)} bytes {key}" if data is not None else f"nothing {key}")
        if data is not None and text is None:
            shown["note"] = "not text"
    if "note" in shown:
        shown["note"] += f": {', '.join(sizes)}"
    return shown


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _difference(before: str, after: str) -> tuple[str, int, int]:
    """The lines that differ, and how many were taken out and put in.

    Where much has changed, all between the first and the last line that differ: to find what of it
    is alike can take the square of the length.
    """
    old, new = Lines.of(before).lines, Lines.of(after).lines
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    changes = [(0, len(removed), 0, len(added))]
    if len(removed) * len(added) <= _MAX_COMPARED:
        matcher = SequenceMatcher(None, removed, added, autojunk=False)
        changes = [(a, b, c, d) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"]
    lines: list[str] = []
    for a, b, c, d in changes:
        lines.append(f"@@ -{head + a + 1},{b - a} +{head + c + 1},{d - c} @@")
        lines += [f"-{line}" for line in removed[a:b]] + [f"+{line}" for line in added[c:d]]
    out, put = (sum(each[at + 1] - each[at] for each in changes) for at in (0, 2))
    return _shortened("\n".join(lines)), out, put


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_DISPLAY else f"{text[:_MAX_DISPLAY]}\n[truncated]"


def _apply_patch(arguments: _Arguments, workspace: Workspace, limits: _Limits) -> Result:
    patch = arguments.required("input")
    try:
        changes = plan(workspace, parse(patch), limits.write_bytes)
    except ToolError as error:
        raise type(error)(
            f"{error.message}; nothing was changed", tool="apply_patch", hint=error.hint
        ) from None
    perform(workspace, changes)
    files = [
        {
            "path": str(change.path),
            "change": change.kind,
            "added": change.added,
            "removed": change.removed,
            **({"target": str(change.target)} if change.target else {}),
        }
        for change in changes
    ]
    return {
        "text": "\n".join(["Done.", *map(_summary, changes)]),
        "display": {"kind": "diff", "files": files, "diff": _shortened(patch)},
    }


def _summary(change: Change) -> str:
    target = f" -> {change.target}" if change.target else ""
    counts = "" if change.kind == "deleted" else f" (+{change.added} -{change.removed})"
    return f"{_SIGNS[change.kind]} {change.path}{target}{counts}"


_PREVIEWS: Mapping[str, Callable[[_Arguments, Workspace, _Limits], list[Result]]] = {
    "write_file": _preview_write,
    "apply_patch": _preview_patch,
}

_TOOLS: Mapping[str, Callable[[_Arguments, Workspace, _Limits], Result]] = {
    "read_file": _read_file,
    "list_files": _list_files,
    "search_files": _search_files,
    "write_file": _write_file,
    "apply_patch": _apply_patch,
}
