"""The commands of a conversation: what a line that begins with a slash does.

A command prints to standard output, as the commands of the command line do; whoever runs it decides
where that goes. It must not know which face the conversation has.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from agent_hookspecs.errors import AgentError, ConfigError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest_name
from agent_host.cli.outside import clean_text
from agent_host.cli.prompts import find_addresses, find_files
from agent_host.cli.render import print_pairs, print_table, print_text
from agent_host.cli.stored import short_id

if TYPE_CHECKING:
    from agent_host.agent.offered_input import OfferedPrompt
    from agent_host.cli.chat.conversation import Conversation
    from agent_host.input import Part

__all__ = [
    "COMMANDS",
    "Command",
    "Outcome",
    "Send",
    "all_commands",
    "find_command",
    "is_command",
    "run_command",
]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Send:
    """A message to be sent next; ``parts`` follow its text.

    ``is_made`` says that somebody else has written it, so that the person has to be shown it.
    """

    text: str
    parts: tuple[Part, ...] = ()
    is_made: bool = False


#: What is to be done after a command: nothing, leave, or send a message.
Outcome = Send | Literal["leave"] | None
#: What completes the rest of a line.
Completes = Literal["", "models", "agents", "files", "tools", "sessions"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command; ``is_quick`` says that it may run while a message is being answered."""

    name: str
    usage: str
    help: str
    run: Callable[[Conversation, str], Outcome]
    completes: Completes = ""
    is_quick: bool = False


def is_command(line: str) -> bool:
    """Whether a line is a command, known or not, and no message.

    Two slashes begin a message with one. So does what looks like a path.
    """
    word = line[1:].partition(" ")[0]
    return line.startswith("/") and not {"/", "\n"} & {*word}


def find_command(conversation: Conversation, line: str) -> tuple[Command, str] | None:
    """The command of a line and the rest of the line; None if the line is a message."""
    if not is_command(line):
        return None
    word, _, rest = line[1:].partition(" ")
    return _find_named(conversation, word), rest.strip()


def _find_named(conversation: Conversation, name: str) -> Command:
    if name in COMMANDS:
        return COMMANDS[name]
    known = all_commands(conversation)
    if name not in known:
        raise AgentError(
            f"there is no command /{name}",
            hint=f"//{name} sends it as a message, /help has the commands; "
            f"{suggest_name(name, known)}",
        )
    return known[name]


def all_commands(conversation: Conversation) -> dict[str, Command]:
    """Our own commands, and those of plugins: actions that name one, and prompts.

    While a message is answered, and where plugins cannot be asked, those of before: whoever wants
    to know what to type must not have to wait, nor be told of something else.
    """
    if not conversation.is_answering:
        try:
            conversation.plugin_commands = _find_commands(conversation)
        except AgentError as error:
            log.failure("commands_unknown", error)
    return {**COMMANDS, **conversation.plugin_commands}


def _find_commands(conversation: Conversation) -> dict[str, Command]:
    found = [
        *(_action_command(each) for each in conversation.list_actions() if each.get("command")),
        *map(_prompt_command, conversation.list_prompts()),
    ]
    named: dict[str, Command] = {}
    for command in found:
        # Of two the first; and nobody takes the place of one of ours.
        if command.name not in COMMANDS:
            named.setdefault(command.name, command)
    return named


def _action_command(action: Mapping[str, Any]) -> Command:
    inputs = [str(name) for name in action.get("inputs") or ()]
    about = str(action.get("description") or action.get("label") or "")

    def run(conversation: Conversation, rest: str) -> None:
        if len(inputs) == 1:
            params = {inputs[0]: rest} if rest else {}
        else:
            params = _read_arguments(rest, inputs)
        print_text(clean_text(conversation.act(str(action["id"]), params)))

    usage = f"[{inputs[0].upper()}]" if len(inputs) == 1 else _describe_pairs(inputs)
    return Command(str(action["command"]), usage, about, run)


