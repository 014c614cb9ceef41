"""``agent-host chat``: reads its options and shows a face, before anything heavy is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.options import talk_options
from agent_host.cli.render import is_terminal, print_wrapped, style_text
from agent_host.cli.selection import complete_selection, print_selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_host.cli.chat.conversation import Conversation

__all__ = ["OpenConversation", "chat"]

#: Makes the application and the conversation, which takes a while.
OpenConversation = Callable[[], "AbstractContextManager[Conversation]"]


@click.command(
    epilog="\b\nExamples:\n"
    "  agent-host chat\n"
    "  agent-host chat --system 'Be brief.' --name notes\n"
    "  agent-host chat --continue\n"
    "  agent-host chat --session notes --agent reviewer\n"
    "  printf 'Hello\\n/save talk.md\\n' | agent-host chat --plain\n"
    "\n\n/help has the commands and keys. Sessions are stored, unless --no-store is given."
)
@talk_options
def chat(
    config_file: Path | None,
    use_tools: tuple[str, ...] | None,
    no_store: bool,
    plain: bool,
    **options: Any,
) -> int:
    """Talk with an agent."""

    @contextmanager
    def open_conversation() -> Iterator[Conversation]:
        from agent_host.application import AgentApplication
        from agent_host.cli.chat.conversation import Asked, Conversation

        with AgentApplication(config_file, store=not no_store) as app:
            chosen = complete_selection(app, options)
            asked = Asked(
                options["agent"],
                options["provider"],
                options["model"],
                use_tools,
                options["settings"],
                options["limits"],
            )
            yield Conversation(
                app,
                asked,
                is_stored=not no_store,
                session=app.sessions.find_latest().id if options["go_on"] else options["session"],
                system=options["system"],
                name=options["session_name"],
                chosen=chosen,
            )

    if plain or not _has_window():
        return _converse_plainly(open_conversation)
    from agent_host.cli.chat.window import converse

    return converse(open_conversation, is_stored=not no_store)


def _has_window() -> bool:
    """Whether there is a person at a terminal that can do more than print lines."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        return False
    if os.environ.get("TERM", "") in ("dumb", "unknown"):
        return False
    from importlib.util import find_spec

    missing = [name for name in ("prompt_toolkit", "rich") if find_spec(name) is None]
    if missing:
        hint = "pip install 'agent-host-core[chat]' for more than lines"
        print_wrapped(f"{' and '.join(missing)} not installed: {hint}")
    return not missing


def _converse_plainly(open_conversation: OpenConversation) -> int:
    from agent_host.cli.chat.plain import converse_plainly
    from agent_host.cli.screen import quiet_logs

    quiet_logs()
    with open_conversation() as conversation:
        if is_terminal(sys.stdin):
            for line in conversation.greet_person():
                print_wrapped(style_text(line, dim=True))
        else:
            print_selection(conversation.chosen)
        code = converse_plainly(conversation)
        print_farewell(conversation)
    return code


def print_farewell(conversation: Conversation) -> None:
    """Say how to go on, if anything was stored."""
    if farewell := describe_farewell(conversation):
        click.echo(farewell, err=True)


def describe_farewell(conversation: Conversation) -> str:
    session = conversation.session
    if not isinstance(session, str):
        return ""
    from agent_host.cli.stored import short_id

    return f"Go on with: agent-host chat --session {short_id(session, ())}"
