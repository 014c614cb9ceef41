"""The feature ``compaction``: the session action that shortens what is sent, by itself or by wish.

It runs before every request, does nothing while there is room, and once more if a provider refuses
a request as too long. What it makes is an excerpt: the session keeps every message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Action, ActionResult, Config, Context, FeaturePlugin, Session, Usage
from agent_hookspecs.errors import ConfigError
from agent_host_context._version import __version__
from agent_host_context.compaction import Compacted, compact
from agent_host_context.summary import Ask
from agent_host_context.view import View
from agent_host_context.window import (
    RECORD,
    Windows,
    overhead_after_refusal,
    read_limit,
    used_tokens,
)

__all__ = ["Compaction"]

ACTION = "compact_native_history"

_SETTINGS: dict[str, Any] = {
    "compact_at": {
        "type": "number",
        "required": False,
        "default": 0.8,
        "description": "The share of the window at which a conversation is shortened; 0 for never.",
    },
    "compact_to": {
        "type": "number",
        "required": False,
        "default": 0.5,
        "description": "To which share of that it is shortened; less makes it rarer.",
    },
    "context_window": {
        "type": "integer",
        "required": False,
        "description": "How many tokens the model takes, where its provider does not say.",
    },
    "summary_model": {
        "type": "string",
        "required": False,
        "description": "The model that summarises; by default the one that is asked.",
    },
}
#: Settings of a request that a summary has no use for.
_NOT_FOR_SUMMARIES = ("tools", "tool_choice", "response_schema", "stop", "parallel_tool_calls")


class Compaction(FeaturePlugin):
    """Keeps a conversation inside the window of its model."""

    name = "compaction"
    version = __version__
    label = "Compaction"

    def __init__(self) -> None:
        self._windows = Windows()

    def get_config_schema(self) -> dict[str, Any]:
        return _SETTINGS

    def get_actions(self) -> list[Action]:
        return [
            {
                "id": ACTION,
                "command": "compact",
                "label": "Compact the history",
                "description": "Shorten what is sent of this session; the session keeps it all.",
                "inputs": {
                    "instructions": {
                        "type": "string",
                        "required": False,
                        "description": "What the summary should not lose.",
                    }
                },
                "trigger": ["request_start", "context_refused"],
            }
        ]

    def execute_action(
        self, action_id: str, session: Session, params: dict[str, Any], context: Context
    ) -> ActionResult:
        if action_id != ACTION:
            text = f"feature {self.name!r} has no action {action_id!r}"
            return {"error": {"type": "unknown_action", "message": text}}
        config: Config = context.get("config") or {}
        trigger = context.get("lifecycle")
        share = _read_share(config, "compact_at", 1.0)
        if trigger is not None and not share:
            return {}
        items = context.get("excerpt")
        view = View(session, items if items is not None else [*range(len(session.messages))])
        used = used_tokens(session, view, context)
        window = self._windows.find(session, config, context)
        record = dict(session.metadata.get(RECORD) or {})
        if trigger == "context_refused":
            window, record["windows"] = self._windows.learn(session, config, context, used)
            used = view.tokens() + overhead_after_refusal(view, window, used)
        elif trigger is not None and (window is None or used <= read_limit(window, config)):
            return {}
        limit = read_limit(window, config) if window is not None and share else used
        target = int(min(limit, used) * _read_share(config, "compact_to", 0.9))
        wish = str(params.get("instructions") or "")
        done = compact(
            view,
            max(used - view.tokens(), 0),
            limit,
            target,
            _make_ask(config, context),
            # What has fitted so far fits again.
            piece=used if window is None else window // 2,
            wish=wish,
            wants_summary=trigger is None,
        )
        # The summary of a short conversation is longer than that.
        if done.view.tokens() >= view.tokens():
            return _explain_no_change(session, record, done, trigger)
        record |= {
            "made_at": len(session.messages),
            "overhead": max(used - view.tokens(), 0),
            "times": int(record.get("times") or 0) + 1,
        }
        return {
            "excerpt": done.view.items,
            "session_metadata": {RECORD: record},
            "message": _describe(done, used, window),
            **({"usage": done.usage} if done.usage else {}),
        }


def _explain_no_change(
    session: Session, record: Mapping[str, Any], done: Compacted, trigger: str | None
) -> ActionResult:
    """What to say if there was nothing to shorten; a window that was learnt is kept."""
    text = "there is nothing in this conversation that could be shortened"
    if trigger is not None:
        text = "the conversation fills the window of the model, and cannot be shortened any more"
    if done.problem:
        text += f"; a summary failed: {done.problem}"
    result: ActionResult = {"message": text}
    if done.usage:
        result["usage"] = done.usage
    if record != (session.metadata.get(RECORD) or {}):
        result["session_metadata"] = {RECORD: dict(record)}
    return result


def _describe(done: Compacted, used: int, window: int | None) -> str:
    """What was done, for a person."""
    of = f" of {window:,}" if window is not None else ""
    parts = []
    if done.trimmed:
        parts.append(f"{done.trimmed} old tool results left out")
    if done.summarised:
        how = "left out without a summary" if done.problem else "summarised"
        parts.append(f"{done.summarised} messages {how}")
    text = (
        f"compacted: about {used:,}{of} tokens were used, {done.tokens:,} are now "
        f"({', '.join(parts)}); the session keeps all messages"
    )
    return f"{text}; the summary failed: {done.problem}" if done.problem else text


def _read_share(config: Config, key: str, most: float) -> float:
    share = config.get(key, _SETTINGS[key]["default"])
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= most:
        raise ConfigError(
            f"{key} is {share!r}", key=key, hint=f"give a share between 0 and {most:g}"
        )
    return float(share)


def _make_ask(config: Config, context: Context) -> Ask:
    """Asks the model that summarises, by a request of its own through the same core."""
    core: Any = context.get("core")

    def ask(instructions: str, text: str) -> tuple[str, Usage]:
        if core is None:
            raise ConfigError("there is no core in the context that could ask a model")
        session = core.add_message(core.create_session(), "system", instructions)
        session = core.add_message(session, "user", text)
        _, finals = core.send_request(session, _summary_config(config, context))
        usage: Any = finals[-1]["metadata"].get("usage") if finals else None
        return "".join(final["content"] for final in finals), usage or Usage()

    return ask


def _summary_config(config: Config, context: Context) -> Config:
    """The settings of a request that summarises: no tools, and no compaction of itself."""
    model = config.get("summary_model")
    chosen: Config = {**config}
    if model and context.get("app") is not None:
        # The application knows aliases, and the keys of other providers.
        chosen = dict(context["app"].request_config(model=model))
    elif model:
        chosen["model"] = model
    defaults = dict(chosen.get("request_defaults") or {})
    for key in _NOT_FOR_SUMMARIES:
        chosen.pop(key, None)
        defaults.pop(key, None)
    return {**chosen, "request_defaults": defaults, "use_tools": [], "compact_at": 0}
