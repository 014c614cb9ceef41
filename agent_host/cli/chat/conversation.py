"""`Conversation`: one session that goes on, with whom, and what the next message takes with it.

It is the application's own runs, one after the other, and nothing beside them. It must not know how
anything is shown or typed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError, SessionError
from agent_hookspecs.store.errors import NotStoredError
from agent_hookspecs.store.values import Question, SessionSummary
from agent_hookspecs.values import dataclass
from agent_host.agent.answer_check import FINAL_ANSWER
from agent_host.cli.chat.folds import Folds
from agent_host.cli.outside import clean_text
from agent_host.cli.prompts import (
    is_foreign_address,
    make_prompt,
    named_file,
    without_repeats,
)
from agent_host.cli.render import print_text
from agent_host.cli.selection import complete_selection
from agent_host.config.selection import listed_ids
from agent_host.runs.transfer import export_markdown

if TYPE_CHECKING:
    from agent_hookspecs.messages import CoreMessage
    from agent_host.agent.offered_input import OfferedPrompt
    from agent_host.agent.policy import Approve
    from agent_host.agent.questions import Ask
    from agent_host.application import AgentApplication
    from agent_host.application.options import Selected
    from agent_host.cli.chat.commands import Command
    from agent_host.drivers.blocking import Stream
    from agent_host.input import Part
    from agent_host.sessions.session import Session

__all__ = ["Asked", "Conversation"]

#: So much of a message is shown where it is only to be recognised.
_EXCERPT = 300


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom to ask and how, as the person has said it so far; None is what the config says."""

    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    use_tools: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] | None = None

    def as_options(self) -> dict[str, Any]:
        """As the application takes them."""
        return {name: getattr(self, name) for name in self.__match_args__}


