"""Whether a tool call may run: by name, by effect, by what was remembered, or by asking.

Every decision is kept and logged. Where nobody can answer, the answer is no.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

import agent_host
from agent_hookspecs.descriptor import split_entry
from agent_hookspecs.logs import get_logger
from agent_hookspecs.roles import Effect
from agent_hookspecs.values import dataclass
from agent_host.agent.preview import NO_PREVIEW, Preview
from agent_host.plugins.bundle import Bundle, canonical_name
from agent_host.private import config_home, read_private, write_private

__all__ = [
    "AllowedTool",
    "Answer",
    "Approval",
    "Approve",
    "Decision",
    "Edited",
    "Memory",
    "Policy",
    "Scope",
    "ToolUse",
    "digest_of",
    "owner_of",
]

log = get_logger(__name__)

Verdict = Literal["allow", "ask", "deny"]
#: What an answer allows beyond the call that it is about: the tool, while this program runs, in the
#: working folder, or everywhere.
Scope = Literal["session", "folder", "always"]
Answer = Literal["once", "session", "folder", "always", "deny"]

_REMEMBERED: Mapping[Scope, str] = {
    "session": "allowed for this session",
    "folder": "allowed in this folder",
    "always": "allowed for good",
}

#: Distributions that are developed and reviewed with the host; their word on effects is believed. A
#: stranger can choose such a name, so `owner_of` gives it only to what is where the host is.
BUNDLED = frozenset(
    {"agent-host-context", "agent-host-echo", "agent-host-files", "agent-host-skills"}
)

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


def owner_of(bundle: Bundle) -> str:
    """Whose the tools of a bundle are: a distribution's, or those of one place.

    One that is called like a bundled distribution and is not installed as that is goes by its
    place: neither what is believed of the real one nor what was allowed to it is its own.
    """
    name = canonical_name(bundle.distribution)
    if bundle.distribution and (name not in BUNDLED or _is_installed_with_host(bundle, name)):
        return bundle.distribution
    # A source may be written in many ways; its file is one place.
    return f"{bundle.origin}:{bundle.file or bundle.source}"


def _is_installed_with_host(bundle: Bundle, name: str) -> bool:
    """Whether a bundle is the package of that distribution beside the host, and loads no other."""
    package = name.replace("-", "_")
    entries = bundle.descriptor.entries if bundle.descriptor else ()
    if any(split_entry(entry.entry)[0].partition(".")[0] != package for entry in entries):
        return False
    found = os.path.dirname(os.path.realpath(bundle.file))
    return any(found == os.path.join(place, package) for place in _folders_of_host(name))


@cache
def _folders_of_host(name: str) -> frozenset[str]:
    """The folders that a bundled distribution's package can be in."""
    from sysconfig import get_path

    beside = os.path.dirname(os.path.dirname(os.path.realpath(agent_host.__file__)))
    # In a checkout the host and its plugins are in folders of their own.
    checkout = os.path.join(beside, "plugins", name.removeprefix("agent-host-"), "src")
    installed = map(os.path.realpath, (get_path("purelib"), get_path("platlib")))
    return frozenset([beside, checkout, *installed])


def digest_of(owner: str, name: str, payload: Any) -> str:
    """What an approval is bound to: exactly this tool with exactly these arguments."""
    text = json.dumps([owner, name, payload], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person is asked: may this call run? The answer counts for ``digest`` alone.

    ``preview`` is what the tool says that the call would change, ``parameters`` the names of the
    tool's arguments in its own order. ``note`` is for the person, such as what is wrong with the
    arguments that they have edited.
    """

    use: ToolUse
    digest: str
    preview: Preview = NO_PREVIEW
    parameters: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Edited:
    """An answer to an `Approval`: ask again, about the same call with this payload."""

    payload: Any


#: Asked when the policy says "ask"; gives an `Answer` or `Edited`. May be a coroutine function.
Approve = Callable[[Approval], Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call, and why."""

    use: ToolUse
    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class AllowedTool:
    """A tool of a distribution or source that needs no approval, in one ``folder`` or in all."""

    owner: str
    name: str
    folder: str = ""


class Memory:
    """Tools that the user has allowed for more than one call.

    What is allowed in a folder or everywhere is kept in a private file, the rest while the program
    runs. A folder is the one that the program works in, not those below it.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._of_session: set[AllowedTool] = set()
        self._stored = self._read_stored()

    @classmethod
    def of_user(cls) -> Memory:
        """The memory that all programs of the user share."""
        return cls(config_home() / "allowed-tools.json")

    def scope_of(self, use: ToolUse) -> Scope | None:
        """For how much a use was allowed before; None if it was not."""
        everywhere = AllowedTool(_normal_owner(use.owner), use.name)
        if everywhere in self._stored:
            return "always"
        if replace(everywhere, folder=_working_folder()) in self._stored:
            return "folder"
        return "session" if everywhere in self._of_session else None

    def remember(self, use: ToolUse, scope: Scope = "always") -> None:
        tool = AllowedTool(_normal_owner(use.owner), use.name)
        with self._lock:
            if scope == "session" or self._file is None or use.own:
                self._of_session.add(tool)
                return
            if scope == "folder":
                tool = replace(tool, folder=_working_folder())
            # Another process may have remembered something since we looked.
            self._store(self._read_stored() | {tool})

    def allowed_tools(self) -> list[AllowedTool]:
        """What is kept in the file."""
        return sorted(self._stored, key=_parts_of)

    def forget(self, tools: Collection[AllowedTool]) -> None:
        """Ask about these again; a program that runs already does not notice."""
        with self._lock:
            self._store(self._read_stored() - {*tools})

    def _store(self, tools: set[AllowedTool]) -> None:
        assert self._file is not None, "only what is kept in a file is stored"
        write_private(self._file, sorted(map(_parts_of, tools)))
        self._stored = tools

    def _read_stored(self) -> set[AllowedTool]:
        stored = read_private(self._file) if self._file else None
        found: set[AllowedTool] = set()
        for item in stored if isinstance(stored, list) else ():
            match item:
                case [str(owner), str(name)]:
                    found.add(AllowedTool(owner, name))
                case [str(owner), str(name), str(folder)] if folder:
                    found.add(AllowedTool(owner, name, folder))
        return found


def _parts_of(tool: AllowedTool) -> list[str]:
    """What is stored of it."""
    # Two texts are how a tool was kept before folders were, and still are for everywhere.
    return [tool.owner, tool.name, *filter(None, [tool.folder])]


def _working_folder() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        # Nothing is lost: a folder that is gone is no place for which anything was allowed.
        return os.devnull


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
        scope = self.memory.scope_of(use)
        if scope is not None:
            return "allow", _REMEMBERED[scope]
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
        if answer in get_args(Scope):
            self.memory.remember(use, cast(Scope, answer))
        return self.record(use, answer != "deny", f"the answer was {answer}")

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