def _prompt_command(prompt: OfferedPrompt) -> Command:
    names = [each.name for each in prompt.arguments]

    def run(conversation: Conversation, rest: str) -> Outcome:
        if len(names) == 1 and not rest.startswith(f"{names[0]}="):
            given = {names[0]: rest} if rest else {}
        else:
            given = _read_arguments(rest, names)
        for argument in prompt.arguments:
            if argument.required and argument.name not in given:
                about = f": {argument.description}" if argument.description else ""
                question = f"{argument.name}{about}"
                given[argument.name] = conversation.ask_person(prompt.name, question)
        parts = conversation.read_prompt(prompt.name, given)
        texts = [*takewhile(lambda part: isinstance(part, str), parts)]
        return Send("\n".join(map(str, texts)), tuple(parts[len(texts) :]), is_made=True)

    required = [each.name for each in prompt.arguments if each.required]
    optional = [f"[{each.name}=…]" for each in prompt.arguments if not each.required]
    usage = " ".join([*(f"{name}=…" for name in required), *optional])
    return Command(prompt.name, usage, prompt.description, run)


def _describe_pairs(names: Sequence[str]) -> str:
    return " ".join(f"[{name}=…]" for name in names)


def _read_arguments(rest: str, names: Sequence[str]) -> dict[str, str]:
    """Arguments as a shell reads them: ``key=value``, with quotes around what has spaces."""
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise AgentError(
            f"the arguments cannot be read: {error}", hint="close the quotes"
        ) from None
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in names:
            there = _describe_pairs(names) if names else "it takes none"
            raise AgentError(
                f"{word!r} is no argument of this command", hint=f"its arguments: {there}"
            )
        found[name] = value
    return found


def run_command(conversation: Conversation, line: str, typed: str) -> Outcome:
    """Run the command of a line; a line that is none is to be sent, with the files it names.

    ``typed`` is the line without what was pasted into it, which must not name files.
    """
    found = find_command(conversation, line)
    if found is None:
        for name in find_files(typed):
            conversation.attach(name)
        for address in find_addresses(typed):
            conversation.attach_address(address)
        return Send(line[1:] if line.startswith("//") else line)
    command, rest = found
    return command.run(conversation, rest)


# --- whom to ask ---------------------------------------------------------------------------------


def _choose_model(conversation: Conversation, name: str) -> None:
    if name:
        chosen = conversation.choose_model(name)
        print_text(f"The next message goes to {clean_text(chosen)}.")
        if conversation.is_unlisted():
            print_text("The provider has not listed it; agent-host models shows what there is.")
        return
    asked = conversation.asked
    app = conversation.app
    selected = app.select(asked.agent, asked.provider, asked.model, parts=True)
    settings = app.request_config(asked.agent, asked.provider, asked.model)
    why = "you chose it" if asked.provider or asked.model else "the config says so"
    print_pairs(
        (
            ("provider", clean_text(selected.provider or settings.get("provider", ""))),
            ("model", clean_text(selected.model or settings.get("model", "the provider's own"))),
            ("agent", clean_text(asked.agent or "")),
            ("why", clean_text(selected.why or why)),
        )
    )
    print_text("/model NAME chooses another: Tab offers them, agent-host models lists them.")


def _choose_agent(conversation: Conversation, name: str) -> None:
    agents = conversation.app.config.values.get("agents", {})
    if not name:
        if not agents:
            print_text("The config describes no agents.")
        rows = [
            (clean_text(each), clean_text(described.get("system") or "no system prompt")[:200])
            for each, described in agents.items()
        ]
        print_pairs(rows)
        return
    app, before = conversation.app, conversation.asked.agent
    changed = replace(conversation.asked, agent=name, model=None, provider=None)
    app.request_config(changed.agent)
    # What another agent was told goes with it; what the person has said stays.
    was_told = conversation.system_prompt() == (app.config.system_prompt(before) or "")
    conversation.asked = changed
    prompt = app.config.system_prompt(name) or ""
    if prompt or was_told:
        conversation.set_system(prompt)
    print_text(f"The next message goes to the agent {clean_text(name)}.")


def _set_system(conversation: Conversation, text: str) -> None:
    if text:
        conversation.set_system(text)
        print_text("The system prompt counts from the next message on.")
        return
    print_text(clean_text(conversation.system_prompt()) or "There is no system prompt.")


