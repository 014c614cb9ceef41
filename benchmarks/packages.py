"""Plugin packages on disk, as an installer would leave them, an hour ago."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

__all__ = ["PROVIDER", "install"]

PROVIDER = "bench"

_REFUSES = "raise SystemExit('imported')\n"
_EXTENSION = """\
from agent_hookspecs import ProviderExtensionPlugin


class Plugin(ProviderExtensionPlugin):
    name = {name!r}
    required_tags = ("provider:bench",)
    after = {after!r}

    def initialize_request(self, native_messages, state):
        return native_messages, state

    def process_chunk(self, partial_messages, final_messages, native_messages, state):
        return partial_messages, final_messages, native_messages, state
"""
_PROVIDER = """\
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "bench"

    def init(self, config):
        return {"config": config, "request": {}, "partial": None}

    def call_api(self, native_messages, state):
        final = {"role": "assistant", "content": "done"}
        return [], [final], [*native_messages, final], state
"""


def install(root: Path, count: int, *, with_code: bool = False) -> None:
    """So many packages of one extension each; ``with_code`` one of them is their provider.

    Without code they refuse to be imported.
    """
    root.mkdir()
    names = [f"bench_{number:04}" for number in range(count)]
    for number, name in enumerate(names):
        if with_code and not number:
            entry = {"role": "provider", "name": PROVIDER, "provides_tags": ["provider:bench"]}
            _package(root, name, entry, _PROVIDER)
            continue
        after = names[max(number - 1, 1) : number]
        tags = ["provider:bench"] if with_code else ["provider:bench", f"tag_{number}"]
        entry = {"role": "extension", "name": name, "required_tags": tags, "after": after}
        code = _EXTENSION.format(name=name, after=tuple(after)) if with_code else _REFUSES
        _package(root, name, entry, code)
    then = time.time() - 3600
    for folder, _, files in os.walk(root, topdown=False):
        for path in (*(os.path.join(folder, file) for file in files), folder):
            os.utime(path, (then, then))


def _package(root: Path, name: str, entry: dict[str, Any], code: str) -> None:
    package = root / f"pkg_{name}"
    package.mkdir()
    (package / "__init__.py").write_text("", "utf-8")
    (package / "plugin.py").write_text(code, "utf-8")
    described = {"entry": f"pkg_{name}.plugin:Plugin", "label": f"Benchmark {name}", **entry}
    descriptor = {"api": ">=1,<2", "entries": [described]}
    (package / "agent_plugin.json").write_text(json.dumps(descriptor), "utf-8")
    metadata = root / f"dist_{name}-1.0.dist-info"
    metadata.mkdir()
    header = f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.0\n"
    (metadata / "METADATA").write_text(header, "utf-8")
    points = f"[agent_host.plugins]\n{name} = pkg_{name}\n"
    (metadata / "entry_points.txt").write_text(points, "utf-8")
