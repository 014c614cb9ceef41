"""Whom a request is for, and the stream of its answer: the only room that talks to the host.

It finds provider and model of a name, asks them through the application's own core, goes on to the
next model of a list while nothing has been said, and keeps what a conversation needs to go on. It
must not know doors nor HTTP.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from agent_hookspecs import AgentError, Event, ProviderError, WarningEvent
from agent_hookspecs.logs import get_logger, redact
from agent_hookspecs.store import SessionStore
from agent_host_gateway.conversations import Conversations, Found, has_something_to_lose
from agent_host_gateway.neutral import Answer, Message, ModelRequest, describe_call
from agent_host_gateway.queueing import Breaker, Turns
from agent_host_gateway.refusals import Refused, refusal_of
from agent_host_gateway.settings import Settings
from agent_host_gateway.wishes import Wish

__all__ = [
    "AGENT",
    "Application",
    "Opened",
    "Relayed",
    "Target",
    "Upstream",
    "is_call",
    "is_step",
    "refuse_media",
]

log = get_logger(__name__)

#: Begins the names of agents among the models.
AGENT = "agent/"
#: What may be the name of a model: some providers have it in their addresses.
_MODEL = re.compile(r"(?!.*\.\.)[\w@+:-][\w.@+:-]*(/[\w@+:-][\w.@+:-]*)*", re.ASCII)
#: Events that say that the model has begun to answer.
_OUTPUT = frozenset(
    {"partial", "reasoning", "tool_call_started", "tool_call", "tool_started", "final", "done"}
)
#: How long a list of models is used again, and how long a provider may take to give it.
_LIST_SECONDS = 60.0
_LIST_TIMEOUT = 10
#: Settings of which one says that a provider has a key.
_KEY_SETTINGS = ("api_key", "api_key_command", "api_key_file", "api_key_name")
_CALLS = frozenset({"tool_call_started", "tool_call_delta"})
_STEPS = frozenset({"tool_call", "tool_started", "tool_update", "tool_result", "turn_end", "child"})


class Application(Protocol):
    """What is used of an application of the host."""

    config: Any
    core: Any
    sessions: Any

    def request_config(self, **options: Any) -> dict[str, Any]: ...
    def astream(self, prompt: Any, **options: Any) -> Any: ...
    def asend_request_stream(self, session: Any, config: Any, *, context: Any = None) -> Any: ...
    def create_session(self, system: str | None = None) -> Any: ...
    def stack(self, **options: Any) -> Any: ...
    def open_store(self) -> SessionStore: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to ask: a model of a provider, or an agent of the config."""

    name: str
    provider: str = ""
    model: str = ""
    agent: str = ""

    @property
    def upstream(self) -> str:
        """Who has to have time for it."""
        return self.provider or f"{AGENT}{self.agent}"


@dataclass(slots=True)
class Relayed:
    """An answer whose bytes are for the client as they are."""

    target: Target
    answer: Any
    closing: AsyncExitStack
    warnings: list[str] = field(default_factory=list)

    async def close(self) -> None:
        """End it, also in the middle; the upstream is told at once."""
        await self.closing.aclose()


@dataclass(slots=True)
class Opened:
    """An answer that has begun: what came of it until the model said something, and the rest."""

    target: Target
    events: Any
    begun: list[Event]
    closing: AsyncExitStack
    found: Found | None = None
    warnings: list[str] = field(default_factory=list)

    async def close(self) -> None:
        """End it, also in the middle; the upstream is told at once."""
        await self.closing.aclose()


