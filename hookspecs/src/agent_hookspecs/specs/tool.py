"""The hooks of a tool plugin: something models can call."""

from __future__ import annotations

from typing import Any, Protocol

from agent_hookspecs.markers import hookspec
from agent_hookspecs.messages import Config, Context, MultipartContent, State
from agent_hookspecs.specs.gating import GatingSpec

__all__ = ["ToolSpec"]


class ToolSpec(GatingSpec, Protocol):
    """Implemented by plugins of role ``tool``. Each keeps a state of its own."""

    @hookspec("collect")
    def init(self, config: Config) -> State:
        """The tool's own state, kept for as long as the stack that uses it.

        Fires: once for each stack, before its first request.
        May change: nothing; it returns a new state.
        On exception: the tool is left out and a warning says so.
        """

    @hookspec("collect", may_be_async=True)
    def prepare(self, config: Config, state: State) -> State:
        """The state after work that may take time, such as connecting to a server.

        Fires: once for each stack, after ``init``.
        May change: the state.
        On exception: the tool is left out and a warning says so.
        """

    @hookspec("collect")
    def get_tool_schemas(self, state: State) -> list[dict[str, Any]]:
        """The tools' schemas in any format the registry knows; never guess the provider's.

        Fires: once for each stack, after ``prepare``.
        May change: nothing.
        On exception: the tool is left out and a warning says so.
        """

    @hookspec("collect", result=("warnings",), optional=True)
    def get_tool_warnings(self, state: State) -> list[str] | None:
        """Sentences for whoever runs the request: what is not offered, and what to do about it.

        Fires: once for each stack, after ``get_tool_schemas``.
        May change: nothing.
        On exception: the tool is left out and a warning says so.
        """

    @hookspec("collect", result=("changed",), optional=True)
    def has_changed_tools(self, state: State) -> bool | None:
        """Whether the tools are not those that ``get_tool_schemas`` gave of this state any more.

        If so, another stack is built in place of the one that the state belongs to, which is closed
        when nobody uses it any more.

        Fires: before each run, or request without one, that would use the same stack again; it
        must be quick.
        May change: nothing.
        On exception: it is logged, and the stack is used again.
        """

    @hookspec("single", result=("changes",), optional=True, waits=True)
    def preview_tool(
        self, tool_name: str, payload: Any, state: State, context: Context
    ) -> list[dict[str, Any]] | None:
        """What a call would change, for the person who is asked whether it may run.

        A dict for each file or other text: its ``path``, and the whole text ``before`` and
        ``after``, None where there is none. One that is moved has a ``target``; where texts say
        nothing, such as of pictures, a ``note`` stands for them and ``change`` is ``added``,
        ``updated``, ``deleted`` or ``moved``. The host makes the difference and shows it. None if
        nothing can be said of this call.

        Fires: once before each question about a call of the tool, and again if the person edits
        the arguments.
        May change: nothing at all: the call may never run. It has a few seconds.
        On exception: the question says that there is no preview, and why.
        """

    @hookspec("single", may_be_async=True)
    def execute_tool(self, tool_name: str, payload: Any, state: State, context: Context) -> Any:
        """Run a call: plain function, coroutine, or a generator that yields progress and returns.

        ``payload`` is a dict for function tools and text for freeform ones.

        Fires: for each call the policy allows.
        May change: the tool's state and, as its effect says, the world.
        On exception: the model gets an error result and the run goes on.
        """

    @hookspec("single")
    def format_tool_result(
        self, tool_name: str, result: Any, payload: Any, state: State, context: Context
    ) -> Any:
        """The result as text, an explicit envelope, or a whole tool message.

        Fires: after ``execute_tool`` for the same call.
        May change: nothing.
        On exception: the model gets an error result and the run goes on.
        """

    @hookspec("collect", result=("prompts",), optional=True)
    def get_prompts(self, state: State) -> list[dict[str, Any]] | None:
        """Prompts that a person can ask for by name; a conversation has them as slash commands.

        A dict for each: its ``name``, which has no spaces, a ``description``, and ``arguments``,
        a list of dicts with ``name``, ``description`` and ``required``.

        Fires: when somebody wants to know which there are; it must be quick.
        May change: nothing.
        On exception: the plugin's prompts are left out and the log says so.
        """

    @hookspec("single", result=("context_parts",), waits=True)
    def read_prompt(
        self, prompt_name: str, arguments: dict[str, str], state: State, context: Context
    ) -> list[str | MultipartContent]:
        """What a prompt gives with these arguments: texts and other parts of the user's message.

        ``arguments`` has every one that is required. ``context`` is that of a tool call without a
        call: a person can be asked.

        Fires: when a person, or a program, asks for a prompt that ``get_prompts`` names.
        May change: nothing.
        On exception: whoever has asked gets it; nothing is sent.
        """

    @hookspec("first", result=("context_parts",), optional=True, waits=True)
    def read_attachment(
        self, address: str, state: State, context: Context
    ) -> list[str | MultipartContent] | None:
        """What stands at an address that the plugin knows, as parts of a message; else None.

        An address begins with a name and a colon, such as ``docs:file:///guide``. Only what a
        person or a program has named is asked for, and never what a text from elsewhere says.

        Fires: when something is attached that is neither a file nor an address on the web.
        May change: nothing.
        On exception: whoever attaches it gets it; nothing is sent.
        """

    @hookspec("collect")
    def close(self, state: State) -> None:
        """Let go of what the state holds.

        Fires: once for each stack, when it or its core is closed and nobody uses it any more.
        May change: the state.
        On exception: it is logged.
        """

    @hookspec("collect")
    def get_tool_interop_contribution(self, config: Config) -> Any:
        """Accessors and adapters for formats of the tool's own; they rank above the built-in ones.

        Fires: once a request, while the interop registry is built.
        May change: nothing.
        On exception: the request ends, or goes on without it under ``on_plugin_error: "skip"``.
        """
