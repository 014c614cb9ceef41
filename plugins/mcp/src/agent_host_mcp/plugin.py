"""The tool plugin ``mcp``: tools, prompts and resources of servers that a person has approved.

What models are told of a tool is what was approved, so that nothing is started to say it; a server
is started when one of its tools is first called. Owns what may be called, and what is asked before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_hookspecs import (
    Config,
    Context,
    State,
    ToolArgumentsError,
    ToolError,
    ToolPlugin,
    ToolRetry,
    UnknownToolError,
)
from agent_hookspecs.logs import get_logger, get_warn_from_context
from agent_host_mcp._version import __version__
from agent_host_mcp.approvals import (
    Approvals,
    Definition,
    Differences,
    compare,
    describe_change,
    without_unseen,
)
from agent_host_mcp.connections import Connections, Progress, Question, Side, follow
from agent_host_mcp.names import prompt_name, wire_name
from agent_host_mcp.servers import CONFIG_SCHEMA, Limits, Server, read_limits, read_servers

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["McpTools"]

log = get_logger(__name__)

_APPROVE, _REFUSE = "approve", "refuse"
#: Where the host says which folder is the plugin's own.
_FOLDER = "plugin_folder"
#: And what of the user's key store.
_KEYS = "plugin_keys"


@dataclass(frozen=True, slots=True)
class _Offered:
    """A tool or a prompt that may be used: whose it is, and how it was approved."""

    server: Server
    definition: Definition


@dataclass(slots=True)
class _Shared:
    """What stacks of one config share: connections, and the tools that servers have by now."""

    servers: tuple[Server, ...]
    limits: Limits
    approvals: Approvals
    keys: Any
    connections: Connections = field(init=False)
    current: dict[str, Mapping[str, Definition]] = field(default_factory=dict)
    #: How often servers turned out to have other tools than before.
    changes: int = 0
    users: int = 0

    def __post_init__(self) -> None:
        self.connections = Connections(self.limits, self._look_at_tools, self.keys)

    def _look_at_tools(self, server: Server, tools: Mapping[str, Definition]) -> None:
        before = self.differences(server)
        self.current[server.name] = tools
        differences = self.differences(server)
        if differences != before:
            self.changes += 1
            log.warning("mcp_tools_differ", server=server.name, **_words_of(differences))

    def differences(self, server: Server) -> Differences:
        """How the tools that a server has differ from those that were approved, once it has run."""
        approved = self.approvals.find(server)
        current = self.current.get(server.name)
        if approved is None or current is None:
            return Differences()
        return compare(approved.tools, current)

    @property
    def stamp(self) -> tuple[object, ...]:
        """What changes when something is approved, or servers have other tools."""
        return self.approvals.stamp, self.changes


class McpTools(ToolPlugin):
    """Lets models call the tools of MCP servers."""

    name = "mcp"
    version = __version__
    label = "MCP"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: list[_Shared] = []

    def cli_command(self, name: str, open_application: Callable[..., Any]) -> Any:
        from agent_host_mcp.commands import make_group

        return make_group(open_application)

    def get_config_schema(self) -> dict[str, Any]:
        return deepcopy(CONFIG_SCHEMA)

    def init(self, config: Config) -> State:
        servers = tuple(each for each in read_servers(config) if not each.disabled)
        limits = read_limits(config)
        if not servers:
            return {"shared": None, "tools": {}, "prompts": {}, "stamp": ()}
        shared = self._share(servers, limits, config)
        try:
            return {
                "stamp": shared.stamp,
                "tools": _approved_tools(shared),
                "prompts": _approved_prompts(shared),
                "shared": shared,
            }
        except BaseException:
            # Nobody else gives it back: there is no state that could be closed.
            self._release(shared)
            raise

    def get_tool_schemas(self, state: State) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "description": without_unseen(tool.definition.description),
                "parameters": {
                    "type": "object",
                    "properties": {},
                    **without_unseen(deepcopy(dict(tool.definition.schema))),
                },
            }
            for name, tool in state["tools"].items()
        ]

    def get_tool_warnings(self, state: State) -> list[str]:
        """What is not offered although the config names it, and what to do about it."""
        shared: _Shared | None = state["shared"]
        return [] if shared is None else [*_warnings(shared)]

    def has_changed_tools(self, state: State) -> bool:
        """Whether something was approved since, or a server has other tools."""
        shared: _Shared | None = state["shared"]
        return shared is not None and bool(state["stamp"] != shared.stamp)

    def execute_tool(
        self, tool_name: str, payload: Any, state: State, context: Context
    ) -> Generator[dict[str, Any], None, dict[str, Any]]:
        """Call a tool of a server; yields its progress."""
        tool: _Offered | None = state["tools"].get(tool_name)
        if tool is None:
            raise UnknownToolError(f"plugin 'mcp' has no tool {tool_name!r}", tool=tool_name)
        if not isinstance(payload, dict):
            raise ToolArgumentsError(f"{tool_name} takes an object of arguments", tool=tool_name)
        shared: _Shared = state["shared"]
        call = _Call(tool.server, context)
        # Before anything is started: it may have been taken back since.
        _find_approved(shared.approvals, tool)
        opened = yield from call.follow(shared.connections.open(tool.server))
        approved = _require_approved(shared.approvals, tool, opened.tools, context)
        result, note = yield from call.follow(
            shared.connections.call(tool.server, approved, payload, call.side)
        )
        from agent_host_mcp.results import result_message

        message = result_message(result, note)
        if result.is_error:
            raise ToolRetry(message["content"] or "the tool failed and did not say why")
        return message

    def get_prompts(self, state: State) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "description": without_unseen(prompt.definition.description),
                "arguments": _arguments_of(prompt.definition),
            }
            for name, prompt in state["prompts"].items()
        ]

    def read_prompt(
        self, prompt_name: str, arguments: dict[str, str], state: State, context: Context
    ) -> list[Any]:
        """What a prompt of a server gives."""
        prompt: _Offered = state["prompts"][prompt_name]
        shared: _Shared = state["shared"]
        call = _Call(prompt.server, context)
        result = call.wait(
            shared.connections.get_prompt(prompt.server, prompt.definition, arguments, call.side)
        )
        from agent_host_mcp.results import prompt_parts

        return prompt_parts(result)

    def read_attachment(self, address: str, state: State, context: Context) -> list[Any] | None:
        """What stands at ``SERVER:URI``; None if no server is called so."""
        shared: _Shared | None = state["shared"]
        if shared is None:
            return None
        for server in shared.servers:
            head = f"{server.name}:"
            if address.startswith(head) and address != head:
                return self._read_resource(shared, server, address[len(head) :], context)
        return None

    def _read_resource(
        self, shared: _Shared, server: Server, uri: str, context: Context
    ) -> list[Any]:
        if shared.approvals.find(server) is None:
            raise ToolError(
                f"the MCP server {server.name!r} is not approved, so nothing of it is attached",
                hint=f"run: agent-host mcp approve {server.name}",
            )
        call = _Call(server, context)
        result = call.wait(shared.connections.read_resource(server, uri, call.side))
        from agent_host_mcp.results import resource_parts

        limit = shared.limits.resource_bytes
        parts, cut = resource_parts(server.name, uri, result.contents, limit)
        warn = get_warn_from_context(context, self.name)
        for note in cut:
            warn(note)
        return [*parts]

    def close(self, state: State) -> None:
        shared: _Shared | None = state["shared"]
        if shared is not None:
            self._release(shared)

    def _share(self, servers: tuple[Server, ...], limits: Limits, config: Config) -> _Shared:
        with self._lock:
            for known in self._shared:
                if (known.servers, known.limits) == (servers, limits):
                    break
            else:
                approvals = Approvals(str(config.get(_FOLDER) or ""))
                known = _Shared(servers, limits, approvals, config.get(_KEYS))
                self._shared.append(known)
            known.users += 1
            return known

    def _release(self, shared: _Shared) -> None:
        with self._lock:
            shared.users -= 1
            last = shared.users == 0
            if last:
                self._shared.remove(shared)
        if last:
            shared.connections.close()


def _approved_tools(shared: _Shared) -> dict[str, _Offered]:
    """The tools that models may be told of, by the names that they get."""
    tools: dict[str, _Offered] = {}
    for server in shared.servers:
        approved = shared.approvals.find(server)
        for definition in approved.tools.values() if approved is not None else ():
            name = wire_name(server.name, definition.name)
            if name in tools:
                log.warning("mcp_tool_left_out", server=server.name, tool=definition.name)
            else:
                tools[name] = _Offered(server, definition)
    return tools


def _approved_prompts(shared: _Shared) -> dict[str, _Offered]:
    """The prompts that people may ask for, by the names that they type."""
    prompts: dict[str, _Offered] = {}
    for server in shared.servers:
        approved = shared.approvals.find(server)
        for definition in approved.prompts.values() if approved is not None else ():
            prompts.setdefault(
                prompt_name(server.name, definition.name), _Offered(server, definition)
            )
    return prompts


def _arguments_of(prompt: Definition) -> list[dict[str, Any]]:
    described = prompt.schema.get("properties") or {}
    required = prompt.schema.get("required") or ()
    return [
        {
            "name": name,
            "description": without_unseen(str(each.get("description") or "")),
            "required": name in required,
        }
        for name, each in described.items()
    ]


class _Call:
    """One call as its run sees it."""

    def __init__(self, server: Server, context: Context) -> None:
        self.side = Side(context.get("trace_context"))
        self._server = server
        self._ask: Callable[..., str] | None = context.get("ask_person")
        self._is_cancelled: Callable[[], bool] = context.get("cancelled") or (lambda: False)

    def follow(self, future: Future[Any]) -> Generator[dict[str, Any], None, Any]:
        """What comes of a future, with progress told and questions answered on the way."""
        source = follow(future, self.side, self._is_cancelled)
        try:
            while True:
                item = next(source)
                if isinstance(item, Question):
                    self._answer(item)
                else:
                    yield _describe_progress(item)
        except StopIteration as stop:
            return stop.value
        finally:
            source.close()

    def wait(self, future: Future[Any]) -> Any:
        """What comes of a future; nobody is told of progress."""
        source = self.follow(future)
        while True:
            try:
                next(source)
            except StopIteration as stop:
                return stop.value

    def _answer(self, question: Question) -> None:
        from agent_host_mcp.questions import answer_question

        question.answer(answer_question(self._server.name, question.params, self._ask))


def _describe_progress(progress: Progress) -> dict[str, Any]:
    described = {
        "progress": _plain_number(progress.progress),
        "total": _plain_number(progress.total),
        "message": progress.message,
    }
    return {key: value for key, value in described.items() if value is not None}


def _plain_number(value: float | None) -> float | None:
    """A number as people write it: the protocol has fractions where servers count."""
    return int(value) if value is not None and value.is_integer() else value


def _find_approved(approvals: Approvals, tool: _Offered) -> Definition:
    """The tool as it is approved by now; refuses one that is not any more."""
    server, name = tool.server, tool.definition.name
    approved = approvals.find(server)
    if approved is None or name not in approved.tools:
        raise ToolError(
            f"the tool {name!r} of the MCP server {server.name!r} is not approved any more",
            hint=f"run: agent-host mcp approve {server.name}",
        )
    return approved.tools[name]


def _require_approved(
    approvals: Approvals, tool: _Offered, current: Mapping[str, Definition], context: Context
) -> Definition:
    """The tool as it is approved; refuses one that is another, unless a person approves it now."""
    server, name = tool.server, tool.definition.name
    hint = f"run: agent-host mcp approve {server.name}"
    approved = _find_approved(approvals, tool)
    now = current.get(name)
    if now is None:
        raise ToolError(f"the MCP server {server.name!r} has no tool {name!r} any more")
    if now.digest == approved.digest:
        return now
    ask = context.get("ask_person")
    what = f"the tool {name!r} of the MCP server {server.name!r} is not as it was approved"
    change = describe_change(approved.to_plain(), now.to_plain())
    try:
        said = ask(f"T{what[1:]}:\n{change}", [_APPROVE, _REFUSE]) if ask is not None else ""
    except ToolError as error:
        # Also where the question waits for somebody: then the call runs again with the answer.
        raise ToolError(f"{what}, and nobody has approved it", hint=hint) from error
    if said != _APPROVE:
        who = "a person has refused it as it is now" if said else "there is nobody to ask"
        raise ToolError(f"{what}, and {who}", hint=hint)
    approvals.approve_tool(server, now)
    return now


def _warnings(shared: _Shared) -> Generator[str, None, None]:
    for server in shared.servers:
        run = f"run: agent-host mcp approve {server.name}"
        if shared.approvals.find(server) is None:
            was = (
                "is not as it was approved"
                if shared.approvals.others(server)
                else "is not approved"
            )
            yield f"the MCP server {server.name!r} {was}, so its tools are not offered; {run}"
        elif differences := shared.differences(server):
            found = "; ".join(f"{key}: {value}" for key, value in _words_of(differences).items())
            what = f"has other tools than were approved ({found})"
            yield f"the MCP server {server.name!r} {what}; {run}"


def _words_of(differences: Differences) -> dict[str, str]:
    names = {
        "added": differences.added,
        "changed": differences.changed,
        "removed": differences.removed,
    }
    return {key: ", ".join(value) for key, value in names.items() if value}