# --- what takes part -----------------------------------------------------------------------------


def _choose_tools(conversation: Conversation, patterns: str) -> None:
    if patterns:
        named = {"all": None, "none": ()}.get(patterns, tuple(patterns.split()))
        conversation.asked = replace(conversation.asked, use_tools=named)
    stack = conversation.app.stack(**conversation.asked.as_options())
    for warning, _ in stack.warnings:
        print_text(clean_text(f"warning: {warning}"))
    if not stack.tools:
        print_text("No tools are on offer.")
        return
    rows = [
        (
            clean_text(each.tool_name),
            tool.plugin.entry.tools.get(each.tool_name, "execute"),
            clean_text(tool.plugin.name),
        )
        for tool in stack.tools
        for each in tool.descriptors
    ]
    print_table(("tool", "effect", "plugin"), rows)


def _list_plugins(conversation: Conversation, rest: str) -> None:
    _run_line(conversation, ["plugins", "list", *_request_words(conversation), *rest.split()])


def _explain(conversation: Conversation, rest: str) -> None:
    words = ["plugins", "explain", *_request_words(conversation), *rest.split()]
    if conversation.asked.use_tools == ():
        words.append("--no-tools")
    for pattern in conversation.asked.use_tools or ():
        words += ["--tools", pattern]
    for key, value in conversation.asked.settings.items():
        words += ["--set", f"{key}={json.dumps(value)}"]
    _run_line(conversation, words)


def _show_keys(conversation: Conversation, rest: str) -> None:
    _run_line(conversation, ["keys", "list"])


def _request_words(conversation: Conversation) -> list[str]:
    asked = conversation.asked
    named = (("--agent", asked.agent), ("--provider", asked.provider), ("--model", asked.model))
    return [word for option, value in named if value for word in (option, value)]


def _run_line(conversation: Conversation, words: list[str]) -> None:
    """Run a command of the command line with the config of this conversation."""
    from agent_host.cli.app import root

    file = conversation.app.config.file
    if file is not None:
        words += ["--config", str(file)]
    try:
        root.main(words, prog_name="agent-host", standalone_mode=False)
    except click.exceptions.Exit:
        # Nothing is lost: what it found is what it has printed.
        return
    except click.ClickException as wrong:
        hint = f"agent-host {' '.join(words[:2])} --help"
        raise AgentError(wrong.format_message(), hint=hint) from wrong


# --- the next message ----------------------------------------------------------------------------


def _attach(conversation: Conversation, source: str) -> None:
    if source == "none":
        conversation.attachments.clear()
    elif source:
        conversation.attach(source)
    if not conversation.attachments:
        print_text("Nothing is attached.")
    for each in conversation.attachments:
        print_text(f"With the next message: {clean_text(each)}")


# --- the session ---------------------------------------------------------------------------------


def _branch(conversation: Conversation, name: str) -> None:
    before, after = conversation.branch(name or None)
    print_text(f"This is now {_short(after)}; {_short(before)} stays as it is.")


def _undo(conversation: Conversation, _: str) -> None:
    text = conversation.undo()
    print_text(f"Taken back: {clean_text(text)[:200]}")


def _retry(conversation: Conversation, _: str) -> Outcome:
    return Send(*conversation.retry())


def _save(conversation: Conversation, name: str) -> None:
    from agent_host.private import replace_private

    file = Path(name or f"{conversation.session_id}.md").expanduser()
    if file.exists():
        raise ConfigError(f"{file} is there already", hint="give another name, or remove it")
    lines = conversation.export_lines(exactly=file.suffix == ".jsonl")
    text = "".join(f"{line}\n" for line in lines)
    try:
        replace_private(file.absolute(), text.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror}", hint="give another name"
        ) from error
    print_text(f"Saved as {clean_text(file)}.")


def _sessions(conversation: Conversation, name: str) -> None:
    if name == "new":
        conversation.begin_session()
        print_text("The next message begins a new session.")
    elif name:
        conversation.open_session(name)
        print_text(f"This is now {_short(conversation.session_id or '')}.")
        for line in conversation.describe_latest():
            print_text(line)
    else:
        _run_line(conversation, ["sessions", "list"])
        print_text("/sessions ID goes on with one, /sessions new begins another.")