class Conversation:
    """A session and everything that a person can do to it between two messages.

    ``session`` is the id of a stored one, or without a store the session itself; None before the
    first message. ``attachments`` go with the next message.
    """

    def __init__(
        self,
        app: AgentApplication,
        asked: Asked,
        *,
        is_stored: bool,
        session: str | None = None,
        system: str | None = None,
        name: str | None = None,
        chosen: str = "",
    ) -> None:
        self.app = app
        #: Whom it talks to and why, if nobody has said so.
        self.chosen = chosen
        self.asked = asked
        self.is_stored = is_stored
        self.session: Session | str | None = None
        if session is not None:
            self.session = app.sessions.find(session).id
        self.system = system
        self.folds = Folds()
        #: What was warned of before, and need not be said again.
        self.warned: set[str] = set()
        self.attachments: list[str] = []
        #: Whether a message is being answered.
        self.is_answering = False
        #: The commands of plugins, as far as they are known.
        self.plugin_commands: dict[str, Command] = {}
        #: How a person is asked between messages; None where there is none.
        self.ask: Ask | None = None
        #: What plugins have given for addresses that were attached.
        self._found: dict[str, Sequence[Part]] = {}
        self._name = name
        #: What was said last, for `retry`.
        self._last: tuple[str, tuple[str, ...], tuple[Part, ...]] | None = None

    # --- talking ---------------------------------------------------------------------------------

    def greet_person(self) -> list[str]:
        """What a person is told first: who answers and why, and how an earlier session ended.

        That a fallback answers need not be warned of again.
        """
        asked = self.asked
        selected = self.app.select(asked.agent, asked.provider, asked.model, parts=True)
        if selected.is_fallback:
            self.warned.add(clean_text(f"warning: {selected.line}"))
        lines = [
            "agent-host chat · /help has the commands · Ctrl-D leaves",
            self.chosen or selected.line or self.describe_model(),
        ]
        if self.session is not None:
            lines.append(f"going on with {self.session_id}, {len(self.messages())} messages")
            lines += self.describe_latest()
        return lines

    def describe_model(self) -> str:
        """Provider and model of the next message; empty where only the run can tell."""
        asked = self.asked
        settings = self.app.request_config(asked.agent, asked.provider, asked.model)
        plugin = settings.get("provider")
        usable = self.app.core.stacks.catalog.usable("provider")
        usual = [each.entry.default_model for each in usable if each.entry and each.name == plugin]
        named = (asked.provider or plugin, settings.get("model") or "".join(usual))
        return "/".join(str(each) for each in named if each)

    def is_unlisted(self) -> bool:
        """Whether the provider has lately listed models, and not the one that is asked."""
        asked, app = self.asked, self.app
        ids = listed_ids(app.config, app.core.stacks.catalog, asked.agent, asked.provider)
        return bool(ids) and asked.model is not None and asked.model not in ids

    def choose_model(self, name: str) -> str:
        """Ask this model from now on; gives the whole name of it."""
        # A name with a slash says which provider's it is.
        provider = None if "/" in name else self.asked.provider
        chosen = self.app.select(self.asked.agent, provider, name, parts=True)
        self.asked = replace(self.asked, provider=chosen.provider, model=chosen.model)
        return self.describe_model()

    def attach(self, source: str) -> None:
        """Let a file or an address go with the next message; an error if it cannot be used."""
        if is_foreign_address(source) and self.attach_address(source):
            return
        named_file(source).to_part()
        self.attachments[:] = without_repeats([*self.attachments, source])

    def attach_address(self, address: str) -> bool:
        """Let what a plugin has at an address go with the next message; False if none knows it."""
        options = self._selection()
        given = self.app.read_attachment(address, ask=self.ask, warn=_print_warning, **options)
        if given is None:
            return False
        self._found[address] = given
        self.attachments[:] = without_repeats([*self.attachments, address])
        return True

    def send(
        self,
        text: str,
        approve: Approve | None,
        ask: Ask | None,
        parts: Sequence[Part] = (),
    ) -> Stream:
        """Begin the run that answers a message; `leave_run` must follow when it is over."""
        options = self.asked.as_options()
        if self.session is None:
            options |= {"system": self.system, "session_name": self._name}
        self._last = (text, tuple(self.attachments), tuple(parts))
        complete_selection(self.app, options)
        prompt = make_prompt(text, self.attachments, self._found, parts)
        self.is_answering = True
        return self.app.stream(prompt, session=self.session, approve=approve, ask=ask, **options)

    def leave_run(self, stream: Stream) -> None:
        """Go on where a run has left the session, however it ended."""
        self.is_answering = False
        self.attachments.clear()
        if not self.is_stored:
            self.session = stream.session
            return
        if self.session is None:
            try:
                self.session = self.app.sessions.find(stream.session.id).id
            except NotStoredError:
                # Nothing is lost: a run that failed before it began has left no session.
                return

    # --- what plugins have for a person ----------------------------------------------------------

    def list_actions(self) -> list[dict[str, Any]]:
        """The actions that plugins offer."""
        asked = self.asked
        config = self.app.request_config(asked.agent, asked.provider, asked.model)
        return self.app.core.get_actions(config)

    def act(self, action: str, params: Mapping[str, Any]) -> str:
        """Run an action of a plugin on this session; gives what it says of it."""
        if self.session is None:
            raise SessionError("nothing was said yet", hint="write something first")
        asked = self.asked
        changed, result = self.app.execute_session_action(
            self.session,
            action,
            params,
            agent=asked.agent,
            provider=asked.provider,
            model=asked.model,
            settings=asked.settings,
        )
        if not isinstance(self.session, str):
            self.session = changed
        if failure := result.get("error"):
            raise SessionError(str(failure.get("message") or failure))
        return str(result.get("message") or "done")

    def _selection(self) -> Selected:
        asked = self.asked
        return {
            "agent": asked.agent,
            "provider": asked.provider,
            "model": asked.model,
            "use_tools": asked.use_tools,
            "settings": asked.settings,
        }

    def list_prompts(self) -> list[OfferedPrompt]:
        """The prompts that plugins have."""
        return self.app.list_prompts(**self._selection())

    def read_prompt(self, name: str, arguments: Mapping[str, str]) -> list[Part]:
        """What a prompt gives with these arguments."""
        options = self._selection()
        return self.app.read_prompt(name, arguments, ask=self.ask, warn=_print_warning, **options)

    def ask_person(self, about: str, question: str) -> str:
        """What a person says to a question of a command."""
        if self.ask is not None:
            shown = {"name": f"/{about}", "question": question, "choices": [], "payload": {}}
            said = self.ask(Question(id=about, kind="question", shown=shown, digest=""))
            if said is not None:
                return said
        raise AgentError(
            f"/{about} needs {question}", hint=f"give it with the command; /help {about} says how"
        )

    # --- what was said ---------------------------------------------------------------------------

    def messages(self) -> Sequence[CoreMessage]:
        """All that was said so far."""
        return self._load().messages if self.session is not None else ()

    def _load(self) -> Session:
        if self.session is None:
            raise SessionError("nothing was said yet", hint="write something first")
        if isinstance(self.session, str):
            return self.app.sessions.load(self.session)
        return self.session

    @property
    def session_id(self) -> str | None:
        """The id of the session, if there is one."""
        if self.session is None or isinstance(self.session, str):
            return self.session
        return self.session.id

    def undo(self) -> str:
        """Take back the last message of the person and all that followed; gives its text."""
        session = self._load()
        last = _last_from_person(session.messages)
        if last is None:
            raise SessionError("there is nothing to take back")
        self._replace_messages(session.messages[:last])
        return session.messages[last]["content"]

    def retry(self) -> tuple[str, tuple[Part, ...]]:
        """Take the last message back, to be sent once more with what was attached to it."""
        messages, said = self.messages(), self._last
        last = _last_from_person(messages)
        if said is None or (last is not None and messages[last]["content"] == said[0]):
            text = self.undo()
        else:
            # It was refused before it became a part of the session.
            text = said[0]
        if said is None or said[0] != text:
            return text, ()
        self.attachments[:] = said[1]
        return text, said[2]

    def _replace_messages(self, messages: Sequence[CoreMessage]) -> None:
        if isinstance(self.session, str):
            self.app.sessions.edit(self.session, lambda found: found.with_messages(messages))
        elif self.session is not None:
            self.session = self.session.with_messages(messages)

    def branch(self, name: str | None) -> tuple[str, str]:
        """Go on in a copy of the session; gives the ids of the old one and the new one."""
        session = self._load()
        before = session.id
        if isinstance(self.session, str):
            self.session = self.app.sessions.branch(self.session, name=name).id
        else:
            self.session = session.branch(session.count - 1)
        return before, self.session_id or ""

    def set_system(self, text: str) -> None:
        """Give the session another system prompt, or none, from the next message on."""
        self.system = text
        if self.session is None:
            return
        messages = [each for each in self.messages() if each["role"] != "system"]
        if text:
            messages.insert(0, {"role": "system", "content": text, "metadata": {}})
        self._replace_messages(messages)

    def system_prompt(self) -> str:
        """The system prompt that counts; empty if there is none."""
        said = [each["content"] for each in self.messages() if each["role"] == "system"]
        if self.session is not None:
            return "\n\n".join(said)
        return self.system or self.app.config.system_prompt(self.asked.agent) or ""

    def export_lines(self, *, exactly: bool) -> Iterator[str]:
        """The session as Markdown for people, or as lines of JSON."""
        session = self._load()
        if isinstance(self.session, str):
            stored = self.app.sessions
            if exactly:
                return stored.export_lines(self.session)
            return stored.export_markdown(self.session)
        if exactly:
            raise SessionError("only a stored session is saved exactly", hint="save it as .md")
        return export_markdown(session, SessionSummary(id=session.id, created=time.time()))

    def names(self, kind: str) -> list[tuple[str, str]]:
        """The words of a kind that a command takes, as a shell would complete them."""
        from agent_host.cli import complete

        offers = {
            "models": complete.complete_model,
            "agents": complete.complete_agent,
            "tools": complete.complete_tool,
            "sessions": complete.complete_session,
        }
        file = self.app.config.file
        context = click.Context(click.Command("chat"))
        context.params.update(config_file=file and str(file), provider=self.asked.provider)
        found = offers[kind](context, click.Option(["--name"]), "")
        return [(each.value, each.help or "") for each in found]

    def describe_latest(self) -> list[str]:
        """How the last messages begin, to remember what it was about."""
        latest = [message for message in self.messages() if message["content"]][-2:]
        return [f"{each['role']}: {clean_text(each['content'])[:_EXCERPT]}" for each in latest]

    def open_session(self, session: str) -> None:
        """Go on with a stored session."""
        self.session = self.app.sessions.find(session).id

    def begin_session(self) -> None:
        """Go on with a new session; the old one stays where it is."""
        self.session, self._name, self._last = None, None, None


def _print_warning(text: str, _: str | None) -> None:
    print_text(clean_text(f"warning: {text}"))


def _last_from_person(messages: Sequence[CoreMessage]) -> int | None:
    places = range(len(messages) - 1, -1, -1)
    return next((at for at in places if _is_from_person(messages[at])), None)


def _is_from_person(message: CoreMessage) -> bool:
    return message["role"] == "user" and message["content"] != FINAL_ANSWER
