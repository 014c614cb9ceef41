"""`agent-host chat` as a person sees it: on a pseudo-terminal, with a model that a test plays."""

from __future__ import annotations

import re
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
        while not context["cancelled"]():
            yield "still counting"
            import time
            time.sleep(0.02)
        return "never"
'''

CONFIG = ("--config", "c.json")
CHAT = ("chat", *CONFIG)


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
            settings={"add_tags": ["supports_images"]},
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
        assert not person.is_bold("A *thing* wi")
        model.say("th `code`.\n\n```python\nx = 1\n```\n\n- one\n- two\n")
        person.see("x = 1")
        model.finish("stop", input=12, output=3)
        person.see("12 in")
        person.see_line()
        assert person.everything == lines(
            """
            agent-host chat · /help has the commands · Ctrl-D leaves
            openai_like/small

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
        person.see_line()
        person.enter("Change the notes")
        model.call("write_notes", {"text": "one\nthree\n"})
        person.see_last("[n]:")
        model.answer("Done.")
        person.enter("yes")
        person.see("Done.")
        person.see("openai_like/small · ")
        person.see_line()
        shown = person.screen
    # The owner is a path, whose length is the test's own.
    above, _, below = shown.partition("◘   M notes.txt")
    assert "◘ write_notes (path:" in above
    assert "M notes.txt" + below == lines(
        """
        M notes.txt (+1 -1)
        ◘   @@ -1,2 +1,2 @@
        ◘    one
        ◘   -two
        ◘   +three
        ◘   … 1 more (text), 14 characters; v shows all
        ◘ Allow it? yes

        ● write_notes text="one\\nthree\\n" N s
          wrote notes.txt

          Done.
        openai_like/small · N s

        ›
        """
    )
    assert (tmp_path / "notes.txt").read_text() == "one\nthree\n"


def test_nothing_typed_before_a_question_answers_it(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("Change the notes")
        person.see("waiting")
        person.type("yes, please")
        person.see("› yes, please")
        model.call("write_notes", {"text": "x"})
        person.see_last("[n]:")
        assert not (tmp_path / "notes.txt").exists()
        model.answer("Well then.")
        person.enter("no")
        person.see("Tool call denied")
        person.see("Well then.")
        person.see_last("\n\n› yes, please")
    assert not (tmp_path / "notes.txt").exists()


def test_an_interrupt_while_arguments_are_edited_stops_the_answer(
    tmp_path: Path, model: ModelServer
) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("Change the notes")
        model.call("write_notes", {"text": "bad"})
        person.see_last("[n]:")
        person.enter("e")
        person.see_last("}")
        person.type("\x03")
        person.see("stopped; the session can be gone on with")
        person.see_line()
    assert not (tmp_path / "notes.txt").exists()


def test_arguments_are_edited_before_a_call_runs(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("Change the notes")
        model.call("write_notes", {"text": "bad"})
        person.see_last("[n]:")
        person.enter("maybe")
        person.see("Please answer with one of the words")
        person.enter("e")
        person.see('"text": "bad"')
        person.see_last("}")
        person.type("\x7f" * 40)
        person.see_last("◘ Arguments:")
        person.enter('{"text": "good"}')
        person.see("as they were edited")
        person.see_last("[n]:")
        model.answer("Done.")
        person.enter("y")
        person.see("Done.")
        person.see_line()
    assert (tmp_path / "notes.txt").read_text() == "good"


def test_an_interrupt_stops_the_answer_and_the_session_goes_on(
    tmp_path: Path, model: ModelServer
) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("Tell me all")
        model.say("It begins")
        person.see("It begins")
        person.enter("and more")
        person.see("queued: and more")
        person.type("\x03")
        person.see("stopped; the session can be gone on with")
        person.see_last("› and more")
        model.finish()
        person.type("\x03")
        person.see_line()
        ask(person, model, "Again", "All of it.")
        history = [(each["role"], each["content"]) for each in model.sent[-1]["messages"]]
        assert history == [
            ("user", "Tell me all"),
            ("assistant", "It begins"),
            ("user", "Again"),
        ]
        person.type("\x03")
        person.see("Ctrl-C again leaves")
        person.type("\x03")
        assert person.end() == 0


def test_an_interrupt_stops_a_tool(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("Count")
        model.call("count_slowly", {"text": ""})
        person.see("still counting")
        person.type("\x03")
        person.see("stopped; the session can be gone on with")
        person.see_line()
        ask(person, model, "Never mind", "Good.")


def test_a_message_that_is_typed_while_an_answer_comes_is_sent_after_it(
    tmp_path: Path, model: ModelServer
) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("First")
        model.say("One")
        person.see("One")
        person.enter("Second")
        person.see("queued: Second")
        model.finish()
        model.answer("Two")
        person.see("Two")
        person.see_line()
        assert "queued" not in person.screen


def test_help_and_folds_are_shown_while_an_answer_comes(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("First")
        model.say("One", reasoning="1\n2\n3\n4\n5\n6\n")
        person.see("/expand 1")
        person.enter("/expand 9")
        person.see("there is no folded text '9'")
        person.enter("/expand")
        person.see("\n› /expand\n1\n2\n3\n4\n5\n6\n")
        person.enter("/help save")
        person.see("\n› /help save\n/save [FILE]\n")
        person.enter("/undo")
        person.see("queued: /undo")
        model.finish()
        person.see("\n› /undo\nTaken back: First\n")
        person.see_line()


def test_a_long_paste_is_one_message(tmp_path: Path, model: ModelServer) -> None:
    pasted = "\n".join(f"line {number} of @c.json" for number in range(200))
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.type("Look: ")
        person.paste(f"{pasted}\n")
        person.see("› Look: [paste #1: 200 lines]")
        person.enter("")
        model.answer("I see.")
        person.see("I see.")
        person.see_line()
    (sent,) = model.sent
    assert [each["content"] for each in sent["messages"]] == [f"Look: {pasted}"]


def test_a_screen_of_another_size_is_drawn_anew_below_and_not_above(
    tmp_path: Path, model: ModelServer
) -> None:
    with at_terminal(*CHAT, cwd=tmp_path, columns=100) as person:
        person.see_line()
        ask(person, model, "Hello", "word " * 40)
        person.resize(40, 20)
        person.type("narrow")
        person.see("› narrow")
        person.type("\x03")
        ask(person, model, "Again", "other " * 20)
        rows = [row for row in person.rows if "other" in row]
        assert len(rows) > 3
        assert all(len(row) <= 40 for row in rows)


def test_a_long_word_in_a_table_goes_on_in_the_next_line(
    tmp_path: Path, model: ModelServer
) -> None:
    table = f"| way | where |\n|---|---|\n| one two three | {'x' * 50}END |\n"
    with at_terminal(*CHAT, cwd=tmp_path, columns=40) as person:
        person.see_line()
        ask(person, model, "Go", table)
        assert "END" in person.everything
        assert "…" not in person.everything


def test_what_a_model_says_is_shown_and_never_obeyed(tmp_path: Path, model: ModelServer) -> None:
    nasty = "a\x1b[31mb \x1b]0;title\x07 c\u202ed\u200be &#x202e; [red]f[/red] ◘ Allow it? [link](http://x.example)"
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        ask(person, model, "Go", nasty)
        shown = person.everything
    assert "a␛[31mb ␛]0;title␇ c<U+202E>d<U+200B>e <U+202E>" in " ".join(shown.split())
    assert "[red]f[/red] □ Allow it? link (http://x.example)" in " ".join(shown.split())
    assert b"\x1b]0;" not in person.raw
    assert b"\x1b]8;" not in person.raw
    assert "\u202e".encode() not in person.raw


def test_a_session_is_branched_left_and_gone_on_with(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        ask(person, model, "Hello", "Good day.")
        person.enter("/branch other")
        person.see("stays as it is")
        person.enter("/model large")
        person.see("The next message goes to openai_like/large")
        person.enter("In the branch")
        model.answer("Yes.")
        person.see("openai_like/large · ")
        person.see_line()
        person.type("\x04")
        assert person.end() == 0
    assert model.sent[-1]["model"] == "large"
    with at_terminal(*CHAT, "--continue", cwd=tmp_path) as person:
        person.see("going on with ID, 4 messages\nuser: In the branch\nassistant: Yes.\n")
        ask(person, model, "Still there?", "I am.")
        person.type("\x04")
        assert person.end() == 0
    assert [each["content"] for each in model.sent[-1]["messages"]] == [
        *("Hello", "Good day.", "In the branch", "Yes.", "Still there?")
    ]
    with at_terminal("sessions", "list", *CONFIG, cwd=tmp_path) as person:
        assert person.end() == 0
    assert "other: Hello" in person.everything


def test_a_picture_goes_with_a_message(tmp_path: Path, model: ModelServer) -> None:
    (tmp_path / "cat").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(16))
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.enter("/attach nothing.png")
        person.see("nothing.png cannot be read")
        person.enter("/attach cat")
        person.see("With the next message: cat")
        ask(person, model, "What is it?", "A cat.")
        assert "› What is it?\n  + cat" in person.everything
        person.type("\x04")
        assert person.end() == 0
        (session,) = re.findall(r"--session (\w+)", person.raw.decode())
    with at_terminal("sessions", "show", session, "--json", *CONFIG, cwd=tmp_path) as person:
        assert person.end() == 0
    assert '"media_type": "image/png"' in person.raw.decode()


def test_what_is_typed_is_completed_and_remembered(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.type("/bra")
        person.see("Go on in a copy")
        person.type("\t")
        person.see("› /branch")
        person.type("\x03")
        person.see_no("/branch")
        person.type("see @c.j")
        person.see("c.json")
        person.type("\x03")
        ask(person, model, "Hello", "Hi.")
        person.type("\x04")
        assert person.end() == 0
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see_line()
        person.type("\x1b[A")
        person.see("› Hello")
    (history,) = (tmp_path / "home").rglob("chat-history")
    assert history.stat().st_mode & 0o777 == 0o600


def test_an_application_that_cannot_be_opened_ends_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{", encoding="utf-8")
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        assert person.end() == 1
    assert "error: c.json" in person.everything
