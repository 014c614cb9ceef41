"""Whether a tool call may run: by name, by effect, by what was remembered, or by asking.

Every decision is kept and logged. Where nobody can answer, the answer is no.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Effect
from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import canonical_name
from agent_host.private import read_private, write_private

__all__ = ["Answer", "Approval", "Approve", "Decision", "Memory", "Policy", "ToolUse", "digest_of"]

log = get_logger(__name__)

Verdict = Literal["allow", "ask", "deny"]
Answer = Literal["once", "always", "deny"]

#: Distributions that are developed and reviewed with the host; their word on effects is believed.
BUNDLED = frozenset({"agent-host-echo", "agent-host-files"})

_DEFAULTS: Mapping[str, Verdict] = {
    effect: "allow" if effect == "read" else "ask" for effect in get_args(Effect)
}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call as the policy sees it. ``owner`` is the distribution or source of the tool.

    ``own`` marks a tool of the running program itself: its word on the effect is believed, and
    since no other program can be told from it by name, nothing about it is remembered on disk.
    """

    id: str
    name: str
    effect: Effect
    owner: str
    payload: Any
    own: bool = False

    @property
    def digest(self) -> str:
        return digest_of(self.owner, self.name, self.payload)


def digest_of(owner: str, name: str, payload: Any) -> str:
    """What an approval is bound to: exactly this tool with exactly these arguments."""
    text = json.dumps([owner, name, payload], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person is asked: may this call run? The answer counts for ``digest`` alone."""

    use: ToolUse
    digest: str


#: Asked when the policy says "ask"; may be a coroutine function.
Approve = Callable[[Approval], Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call, and why."""

    use: ToolUse
    allowed: bool
    reason: str


class Memory:
    """Tools the user has allowed for good, by distribution and name; kept in a private file."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._always = self._read_stored()

    def allows(self, use: ToolUse) -> bool:
        return (_normal_owner(use.owner), use.name) in self._always

    def remember(self, use: ToolUse) -> None:
        pair = (_normal_owner(use.owner), use.name)
        with self._lock:
            if self._file is None or use.own:
                self._always.add(pair)
                return
            # Another process may have remembered something since we looked.
            stored = self._read_stored() | {pair}
            write_private(self._file, sorted(map(list, stored)))
            self._always |= stored

    def _read_stored(self) -> set[tuple[str, str]]:
        stored = read_private(self._file) if self._file else None
        found: set[tuple[str, str]] = set()
        for item in stored if isinstance(stored, list) else ():
            match item:
                case [str(owner), str(name)]:
                    found.add((owner, name))
        return found


def _normal_owner(owner: str) -> str:
    """The owner in the one spelling that package indexes use; a source stays as it is."""
    return owner if ":" in owner else canonical_name(owner)


@dataclass(slots=True)
class Policy:
    """The rules of one application and the decisions made by them."""

    effects: Mapping[str, Verdict] = field(default_factory=dict)
    rules: tuple[Mapping[str, str], ...] = ()
    approved: frozenset[str] = frozenset()
    memory: Memory = field(default_factory=Memory)
    #: The latest; the log has them all.
    decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=1000))

    @classmethod
    def of(cls, tools: Mapping[str, Any], memory: Memory | None = None) -> Policy:
        """The policy that the ``tools`` section of a config describes."""
        return cls(
            effects=tools.get("effects", {}),
            rules=tuple(tools.get("rules", ())),
            approved=frozenset(map(_normal_owner, tools.get("approved_distributions", ()))),
            memory=memory or Memory(),
        )

    def verdict(self, use: ToolUse) -> tuple[Verdict, str]:
        """Allow, ask or deny, and why."""
        believed = use.effect != "read" or self._believes_owner(use)
        for rule in self.rules:
            verdict: Any = rule["decision"]
            if _rule_fits(rule, use) and (believed or verdict != "allow" or "effect" not in rule):
                return verdict, f"rule for {rule.get('tool', rule.get('effect', 'every tool'))}"
        if self.memory.allows(use):
            return "allow", "allowed for good"
        verdict = self.effects.get(use.effect, _DEFAULTS[use.effect])
        if verdict == "allow" and not believed:
            return "ask", f"{use.owner} says it only reads, but is not approved"
        return verdict, f"effect {use.effect}"

    def is_repeatable(self, use: ToolUse) -> bool:
        """Whether the call changes nothing, so that running it twice does no harm."""
        return use.effect == "read" and self._believes_owner(use)

    def unused_patterns(self, tools: Collection[str]) -> Iterator[str]:
        """The patterns of rules that fit none of these tools."""
        for rule in self.rules:
            pattern = rule.get("tool", "*")
            if pattern != "*" and not any(fnmatchcase(name, pattern) for name in tools):
                yield pattern

    def _believes_owner(self, use: ToolUse) -> bool:
        distribution = _normal_owner(use.owner)
        return use.own or distribution in self.approved or distribution in BUNDLED

    def record_answer(self, use: ToolUse, answer: Answer | None, reason: str) -> Decision:
        """The decision that follows from an answer; None means that nobody could be asked."""
        if answer is None:
            return self.record(use, False, f"{reason}, and nobody can be asked")
        if answer == "always":
            self.memory.remember(use)
        return self.record(use, answer in ("once", "always"), f"the answer was {answer}")

    def record(self, use: ToolUse, allowed: bool, reason: str) -> Decision:
        decision = Decision(use, allowed, reason)
        self.decisions.append(decision)
        log.info(
            "tool_decision",
            tool=use.name,
            effect=use.effect,
            owner=use.owner,
            allowed=allowed,
            reason=reason,
            digest=use.digest,
        )
        return decision


def _rule_fits(rule: Mapping[str, str], use: ToolUse) -> bool:
    named = fnmatchcase(use.name, rule.get("tool", "*"))
    return named and rule.get("effect", use.effect) == use.effect
