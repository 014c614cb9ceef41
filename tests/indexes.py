"""A package index on a socket of its own, wheels for it, and environments that install from it.

Everything is made on the spot: the wheels of the host and of what it needs are packed again from
the environment that runs the tests.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from making import FEATURE, Run, entry_points, full

__all__ = [
    "Index",
    "Place",
    "make_environment",
    "make_wheel",
    "pack_distributions",
    "pack_host",
    "serve_index",
]

HOST = "agent-host-core"


@dataclass
class Index:
    """What an index offers.

    ``yanked``, ``uploaded`` and ``provenance`` are told of files by their names.
    """

    folder: Path
    url: str = ""
    yanked: set[str] = field(default_factory=set)
    uploaded: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, bytes] = field(default_factory=dict)
    is_down: bool = False
    #: The files of which a half is sent before the connection is lost.
    cut: set[str] = field(default_factory=set)

    def page(self, project: str) -> dict[str, Any] | None:
        files = []
        for wheel in sorted(self.folder.glob("*.whl")):
            if canonicalize_name(wheel.name.split("-")[0]) == project:
                digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
                about: dict[str, Any] = {
                    "filename": wheel.name,
                    "url": f"{self.url}/files/{wheel.name}",
                    "hashes": {"sha256": digest},
                    "core-metadata": True,
                    "yanked": wheel.name in self.yanked,
                }
                if wheel.name in self.uploaded:
                    about["upload-time"] = self.uploaded[wheel.name]
                if wheel.name in self.provenance:
                    about["provenance"] = f"{self.url}/provenance/{wheel.name}"
                files.append(about)
        if not files:
            return None
        versions = sorted({each["filename"].split("-")[1] for each in files})
        meta = {"api-version": "1.1"}
        return {"meta": meta, "name": project, "versions": versions, "files": files}


@contextmanager
def serve_index(folder: Path, late: float = 0) -> Iterator[Index]:
    """An index for as long as the block lasts; it answers ``late`` seconds after it was asked."""
    index = Index(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(late)
            if index.is_down:
                self.close_connection = True
                return
            _, kind, name, *_ = [*self.path.split("?")[0].split("/"), ""]
            if name.endswith(".metadata"):
                wheel = folder / name.removesuffix(".metadata")
                self.reply(200, _read_metadata(wheel), "text/plain")
                return
            if kind == "files":
                raw = (folder / name).read_bytes()
                sent = raw[: len(raw) // 2] if name in index.cut else raw
                self.reply(200, sent, "application/octet-stream", length=len(raw))
                return
            if kind == "provenance":
                self.reply(200, index.provenance[name], "application/json")
                return
            page = index.page(name)
            body = json.dumps(page or {}).encode()
            self.reply(200 if page else 404, body, "application/vnd.pypi.simple.v1+json")

        do_HEAD = do_GET

        def reply(self, code: int, body: bytes, kind: str, length: int | None = None) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        # Installers open dozens of connections at once; those beyond it would wait for a second.
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield index
        finally:
            server.shutdown()


def _read_metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return archive.read(name)


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    requires: Sequence[str] = (),
    descriptor: Mapping[str, Any] | None = None,
    is_plugin: bool = True,
    files: Mapping[str, str] | None = None,
    scripts: Sequence[str] = (),
    headers: Sequence[str] = (),
    readme: str = "",
) -> Path:
    """A wheel with a package of the same name; a plugin of role feature unless it is none."""
    package = name.replace("-", "_")
    contents = {f"{package}/__init__.py": "", **(files or {})}
    info = f"{package}-{version}.dist-info"
    points = ""
    if is_plugin:
        about = descriptor or full(package, "feature", name)
        contents |= {
            f"{package}/plugin.py": FEATURE.format(name=name),
            f"{package}/agent_plugin.json": json.dumps(about),
            **(files or {}),
        }
        points = entry_points({name: package}).decode()
    if scripts:
        points += "[console_scripts]\n" + "".join(f"{each} = {package}:main\n" for each in scripts)
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    contents[f"{info}/METADATA"] = "\n".join([*metadata, *headers, "", readme])
    tags = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/WHEEL"] = tags
    if points:
        contents[f"{info}/entry_points.txt"] = points
    raw = {path: text.encode() for path, text in contents.items()}
    return _write_wheel(folder / f"{package}-{version}-py3-none-any.whl", info, raw)


def _write_wheel(file: Path, info: str, contents: Mapping[str, bytes]) -> Path:
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for path, raw in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
            writer.writerow([path, f"sha256={digest}", len(raw)])
            archive.writestr(path, raw)
        writer.writerow([f"{info}/RECORD", "", ""])
        archive.writestr(f"{info}/RECORD", rows.getvalue())
    return file


def pack_host(folder: Path) -> None:
    """Put the host and all that it needs on an index, from what is installed here."""
    pack_distributions(folder, HOST)


def pack_distributions(folder: Path, *names: str) -> None:
    """Put distributions and all that they need on an index, from what is installed here."""
    for found in _needed(*names):
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable"):
            source = origin["url"].removeprefix("file://")
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
            subprocess.run(command, cwd=source, check=True, capture_output=True)
            continue
        contents = {}
        for path in found.files or ():
            inside = ".." not in path.parts and "__pycache__" not in path.parts
            if inside and path.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                contents[path.as_posix()] = Path(str(path.locate())).read_bytes()
        (info,) = {path.split("/")[0] for path in contents if ".dist-info/" in path}
        tags = [
            line.split(": ")[1].split("-")
            for line in contents[f"{info}/WHEEL"].decode().splitlines()
            if line.startswith("Tag:")
        ]
        tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
        _write_wheel(folder / f"{info.removesuffix('.dist-info')}-{tag}.whl", info, contents)


def _needed(*names: str) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = [*names]
    while waiting:
        key = canonicalize_name(waiting.pop())
        if key not in found:
            found[key] = distribution(key)
            for text in found[key].requires or ():
                requirement = Requirement(text)
                if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                    waiting.append(requirement.name)
    return [*found.values()]


@dataclass(frozen=True)
class Place:
    """An environment with the host in it, made by one of the makers."""

    maker: str
    prefix: Path
    home: Path
    variables: Mapping[str, str]

    def host(self, *arguments: str, timeout: float = 120) -> Run:
        return self.run(str(self.prefix / "bin" / "agent-host"), *arguments, timeout=timeout)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self.prefix / "bin" / "agent-host"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**self.variables},
        )

    def run(self, *command: str, timeout: float = 120) -> Run:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**self.variables},
            timeout=timeout,
            check=False,
        )
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())

    def freeze(self) -> list[str]:
        """What is installed, by names and versions."""
        folders = sorted((self.prefix / "lib").glob("python*/site-packages/*.dist-info"))
        return sorted(each.name.removesuffix(".dist-info") for each in folders)

    def files(self) -> dict[str, str]:
        """Every file that is installed, by a digest of what it holds."""
        (packages,) = (self.prefix / "lib").glob("python*/site-packages")
        return {
            str(path.relative_to(self.prefix)): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in (packages, self.prefix / "bin")
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }


def make_environment(maker: str, folder: Path, index: Index) -> Place:
    """A new environment with the host in it, as ``venv``, ``uv``, ``uv tool`` or ``pipx`` do."""
    simple = f"{index.url}/simple/"
    home = folder / "home"
    variables = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PIP_", "UV_", "AGENT_HOST", "VIRTUAL_ENV", "PYTHON", "COV_"))
    } | {
        "AGENT_HOST_HOME": str(home),
        "PIP_INDEX_URL": simple,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_RETRIES": "0",
        "UV_INDEX_URL": simple,
        "UV_NO_CONFIG": "1",
        "UV_HTTP_RETRIES": "0",
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "UV_TOOL_DIR": str(folder / "tools"),
        "UV_TOOL_BIN_DIR": str(folder / "tool-bin"),
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "pipx-bin"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HOME": str(folder),
    }
    prefix = {
        "uv tool": folder / "tools" / HOST,
        "pipx": folder / "pipx" / "venvs" / HOST,
    }.get(maker, folder / "environment")
    place = Place(maker, prefix, home, variables)
    uv = shutil.which(
        "uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    commands = {
        "venv": [
            [sys.executable, "-m", "venv", str(prefix)],
            [str(prefix / "bin" / "python"), "-m", "pip", "install", "-q", HOST],
        ],
        "uv": [
            [str(uv), "venv", "-q", "--python", sys.executable, str(prefix)],
            [str(uv), "pip", "install", "-q", "--python", str(prefix / "bin" / "python"), HOST],
        ],
        "uv tool": [
            [str(uv), "tool", "install", "-q", "--force", "--python", sys.executable, HOST]
        ],
        "pipx": [[sys.executable, "-m", "pipx", "install", "--python", sys.executable, HOST]],
    }[maker]
    for command in commands:
        done = place.run(*command)
        assert done.code == 0, done.err
    return place
