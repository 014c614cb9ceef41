"""What tools give a person to send: prompts by name, and what stands at addresses of theirs.

Whatever they give is looked at as a file is before it becomes a part of a message. How a person
names it, and what is sent in the end, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import AgentError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Config, Context, MultipartContent
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.values import dataclass
from agent_host.agent.policy import ToolUse, owner_of
from agent_host.agent.questions import Ask, Questions
from agent_host.drivers.effects import Call, Steps
from agent_host.input import File, InputError, Part
from agent_host.plugins.implementation import log_failure
from agent_host.turn.context import Warn, tool_context

if TYPE_CHECKING:
    from agent_host.plugins.stack import PreparedTool, Stack
    from agent_host.plugins.stacks import Stacks

__all__ = ["OfferedInput", "OfferedPrompt", "PromptArgument"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt, which is always text."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """A prompt that a plugin has, as it says itself."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    plugin: str


@dataclass(frozen=True, slots=True)
class OfferedInput:
    """The prompts and attachments of the tools of a config.

    ``ask`` reaches a person; ``warn`` is told what was left out of something, else the log is.
    """

    stacks: Stacks
    config: Config
    ask: Ask | None = None
    warn: Warn | None = None

    def list_prompts(self) -> Steps[list[OfferedPrompt]]:
        """The prompts there are, each name once."""
        stack = yield from self.stacks.lease(self.config)
        try:
            found: dict[str, OfferedPrompt] = {}
            for _, prompt in _prompts_of(stack):
                found.setdefault(prompt.name, prompt)
            return [*found.values()]
        finally:
            stack.lease.leave()

    def read_prompt(self, name: str, arguments: Mapping[str, str]) -> Steps[list[Part]]:
        """What a prompt gives, as parts of a message."""
        stack = yield from self.stacks.lease(self.config)
        try:
            for tool, prompt in _prompts_of(stack):
                if prompt.name == name:
                    _check_arguments(prompt, arguments)
                    given = yield Call(
                        partial(
                            tool.ask,
                            "read_prompt",
                            prompt_name=name,
                            arguments=dict(arguments),
                            state=tool.state,
                            context=self._context(stack, tool, name, arguments),
                        )
                    )
                    return [*_check_parts(given, name)]
            known = ", ".join(prompt.name for _, prompt in _prompts_of(stack)) or "none"
            raise InputError(f"there is no prompt {name!r}", part=name, hint=f"there are: {known}")
        finally:
            stack.lease.leave()

    def read_attachment(self, address: str) -> Steps[list[Part] | None]:
        """What stands at an address, as parts of a message; None if no plugin knows it."""
        stack = yield from self.stacks.lease(self.config)
        try:
            for tool in stack.tools:
                if tool.implementation("read_attachment") is None:
                    continue
                given = yield Call(
                    partial(
                        tool.ask,
                        "read_attachment",
                        address=address,
                        state=tool.state,
                        context=self._context(stack, tool, address, {}),
                    )
                )
                if given is not None:
                    return [*_check_parts(given, address)]
            return None
        finally:
            stack.lease.leave()

    def _context(
        self, stack: Stack, tool: PreparedTool, name: str, arguments: Mapping[str, str]
    ) -> Context:
        owner = owner_of(tool.plugin.record.bundle)
        use = ToolUse(new_id(), name, "read", owner, dict(arguments))
        questions = Questions(use, self.ask, (), park=False)
        added = {"config": tool.config, "ask_person": questions.ask_person}
        warns = {"warn": self.warn} if self.warn is not None else {}
        return {**tool_context(stack, None), **added, **warns}


def _prompts_of(stack: Stack) -> Iterator[tuple[PreparedTool, OfferedPrompt]]:
    for tool in stack.tools:
        if tool.implementation("get_prompts") is None:
            continue
        try:
            given = tool.ask("get_prompts", state=tool.state) or ()
            prompts = [_read_prompt(tool.plugin.name, each) for each in given]
        except Exception as error:
            log_failure(log, "prompts_left_out", error, plugin=tool.plugin.name)
            continue
        for prompt in prompts:
            yield tool, prompt


def _read_prompt(plugin: str, given: Mapping[str, Any]) -> OfferedPrompt:
    name = given.get("name")
    if not isinstance(name, str) or not name or len(name.split()) != 1 or "/" in name:
        raise ValueError(f"{name!r} cannot be the name of a prompt")
    arguments = tuple(
        PromptArgument(
            str(each["name"]), str(each.get("description") or ""), bool(each.get("required"))
        )
        for each in given.get("arguments") or ()
    )
    return OfferedPrompt(name, str(given.get("description") or ""), arguments, plugin)


def _check_arguments(prompt: OfferedPrompt, given: Mapping[str, str]) -> None:
    known = [each.name for each in prompt.arguments]
    unknown = [name for name in given if name not in known]
    missing = [each.name for each in prompt.arguments if each.required and each.name not in given]
    if unknown:
        there = f"it takes: {', '.join(known)}" if known else "it takes none"
        raise InputError(
            f"the prompt {prompt.name!r} has no argument {unknown[0]!r}",
            part=prompt.name,
            hint=there,
        )
    if missing:
        raise InputError(
            f"the prompt {prompt.name!r} needs {', '.join(missing)}",
            part=prompt.name,
            hint=f"give {missing[0]}=…",
        )


def _check_parts(given: Sequence[str | MultipartContent], name: str) -> Iterator[Part]:
    """What a plugin gave, with data looked at as that of a file: its content says what it is."""
    if not given:
        raise InputError(f"{name} is empty", part=name)
    for piece in given:
        if isinstance(piece, str):
            yield piece
            continue
        if not isinstance(piece.get("content"), Mapping):
            raise AgentError(f"a plugin has given {name} in a form that is not known")
        content = piece["content"]
        address = content.get("url")
        if isinstance(address, str) and address.startswith("data:"):
            file_name = content.get("name")
            metadata = piece.get("metadata") or {}
            yield File(
                address,
                media_type=metadata.get("media_type"),
                name=str(file_name) if file_name else name,
            ).to_part()
        else:
            yield piece
