"""OpenAI's Responses: items in, items and their events out.

Renders answers and judges whether what it handed out comes back whole; the shape of requests is
checked in `openai_responses_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from agent_host_testing.formats import openai_api
from agent_host_testing.formats.checks import Node, first_problem
from agent_host_testing.formats.deferred import callable_tools, loaded_functions
from agent_host_testing.formats.encoding import arguments_text, compact
from agent_host_testing.formats.openai_responses_replay import check_replay
from agent_host_testing.formats.openai_responses_rules import check_body
from agent_host_testing.formats.tool_search import require_known, search_deferred
from agent_host_testing.script import Call, Failure, Part, Picture, Reply, Search, Text, Thought
from agent_host_testing.wire import Ledger, Problem, Request, pieces

__all__ = ["OpenAIResponses"]

_ENCRYPTED = "reasoning.encrypted_content"
_INCOMPLETE = {"length": "max_output_tokens", "blocked": "content_filter"}
_ENDINGS = ("stop", "tool_calls", "refusal", *_INCOMPLETE)
Item = dict[str, Any]


class OpenAIResponses(openai_api.OpenAIFormat):
    """Shows of a thought what is asked for: its text with ``reasoning.summary``, its signature with
    ``reasoning.encrypted_content`` among what to include.
    """

    name: ClassVar[str] = "openai.responses"
    endpoint: ClassVar[str] = "/responses"

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        def check(body: Node) -> None:
            check_replay(body, check_body(body), request, ledger)

        return first_problem(check, Node(request.body))

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        turn = _Turn(reply, request, ledger)
        turn.enter()
        return compact(turn.response(turn.status, turn.items)).encode()

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        turn = _Turn(reply, request, ledger)
        stream = list(turn.story())
        turn.enter()
        return [_event(number, event) for number, event in enumerate(stream)]


def _event(number: int, event: Item) -> bytes:
    data = compact({**event, "sequence_number": number})
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


class _Turn:
    """One answer: its items, and the events that tell them."""

    def __init__(self, reply: Reply, request: Request, ledger: Ledger) -> None:
        if reply.ending not in _ENDINGS:
            raise ValueError(f"responses have no way to finish as {reply.ending!r}")
        self._reply = reply
        self._asked = openai_api.request_fields(request)
        self._request, self._ledger = request, ledger
        self._id = ledger.new_id("resp_")
        self._padded = openai_api.wants_obfuscation(request)
        self.status = "incomplete" if reply.ending in _INCOMPLETE else "completed"
        given = self._asked.get("input")
        #: Where the functions are that searches have loaded.
        self._loaded = dict(
            place
            for item in (given if isinstance(given, list) else ())
            for place in loaded_functions(item)
        )
        placed = [(part, item) for part in reply.parts for item in self._items(part)]
        self._parts = [part for part, _ in placed]
        self.items = [item for _, item in placed]
        if self.status == "incomplete" and self.items and "status" in self.items[-1]:
            self.items[-1]["status"] = "incomplete"

    def response(self, status: str, output: list[Item], error: Item | None = None) -> Item:
        """The response object as it is at some moment."""
        asked = self._asked
        over = status != "in_progress"
        reasoning = asked.get("reasoning") or {}
        text = asked.get("text") or {}
        reason = _INCOMPLETE.get(self._reply.ending)
        return {
            "id": self._id,
            "object": "response",
            "created_at": openai_api.CREATED,
            "status": status,
            "background": asked.get("background") or False,
            "completed_at": openai_api.CREATED + 1 if status == "completed" else None,
            "error": error,
            "frequency_penalty": 0.0,
            "incomplete_details": {"reason": reason} if status == "incomplete" else None,
            "instructions": asked.get("instructions"),
            "max_output_tokens": asked.get("max_output_tokens"),
            "max_tool_calls": asked.get("max_tool_calls"),
            "model": asked.get("model", ""),
            "output": output,
            "parallel_tool_calls": asked.get("parallel_tool_calls") is not False,
            "presence_penalty": 0.0,
            "previous_response_id": asked.get("previous_response_id"),
            "prompt_cache_key": asked.get("prompt_cache_key"),
            "prompt_cache_retention": asked.get("prompt_cache_retention"),
            "reasoning": {
                "effort": reasoning.get("effort"),
                "summary": reasoning.get("summary"),
            },
            "safety_identifier": asked.get("safety_identifier"),
            "service_tier": "default" if over else "auto",
            "store": asked.get("store") is not False,
            "temperature": asked.get("temperature", 1.0),
            "text": {"format": {"type": "text"}, "verbosity": "medium", **text},
            "tool_choice": asked.get("tool_choice", "auto"),
            "tools": asked.get("tools", []),
            "top_logprobs": asked.get("top_logprobs") or 0,
            "top_p": asked.get("top_p", 1.0),
            "truncation": asked.get("truncation") or "disabled",
            "usage": self._usage() if over and error is None else None,
            "user": asked.get("user"),
            "metadata": asked.get("metadata") or {},
        }

    def story(self) -> Iterator[Item]:
        """The events in order, without their numbers."""
        for kind in ("created", "in_progress"):
            yield {"type": f"response.{kind}", "response": self.response("in_progress", [])}
        for index, (part, item) in enumerate(zip(self._parts, self.items, strict=True)):
            telling = self._telling(index, part, item)
            if self._reply.failure is not None and index == len(self.items) - 1:
                # What is under way when it fails never comes to its end.
                telling = (event for event in telling if not event["type"].endswith(".done"))
            yield from telling
        if self._reply.failure is not None:
            yield from self._failure_events(self._reply.failure)
        else:
            final = self.response(self.status, self.items)
            yield {"type": f"response.{self.status}", "response": final}

    def _telling(self, index: int, part: Part, item: Item) -> Iterator[Item]:
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": _announced_item(item),
        }
        for event in self._growth(part, item):
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}

    def enter(self) -> None:
        """Note what was handed out: signatures, calls and, if it is stored, everything."""
        made = zip(self._parts, self.items, strict=True)
        calls = [(part, item["call_id"]) for part, item in made if isinstance(part, Call)]
        self._ledger.hand_out(
            self._request, (replace(call, id=identity) for call, identity in calls)
        )
        for position, item in enumerate(self.items):
            following = self.items[position + 1] if position + 1 < len(self.items) else None
            before = self.items[position - 1] if position else None
            known = {"item": item, "following": following, "stored": self._stores}
            if before is not None and self._comes_back(before):
                known["reasoning"] = before["id"]
            self._ledger.kept[item["id"]] = known
            if item.get("encrypted_content"):
                self._ledger.signatures[item["encrypted_content"]] = known
        if self._stores:
            earlier = self._ledger.kept.get(str(self._asked.get("previous_response_id")), {})
            given = self._asked.get("input")
            said = given if isinstance(given, list) else []
            self._ledger.kept[self._id] = {"items": [*earlier.get("items", ()), *said, *self.items]}

    def _comes_back(self, item: Item) -> bool:
        """Whether it is reasoning that a client is able to send back."""
        able = self._stores or item.get("encrypted_content") is not None
        return bool(item["type"] == "reasoning" and able)

    @property
    def _stores(self) -> bool:
        return self._asked.get("store") is not False

    def _items(self, part: Part) -> list[Item]:
        """The items of a part; a search has two."""
        if not isinstance(part, Search):
            return [self._item(part)]
        call, output = self._search(part)
        if part.cut:
            return [{**call, "status": "incomplete"}]
        self._loaded |= dict(loaded_functions(output))
        return [call, output]

    def _search(self, search: Search) -> tuple[Item, Item]:
        """Loads the namespaces, as they are declared, that have what was found."""
        tools = self._asked.get("tools") or ()
        if not any(tool["type"] == "tool_search" for tool in tools):
            raise ValueError("the request declares no search of tools; leave it out of the script")
        found = search_deferred(search.query, self._deferred())
        loaded = [tool for tool in tools if self._has_one_of(tool, found)]
        common = {"status": "completed", "execution": "server", "call_id": None}
        return {
            "type": "tool_search_call",
            "id": self._ledger.new_id("tsc_"),
            **common,
            "arguments": {"paths": [tool["name"] for tool in loaded]},
        }, {
            "type": "tool_search_output",
            "id": self._ledger.new_id("tso_"),
            **common,
            "tools": loaded,
        }

    def _deferred(self) -> dict[str, str]:
        return {
            tool["name"]: tool.get("description") or ""
            for tool in callable_tools(self._asked)
            if tool.get("defer_loading") is True
        }

    def _has_one_of(self, tool: Item, names: list[str]) -> bool:
        inner = tool["tools"] if tool["type"] == "namespace" else [tool]
        return any(each.get("name") in names and each.get("defer_loading") for each in inner)

    def _item(self, part: Text | Thought | Call | Picture) -> Item:
        if isinstance(part, Thought):
            return self._reasoning(part)
        if isinstance(part, Text):
            refused = self._reply.ending == "refusal"
            content = _refusal_part(part.text) if refused else _text_part(part.text)
            return {
                "id": self._ledger.new_id("msg_"),
                "type": "message",
                "status": "completed",
                "content": [content],
                "role": "assistant",
            }
        if isinstance(part, Picture):
            return {
                "id": self._ledger.new_id("ig_"),
                "type": "image_generation_call",
                "status": "completed",
                "output_format": part.media_type.partition("/")[2],
                "result": part.data,
            }
        require_known(part, self._deferred(), self._loaded)
        namespace = self._loaded.get(part.name)
        return {
            **({"namespace": namespace} if namespace else {}),
            "id": self._ledger.new_id("ctc_" if part.freeform else "fc_"),
            "type": "custom_tool_call" if part.freeform else "function_call",
            "status": "completed",
            "input" if part.freeform else "arguments": arguments_text(part),
            "call_id": self._ledger.new_id("call_") if part.id is None else part.id,
            "name": part.name,
        }

    def _reasoning(self, thought: Thought) -> Item:
        wanted = self._asked.get("reasoning") or {}
        summarised = wanted.get("summary") or wanted.get("generate_summary")
        shown = summarised and thought.text and not thought.redacted
        item: Item = {"id": self._ledger.new_id("rs_"), "type": "reasoning"}
        if _ENCRYPTED in (self._asked.get("include") or ()):
            item["encrypted_content"] = thought.signature
        item["summary"] = [{"type": "summary_text", "text": thought.text}] if shown else []
        return item

    def _growth(self, part: Part, item: Item) -> Iterator[Item]:
        """The events between an item's beginning and its end."""
        if isinstance(part, Thought):
            for entry in item["summary"]:
                empty = {**entry, "text": ""}
                kind = "response.reasoning_summary_part"
                yield {"type": f"{kind}.added", "summary_index": 0, "part": empty}
                for event in self._words("reasoning_summary_text", "text", entry["text"]):
                    yield {**event, "summary_index": 0}
                yield {"type": f"{kind}.done", "summary_index": 0, "part": entry}
        elif isinstance(part, Text):
            yield from self._content_growth(item["content"][0])
        elif isinstance(part, Search):
            return
        elif isinstance(part, Picture):
            for state in ("in_progress", "generating", "completed"):
                yield {"type": f"response.image_generation_call.{state}"}
        elif part.freeform:
            yield from self._words("custom_tool_call_input", "input", item["input"])
        else:
            yield from self._words("function_call_arguments", "arguments", item["arguments"])

    def _content_growth(self, content: Item) -> Iterator[Item]:
        words = "refusal" if content["type"] == "refusal" else "text"
        empty = {**content, words: ""}
        yield {"type": "response.content_part.added", "content_index": 0, "part": empty}
        logprobs: Item = {} if words == "refusal" else {"logprobs": []}
        for event in self._words(content["type"], words, content[words]):
            yield {**event, "content_index": 0, **logprobs}
        yield {"type": "response.content_part.done", "content_index": 0, "part": content}

    def _words(self, kind: str, field: str, words: str) -> Iterator[Item]:
        for piece in pieces(words, self._reply.fragments):
            event = {"type": f"response.{kind}.delta", "delta": piece}
            yield {**event, "obfuscation": openai_api.padding(piece)} if self._padded else event
        yield {"type": f"response.{kind}.done", field: words}

    def _failure_events(self, failure: Failure) -> Iterator[Item]:
        error = openai_api.error_object(failure)
        yield {"type": "error", "error": error}
        details = {"code": error["code"] or "server_error", "message": failure.message}
        yield {
            "type": "response.failed",
            "response": self.response("failed", [], error=details),
        }

    def _usage(self) -> Item | None:
        tokens = self._reply.tokens
        if tokens is None:
            return None
        return {
            "input_tokens": tokens.input,
            "input_tokens_details": {"cached_tokens": tokens.cached_input},
            "output_tokens": tokens.output,
            "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
            "total_tokens": tokens.input + tokens.output,
        }


def _text_part(words: str) -> Item:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": words}


def _refusal_part(words: str) -> Item:
    return {"type": "refusal", "refusal": words}


def _announced_item(item: Item) -> Item:
    """An item as it is announced: under way and with nothing in it."""
    begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
    empty: Item = {"content": [], "summary": [], "arguments": "", "input": "", "result": None}
    begun.update({name: value for name, value in empty.items() if name in item})
    if item["type"] == "tool_search_call":
        begun["arguments"] = {}
    if item.get("encrypted_content"):
        # The API announces a reasoning item with other encrypted content than it ends with.
        begun["encrypted_content"] = item["encrypted_content"][:-1] + "~"
    return begun
