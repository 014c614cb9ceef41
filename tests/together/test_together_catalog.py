"""The catalog of our own packages, and one of hostile ones, as people meet them in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from browser import DESK, PHONE, Browser, open_browser, serve_folder

from indexes import make_wheel
from making import full

ROOT = Path(__file__).resolve().parents[2]
# At the end, so that the packages under test are those that are installed.
sys.path += [str(ROOT), str(ROOT / ".ci")]

from catalog.__main__ import main  # noqa: E402

wheelhouse: Any = import_module("wheelhouse")

PLUGINS = [each for each in wheelhouse.distributions().values() if each.is_plugin]
TAKEN = "document.documentElement.dataset.taken = 'yes'"
HOSTILE = f'"><img src=x onerror="{TAKEN}"><script>{TAKEN}</script><svg onload="{TAKEN}">'


def make_wheels(folder: Path) -> list[Path]:
    """The wheels of our plugins: those that tox made, or the same made here."""
    if "TOX_WORK_DIR" in os.environ:
        place = Path(os.environ["TOX_WORK_DIR"], "wheelhouse")
        return [wheel.path for wheel in wheelhouse.build(PLUGINS, place).values()]
    for each in PLUGINS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=each.folder, check=True, capture_output=True)
    return sorted(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def desk(browser: Browser) -> Browser:
    """The browser as a person finds it."""
    browser.resize(*DESK)
    browser.prefer("light")
    browser.run_scripts(True)
    browser.complaints()
    return browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("catalog")
    wheels = folder / "wheels"
    wheels.mkdir()
    assert main(["build", "--out", str(folder / "site"), *map(str, make_wheels(wheels))]) == 0
    with serve_folder(folder / "site") as url:
        yield url


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("hostile")
    about = {
        "label": HOSTILE,
        "description": HOSTILE + "word " * 5000 + "x" * 5000,
        "provides_tags": [HOSTILE, "'\"&<tag>"],
        "config_schema": {HOSTILE: {"type": "string", "description": HOSTILE}},
    }
    make_wheel(
        folder,
        "acme",
        descriptor=full("acme", "feature", "acme", **about),
        headers=[
            f"Summary: {HOSTILE}",
            f"Project-URL: Click, javascript:{TAKEN}",
            f"Project-URL: {HOSTILE}, https://example.org/",
        ],
        readme="\u202eturned around " + HOSTILE + "y" * 10_000,
    )
    assert main(["build", "--out", str(folder / "site"), str(folder)]) == 0
    with serve_folder(folder / "site") as url:
        yield url


def names(browser: Browser) -> list[str]:
    return [each.text for each in browser.find_all("#cards h2")]


def test_every_package_has_a_card_and_a_page(desk: Browser, site: str) -> None:
    desk.visit(site)
    found = names(desk)
    # The kit is a package beside the plugins, and has none.
    assert len(found) == len(PLUGINS) - 1
    assert desk.find("#count").text == f"{len(found)} of {len(found)} shown"
    desk.find("#cards a[href$='agent-host-files.html']").click()
    assert desk.find("h1").text == "agent-host-files"
    assert desk.find("#command").text == "agent-host plugins add agent-host-files"
    assert "read_file" in desk.find(".plugin").text
    assert desk.find(".facts").text.splitlines()[:4] == [
        "Version",
        "0.1.0",
        "Licence",
        "Apache-2.0",
    ]
    assert desk.complaints() == []


def test_words_and_filters_narrow_what_is_shown(desk: Browser, site: str) -> None:
    desk.visit(site)
    desk.find("#words").send_keys("anthropic")
    assert names(desk) == ["agent-host-anthropic"]
    assert desk.find("#count").text.startswith("1 of ")
    assert "q=anthropic" in desk.driver.current_url
    desk.find("#words").send_keys(" nowhere")
    assert names(desk) == []
    assert desk.find("#nothing").is_displayed()
    desk.find("#reset").click()
    everything = names(desk)
    assert len(everything) > 10
    desk.find("input[name=role][value=tool]").click()
    tools = names(desk)
    assert "agent-host-files" in tools
    assert "agent-host-anthropic" not in tools
    # What was chosen stands in the address, so that it can be sent to others.
    desk.visit(f"{site}?tag=wire:openai-chat")
    assert "agent-host-openai-compatible" in names(desk)
    assert "agent-host-files" not in names(desk)
    desk.visit(f"{site}?tag=nobody%20has%20it&role=none")
    assert names(desk) == everything
    assert desk.complaints() == []


def test_a_tag_on_a_page_leads_to_all_that_have_it(desk: Browser, site: str) -> None:
    desk.visit(f"{site}plugins/agent-host-openrouter.html")
    desk.find("a.tag[href*='wire%3Aopenai-chat']").click()
    assert {"agent-host-openrouter", "agent-host-openai-compatible"} <= {*names(desk)}


def test_everything_can_be_done_with_keys(desk: Browser, site: str) -> None:
    desk.visit(site)
    desk.press("TAB")
    assert desk.focused().text == "Skip to content"
    desk.press("/")
    assert desk.focused().get_attribute("id") == "words"
    desk.press("s", "h", "e", "l", "l")
    assert "agent-host-shell" in names(desk)
    desk.press("TAB", "ARROW_RIGHT")
    assert desk.focused().get_attribute("value") == "provider"
    desk.press("ARROW_LEFT")
    for _ in range(8):
        desk.press("TAB")
        if desk.focused().text == "agent-host-shell":
            break
    outline = "getComputedStyle(document.activeElement, '::after').outlineStyle"
    assert desk.ask(outline) == "solid"
    desk.press("ENTER")
    assert desk.find("h1").text == "agent-host-shell"
    desk.visit(f"{site}plugins/agent-host-anthropic.html")
    first = desk.find(".plugin summary")
    desk.ask("arguments[0].focus()", first)
    assert desk.find(".plugin").get_attribute("open") is None
    desk.press("ENTER")
    assert desk.find(".plugin").get_attribute("open") is not None


def test_without_script_everything_is_there(desk: Browser, site: str) -> None:
    desk.run_scripts(False)
    desk.visit(site)
    assert len(names(desk)) > 10
    assert not desk.find("#search").is_displayed()
    desk.visit(f"{site}plugins/agent-host-web.html")
    assert desk.find("#command").text == "agent-host plugins add agent-host-web"
    assert not desk.find("#copy").is_displayed()
    assert "max_page_bytes" in desk.find(".settings").text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_pages_fit_the_width_and_are_accessible(
    desk: Browser, site: str, size: tuple[int, int], scheme: str
) -> None:
    desk.resize(*size)
    desk.prefer(scheme)
    for address in ("", "plugins/agent-host-web.html", "plugins/agent-host-openai-compatible.html"):
        desk.visit(site + address)
        assert desk.ask("document.documentElement.scrollWidth") <= size[0]
        assert desk.audit() == []


def test_hostile_packages_do_nothing(desk: Browser, hostile_site: str) -> None:
    for size in (DESK, PHONE):
        desk.resize(*size)
        for address in ("", "plugins/acme.html"):
            desk.visit(hostile_site + address)
            for each in desk.driver.find_elements("css selector", "details"):
                desk.ask("arguments[0].open = true", each)
            assert desk.ask("document.documentElement.dataset.taken || 'no'") == "no"
            assert desk.ask("document.querySelectorAll('main img, main script, svg').length") == 0
            assert desk.ask("document.documentElement.scrollWidth") <= size[0]
            assert desk.audit() == []
            # Nothing was tried that the policy of the page had to refuse.
            assert desk.complaints() == []
    desk.visit(hostile_site)
    desk.find("#words").send_keys("<img")
    assert names(desk) == ["acme"]
    from selenium.webdriver.support.ui import Select

    choice = Select(desk.find("#tag"))
    choice.select_by_index(len(choice.options) - 1)
    assert names(desk) == ["acme"]
    assert desk.ask("document.documentElement.dataset.taken || 'no'") == "no"


def test_the_policy_of_the_pages_refuses_script_in_them(desk: Browser, site: str) -> None:
    desk.visit(site)
    refused = desk.ask(
        "(() => { const s = document.createElement('script');"
        f' s.append("{TAKEN}");'
        " try { document.body.append(s) } catch (error) { return 'refused' }"
        " return document.documentElement.dataset.taken || 'refused' })()"
    )
    assert refused == "refused"
