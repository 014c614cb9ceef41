"""Plugins that implement every hook of their role and write each call down, and a core of them.

Owns the answers that such plugins give, and what pluggy says of its own calls. It must not know in
which order anything is called.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agent_hookspecs.roles import Plugin
from agent_hookspecs.specs import hooks_of
from agent_host.plugins.manager import RoleManager
from loopback import Peer, Request, Server, serve

__all__ = ["CALL", "ELSEWHERE", "Calls", "recording", "serve_answers"]

Given = dict[str, Any]

#: Hooks the host itself never calls, or only in place of one that is here, or for a person.
ELSEWHERE = {
    "provider": {
        *("call_api", "acall_api", "stream_api", "astream_api", "get_models"),
        *("extract_delta", "process_delta", "map_error", "usage_so_far", "get_ui_elements"),
        "get_batch_endpoint",
    },
    "extension": {"get_ui_elements"},
    "feature": {"get_ui_elements"},
    "tool": {
        *("get_ui_elements", "preview_tool", "get_prompts", "read_prompt", "read_attachment"),
    },
}

FINAL = {"role": "assistant", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ACTION = {"id": "act", "trigger": ["request_start", "request_end"]}
SCHEMA = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}


def _final(given: Given) -> dict[str, Any]:
    """The last words; a call of the tool in place of them, if the user asks for one."""
    last = given["native_messages"][-1]
    if last["role"] == "user" and last["content"] == "call":
        return {"role": "assistant", "content": "", "metadata": {"tool_calls": [CALL]}}
    return FINAL


def _finalize(given: Given) -> Any:
    final = _final(given)
    return [final], [*given["native_messages"], final], given["state"]


ACTIONS: dict[str, Callable[[Given], Any]] = {
    "get_actions": lambda given: [ACTION],
    "execute_action": lambda given: {},
}
ANSWERS: Mapping[str, Mapping[str, Callable[[Given], Any]]] = {
    "extension": ACTIONS,
    "feature": ACTIONS,
    "provider": {
        **ACTIONS,
        "get_config_schema": lambda given: {},
        "models_request": lambda given: {"url": given["config"]["base_url"] + "/models"},
        "parse_models": lambda given: given["body"],
        "get_tags": lambda given: ["supports_tools"],
        "init": lambda given: {"config": given["config"]},
        "to_native_messages": lambda given: [dict(m) for m in given["messages"]],
        "from_native_messages": lambda given: [dict(m) for m in given["native_messages"]],
        "initialize_request": lambda given: (given["native_messages"], given["state"]),
        "build_request": lambda given: {
            "url": given["state"]["config"]["base_url"],
            "body": {"stream": given["stream"]},
        },
        "parse_response": lambda given: ([], *_finalize(given)),
        "process_chunk": lambda given: ([], [], given["native_messages"], given["state"]),
        "finalize": _finalize,
    },
    "tool": {
        "get_tool_schemas": lambda given: [SCHEMA],
        "init": lambda given: {},
        "execute_tool": lambda given: "seen",
    },
}


class Calls:
    """What is called: by the plugins' own account, and by that of the managers that are watched.

    ``made`` has each call of a plugin as ``plugin.hook``, ``monitored`` each call of pluggy's as
    ``role.hook``. ``outside`` has the calls of plugins that no call of pluggy's was around.
    ``first_called`` has for each call of pluggy's the plugin that it calls first.
    """

    def __init__(self) -> None:
        self.made: list[str] = []
        self.monitored: list[str] = []
        self.outside: list[str] = []
        self.first_called: list[tuple[str, str]] = []
        self._around: list[str] = []

    def watch(self, manager: RoleManager) -> None:
        """Write down every call of a manager."""

        def before(hook: str, hookimpls: Any, arguments: Any) -> None:
            name = f"{manager.role}.{hook}"
            self.monitored.append(name)
            self._around.append(name)
            plugins = [each.plugin_name for each in reversed(hookimpls) if not each.wrapper]
            self.first_called += [(name, plugin) for plugin in plugins[:1]]

        def after(outcome: Any, hook: str, hookimpls: Any, arguments: Any) -> None:
            self._around.pop()

        manager.add_hookcall_monitoring(before, after)

    def note(self, role: str, plugin: str, hook: str) -> None:
        """Write down the call of a plugin."""
        self.made.append(f"{plugin}.{hook}")
        if self._around[-1:] != [f"{role}.{hook}"]:
            self.outside.append(f"{role}.{hook}")

    def clear(self) -> None:
        for found in (self.made, self.monitored, self.outside, self.first_called):
            found.clear()


def recording(base: type[Plugin], plugin: str, calls: Calls, **attributes: Any) -> type:
    """A plugin that implements every hook of its role and writes each call down."""
    role: str = base.role

    def made(hook: str) -> Callable[..., Any]:
        answer = ANSWERS.get(role, {}).get(hook)
        over = hooks_of(base.role)[hook].combining.over
        nothing: Any = [] if hook in ("required_tags", "forbidden_tags", "get_tags") else None

        def method(self: object, **given: Any) -> Any:
            calls.note(role, plugin, hook)
            if len(over) > 1:
                return tuple(given[name] for name in over)
            result = answer(given) if answer else None
            return nothing if result is None else result

        return method

    hooks = {hook: made(hook) for hook in hooks_of(base.role) if hook not in ELSEWHERE[role]}
    return type(plugin, (base,), {**hooks, "name": plugin, **attributes})


@contextmanager
def serve_answers() -> Iterator[Server]:
    """A server that has one model, and two chunks or one body to say."""

    def play(peer: Peer, request: Request) -> None:
        if "/models" in request.line:
            peer.answer(json.dumps([{"id": "m"}]).encode())
        elif json.loads(request.body)["stream"]:
            peer.answer(b'data: {"n": 1}\n\ndata: {"n": 2}\n\n')
        else:
            peer.answer(b'{"n": 1}')

    with serve(play) as server:
        yield server
