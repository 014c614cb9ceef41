"""The console of the gateway in a real browser: what a person does there, at two widths."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_host_gateway", reason="needs agent-host-gateway")

from browser import DESK, PHONE, Browser, open_browser
from gateway_process import opened_store, running_gateway

from agent_host_gateway.keys import Keys

ROOMS = ("chat", "sessions", "runs", "plugins", "usage")
#: What a hostile model may say; none of it may become more than text.
HOSTILE = (
    "<img src=x onerror='document.title=1'> [here](javascript:document.title=2) "
    "![p](http://127.0.0.1:9/pixel.png) <script>document.title=3</script>"
)
MARKDOWN = (
    "## A heading\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n"
)


#: A plugin with an element of every type, which says what it was told.
GAUGES = """
import json
from pathlib import Path

from agent_hookspecs import FeaturePlugin

KINDS = {"word": "string", "tint": "integer", "loud": "boolean", "many": "integer", "odd": "string"}


class Gauges(FeaturePlugin):
    name = "gauges"

    def get_config_schema(self):
        schema = {key: {"type": kind, "required": False} for key, kind in KINDS.items()}
        return {**schema, "pin": {"type": "string", "required": False, "secret": True}}

    def get_ui_elements(self):
        options = [{"value": 1, "label": "Red"}, {"value": 2, "label": "Blue"}]
        return [
            {"type": "text", "key": "word", "label": "Word"},
            {"type": "select", "key": "tint", "label": "Tint", "options": options},
            {"type": "checkbox", "key": "loud", "label": "Loud"},
            {"type": "number", "key": "many", "label": "Many"},
            {"type": "slider", "key": "odd", "label": "Odd"},
            {"type": "text", "key": "pin", "label": "Pin"},
        ]

    def initialize_request(self, native_messages, state, context):
        Path("SEEN").write_text(json.dumps({key: context["config"].get(key) for key in KINDS}))
        return native_messages, state
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir()
    file = tmp_path / "config.toml"
    file.write_text(
        f'store = "sqlite:///{tmp_path}/store.db"\n'
        f"[request_defaults]\nroot = '{tmp_path}/work'\n"
        "[agents.default]\nprovider = 'echo'\nmodel = 'echo-reasoner'\n"
    )
    return str(file)


@pytest.fixture
def console(browser: Browser, config: str) -> Iterator[Browser]:
    with running_gateway(config) as address:
        browser.resize(*DESK)
        browser.visit(f"http://{address}/")
        until(lambda: browser.find_all("#text"))
        # What earlier pages had to say.
        browser.complaints()
        yield browser
        browser.visit("about:blank")


