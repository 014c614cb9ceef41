"""What Tab offers in a conversation: commands, what belongs to them, and files after ``@``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from agent_host.cli.chat.commands import COMMANDS, Command, Completes
from agent_host.cli.outside import clean_text

__all__ = ["LineCompleter", "wants_completion"]

#: How long commands of plugins are offered without asking the plugins again.
_FRESH_SECONDS = 5.0
_FILE = re.compile(r"(?:^|\s)@(\S*)$")


def wants_completion(text: str) -> bool:
    """Whether there may be something to offer behind this text, without being asked to."""
    return bool(_FILE.search(text)) or (text.startswith("/") and "\n" not in text)


class LineCompleter(Completer):
    """``names`` gives the words of a kind, ``commands`` all commands there are.

    Both run in a thread and may take their time.
    """

    def __init__(
        self,
        names: Callable[[Completes], Sequence[tuple[str, str]]],
        commands: Callable[[], Mapping[str, Command]] = lambda: COMMANDS,
    ) -> None:
        self._names = names
        self._find_commands = commands
        self._commands: Mapping[str, Command] = COMMANDS
        self._asked = float("-inf")
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        text = document.text_before_cursor
        if file := _FILE.search(text):
            yield from self._complete_path(file[1], complete_event)
        elif text.startswith("/") and "\n" not in text:
            word, space, rest = text[1:].partition(" ")
            if not space:
                yield from self._complete_command(word)
            elif word in COMMANDS:
                yield from self._complete_rest(COMMANDS[word].completes, rest, complete_event)

    def _complete_rest(
        self, kind: Completes, rest: str, event: CompleteEvent
    ) -> Iterable[Completion]:
        if kind == "files":
            yield from self._complete_path(rest, event)
        elif kind:
            begun = rest.split(" ")[-1]
            for name, about in self._names(kind):
                if begun.lower() in name.lower():
                    yield Completion(name, -len(begun), display_meta=clean_text(about))

    def _complete_path(self, path: str, event: CompleteEvent) -> Iterable[Completion]:
        for each in self._paths.get_completions(Document(path), event):
            # A file may have any name; one that a terminal would obey is not offered.
            if each.text.isprintable():
                yield each

    def _complete_command(self, word: str) -> Iterable[Completion]:
        if time.monotonic() - self._asked > _FRESH_SECONDS:
            # Plugins are asked when a command is begun, and not for each letter of it.
            self._commands = self._find_commands()
            self._asked = time.monotonic()
        for name, command in self._commands.items():
            if name.startswith(word):
                yield Completion(
                    f"{name} " if command.usage else name,
                    -len(word),
                    display=f"/{name}",
                    display_meta=clean_text(command.help),
                )
