"""The thread that owns the application: it opens it, and does what lines say, one after the other.

The face stays alive meanwhile, whatever a plugin does. It must not know how anything is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from agent_hookspecs.errors import AgentError

if TYPE_CHECKING:
    from agent_hookspecs.store.values import Question
    from agent_host.agent.policy import Answer, Approval, Edited
    from agent_host.cli.chat.command import OpenConversation
    from agent_host.cli.chat.commands import Send
    from agent_host.cli.chat.conversation import Conversation
    from agent_host.cli.chat.transcript import Transcript
    from agent_host.drivers.blocking import Stream
    from agent_host.input import Part

__all__ = ["Face", "Worker"]


class Face(Protocol):
    """What the worker needs of whoever shows the conversation; all of it from another thread."""

    def show_opening(self, conversation: Conversation) -> None:
        """The application is ready."""

    def begin_run(self, text: str, attachments: Sequence[str], parts: Sequence[Part]) -> Transcript:
        """A message is sent; gives what shows the run."""

    def finish_line(self, *, leaves: bool) -> None:
        """A line was dealt with."""

    def show_error(self, error: Exception) -> None:
        """Something went wrong."""

    def end_conversation(self) -> None:
        """The application is closed, or could not be opened: there is nothing more to do."""

    def approve(self, approval: Approval) -> Answer | Edited:
        """Whether a call may run."""

    def answer(self, question: Question) -> str | None:
        """What a tool wants to know."""


class Worker(threading.Thread):
    """Give it lines with `add_line`."""

    def __init__(self, open_conversation: OpenConversation, face: Face) -> None:
        super().__init__(name="chat", daemon=True)
        self._open = open_conversation
        self._face = face
        self._lines: SimpleQueue[tuple[str, str] | None] = SimpleQueue()
        self._stream: Stream | None = None
        self._is_stopped = False
        self._lock = threading.Lock()

    def add_line(self, line: str, typed: str) -> None:
        """Do what a line says; ``typed`` is the line without what was pasted into it."""
        self._lines.put((line, typed))

    def end(self) -> None:
        """Close the application when all lines are dealt with."""
        self._lines.put(None)

    def stop(self) -> bool:
        """Stop the run that goes on; False if there is none."""
        with self._lock:
            stream = self._stream
            self._is_stopped = stream is not None
        if stream is None:
            return False
        stream.close()
        return True

    def run(self) -> None:
        try:
            with self._open() as conversation:
                conversation.ask = self._face.answer
                self._face.show_opening(conversation)
                self._face.finish_line(leaves=False)
                while (line := self._lines.get()) is not None:
                    self._face.finish_line(leaves=self._run_line(conversation, *line))
        except Exception as error:
            self._face.show_error(error)
        finally:
            self._face.end_conversation()

    def _run_line(self, conversation: Conversation, line: str, typed: str) -> bool:
        from agent_host.cli.chat.commands import Send, run_command

        try:
            outcome = run_command(conversation, line, typed)
            if outcome == "leave":
                return True
            if isinstance(outcome, Send):
                self._send(conversation, outcome)
        except Exception as error:
            # A fault of a plugin, or of ours, ends the message and not the conversation.
            self._face.show_error(error)
        return False

    def _send(self, conversation: Conversation, message: Send) -> None:
        transcript = self._face.begin_run(message.text, conversation.attachments, message.parts)
        stream = conversation.send(
            message.text, self._face.approve, self._face.answer, message.parts
        )
        with self._lock:
            self._stream, self._is_stopped = stream, False
        try:
            with closing(stream):
                for event in stream:
                    transcript.show(event)
        except AgentError:
            if not self._is_stopped:
                raise
            # Nothing is lost: whoever stops a run does not want to know what that has broken.
        finally:
            with self._lock:
                self._stream = None
            conversation.leave_run(stream)
            transcript.end(stopped=self._is_stopped)
