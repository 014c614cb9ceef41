"""A real browser for tests that look at pages: Debian's Chromium without a window.

Where it is missing, tests are skipped with a line that says what to install; with ``CI=true`` they
fail. It must not know what the pages show.
"""

from __future__ import annotations

import base64
import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

__all__ = ["Browser", "open_browser", "serve_folder"]

#: The folder that ``.ci/run`` has npm install axe-core into.
AXE_VARIABLE = "AGENT_HOST_AXE"
DESK = (1280, 900)
PHONE = (360, 740)


class Browser:
    """A page at a time, in a window of one width."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def visit(self, url: str) -> None:
        self.driver.get(url)

    def resize(self, width: int, height: int) -> None:
        self._devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark`` pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", features=features)

    def run_scripts(self, allowed: bool) -> None:
        """Whether the scripts of the pages that are visited next run."""
        self._devtools("Emulation.setScriptExecutionDisabled", value=not allowed)

    def ask(self, expression: str, *arguments: object) -> Any:
        """What JavaScript says of the page."""
        return self.driver.execute_script(f"return {expression}", *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        """The elements that can be seen."""
        found = self.driver.find_elements("css selector", selector)
        return [each for each in found if each.is_displayed()]

    def press(self, *keys: str) -> None:
        """Press keys on whatever has the focus; names are those of selenium's ``Keys``."""
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(getattr(Keys, key) if key.isupper() and len(key) > 1 else key)
        actions.perform()

    def focused(self) -> Any:
        return self.driver.switch_to.active_element

    def complaints(self) -> list[str]:
        """What the console has said since the last time: errors, and what a policy has refused."""
        return [each["message"] for each in self.driver.get_log("browser")]

    def audit(self) -> list[str]:
        """What axe-core finds wrong with the page for people who cannot see, hear or point."""
        self.driver.execute_script(_read_axe())
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']})"
            ".then((found) => done(found.violations), (error) => done(String(error)));"
        )
        assert isinstance(found, list), found
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found
            for node in each["nodes"]
        ]

    def photograph(self, file: Path) -> None:
        """The whole page, as wide as the window."""
        size = self._devtools("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self._devtools("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _devtools(self, method: str, **arguments: object) -> Any:
        return self.driver.execute_cdp_cmd(method, arguments)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser with a profile of its own."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        _miss("there is no Chromium: apt-get install chromium chromium-driver")
    try:
        from selenium import webdriver
    except ImportError:
        _miss("there is no selenium: pip install selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--no-proxy-server",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        # Chromium refuses to keep root in its sandbox.
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=chromedriver)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        browser = Browser(driver)
        browser.resize(*DESK)
        yield browser
    finally:
        driver.quit()


def _miss(what: str) -> NoReturn:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(what)
    pytest.skip(what)


@functools.cache
def _read_axe() -> str:
    folder = os.environ.get(AXE_VARIABLE)
    file = Path(folder or "", "node_modules", "axe-core", "axe.min.js")
    if not folder or not file.is_file():
        _miss(f"{AXE_VARIABLE} names no folder with axe-core: npm install --prefix FOLDER axe-core")
    return file.read_text(encoding="utf-8")


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """The files of a folder on a socket; gives the address of the folder."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
