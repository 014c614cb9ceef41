"""Where the index of a catalog comes from: a file, or a web server and what was kept of it.

What a server gave is kept in the user's cache, with what the server needs to say that it is still
the same. Without the server, what was cached is used, and it is said from when it is. It must not
know what is looked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_hookspecs.errors import AgentError
from agent_hookspecs.values import dataclass
from agent_host.distributions.errors import CatalogError
from agent_host.places import cache_folder
from agent_host.private import make_private_folder, replace_private

if TYPE_CHECKING:
    from agent_host.distributions.catalog_index import CatalogIndex
    from agent_host.distributions.web import Document

__all__ = ["CATALOG_VARIABLE", "OpenedCatalog", "open_catalog", "open_known_catalog"]

#: Names the catalog where neither the command line nor the config does.
CATALOG_VARIABLE = "AGENT_HOST_CATALOG"
#: Thousands of distributions fit; a larger file is a mistake or an attack on memory.
MAX_BYTES = 16 << 20
_INDEX_NAME = "index.json"


@dataclass(frozen=True, slots=True)
class OpenedCatalog:
    """An index, and what whoever reads it should know of where it comes from."""

    index: CatalogIndex
    source: str
    #: Why what was cached is used, and from when it is; empty if it is what is there now.
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Cached:
    """What a server gave last time, and by what it knows that again."""

    raw: bytes
    etag: str
    modified: str
    #: When by the clock it was last known to be what the server has.
    seen: float


def open_catalog(source: str) -> OpenedCatalog:
    """The catalog at a path or URL; a folder or a URL that ends with a slash has an index.json."""
    if _is_url(source):
        return _open_url(f"{source}{_INDEX_NAME}" if source.endswith("/") else source)
    file = _find_file(source)
    try:
        with open(file, "rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise CatalogError(
            f"the catalog {file} cannot be read: {error.strerror or error}",
            source=str(file),
            hint="name an index.json, its folder, or a URL",
        ) from None
    return OpenedCatalog(_decode(raw, str(file)), str(file))


def open_known_catalog(source: str) -> OpenedCatalog | None:
    """The catalog as far as this machine has it, for completion; None if it does not."""
    if not _is_url(source):
        return open_catalog(source)
    url = f"{source}{_INDEX_NAME}" if source.endswith("/") else source
    cached = _read_cache(url)
    return OpenedCatalog(_decode(cached.raw, url), url) if cached else None


def _is_url(source: str) -> bool:
    return urlsplit(source).scheme.lower() in ("http", "https")


def _find_file(source: str) -> Path:
    path = Path(source).expanduser()
    return path / _INDEX_NAME if path.is_dir() else path


def _decode(raw: bytes, source: str) -> CatalogIndex:
    from agent_host.distributions.catalog_index import decode_index

    if len(raw) > MAX_BYTES:
        raise CatalogError(
            f"{source} is larger than {MAX_BYTES >> 20} MiB",
            source=source,
            hint="an index lists distributions; is this the right file?",
        )
    return decode_index(raw, source)


def _open_url(url: str) -> OpenedCatalog:
    from agent_host.wire.request import without_userinfo

    shown, cached = without_userinfo(url), _read_cache(url)
    try:
        document = _ask(url, cached)
    except AgentError as error:
        return _fall_back(cached, shown, error.message)
    if document.status == 304 and cached is not None:
        _write_cache(url, _Cached(cached.raw, cached.etag, cached.modified, time.time()))
        return OpenedCatalog(_decode(cached.raw, shown), shown)
    if document.status != 200:
        return _fall_back(cached, shown, f"the server answers with {document.status}")
    index = _decode(document.raw, shown)
    etag, modified = (document.headers.get(name, "") for name in ("etag", "last-modified"))
    _write_cache(url, _Cached(document.raw, etag, modified, time.time()))
    return OpenedCatalog(index, shown)


def _ask(url: str, cached: _Cached | None) -> Document:
    from agent_host.distributions.web import open_reader

    headers = {"accept": "application/json"}
    if cached is not None and cached.etag:
        headers["if-none-match"] = cached.etag
    elif cached is not None and cached.modified:
        headers["if-modified-since"] = cached.modified
    with open_reader() as reader:
        # One more than may be, so that too much is seen to be.
        return reader.get(url, headers, MAX_BYTES + 1)


def _fall_back(cached: _Cached | None, shown: str, reason: str) -> OpenedCatalog:
    if cached is None:
        raise CatalogError(
            f"the catalog {shown} cannot be had: {reason}",
            source=shown,
            hint="check the address and the network, or name another with --catalog",
        )
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(cached.seen))
    note = f"{shown} cannot be had ({reason}); this is what it was on {when}"
    return OpenedCatalog(_decode(cached.raw, shown), shown, note)


def _cache_file(url: str) -> str | None:
    folder = cache_folder()
    # The address may hold a password, which is nothing for the name of a file.
    name = hashlib.sha256(url.encode()).hexdigest()[:32]
    return None if folder is None else os.path.join(folder, "catalogs", name)


def _read_cache(url: str) -> _Cached | None:
    """What was cached: a line of JSON about it, then what the server gave."""
    file = _cache_file(url)
    if file is None:
        return None
    try:
        with open(file, "rb") as handle:
            about: dict[str, Any] = json.loads(handle.readline(1 << 16))
            raw = handle.read(MAX_BYTES + 1)
        return _Cached(raw, str(about["etag"]), str(about["modified"]), float(about["seen"]))
    except (OSError, ValueError, KeyError, TypeError):
        # Nothing is lost: what cannot be read is asked for again.
        return None


def _write_cache(url: str, cached: _Cached) -> None:
    file = _cache_file(url)
    if file is None:
        return
    about = {"etag": cached.etag, "modified": cached.modified, "seen": cached.seen}
    try:
        make_private_folder(os.path.dirname(file))
        replace_private(file, json.dumps(about).encode() + b"\n" + cached.raw)
    except OSError:
        # Nothing is lost: what cannot be cached is asked for again.
        return