class Upstream:
    """The models and agents of one application."""

    def __init__(
        self, application: Application, settings: Settings, conversations: Conversations
    ) -> None:
        self.application = application
        self.conversations = conversations
        self._settings = settings
        self._turns: dict[str, Turns] = {}
        self._breakers: dict[str, Breaker] = {}
        self._tags: dict[tuple[str, str], tuple[frozenset[str], float]] = {}
        self._listed: list[str] = []
        self._listed_until = 0.0

    # --- names -----------------------------------------------------------------------------------

    def providers(self) -> list[str]:
        """What may stand before the slash: aliases of the config, and installed providers."""
        aliases = self.application.config.values.get("providers", {})
        catalog = self.application.core.stacks.catalog
        return [*aliases, *(r.name for r in catalog.usable("provider") if r.name not in aliases)]

    def agents(self) -> list[str]:
        return [*self.application.config.values.get("agents", {})]

    def find_targets(self, name: str) -> list[Target]:
        """Whom a name means, and after it those to ask if that fails."""
        names = [name, *self._settings.fallbacks.get(name, ())]
        return [self._find_target(each) for each in names]

    def _find_target(self, name: str) -> Target:
        if name.startswith(AGENT):
            agent = name.removeprefix(AGENT)
            if agent not in self.agents():
                raise _unknown_model(name)
            return Target(name, agent=agent)
        meant = self._settings.models.get(name, name)
        provider, slash, model = meant.partition("/")
        providers = self.providers()
        if meant in self.application.config.values.get("providers", {}):
            # An alias with a model of its own.
            return Target(name, meant)
        if not slash or not _MODEL.fullmatch(model) or provider not in providers:
            raise _unknown_model(name)
        return Target(name, provider, model)

    async def list_models(self) -> list[str]:
        """The names of all models on offer: aliases, agents, and what providers list."""
        if time.monotonic() > self._listed_until:
            asked = [asyncio.to_thread(self._ask_models, name) for name in self.providers()]
            found = await asyncio.gather(*asked)
            self._listed = [name for names in found for name in names]
            self._listed_until = time.monotonic() + _LIST_SECONDS
        agents = [f"{AGENT}{name}" for name in self.agents()]
        return [*dict.fromkeys([*self._settings.models, *agents, *self._listed])]

    def _ask_models(self, provider: str) -> list[str]:
        """What a provider lists, if it has what it needs; that it cannot be asked is logged."""
        aliases = self.application.config.values.get("providers", {})
        own = [provider] if provider in aliases else []
        try:
            config = self.application.request_config(
                provider=provider, settings={"timeout": _LIST_TIMEOUT}
            )
            if not own and not any(config.get(key) for key in _KEY_SETTINGS):
                return []
            models = self.application.core.list_models(config)
        except AgentError as error:
            log.info("models_unavailable", provider=provider, error=error.message)
            return own
        return [*own, *(f"{provider}/{model['id']}" for model in models)]

    # --- asking ----------------------------------------------------------------------------------

    async def open(
        self, wish: Wish, caller: str, previous: Found | None = None, *, may_relay: bool = True
    ) -> Opened | Relayed:
        """Ask, and wait until the model has begun to answer; ``previous`` is what it goes on from.

        What fails before that goes on to the next model of the list, and is raised by the last.
        """
        targets = self.find_targets(wish.model)
        may_relay = may_relay and previous is None and wish.may_be_relayed
        warnings: list[str] = []
        for place, target in enumerate(targets):
            is_last = place == len(targets) - 1
            try:
                opened = await self._open_one(target, wish, caller, previous, may_relay, is_last)
                opened.warnings[:0] = warnings
                return opened
            except Exception as error:
                refused = refusal_of(error)
                if is_last or not _may_help(error, refused):
                    raise
                warnings.append(f"{target.name} was not asked or failed: {refused.message}")
                log.info("fallback", model=target.name, error=refused.message)
        raise AssertionError("the last of the models has answered or raised")

    async def _open_one(
        self,
        target: Target,
        wish: Wish,
        caller: str,
        previous: Found | None,
        may_relay: bool,
        is_last: bool,
    ) -> Opened | Relayed:
        settings = self._settings
        name = target.upstream
        breaker = self._breakers.setdefault(
            name, Breaker(settings.breaker_failures, settings.breaker_seconds)
        )
        turns = self._turns.setdefault(name, Turns(settings.upstream_requests))
        breaker.check(name)
        closing = AsyncExitStack()
        opened: Opened | Relayed
        try:
            await closing.enter_async_context(turns.take(caller, settings.queue_seconds))
            if may_relay and await self._speaks(target, wish.form.WIRE):
                opened = await self._relay(target, wish, closing, is_last)
            else:
                found = previous or await self._find_history(wish.asked, caller)
                opened = await self._begin(target, wish, found, closing, is_last)
            breaker.note(failed=False)
            return opened
        except BaseException as error:
            await closing.aclose()
            if isinstance(error, ProviderError):
                breaker.note(failed=_is_upstreams_fault(error))
            raise

    async def _speaks(self, target: Target, wire: str) -> bool:
        """Whether a model is spoken to in this form; looked at once in a while."""
        if target.agent:
            return False
        tags, until = self._tags.get((target.provider, target.model), (frozenset(), 0.0))
        if time.monotonic() > until:
            config = self._config(target, {})
            stack = await asyncio.to_thread(self.application.core.stack, config)
            tags, until = frozenset(stack.resolution.tags), time.monotonic() + _LIST_SECONDS
            self._tags[target.provider, target.model] = tags, until
        return wire in tags

    def _config(self, target: Target, settings: Mapping[str, Any]) -> dict[str, Any]:
        return self.application.request_config(
            provider=target.provider,
            model=target.model or None,
            use_tools=[],
            settings=settings,
        )

    async def _relay(
        self, target: Target, wish: Wish, closing: AsyncExitStack, is_last: bool
    ) -> Relayed:
        config = self._config(target, {} if is_last else {"retries": 0})
        body = wish.body_for(str(config.get("model") or target.model))
        core = self.application.core
        answer = await core.arelay_request(
            config, body, stream=wish.is_streamed, context=wish.context
        )
        await closing.enter_async_context(answer)
        return Relayed(target, answer, closing)

    async def _begin(
        self,
        target: Target,
        wish: Wish,
        found: Found | None,
        closing: AsyncExitStack,
        is_last: bool,
    ) -> Opened:
        asked = wish.asked
        warnings: list[str] = [*asked.warnings]
        if found is None and asked.remembers:
            warnings.append(
                "the reasoning that came with the conversation is not known to this gateway, or "
                "the conversation was changed: it is sent without the reasoning"
            )
        if target.agent:
            stream = self._ask_agent(target, wish, found)
        else:
            stream = await self._ask_model(target, wish, found, is_last)
        events = await closing.enter_async_context(stream)
        begun: list[Event] = []
        async for event in events:
            if event["type"] == "warning":
                _refuse_unsent(event, asked)
                warnings.append(redact(event["message"]))
                continue
            begun.append(event)
            if event["type"] in _OUTPUT:
                break
        return Opened(target, events, begun, closing, found, warnings)

    async def _find_history(self, asked: ModelRequest, caller: str) -> Found | None:
        if not (asked.remembers or any(map(has_something_to_lose, asked.messages))):
            return None
        if self.conversations.sessions is None:
            return self.conversations.find(caller, asked.messages)
        return await asyncio.to_thread(self.conversations.find, caller, asked.messages)

    def _session(self, messages: list[Message], found: Found | None) -> Any:
        if found is None:
            return self.application.create_session().with_added(*messages)
        return found.session.with_added(*messages[found.count :])

    async def _ask_model(
        self, target: Target, wish: Wish, found: Found | None, is_last: bool
    ) -> Any:
        asked = wish.asked
        config = self._config(target, {**asked.settings, **({} if is_last else {"retries": 0})})
        core = self.application.core
        media = [message for message in asked.messages if message.get("multipartContent")]
        if media or asked.options.get("summary"):
            stack = await asyncio.to_thread(core.stack, config)
            refuse_media(media, stack.resolution.tags, target.name)
            if asked.options.get("summary") and "reasoning_summary" in stack.schema.settings:
                config["reasoning_summary"] = asked.options["summary"]
        session = self._session(asked.messages, found)
        return self.application.asend_request_stream(session, config, context=wish.context)

    def _ask_agent(self, target: Target, wish: Wish, found: Found | None) -> Any:
        asked = wish.asked
        if "tools" in asked.settings or "tool_choice" in asked.settings:
            raise Refused(
                "an agent has tools of its own, which run here; it takes none from a client",
                param="tools",
            )
        messages = asked.messages
        if messages[-1]["role"] != "user" or messages[-1].get("multipartContent"):
            raise Refused("the last message for an agent is a user's text", param="messages")
        if any(message["role"] == "system" for message in messages):
            raise Refused("an agent has a system prompt of its own", param="messages")
        options: dict[str, Any] = {
            "agent": target.agent,
            "settings": asked.settings,
            "context": wish.context,
        }
        if found is not None:
            options["session"] = self._session(messages[:-1], found)
        elif len(messages) > 1:
            own = self.application.config.system_prompt(target.agent)
            options["session"] = self.application.create_session(own).with_added(*messages[:-1])
        return self.application.astream(messages[-1]["content"], **options)

    # --- answers ---------------------------------------------------------------------------------

    async def read(self, opened: Opened, answer: Answer) -> AsyncIterator[Event]:
        """The events of an answer, which fill ``answer`` on their way."""
        for event in opened.begun:
            self._note(event, answer)
            yield event
        async for event in opened.events:
            self._note(event, answer)
            yield event
        if opened.target.agent:
            # It runs its calls itself, and the client has nothing to do with them.
            answer.calls.clear()

    def _note(self, event: Event, answer: Answer) -> None:
        match event:
            case {"type": "final", "messages": messages}:
                answer.add(messages)
            case {"type": "tool_call", "call": call}:
                answer.calls.append(describe_call(call))
            case {"type": "usage", "usage": usage}:
                for key in ("input", "output", "cached_input", "cache_write", "reasoning", "cost"):
                    if (amount := cast(Mapping[str, Any], usage).get(key)) is not None:
                        total: Any = answer.usage.get(key, 0)
                        answer.usage[key] = total + amount
            case {"type": "done", "finish": finish}:
                answer.finish = finish
            case {"type": "warning", "message": message}:
                answer.warnings.append(redact(message))

    async def keep(
        self, opened: Opened, caller: str, session: Any
    ) -> tuple[str | None, str | None]:
        """Keep what the conversation needs to go on.

        Gives the id of the latest part of it that is stored, and why not all of it is.
        """
        parent = None if opened.found is None else opened.found.stored
        if opened.target.agent or not any(map(has_something_to_lose, session.messages[-4:])):
            return parent, None
        if self.conversations.sessions is None:
            return self.conversations.keep(caller, session, parent)
        return await asyncio.to_thread(self.conversations.keep, caller, session, parent)


