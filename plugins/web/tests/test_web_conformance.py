"""The web package meets the contract of tools."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agent_host_testing import ToolConformance


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == "/page"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"Some text.")

    def log_message(self, format: str, *args: object) -> None:
        return


# The samples have to name it before any test begins; it ends with the process.
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
threading.Thread(target=SERVER.serve_forever, daemon=True).start()
SAMPLES = {"fetch_page": {"url": f"http://127.0.0.1:{SERVER.server_port}/page"}}


class TestWeb(ToolConformance):
    package = "agent_host_web"
    plugin = "web"
    samples = SAMPLES

    def prepare_world(self, folder: Path) -> dict[str, Any]:
        return {"allowed_networks": ["127.0.0.1/32"]}
