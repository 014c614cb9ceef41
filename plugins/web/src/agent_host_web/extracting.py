"""HTML to Markdown, in a process of its own: there are pages that take hours to be read.

Owns the process on both of its sides, and how trafilatura is asked. A page can neither take more
time or memory than it is given, nor outlive who asked.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any, TypedDict

from agent_hookspecs import ToolError
from agent_host_web.line import Line

__all__ = ["Extract", "extract_markdown", "main"]

#: Without these some Pythons do not start; nothing else of the environment is passed on.
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from agent_host_web.extracting import main; main()"
)
_MAX_BYTES = 1 << 30
_MAX_TITLE = 300


class Extract(TypedDict):
    """What was found; what is not ``main`` is all text there is."""

    text: str
    title: str
    main: bool


def extract_markdown(html: str, url: str, seconds: float, line: Line) -> Extract:
    """The main text of a page; a `ToolError` if it takes too long."""
    # Empty, or even None, in a program that embeds Python.
    if not sys.executable:
        raise ToolError("the page cannot be read: no Python interpreter was found")
    path = json.dumps([os.path.abspath(each) for each in sys.path if each])
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _BEGIN, path, url, str(math.ceil(seconds) + 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
    )
    with process, line.held(process.kill):
        try:
            said, _ = process.communicate(html.encode("utf-8", "replace"), timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            said = b""
    if process.returncode or not said:
        raise ToolError(f"{url} is written so that its text cannot be found", tool="fetch_page")
    found: Extract = json.loads(said)
    return found


def main() -> None:
    """The other side: a page comes in, an extract goes out."""
    _limit_ourselves(int(sys.argv[3]))
    sys.stdout.write(json.dumps(_extract(sys.stdin.buffer.read().decode(), sys.argv[2])))


def _limit_ourselves(seconds: int) -> None:
    try:
        import resource
        import signal
    except ImportError:
        # Nothing is lost: where neither is known, who asked ends us in time.
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # Who asked may be gone by then.
    signal.alarm(seconds)


def _extract(html: str, url: str) -> Extract:
    import trafilatura

    tree: Any = trafilatura.load_html(html)
    if tree is None:
        return {"text": "", "title": "", "main": False}
    title = " ".join((tree.findtext(".//title") or "").split())[:_MAX_TITLE]
    # Here, because trafilatura knows of a URL no more than the host.
    tree.make_links_absolute(url, handle_failures="ignore")
    text = trafilatura.extract(
        tree, output_format="markdown", include_links=True, include_comments=False
    )
    if text:
        return {"text": text, "title": title, "main": True}
    return {"text": trafilatura.html2txt(html), "title": title, "main": False}