def _refuse_unsent(event: WarningEvent, asked: ModelRequest) -> None:
    """Refuse what the model has no use for; nothing was sent yet."""
    param = asked.origins.get(event.get("unsent", ""))
    if param is not None:
        raise Refused(
            f"{param} is not supported by {asked.model}: {redact(event['message'])}",
            param=param,
            code="unsupported_parameter",
        )


def is_step(event: Event) -> bool:
    """Whether an event is a step of an agent."""
    return event["type"] in _STEPS


def is_call(event: Event) -> bool:
    """Whether an event is a part of a call, which is for whoever runs the tool."""
    return event["type"] in _CALLS


def refuse_media(messages: Iterable[Message], tags: Iterable[str], model: str) -> None:
    """Refuse pictures and other media that the model does not take."""
    known = frozenset(tags)
    wanted = {"image": "supports_images", "audio": "supports_audio", "file": "supports_documents"}
    for message in messages:
        for part in message["multipartContent"]:
            tag = wanted.get(part["type"])
            media_type = (part.get("metadata") or {}).get("media_type")
            if tag and tag not in known and f"accepts:{media_type}" not in known:
                raise Refused(f"{model} takes no {part['type']}", param="messages")
            address = str(part["content"].get("url", ""))
            web = "supports_image_urls" if part["type"] == "image" else "supports_file_urls"
            if address.startswith("http") and tag and web not in known:
                raise Refused(
                    f"{model} fetches no {part['type']} from the web; send the data",
                    param="messages",
                )


def _unknown_model(name: str) -> Refused:
    return Refused(
        f"there is no model {name[:200]!r} here; GET /v1/models lists those there are",
        kind="not_found",
        param="model",
        code="model_not_found",
    )


def _is_upstreams_fault(error: ProviderError) -> bool:
    return refusal_of(error).kind in ("upstream", "overloaded", "timeout")


def _may_help(error: Exception, refused: Refused) -> bool:
    """Whether another model may do what this one could not."""
    kinds = ("upstream", "overloaded", "timeout", "rate_limit")
    return refused.kind in kinds and isinstance(error, (AgentError, Refused))
