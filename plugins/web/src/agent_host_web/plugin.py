"""The tool plugin ``web``: a URL in, the text of its page out, part by part.

Owns the checking of arguments and settings, the pages that were fetched lately, and the wording of
results. How a page is reached and read is known elsewhere.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from agent_hookspecs import (
    Config,
    ConfigError,
    Context,
    State,
    ToolArgumentsError,
    ToolError,
    ToolPlugin,
    UnknownToolError,
)
from agent_host_web._version import __version__
from agent_host_web.addresses import Network, Target, parse_url
from agent_host_web.declarations import CONFIG_SCHEMA, EFFECTS, SCHEMAS
from agent_host_web.extracting import extract_markdown
from agent_host_web.fetching import Fetcher, within
from agent_host_web.line import Line
from agent_host_web.pages import Page, read_page

__all__ = ["WebTools"]

_TOOL = "fetch_page"
#: How many pages are kept for who goes on with one, and for how long.
_MAX_PAGES = 8
_PAGE_SECONDS = 300.0

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """A page that was fetched; ``target`` is where it was in the end."""

    target: Target
    page: Page
    until: float


@dataclass(frozen=True, slots=True)
class _Web:
    """What is kept between calls."""

    fetcher: Fetcher
    characters: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    pages: OrderedDict[Target, _Known] = field(default_factory=OrderedDict)


class WebTools(ToolPlugin):
    """Fetches pages of the web as Markdown."""

    name = "web"
    version = __version__
    label = "Web"
    effects = EFFECTS

    def get_config_schema(self) -> dict[str, Any]:
        return deepcopy(CONFIG_SCHEMA)

    def init(self, config: Config) -> State:
        fetcher = Fetcher(
            max_bytes=_count(config, "max_page_bytes"),
            max_redirects=_count(config, "max_redirects", least=0),
            seconds=_seconds(config, "max_page_seconds"),
            allowed=_networks(config),
            obeys_robots=_flag(config, "obey_robots"),
        )
        return {"web": _Web(fetcher, _count(config, "max_page_characters"))}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return deepcopy([*SCHEMAS])

    def execute_tool(self, tool_name: str, payload: Any, state: State, context: Context) -> Result:
        """Fetch one page, or the next part of it."""
        web: _Web = state["web"]
        target, offset = _read_arguments(tool_name, payload)
        known = _recent_page(web, target) if offset else None
        if known is None:
            known = _fetch(web, target, context.get("cancelled") or bool)
            with web.lock:
                web.pages[target] = known
                web.pages.move_to_end(target)
                while len(web.pages) > _MAX_PAGES:
                    web.pages.popitem(last=False)
        return _make_result(target, known, offset, web.characters)

    def format_tool_result(self, tool_name: str, result: Any) -> Result:
        text: str = result["text"]
        return {
            "role": "tool",
            "content": text,
            "toolResult": {"type": "tool_result", "text": text},
            "metadata": {"display": result["display"]},
        }


def _value(config: Config, key: str) -> Any:
    value = config.get(key)
    return CONFIG_SCHEMA[key]["default"] if value is None else value


def _seconds(config: Config, key: str) -> float:
    value = _value(config, key)
    # Also refuses what is not a number; a timer takes neither that nor infinity.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 2**31:
        raise _wrong(key, f"is {value!r}", "set a number above 0")
    return float(value)


def _count(config: Config, key: str, least: int = 1) -> int:
    value = _value(config, key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
        raise _wrong(key, f"is {value!r}", f"set a whole number of at least {least}")
    return value


def _flag(config: Config, key: str) -> bool:
    value = _value(config, key)
    if not isinstance(value, bool):
        raise _wrong(key, f"is {value!r}", "set true or false")
    return value


def _networks(config: Config) -> tuple[Network, ...]:
    key = "allowed_networks"
    value = _value(config, key)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong(key, "is no list", "set a list of networks, such as 127.0.0.1/32")
    try:
        return tuple(ipaddress.ip_network(each) for each in value)
    except (ValueError, TypeError) as error:
        raise _wrong(key, f"names no network: {error}", "write them like 127.0.0.1/32") from None


def _wrong(key: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"plugin 'web': setting {key!r} {what}", key=key, hint=hint)


def _read_arguments(tool: str, payload: object) -> tuple[Target, int]:
    """What to fetch, and from which character on."""
    if tool != _TOOL:
        raise UnknownToolError(f"plugin 'web' has no tool {tool!r}", tool=tool)
    if not isinstance(payload, Mapping):
        raise ToolArgumentsError(f"{tool} takes an object of named arguments", tool=tool)
    known = SCHEMAS[0]["parameters"]["properties"]
    for key in payload:
        if key not in known:
            raise ToolArgumentsError(
                f"{tool} has no argument {key!r}; it has {', '.join(known)}", tool=tool
            )
    url, offset = payload.get("url"), payload.get("offset")
    if not isinstance(url, str):
        raise ToolArgumentsError(f"{tool} needs the argument 'url', as text", tool=tool)
    # Some models write null for what they leave out.
    offset = 0 if offset is None else offset
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise ToolArgumentsError(
            "the argument 'offset' must be a whole number of at least 0", tool=tool
        )
    return parse_url(url), offset


def _recent_page(web: _Web, target: Target) -> _Known | None:
    with web.lock:
        known = web.pages.get(target)
    return known if known is not None and known.until > time.monotonic() else None


def _fetch(web: _Web, target: Target, is_cancelled: Callable[[], bool]) -> _Known:
    found: list[_Known] = []
    seconds = web.fetcher.seconds
    end = time.monotonic() + seconds

    def work(line: Line) -> None:
        fetched = web.fetcher.fetch(target, line)
        answer, place = fetched.answer, str(fetched.target)
        if answer.status != HTTPStatus.OK:
            raise ToolError(f"{place} answers {_describe_status(answer.status)}", tool=_TOOL)
        page = read_page(
            answer.body,
            answer.headers.get("Content-Type"),
            place,
            lambda html: extract_markdown(html, place, max(end - time.monotonic(), 0.1), line),
        )
        if answer.cut:
            page = Page(page.text, page.title, page.kind, (*page.notes, answer.cut))
        found.append(_Known(fetched.target, page, time.monotonic() + _PAGE_SECONDS))

    within(work, seconds, is_cancelled)
    return found[0]


def _describe_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        # Nothing is lost: the number stands for itself.
        return str(status)


def _make_result(asked: Target, known: _Known, offset: int, characters: int) -> Result:
    page, size = known.page, len(known.page.text)
    if offset and offset >= size:
        raise ToolArgumentsError(
            f"the text of {known.target} has {size} characters; there is none at {offset}",
            tool=_TOOL,
        )
    part = _cut(page.text[offset : offset + characters], offset + characters < size)
    end = offset + len(part)
    redirected = "" if known.target == asked else f", where {asked} leads"
    lines = [f"[the page {known.target}{redirected}]"]
    if page.title and not offset:
        lines.append(f"Title: {page.title}")
    lines += ["", part or "[there is no text in it]"]
    notes = [*page.notes]
    if offset or end < size:
        notes.append(f"characters {offset} to {end} of {size}")
    if end < size:
        notes.append(f"go on with offset {end}")
    if notes:
        lines.append(f"[{'truncated' if end < size else 'note'}: {'; '.join(notes)}]")
    display = {
        "kind": "page",
        "url": str(known.target),
        "title": page.title,
        "media_type": page.kind,
        "characters": [offset, end],
        "total_characters": size,
    }
    return {"text": "\n".join(lines), "display": display}


def _cut(text: str, is_more: bool) -> str:
    """The part up to the end of a line, if it does not lose much by that."""
    end = text.rfind("\n") if is_more else -1
    return text[: end + 1] if end > len(text) // 2 else text
