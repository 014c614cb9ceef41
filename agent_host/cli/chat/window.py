"""A conversation with prompt_toolkit and rich: the line that is typed below, the answers above it.

What was printed stays in the terminal's own scrollback and is never drawn again. Below it stands
what goes on, what is queued, and the line that is typed.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import DynamicCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.output import create_output
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from agent_host.cli.approval import QUIET_SECONDS
from agent_host.cli.chat.keys import make_bindings
from agent_host.cli.chat.pastes import Pastes
from agent_host.cli.chat.questions import OpenQuestion, ask_approval, ask_question
from agent_host.cli.chat.worker import Worker
from agent_host.cli.outside import GUTTER, clean_text
from agent_host.cli.prompts import describe_parts
from agent_host.cli.render import style_text, wrap_text

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from agent_hookspecs.store.values import Question
    from agent_host.agent.policy import Answer, Approval, Edited
    from agent_host.cli.chat.command import OpenConversation
    from agent_host.cli.chat.commands import Command, Completes
    from agent_host.cli.chat.conversation import Conversation
    from agent_host.cli.chat.transcript import Transcript
    from agent_host.input import Part

__all__ = ["converse"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: How long an application may take to close before it is left alone.
_CLOSE_SECONDS = 5.0
#: What a shell expects of a process whose terminal is gone; not every system has the signal.
_GONE = 128 + 1

_STYLE = Style.from_dict(
    {
        # Not "prompt": that is the class of everything below what was printed.
        "sign": "bold",
        "dim": "dim",
        "cyan": "ansicyan",
        "question": "bold ansiyellow",
        "completion-menu": "noinherit reverse",
        "completion-menu.completion.current": "noinherit bold",
        "completion-menu.meta.completion": "noinherit reverse dim",
        "completion-menu.meta.completion.current": "noinherit",
    }
)


def converse(open_conversation: OpenConversation, *, is_stored: bool) -> int:
    """Talk until the person leaves; gives the exit code."""
    window = _Window(open_conversation, _history() if is_stored else InMemoryHistory())
    with window.instead_of_output():
        return asyncio.run(window.show())


def _history() -> History:
    """What the person has typed, in a file of their own."""
    from agent_host.places import state_folder
    from agent_host.private import make_private_folder

    make_private_folder(state_folder())
    file = os.path.join(state_folder(), "chat-history")
    with suppress(FileExistsError):
        # Nothing is lost: the file is there, and is the person's own already.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return FileHistory(file)


class _Window:
    """What a person sees and does. Whatever is not said to be for any thread is for the loop's."""

    def __init__(self, open_conversation: OpenConversation, history: History) -> None:
        self._output = create_output(stdout=sys.stdout)
        self._pastes = Pastes()
        self._worker = Worker(open_conversation, self)
        self._conversation: Conversation | None = None
        self._transcript: Transcript | None = None
        #: Lines that wait, each with what of it was typed and not pasted.
        self._queue: deque[tuple[str, str]] = deque()
        self._is_busy = True
        self._is_armed = False
        self._is_leaving = False
        self._code = 0
        self._note = ""
        self._farewell = ""
        self._question: OpenQuestion | None = None
        self._unprinted: deque[str] = deque()
        self._printing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._completer: Any = None
        self._session: PromptSession[None] = PromptSession(
            self._message,
            output=self._output,
            style=_STYLE,
            history=history,
            multiline=True,
            key_bindings=make_bindings(self, self._pastes),
            prompt_continuation="  ",
            completer=DynamicCompleter(self._get_completer),
            complete_in_thread=True,
            complete_while_typing=Condition(self._wants_completion),
            reserve_space_for_menu=6,
            enable_suspend=True,
            erase_when_done=True,
        )
        self._session.default_buffer.on_text_changed.add_handler(self._disarm)

    async def show(self) -> int:
        """Show the window until the person leaves."""
        self._loop = asyncio.get_running_loop()
        prompting = asyncio.ensure_future(self._session.prompt_async())
        with suppress(NotImplementedError, ValueError, AttributeError):
            # Nothing is lost: where there are no signals, nobody sends one.
            self._loop.add_signal_handler(signal.SIGTERM, self._terminate)
            self._loop.add_signal_handler(signal.SIGHUP, self._hang_up, prompting)
        ticking = asyncio.create_task(self._tick())
        # The application is opened once the line is on the screen: it takes longer than all else.
        self._session.app.after_render.add_handler(self._begin)
        try:
            await prompting
        except EOFError:  # Nothing is lost: this is how a person leaves.
            self._is_leaving = True
        except (OSError, asyncio.CancelledError) as error:
            # The terminal is gone, and with it whoever would read what is wrong.
            if isinstance(error, asyncio.CancelledError) and self._code != _GONE:
                raise
            self._is_leaving, self._code = True, _GONE
        finally:
            ticking.cancel()
        self._worker.stop()
        self._worker.end()
        await asyncio.to_thread(self._worker.join, _CLOSE_SECONDS)
        try:
            await self._print_rest()
            if self._farewell:
                self._write(f"\n{self._farewell}\n")
        except OSError:
            # Nothing is lost: there is nobody left to read it.
            self._code = self._code or _GONE
        return self._code

    def _terminate(self) -> None:
        self._code = 128 + signal.SIGTERM
        self.leave()

    def _hang_up(self, prompting: asyncio.Future[None]) -> None:
        """Leave without another look at the terminal, which is probably gone."""
        self._code = _GONE
        prompting.cancel()

    def _begin(self, _: object) -> None:
        self._session.app.after_render.remove_handler(self._begin)
        self._worker.start()

    async def _tick(self) -> None:
        """Draw what goes on again, as long as something does."""
        while True:
            await asyncio.sleep(0.1)
            if self._is_busy:
                self._session.app.invalidate()

    # --- what is printed -------------------------------------------------------------------------

    def print(self, text: str) -> None:
        """Print text above the line, for good; from any thread."""
        self._unprinted.append(text)
        if self._loop is not None:
            with suppress(RuntimeError):
                # Nothing is lost: when the loop is over, what is left is printed after it.
                self._loop.call_soon_threadsafe(self._start_printing)

    def _start_printing(self) -> None:
        if self._printing is None and self._unprinted:
            self._printing = asyncio.create_task(self._print_all())

    async def _print_all(self) -> None:
        """Take the line away, print, and draw the line again.

        Not with prompt_toolkit's own means, which let the terminal repeat what is typed meanwhile,
        and make another key of Enter.
        """
        app = self._session.app
        try:
            while self._unprinted:
                if self._output.responds_to_cpr:
                    await app.renderer.wait_for_cpr_responses()
                if not app.is_running or app.is_done:
                    return
                app.renderer.erase()
                self._write(self._take_unprinted())
                app.renderer.reset()
                app.renderer.request_absolute_cursor_position()
                app.renderer.render(app, app.layout)
        finally:
            self._printing = None

    async def _print_rest(self) -> None:
        if self._printing is not None:
            await self._printing
        self._write(self._take_unprinted())

    def _take_unprinted(self) -> str:
        texts: list[str] = []
        with suppress(IndexError):
            # Nothing is lost: this is how the queue says that it is empty.
            while True:
                texts.append(self._unprinted.popleft())
        return "".join(texts)

    def _write(self, text: str) -> None:
        self._output.write_raw(text.replace("\n", "\r\n"))
        self._output.flush()

    def width(self) -> int:
        return self._output.get_size().columns

    @contextmanager
    def instead_of_output(self) -> Iterator[None]:
        """Put what anybody prints meanwhile above the line, cleaned."""
        above = _Above(self.print)
        with redirect_stdout(above), redirect_stderr(above):
            yield

    # --- what stands below -----------------------------------------------------------------------

    def _message(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        shown: StyleAndTextTuples = [("", "\n")]
        if self._question is not None:
            return self._question_lines(self._question, size.columns)
        transcript = self._transcript
        if transcript is not None and self._is_busy:
            for style, line in transcript.live_lines(size.columns)[-max(size.rows // 3, 1) :]:
                shown.append((f"class:{style}" if style else "", f"{line}\n"))
        if self._is_busy:
            doing = "starting" if self._conversation is None else "working"
            if transcript is not None:
                doing = transcript.activity()
            spin = _SPINNER[int(asyncio.get_running_loop().time() * 10) % len(_SPINNER)]
            shown.append(("class:dim", f"{spin} {doing} · Ctrl-C stops\n"))
        for line, _ in self._queue:
            text = clean_text(f"queued: {line}")
            shown.append(("class:dim", f"{text[: size.columns - 1]}\n"))
        if self._note:
            shown.append(("class:dim", f"{self._note}\n"))
        return [*shown, ("class:sign", "› ")]

    def _question_lines(self, question: OpenQuestion, width: int) -> StyleAndTextTuples:
        """Every line of a question begins with the sign that nothing from outside can print."""
        wait = " …" if self.is_deaf() else ""
        text = f"{question.note}\n{question.prompt}{wait}".strip()
        rows = [row for line in text.split("\n") for row in wrap_text(line, width - 4)]
        shown = "\n".join(f"{GUTTER} {row}" for row in rows)
        return [("", "\n"), ("class:question", f"{shown} ")]

    def _get_completer(self) -> Any:
        if self._completer is None:
            # Not above: it is needed when something is typed and not before.
            from agent_host.cli.chat.completion import LineCompleter

            self._completer = LineCompleter(self._names, self._commands)
        return None if self._question is not None else self._completer

    def _wants_completion(self) -> bool:
        text = self._session.default_buffer.document.text_before_cursor
        return self._question is None and ("@" in text or text.startswith("/"))

    def _names(self, kind: Completes) -> Sequence[tuple[str, str]]:
        return () if self._conversation is None else self._conversation.names(kind)

    def _commands(self) -> Mapping[str, Command]:
        from agent_host.cli.chat.commands import COMMANDS, all_commands

        return COMMANDS if self._conversation is None else all_commands(self._conversation)

    # --- what the person does --------------------------------------------------------------------

    def submit(self, text: str, typed: str) -> None:
        if self._question is not None:
            self._answer(self._question, text)
            return
        if not text.strip():
            return
        if text.strip() == "/exit":
            self.leave()
            return
        if self._is_busy and self._run_quickly(text.strip()):
            return
        self._queue.append((text.strip("\n"), typed))
        self._run_next()

    def _run_quickly(self, line: str) -> bool:
        """Do what need not wait for the answer that comes; False if it has to."""
        from agent_hookspecs.errors import AgentError
        from agent_host.cli.chat.commands import COMMANDS, is_command

        word, _, rest = line[1:].partition(" ")
        command = COMMANDS.get(word) if is_command(line) else None
        if command is None or not command.is_quick or self._conversation is None:
            return False
        try:
            self._print_command(line)
            if command.run(self._conversation, rest.strip()) == "leave":
                self.leave()
        except AgentError as error:
            self.show_error(error)
        return True

    def _run_next(self) -> None:
        if not self._is_busy and self._queue:
            self._is_busy = True
            line, typed = self._queue.popleft()
            self._print_command(line)
            self._worker.add_line(line, typed)

    def _print_command(self, line: str) -> None:
        """Show above what it prints that a command was given; a message is shown by its run."""
        from agent_host.cli.chat.commands import is_command

        if is_command(line):
            self.print(f"\n{style_text(f'› {clean_text(line)}', dim=True)}\n")

    def interrupt(self) -> None:
        buffer = self._session.default_buffer
        if buffer.text and self._question is None:
            buffer.reset()
            return
        if self._is_armed:
            self.leave()
            return
        self._is_armed = True
        question = self._question
        if self._worker.stop():
            # What was meant to follow is given back: it was written for an answer that now ends.
            waiting = "\n".join(line for line, _ in self._queue)
            self._queue.clear()
            if waiting:
                self._put_text(waiting)
                self._is_armed = True
        else:
            self._note = "Ctrl-C again leaves, and so does Ctrl-D"
        if question is not None:
            self._close_question(question, None)

    def _put_text(self, text: str) -> None:
        """Put text into the line, to be gone on with."""
        self._session.default_buffer.reset(Document(text))

    def _disarm(self, _: object) -> None:
        self._is_armed, self._note = False, ""

    def leave(self) -> None:
        self._is_leaving = True
        if self._question is not None:
            self._close_question(self._question, None)
        if self._session.app.is_running and not self._session.app.is_done:
            self._session.app.exit()

    def is_deaf(self) -> bool:
        return self._question is not None and self._time() < self._question.until

    def ignore_key(self) -> None:
        if self._question is not None:
            self._question.until = self._time() + QUIET_SECONDS
            self._question.note = "What was typed before the question stood here does not count."

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    # --- questions -------------------------------------------------------------------------------

    def ask(self, question: OpenQuestion) -> str | None:
        """Put a question to the person; for the worker's thread, which waits for the answer."""
        loop = self._loop
        assert loop is not None, "nobody asks before the window is shown"
        loop.call_soon_threadsafe(lambda: loop.create_task(self._put_question(question)))
        return question.answer.result()

    async def _put_question(self, question: OpenQuestion) -> None:
        if self._is_leaving:
            question.answer.set_result(None)
            return
        if self._printing is not None:
            await self._printing
        question.draft = self._session.default_buffer.text
        self._put_text(question.default)
        question.until = self._time() + QUIET_SECONDS
        self._question = question

    def _answer(self, question: OpenQuestion, text: str) -> None:
        question.note = question.check(text)
        if not question.note:
            shown = style_text(f"{GUTTER} {question.title}", fg="yellow")
            self.print(f"{shown} {clean_text(text)}\n")
            self._close_question(question, text)

    def _close_question(self, question: OpenQuestion, answer: str | None) -> None:
        self._question = None
        self._put_text(question.draft)
        question.answer.set_result(answer)

    # --- what the worker says; from its thread ---------------------------------------------------

    def show_opening(self, conversation: Conversation) -> None:
        from agent_host.cli.screen import quiet_logs

        quiet_logs()
        self._conversation = conversation
        self.print(_describe_opening(conversation, self.width()))

    def begin_run(self, text: str, attachments: Sequence[str], parts: Sequence[Part]) -> Transcript:
        from agent_host.cli.chat.transcript import Transcript

        assert self._conversation is not None, "nothing is sent before the application is open"
        transcript = Transcript(
            self.print, self.width, self._conversation.folds, self._conversation.warned
        )
        transcript.print_message(text, [*attachments, *describe_parts(parts)])
        self._transcript = transcript
        return transcript

    def finish_line(self, *, leaves: bool) -> None:
        assert self._loop is not None, "the worker begins when the window is shown"
        self._loop.call_soon_threadsafe(self._become_idle, leaves)

    def _become_idle(self, leaves: bool) -> None:
        self._is_busy, self._transcript = False, None
        if leaves:
            self.leave()
        self._run_next()
        self._session.app.invalidate()

    def show_error(self, error: Exception) -> None:
        self.print(_describe_error(error, self.width()))
        if self._conversation is None:
            self._code = 1

    def end_conversation(self) -> None:
        from agent_host.cli.chat.command import describe_farewell

        if self._conversation is not None:
            self._farewell = describe_farewell(self._conversation)
        if self._loop is not None:
            with suppress(RuntimeError):
                # Nothing is lost: the loop is over, and so is the window.
                self._loop.call_soon_threadsafe(self.leave)

    def approve(self, approval: Approval) -> Answer | Edited:
        return ask_approval(approval, self)

    def answer(self, question: Question) -> str | None:
        return ask_question(question, self)


class _Above(io.TextIOBase):
    """A stream whose lines are printed above the line that is typed, cleaned."""

    def __init__(self, print_text: Callable[[str], None]) -> None:
        self._print = print_text
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._print("".join(f"{clean_text(line)}\n" for line in lines))
        return len(text)

    def isatty(self) -> bool:
        return False


def _describe_opening(conversation: Conversation, width: int) -> str:
    from agent_host.cli.paper import draw, make_text

    return draw(make_text(("\n".join(conversation.greet_person()), "dim")), width)


def _describe_error(error: Exception, width: int) -> str:
    from agent_hookspecs.errors import AgentError
    from agent_host.cli.paper import draw, make_text

    message, hint = f"{type(error).__name__}: {error}", ""
    if isinstance(error, AgentError):
        message, hint = error.message, error.hint or ""
    parts = [("error: ", "bold red"), (message, "")]
    if hint:
        parts += [("\nhint: ", "cyan"), (hint, "")]
    return draw(make_text(*parts), width)