def _act(conversation: Conversation, rest: str) -> None:
    asked = conversation.asked
    name, *pairs = rest.split() if rest else [""]
    if not name:
        offered = conversation.list_actions()
        if not offered:
            print_text("No active plugin offers an action.")
        for each in offered:
            about = each.get("description") or each.get("label") or ""
            print_text(clean_text(f"{each['id']} ({each['plugin']}): {about}"))
        return
    if not isinstance(conversation.session, str):
        raise AgentError("only a stored session has actions", hint="write something first")
    words = [word for pair in pairs for word in ("--param", pair)]
    of = ["--agent", asked.agent] if asked.agent else []
    _run_line(conversation, ["sessions", "action", conversation.session, name, *words, *of])


def _short(session: str) -> str:
    return short_id(session, ())


# --- the rest ------------------------------------------------------------------------------------


def _expand(conversation: Conversation, number: str) -> None:
    for line in conversation.folds.find(number).split("\n"):
        print_text(clean_text(line))


def _help(conversation: Conversation, name: str) -> None:
    if name:
        command = _find_named(conversation, name.removeprefix("/"))
        print_text(clean_text(f"/{command.name} {command.usage}".rstrip()))
        print_text(clean_text(command.help), indent=2)
        return
    known = all_commands(conversation)
    _print_commands("command", [known.pop(each) for each in COMMANDS])
    if known:
        _print_commands("of plugins", [*known.values()])
    print_table(("key", "what it does"), KEYS.items())


def _print_commands(title: str, commands: Sequence[Command]) -> None:
    rows = [
        (clean_text(f"/{each.name} {each.usage}".rstrip()), clean_text(each.help))
        for each in commands
    ]
    print_table((title, "what it does"), rows)
    click.echo()


def _leave(conversation: Conversation, _: str) -> Outcome:
    return "leave"


#: What keys do, for the help.
KEYS = {
    "Enter": "send; while an answer comes, queue it",
    "Alt-Enter, Ctrl-J": "a new line; so does \\ before Enter",
    "Ctrl-C": "stop the answer, or clear the line; twice leaves",
    "Ctrl-D": "leave, on an empty line",
    "Ctrl-X Ctrl-E": "write the message in your editor",
    "Ctrl-R, Up": "search and step through what you have said",
    "Tab": "complete a command, a model, or a file after @",
}

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("model", "[NAME]", "Show who answers, or choose the model.", _choose_model,
                "models"),
        Command("agent", "[NAME]", "List the agents of the config, or choose one.",
                _choose_agent, "agents"),
        Command("tools", "[PATTERN…|all|none]", "List the tools on offer, or choose them.",
                _choose_tools, "tools"),
        Command("plugins", "", "List the plugins.", _list_plugins),
        Command("why", "", "Explain which plugins take part, and why.", _explain),
        Command("system", "[TEXT]", "Show the system prompt, or set it.", _set_system),
        Command("attach", "[FILE|URL|NAME:ADDRESS|none]", "Attach a picture, PDF, sound or text to "
                "the next message; @FILE in a message does it too.", _attach, "files"),
        Command("branch", "[NAME]", "Go on in a copy, and leave this session as it is.", _branch),
        Command("undo", "", "Take back your last message and its answer.", _undo),
        Command("retry", "", "Send your last message once more.", _retry),
        Command("save", "[FILE]", "Save the session as Markdown, or exactly as .jsonl.", _save,
                "files"),
        Command("sessions", "[ID|NAME|new]", "List stored sessions, or go on with one.",
                _sessions, "sessions"),
        Command("action", "[ID KEY=VALUE…]", "List the actions of plugins, or run one.", _act),
        Command("keys", "", "Show which providers have a key.", _show_keys),
        Command("expand", "[NUMBER]", "Show all of what was folded.", _expand, is_quick=True),
        Command("help", "[COMMAND]", "Show the commands and keys.", _help, is_quick=True),
        Command("exit", "", "Leave; the session can be gone on with.", _leave, is_quick=True),
    )
}  # fmt: skip
