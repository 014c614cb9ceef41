"""The lines of a batch: what one may hold, and reading them from a file, a stream or a list.

A line that is wrong is a `Line` as well, with its error, so that it has a result like any other.
Imported when a batch begins, because it brings pydantic. It must not know what becomes of a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_hookspecs.values import dataclass
from agent_host.batch.errors import BatchError, LineError
from agent_host.checking import find_problem, json_schema, pydantic_alone

__all__ = ["Key", "Line", "Source", "count_lines", "digest_of", "line_schema", "read_lines"]

#: What a line is known by: its id, or its number if it has none.
Key: TypeAlias = "str | int"
#: Where lines come from: a file, or items that are prompts, lines, or lines as JSON.
Source: TypeAlias = "str | PathLike[str] | BinaryIO | Iterable[str | Mapping[str, Any] | bytes]"

_HINT = 'a line is an object such as {"id": "a", "prompt": "Hello"}'


def _key(description: str) -> Any:
    return Field(default=None, description=description)


with pydantic_alone():

    class _Message(BaseModel):
        model_config = ConfigDict(strict=True, extra="allow")

        role: Literal["system", "user", "assistant", "tool"]
        content: str

    class _Line(BaseModel):
        """One request of a batch."""

        model_config = ConfigDict(strict=True, extra="forbid")

        id: Annotated[str, Field(min_length=1)] | int = _key(
            "What its result is known by; no two lines may have the same."
        )
        prompt: Annotated[str, Field(min_length=1)] = _key("What is asked.")
        messages: Annotated[list[_Message], Field(min_length=1)] = _key(
            "In place of a prompt: a conversation, of which the user has the last word."
        )
        agent: str = _key("An agent of the config.")
        provider: str = _key("A provider alias of the config, or a plugin id.")
        model: str = _key("The model.")
        system: str = _key("The system prompt.")
        settings: dict[str, Any] = _key("Settings of the request.")
        use_tools: list[str] = _key("Patterns of the tools that may be used.")
        output_schema: dict[str, Any] = _key("A JSON Schema that the answer has to fit.")
        metadata: dict[str, Any] = _key("Stands in the result as it is.")

    _LINE = TypeAdapter(_Line)


@cache
def line_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    return json_schema(_LINE, "a line of agent-host batch")


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its number, from 1; ``digest`` stands for all it says but its id.

    ``content`` is the line as JSON. If it is none, or is wrong, ``error`` says so.
    """

    number: int
    id: str | int | None
    digest: str
    content: Mapping[str, Any]
    error: LineError | None = None

    @property
    def key(self) -> Key:
        return self.number if self.id is None else str(self.id)


def digest_of(value: object) -> str:
    """A few letters that stand for a value of JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return sha256(text.encode()).hexdigest()[:16]


def read_lines(source: Source) -> Iterator[Line]:
    """The lines one after the other; of a file those that are empty are left out."""
    seen: dict[Key, int] = {}
    for number, item in _items(source):
        line = _read_line(number, item)
        if line.error is None and line.key in seen:
            first = seen[line.key]
            line = _wrong(number, item, f"its id {line.id!r} is that of line {first}", "name it")
        seen.setdefault(line.key, number)
        yield line


def _items(source: Source) -> Iterator[tuple[int, bytes | str | Mapping[str, Any]]]:
    if isinstance(source, (str, PathLike)):
        with _open_lines(source) as file:
            yield from _file_items(file)
    elif hasattr(source, "readline"):
        yield from _file_items(cast("BinaryIO", source))
    else:
        for number, item in enumerate(source, 1):
            if isinstance(item, str):
                yield number, {"prompt": item}
            elif not isinstance(item, bytes):
                yield number, cast(Any, item)
            elif item.strip():
                yield number, item.strip()


def count_lines(source: str | PathLike[str]) -> int:
    """How many lines a file has that are not empty."""
    with _open_lines(source) as file:
        return sum(1 for line in file if line.strip())


def _open_lines(source: str | PathLike[str]) -> BinaryIO:
    path = Path(source)
    try:
        return path.open("rb")
    except OSError as error:
        raise BatchError(
            f"{path} cannot be read: {error.strerror}", hint="name a file with a line for each"
        ) from error


def _file_items(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.strip():
            yield number, text.strip()


def _read_line(number: int, item: bytes | str | Mapping[str, Any]) -> Line:
    try:
        content = item if isinstance(item, Mapping) else json.loads(item)
    except (ValueError, RecursionError) as error:
        return _wrong(number, item, f"it is no JSON: {error}", _HINT)
    try:
        _LINE.validate_python(content)
    except ValidationError as error:
        problem = find_problem(error, line_schema())
        return _wrong(number, item, problem.what, problem.remedy)
    wrong = _find_contradiction(content)
    if wrong:
        return _wrong(number, item, *wrong)
    said = {key: value for key, value in content.items() if key != "id"}
    return Line(number, content.get("id"), digest_of(said), content)


def _find_contradiction(content: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a model of single keys does not see, and the way out."""
    messages = content.get("messages")
    if (messages is None) == (content.get("prompt") is None):
        both = "both prompt and messages" if messages else "neither prompt nor messages"
        return f"it has {both}", "give one of them"
    if messages is None:
        return None
    last = messages[-1]
    if last["role"] != "user" or not last["content"].strip() or last.get("multipartContent"):
        return "its last message is not text of a user", "end messages with what the user asks"
    if content.get("system") and any(message["role"] == "system" for message in messages):
        return "it has both system and a message of that role", "give one of them"
    return None


def _wrong(number: int, item: object, what: str, hint: str) -> Line:
    text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
    error = LineError(f"line {number}: {what}", line=number, hint=hint)
    return Line(number, None, digest_of(text), {}, error)
