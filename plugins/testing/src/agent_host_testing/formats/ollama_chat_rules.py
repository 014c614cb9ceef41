"""Which requests Ollama's chat API refuses, and what its models can do.

Ollama reads JSON as Go does: a field it does not know is ignored, a value of the wrong type is
refused in Go's words. The fields are in ``rules/ollama_chat.json``; here is what no table can say.
It does not compare calls with their results; the rule that they match is the kit's, because a model
that is shown a call without its result makes the call again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence

from agent_host_testing.formats.checks import Check, Node, calls_unchanged, first_problem
from agent_host_testing.formats.notation import Fields, Reader, Rules
from agent_host_testing.script import Call
from agent_host_testing.wire import Ledger, Problem, Request

__all__ = ["capabilities", "first_refusal"]

_ALL = ("completion", "tools", "thinking", "vision")
#: What the models of well-known families can do; a name that is none of them is made up, and a
#: made-up model can do everything.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "deepseek-r1": ("completion", "tools", "thinking"),
    "gemma": ("completion",),
    "gemma2": ("completion",),
    "gemma3": ("completion", "vision"),
    "gpt-oss": ("completion", "tools", "thinking"),
    "llama2": ("completion",),
    "llama3": ("completion",),
    "llama3.1": ("completion", "tools"),
    "llama3.2": ("completion", "tools"),
    "llava": ("completion", "vision"),
    "mistral": ("completion", "tools"),
    "nomic-embed-text": ("embedding",),
    "qwen2.5": ("completion", "tools"),
    "qwen3": ("completion", "tools", "thinking"),
}
#: Families that think, but only on or off.
_WITHOUT_LEVELS = ("deepseek-r1", "qwen3")
_ROLES = ("system", "user", "assistant", "tool")
_DURATION = re.compile(r"-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+|-?0")


def capabilities(model: str) -> tuple[str, ...]:
    """What the model can do, as ``/api/show`` says it."""
    return _FAMILIES.get(_family(model), _ALL)


def first_refusal(request: Request, ledger: Ledger) -> Problem | None:
    """The first thing for which the API would refuse the request, or None."""

    def check(body: Node) -> None:
        _RULES["body"](body)
        if not body.child("model").value:
            body.child("model").refuse("model is required", "a request names its model")
        _can(body)
        if body.has("messages"):
            messages = body.child("messages").items()
            _results(messages)
            calls_unchanged(request, map(_calls, messages), ledger)

    return first_problem(check, Node(request.body))


def _calls(message: Node) -> list[tuple[Node, Call]]:
    made = message.child("tool_calls").items() if message.has("tool_calls") else []
    functions = [(node, node.value["function"], node.value.get("id")) for node in made]
    return [(node, Call(f["name"], f.get("arguments") or {}, i)) for node, f, i in functions]


def _family(model: str) -> str:
    return model.rpartition("/")[2].partition(":")[0]


# Types

_GO_KINDS = {bool: "bool", str: "string", list: "array", dict: "object", int: "number"}


def _of_type(kind: type, go_type: str, *more: type) -> Check:
    """A value of one type; anything else is refused as Go does."""

    def check(node: Node) -> None:
        if type(node.value) not in (kind, *more):
            found = _GO_KINDS.get(type(node.value), "number")
            place = re.sub(r"\[\d+\]", "", node.place)
            node.refuse(
                f"json: cannot unmarshal {found} into Go struct field ChatRequest.{place} "
                f"of type {go_type}",
                f"this is a {_GO_KINDS[kind]}",
            )

    return check


class _Go(Reader):
    """Reads objects as structs of Go: null is as good as absent, and other fields are ignored."""

    def check_type(self, kind: type, name: str, node: Node) -> None:
        _of_type(kind, name)(node)

    def check_object(self, fields: Fields, node: Node) -> None:
        for name in fields.required:
            fields.checks[name](node.need(name))
        for name, rule in fields.checks.items():
            if node.has(name):
                rule(node.child(name))


def _message(node: Node) -> None:
    _RULES["message fields"](node)
    if node.child("role").value not in _ROLES:
        node.child("role").refuse(
            f"unknown role {node.child('role').value!r}",
            f"templates know the roles {', '.join(_ROLES)} and leave other messages out",
        )


def _image(image: Node) -> None:
    _of_type(str, "api.ImageData")(image)
    try:
        base64.b64decode(image.value, validate=True)
    except ValueError:
        # Nothing is lost: the request is refused.
        image.refuse("illegal base64 data at input byte 0", "an image is base64 and no URL")


def _think(node: Node) -> None:
    if node.value not in (True, False, "high", "medium", "low"):
        node.refuse(
            f"invalid think value: {json.dumps(node.value)}",
            'think is "high", "medium", "low", true or false',
        )


def _keep_alive(node: Node) -> None:
    if isinstance(node.value, str) and not _DURATION.fullmatch(node.value):
        node.refuse(f'time: invalid duration "{node.value}"', "a duration is 5m, say, or seconds")
    _of_type(str, "api.Duration", int, float)(node)


def _format(node: Node) -> None:
    if node.value not in ("", "json") and not isinstance(node.value, dict):
        node.refuse(
            f'invalid format: {json.dumps(node.value)}; expected "json" or a JSON schema',
            'format is "json" or a JSON Schema',
        )


def _option(kind: str) -> Check:
    def check(node: Node) -> None:
        if type(node.value) not in (int, float):
            name = node.place.rpartition(".")[2]
            node.refuse(f'option "{name}" must be of type {kind}', f"this is of type {kind}")

    return check


_RULES = Rules(
    "ollama_chat",
    {
        "string": _of_type(str, "string"),
        "bool": _of_type(bool, "bool"),
        "whole": _option("integer"),
        "float": _option("float32"),
        "image": _image,
        "message": _message,
        "think": _think,
        "keep alive": _keep_alive,
        "format": _format,
    },
    _Go(),
)


# What the model can do


def _can(body: Node) -> None:
    model: str = body.value["model"]
    able = capabilities(model)
    if body.child("tools").value and "tools" not in able:
        body.child("tools").refuse(
            f"registry.ollama.ai/library/{model} does not support tools",
            "tools are offered to models with the capability tools",
        )
    think = body.child("think")
    if think.value and "thinking" not in able:
        think.refuse(
            f'"{model}" does not support thinking',
            "think is asked of models with the capability thinking",
        )
    if isinstance(think.value, str) and _family(model) in _WITHOUT_LEVELS:
        think.refuse(
            f'think value "{think.value}" is not supported for this model',
            "this model thinks or does not; it has no levels",
        )


# Calls and results


def _results(messages: Sequence[Node]) -> None:
    """After an assistant's calls come their results, one each."""
    calls: list[Node] = []
    for message in messages:
        if message.value["role"] == "tool":
            _take(message, calls)
            continue
        _none_open(calls)
        if message.has("tool_calls"):
            calls = message.child("tool_calls").items()
    _none_open(calls)


def _take(message: Node, calls: list[Node]) -> None:
    name, identity = message.child("tool_name"), message.child("tool_call_id")
    if not (name.value or identity.value):
        message.refuse(
            "the result does not say whose it is", "a tool message has tool_name or tool_call_id"
        )
    for call in calls:
        if _is_of(call, name, identity):
            calls.remove(call)
            return
    message.refuse(
        f"no open call fits the result of {identity.value or name.value!r}",
        "a result names a call of the assistant's message before it",
    )


def _is_of(call: Node, name: Node, identity: Node) -> bool:
    if identity.value and call.has("id") and call.child("id").value != identity.value:
        return False
    return name.value in (None, "", call.child("function").value["name"])


def _none_open(calls: Sequence[Node]) -> None:
    for call in calls:
        call.refuse(
            f"the call of {call.child('function').value['name']!r} has no result",
            "every call is answered by one tool message before anything else is said",
        )
