"""Clones of repositories at one commit, in the user's cache: making and comparing them.

A clone is compared with its commit each time it is used, file by file and without running git: an
object of git has the digest of its content as its name, so the commit that a config names vouches
for everything below it. What the files are for is not known here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent_hookspecs.errors import SourceError
from agent_hookspecs.logs import redact
from agent_hookspecs.values import dataclass
from agent_host.private import make_private_folder

__all__ = ["GitSource", "check_out_commit", "parse_git"]

_GIT = re.compile(
    r"git\+(?P<url>(https|ssh)://[^#]+?)@(?P<commit>[0-9a-fA-F]+)"
    r"(#subdirectory=(?P<subdirectory>[^#&]+))?"
)
_AUTHORITY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?")
_FULL_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_GIT_SECONDS: Final = 300
_GIT_PLACES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)
#: Nothing of the repository runs, and its objects stay in files of their own, which we can read.
_GIT_SETTINGS = (
    "core.hooksPath=/dev/null",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
    "fetch.unpackLimit=100000000",
    "gc.auto=0",
    "maintenance.auto=false",
)
#: Files are checked out as they were committed: no filter runs, and no line break is changed.
_ATTRIBUTES: Final = "* -text -eol -ident -filter -working-tree-encoding\n"

#: Without following a link, or waiting for what is no file.
_READ = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)
_PIECE: Final = 1 << 20
#: More than a commit or the list of one folder has; an object that grows beyond is none of those.
_MAX_OBJECT: Final = 32 << 20

_FOLDER, _LINK, _SUBMODULE = b"40000", b"120000", b"160000"
#: Where the interpreter keeps what it has compiled.
_COMPILED: Final = "__pycache__"


@dataclass(frozen=True, slots=True)
class GitSource:
    """A repository at one commit."""

    url: str
    commit: str
    subdirectory: str = "."


def parse_git(source: str) -> GitSource:
    """Parse ``git+https://HOST/REPO@COMMIT#subdirectory=FOLDER``; anything unsafe is refused."""
    match = _GIT.fullmatch(source)
    shown = redact(source)
    if match is None:
        raise SourceError(
            f"{shown!r} is not a git source that can be used",
            hint="write git+https://HOST/REPO@COMMIT or git+ssh://USER@HOST/REPO@COMMIT",
        )
    if not _AUTHORITY.fullmatch(urlsplit(match["url"]).netloc):
        raise SourceError(
            f"the host in {shown!r} is not one that can be used",
            hint="leave passwords to git's own credential helpers",
        )
    commit = match["commit"].lower()
    if not _FULL_COMMIT.fullmatch(commit):
        raise SourceError(
            f"{shown!r} is not pinned to a commit",
            hint="give the full commit id of 40 hexadecimal digits",
        )
    return GitSource(match["url"], commit, match["subdirectory"] or ".")


def check_out_commit(source: GitSource, cache: Path | None) -> Path:
    """The folder with the commit's files, fetched if it is not in the cache yet."""
    if cache is None:
        raise SourceError("there is no cache folder to clone into", hint="set AGENT_HOST_HOME")
    digest = hashlib.sha256(source.url.encode()).hexdigest()[:16]
    folder = cache / "git" / f"{digest}-{source.commit}"
    if not folder.is_dir():
        _clone(source, folder)
    _check_clone(folder, source)
    return folder


