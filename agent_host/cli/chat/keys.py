"""What keys do in a conversation, besides what they do in every line that is edited."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from agent_host.cli.chat.pastes import Pastes

__all__ = ["Listener", "make_bindings"]


class Listener(Protocol):
    """Who is told what a person does."""

    def submit(self, text: str, typed: str) -> None:
        """A line is complete; ``typed`` is what of it was not pasted."""

    def interrupt(self) -> None:
        """Ctrl-C."""

    def leave(self) -> None:
        """Ctrl-D on an empty line."""

    def is_deaf(self) -> bool:
        """Whether keys do not count yet, because a question has just been put."""

    def ignore_key(self) -> None:
        """A key that does not count was typed."""


def make_bindings(listener: Listener, pastes: Pastes) -> KeyBindings:
    bindings = KeyBindings()
    deaf = Condition(listener.is_deaf)
    plain = ~is_searching & ~deaf

    @bindings.add("enter", filter=plain)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            # It chooses what was offered; the next one sends.
            buffer.apply_completion(buffer.complete_state.current_completion)
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor(1)
            buffer.insert_text("\n")
            return
        typed = buffer.text
        text = pastes.expand(typed)
        buffer.reset(Document(text))
        buffer.reset(append_to_history=True)
        listener.submit(text, typed)

    @bindings.add("escape", "enter", filter=plain)
    @bindings.add("c-j", filter=plain)
    def break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("tab", filter=plain & ~has_completions)
    def complete(event: KeyPressEvent) -> None:
        event.current_buffer.start_completion(insert_common_part=True)

    @bindings.add(Keys.BracketedPaste, filter=~deaf)
    def paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(pastes.shorten(event.data))

    @bindings.add("c-x", "c-e", filter=plain)
    def edit(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.reset(Document(pastes.expand(buffer.text)))
        buffer.open_in_editor()

    @bindings.add("c-c")
    @bindings.add(Keys.SIGINT)
    def interrupt(event: KeyPressEvent) -> None:
        listener.interrupt()

    @bindings.add("c-d", filter=Condition(lambda: not get_app().current_buffer.text) & ~deaf)
    def leave(event: KeyPressEvent) -> None:
        listener.leave()

    def ignore(event: KeyPressEvent) -> None:
        listener.ignore_key()

    for key in (Keys.Any, "enter", "c-j", Keys.BracketedPaste, "c-d"):
        bindings.add(key, filter=deaf)(ignore)
    return bindings