def until(look: Callable[[], Any]) -> Any:
    """What ``look`` finds, as soon as it finds something."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if found := look():
            return found
        threading.Event().wait(0.05)
    raise AssertionError("it did not come")


def click(browser: Browser, words: str) -> None:
    until(lambda: [each for each in browser.find_all("button") if each.text == words])[0].click()


def send(browser: Browser, text: str) -> None:
    """Write a message and wait for its answer, or for what it waits for."""
    before = len(browser.find_all(".message.assistant, .consent"))
    browser.ask("document.getElementById('text').value = arguments[0]", text)
    click(browser, "Send")
    until(lambda: len(browser.find_all(".message.assistant, .consent")) > before)
    until(lambda: [each for each in browser.find_all("button") if each.text == "Send"])


def open_room(browser: Browser, name: str) -> None:
    browser.ask(f"location.hash = '#{name}'")
    shown = f'#rooms a[href="#{name}"][aria-current="page"]'
    until(lambda: browser.find_all(shown))


def text_of(browser: Browser) -> str:
    return str(browser.ask("document.getElementById('main').innerText"))


def test_an_answer_is_drawn_as_markdown(console: Browser) -> None:
    send(console, MARKDOWN)
    answer = ".message.assistant .text"
    assert console.find(f"{answer} h4").text == "A heading"
    assert [each.text for each in console.find_all(f"{answer} li")] == ["one", "two"]
    assert console.find(f"{answer} td").text == "1"
    assert console.find(f"{answer} pre").text == "print(1)"


def test_what_a_model_says_is_never_more_than_text(console: Browser) -> None:
    send(console, HOSTILE)
    assert "<script>document.title=3</script>" in text_of(console)
    assert console.ask("document.querySelectorAll('main img, main script').length") == 0
    assert console.ask(
        "[...document.querySelectorAll('main a')].every(a => a.protocol !== 'javascript:')"
    )
    assert console.ask("document.title") == "Chat · Agent Host"
    assert console.complaints() == []


def test_a_call_runs_when_a_person_allows_it(console: Browser, tmp_path: Path) -> None:
    send(console, '/call write_file {"path": "made.txt", "content": "made\\n"}')
    assert "May this run?" in text_of(console)
    assert console.find(".diff .added").text == "+made"
    # Whoever opens the page anew finds what waits.
    console.driver.refresh()
    click(console, "Allow once")
    until(lambda: (tmp_path / "work" / "made.txt").exists())
    until(lambda: "write_file returned" in text_of(console))


def test_a_conversation_is_found_again_and_branched(console: Browser) -> None:
    send(console, "Where do herons nest?")
    open_room(console, "sessions")
    until(lambda: console.find_all("tbody a"))[0].click()
    until(lambda: "herons" in text_of(console))
    here = console.ask("location.hash")
    click(console, "Branch from here")
    until(lambda: console.ask("location.hash") != here)
    open_room(console, "sessions")
    until(lambda: len(console.find_all("tbody tr")) == 2)
    console.find("#query").send_keys("herons\n")
    until(lambda: console.find_all(".found li"))


def test_everything_can_be_done_with_the_keyboard(console: Browser) -> None:
    assert console.focused().get_attribute("id") == "text"
    console.press("Hello there", "ENTER")
    until(lambda: console.find_all(".message.assistant"))
    for _ in range(30):
        console.press("TAB")
        if console.focused().text == "Settings":
            break
    console.press("ENTER")
    until(lambda: console.find_all(".form input"))


def test_settings_of_the_form_go_with_the_next_message(console: Browser) -> None:
    click(console, "Settings")
    until(lambda: console.find_all(".form input[type=checkbox]"))[0].click()
    click(console, "Settings")
    send(console, "Hello")
    assert not console.find_all(".message.assistant .thoughts")


def test_every_type_of_element_is_drawn_and_what_is_chosen_reaches_the_plugin(
    browser: Browser, config: str, tmp_path: Path
) -> None:
    (tmp_path / "gauges.py").write_text(GAUGES.replace("SEEN", str(tmp_path / "seen.json")))
    file = Path(config)
    file.write_text(f"plugins = ['path:{tmp_path}/gauges.py']\n{file.read_text()}")
    with running_gateway(config) as address:
        browser.resize(*PHONE)
        browser.visit(f"http://{address}/")
        until(lambda: browser.find_all("#text"))
        click(browser, "Settings")
        fields = {
            label.text: browser.find(f"#{label.get_attribute('for')}")
            for label in until(lambda: browser.find_all(".form label"))
        }
        kinds = {name: each.get_property("type") for name, each in fields.items()}
        assert (
            kinds.items()
            >= {
                "Word": "text",
                "Tint": "select-one",
                "Loud": "checkbox",
                "Many": "number",
                "Odd": "text",
                "Pin": "password",
            }.items()
        )
        assert fields["Many"].get_property("step") == "1"
        assert fields["Pin"].get_property("disabled")
        fields["Word"].send_keys("hello")
        fields["Tint"].send_keys("Blue")
        fields["Loud"].click()
        fields["Many"].send_keys("7")
        fields["Odd"].send_keys("as text")
        click(browser, "Settings")
        send(browser, "Hello")
        seen = json.loads((tmp_path / "seen.json").read_text())
        assert seen == {"word": "hello", "tint": 2, "loud": True, "many": 7, "odd": "as text"}
        browser.visit("about:blank")


def test_plugins_are_explained_with_a_picture(console: Browser) -> None:
    open_room(console, "plugins")
    until(lambda: "plugins" in text_of(console) and console.find_all("#filter"))
    click(console, "Explain")
    picture = until(lambda: console.find_all("img.graph"))[0]
    until(lambda: int(picture.get_property("naturalWidth")) > 100)
    assert "Round 1" in text_of(console)


def test_only_a_key_of_the_console_opens_it(browser: Browser, config: str) -> None:
    with opened_store(config) as store:
        _, secret = Keys(store).add("desk", console=True)
    with running_gateway(config) as address:
        browser.visit(f"http://{address}/")
        until(lambda: browser.find_all("#key"))[0].send_keys("wrong\n")
        until(lambda: "not known" in text_of(browser))
        browser.find("#key").clear()
        browser.find("#key").send_keys(f"{secret}\n")
        until(lambda: browser.find_all("#text"))
        assert browser.ask("document.cookie") == ""
        click(browser, "Log out")
        until(lambda: browser.find_all("#key"))
        browser.visit("about:blank")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_every_room_is_usable_by_all_and_fits(
    console: Browser, size: tuple[int, int], scheme: str
) -> None:
    send(console, '/call write_file {"path": "a.txt", "content": "a"}')
    console.resize(*size)
    console.prefer(scheme)
    assert console.audit() == []
    for room in ROOMS:
        open_room(console, room)
        until(lambda: "One moment" not in text_of(console))
        assert console.audit() == []
        assert console.ask("document.documentElement.scrollWidth") <= size[0]
    assert console.complaints() == []