def _clone(source: GitSource, folder: Path) -> None:
    make_private_folder(folder.parent)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix="clone-"))
    kind = "sha1" if len(source.commit) == 40 else "sha256"
    try:
        _run_git(source, temporary, "init", "--quiet", f"--object-format={kind}")
        (temporary / ".git" / "info").mkdir(exist_ok=True)
        (temporary / ".git" / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
        _run_git(source, temporary, "fetch", "--quiet", "--depth=1", "--no-recurse-submodules",
             "--no-tags", "--", source.url, source.commit)  # fmt: skip
        _run_git(source, temporary, "checkout", "--quiet", "--detach", source.commit)
        try:
            os.replace(temporary, folder)
        except OSError:
            # Another process was faster; its clone of the same commit is as good.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run_git(source: GitSource, folder: Path, *arguments: str) -> None:
    settings = [part for setting in _GIT_SETTINGS for part in ("-c", setting)]
    # Without what git sets in its hooks, which would outweigh our folder.
    environment = {key: value for key, value in os.environ.items() if key not in _GIT_PLACES}
    try:
        subprocess.run(
            ["git", *settings, "-C", str(folder), *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_GIT_SECONDS,
            env={**environment, "GIT_TERMINAL_PROMPT": "0"},
        )
    except FileNotFoundError:
        raise SourceError(
            "git is not installed", hint="install it, or use a path: source"
        ) from None
    except subprocess.TimeoutExpired:
        raise SourceError(
            f"{source.url} did not answer within {_GIT_SECONDS} s", hint="try again later"
        ) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise SourceError(
            f"git could not fetch {source.commit[:12]} of {source.url}: {lines[-1]}",
            hint="check the address and that the commit was pushed",
        ) from None


def _check_clone(folder: Path, source: GitSource) -> None:
    """Refuse a clone that somebody else made, or that is not what the commit says."""
    try:
        found = folder.lstat()
        wrong = ""
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            wrong = "belongs to another user"
        elif os.name == "posix" and found.st_mode & 0o022:
            wrong = "can be changed by other users"
        else:
            wrong = next(_Comparison(folder, source.commit).differences(), "")
    except (OSError, ValueError, zlib.error) as error:
        wrong = f"cannot be compared with its commit: {error}"
    if wrong:
        raise SourceError(
            f"the clone of {source.url} at {folder} {wrong}",
            hint="delete that folder, and it is cloned anew",
        )


class _Comparison:
    """The files of a clone beside what its commit says of them."""

    def __init__(self, folder: Path, commit: str) -> None:
        self._folder = str(folder)
        self._commit = commit

    def differences(self) -> Iterator[str]:
        """In words, what is not as it was committed."""
        commit = self._read_object("commit", self._commit)
        tree = commit.split(b"\n", 1)[0].removeprefix(b"tree ").decode("ascii")
        waiting = [("", tree)]
        while waiting:
            place, tree = waiting.pop()
            entries = dict(_entries_of(self._read_object("tree", tree), len(tree) // 2))
            yield from self._find_strangers(place, entries.keys())
            for name, (mode, digest) in entries.items():
                path = os.path.join(place, name)
                if mode == _FOLDER:
                    if not self._is_folder(path):
                        yield f"has no folder {path}"
                    waiting.append((path, digest))
                elif mode == _SUBMODULE:
                    yield from self._find_strangers(path, ())
                elif self._digest_of(path) != digest:
                    yield f"has another {path} than commit {self._commit[:12]}"

    def _find_strangers(self, place: str, known: Collection[str]) -> Iterator[str]:
        """What is in a folder and was not committed, but for what Python has compiled there."""
        for name in sorted(os.listdir(os.path.join(self._folder, place))):
            path = os.path.join(place, name)
            if name in known or path == ".git":
                continue
            if name == _COMPILED and self._is_folder(path):
                yield from self._find_strangers(path, ())
            elif os.path.basename(place) != _COMPILED or not self._is_compared_by_python(path):
                yield f"has {path}, which commit {self._commit[:12]} has not"

    def _is_folder(self, path: str) -> bool:
        return stat.S_ISDIR(os.lstat(os.path.join(self._folder, path)).st_mode)

    def _is_compared_by_python(self, path: str) -> bool:
        """Whether it is a compiled file that the interpreter compares with its source itself."""
        if not path.endswith(".pyc"):
            return False
        with open(os.open(os.path.join(self._folder, path), _READ), "rb") as file:
            # Those that are used without a look at the time of their source say so here.
            return file.read(8)[4:] == bytes(4)

    def _digest_of(self, path: str) -> str:
        """The name that git gives to the content of a file, or of a link."""
        whole = os.path.join(self._folder, path)
        if os.path.islink(whole):
            target = os.fsencode(os.readlink(whole))
            return self._name_of(b"blob", len(target), [target])
        with open(os.open(whole, _READ), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return "no file"
            pieces = iter(lambda: file.read(_PIECE), b"")
            return self._name_of(b"blob", found.st_size, pieces)

    def _read_object(self, kind: str, digest: str) -> bytes:
        """What an object of git holds, if that is what it is called by."""
        path = os.path.join(self._folder, ".git", "objects", digest[:2], digest[2:])
        with open(os.open(path, _READ), "rb") as file:
            unpacked = zlib.decompressobj().decompress(file.read(_MAX_OBJECT), _MAX_OBJECT)
        content = unpacked.partition(b"\0")[2]
        if self._name_of(kind.encode(), len(content), [content]) != digest:
            raise ValueError(f"the {kind} {digest[:12]} is spoilt")
        return content

    def _name_of(self, kind: bytes, size: int, pieces: Iterable[bytes]) -> str:
        make = hashlib.sha1 if len(self._commit) == 40 else hashlib.sha256
        digest = make(b"%s %d\0" % (kind, size), usedforsecurity=False)
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()


def _entries_of(tree: bytes, length: int) -> Iterator[tuple[str, tuple[bytes, str]]]:
    """The names in a folder, each with its mode and the name of its object, ``length`` bytes."""
    place = 0
    while place < len(tree):
        space = tree.index(b" ", place)
        end = tree.index(b"\0", space)
        name = os.fsdecode(tree[space + 1 : end])
        if name in ("", ".", "..", ".git") or "/" in name:
            raise ValueError(f"a file is called {name!r}")
        yield name, (tree[place:space], tree[end + 1 : end + 1 + length].hex())
        place = end + 1 + length
