"""`agent-host chat` as a person sees it: on a pseudo-terminal, with a model that a test plays."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from making import write_package
from model_server import ModelServer, model_server
from person import Person, at_terminal

pytest.importorskip("prompt_toolkit")
pytest.importorskip("rich")

NOTES = '''
from pathlib import Path

from agent_hookspecs import ToolPlugin


class Plugin(ToolPlugin):
    """A file of notes; it lies where the process runs."""

    name = "notes"
    effects = {"write_notes": "write", "count_slowly": "read"}

    def get_tool_schemas(self):
        text = {"type": "object", "properties": {"text": {"type": "string"}}}
        return [
            {"type": "function", "function": {"name": name, "parameters": text}}
            for name in self.effects
        ]

    def preview_tool(self, tool_name, payload):
        file = Path("notes.txt")
        before = file.read_text() if file.exists() else None
        return [{"path": "notes.txt", "before": before, "after": payload["text"]}]

    def execute_tool(self, tool_name, payload, context):
        if tool_name == "write_notes":
            Path("notes.txt").write_text(payload["text"])
            return "wrote notes.txt"
        while not context["is_cancelled"]():
            yield "still counting"
            import time
            time.sleep(0.02)
        return "never"
'''

CHAT = ("chat", "--config", "c.json")


@pytest.fixture
def model(tmp_path: Path) -> Iterator[ModelServer]:
    entry = {
        "entry": "notes_pkg.plugin:Plugin",
        "role": "tool",
        "name": "notes",
        "tools": {"write_notes": "write", "count_slowly": "read"},
    }
    descriptor = {"api": ">=1,<2", "entries": [entry]}
    write_package(tmp_path / "notes", "notes_pkg", descriptor=descriptor, source=NOTES)
    with model_server() as served:
        served.describe_in(
            tmp_path,
            plugins=["path:notes"],
            allowed_plugins=["like_pkg", "notes_pkg"],
            tools={"rules": [{"tool": "count_slowly", "decision": "allow"}]},
        )
        yield served


def lines(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def ask(person: Person, model: ModelServer, prompt: str, answer: str) -> None:
    """One message and its answer, to the end."""
    before = person.everything.count("openai_like/small")
    person.enter(prompt)
    model.answer(answer)
    person.see_again("openai_like/small", before + 1)
    person.see_line()


def test_an_answer_is_drawn_and_stays_above_the_line(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see("›")
        person.enter("What is **it**?")
        model.say("# It\n\nA *thing* wi", reasoning="Hm.\nI see.\nThree.\nFour.\nFive.\n")
        person.see("  A *thing* wi")
        model.say("th `code`.\n\n```python\nx = 1\n```\n\n- one\n- two\n")
        person.see("x = 1")
        model.finish("stop", input=12, output=3)
        person.see("12 in")
        person.see_line()
        assert person.everything == lines(
            """
            agent-host chat · /help has the commands · Ctrl-D leaves

            › What is **it**?

            ┆ Hm.
            ┆ I see.
            ┆ Three.
            ┆ … 2 more lines: /expand 1

              It

              A thing with code.

              ── python
              x = 1

               • one
               • two
            openai_like/small · 12 in · 3 out · N s

            ›
            """
        )
        person.enter("/expand")
        person.see("Five.")
        person.type("\x04")
        assert person.end() == 0
    assert "Go on with: agent-host chat --session ID" in person.everything


def test_a_call_is_asked_about_with_its_difference_and_shown_as_a_block(
    tmp_path: Path, model: ModelServer
) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see("›")
        person.enter("Change the notes")
        model.call("write_notes", {"text": "one\nthree\n"})
        person.see_last("[v]iew all [n]:")
        model.answer("Done.")
        person.enter("yes")
        person.see("Done.")
        person.see("openai_like/small")
        person.see_line()
        assert person.screen == ""
