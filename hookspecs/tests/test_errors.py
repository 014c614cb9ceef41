"""The error tree: drawn as it is, printable, and usable as JSON."""

from __future__ import annotations

import inspect
import json
import pickle
import re

import pytest

from agent_hookspecs import errors
from agent_hookspecs.errors import (
    AgentError,
    CollisionError,
    DescriptorError,
    HookError,
    OverloadedError,
    ProviderError,
    RequestTimeoutError,
)

CLASSES = [getattr(errors, name) for name in errors.__all__]


def drawn() -> dict[str, str]:
    """Each class of the drawing at the top of the module, and the one it hangs from."""
    assert errors.__doc__ is not None
    parents: dict[str, str] = {}
    trail: list[str] = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"([│├└─\s]*)([A-Z]\w+(?:Error|Retry))\b", line)
        if match:
            depth = len(match[1]) // 4
            trail[depth:] = [match[2]]
            parents[match[2]] = trail[depth - 1] if depth else "Exception"
    return parents


def test_the_tree_is_drawn_as_it_is() -> None:
    assert drawn() == {cls.__name__: cls.__mro__[1].__name__ for cls in CLASSES}


def test_every_error_of_the_module_is_public() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert defined == set(errors.__all__)


def made(cls: type[AgentError]) -> AgentError:
    required = {
        p.name: p.name
        for p in inspect.signature(cls).parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    }
    return cls("what happened", hint="what to do", **required)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_says_what_happened_and_what_to_do(cls: type[AgentError]) -> None:
    error = made(cls)
    assert error.message == "what happened"
    assert str(error) == error.explain() == "what happened (what to do)"
    assert cls.__doc__


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_is_json_with_the_details_that_are_known(cls: type[AgentError]) -> None:
    document = json.loads(json.dumps(made(cls).to_dict()))
    assert document["type"] == cls.__name__
    assert document["message"] == "what happened"
    assert set(document) - {"type", "message", "hint"} <= set(cls.details)


def test_details_name_plugin_key_and_owners() -> None:
    wrong = DescriptorError("x", plugin="p", key="entries[0]", file="f")
    assert wrong.to_dict().items() >= {("plugin", "p"), ("key", "entries[0]"), ("file", "f")}
    assert CollisionError("x", owners=("a", "b")).to_dict()["owners"] == ("a", "b")
    assert HookError("x", plugin="p", hook="init").to_dict()["hook"] == "init"
    assert RequestTimeoutError("x", phase="idle").to_dict()["phase"] == "idle"


def test_without_a_hint_only_the_message_is_told() -> None:
    assert AgentError("short").explain() == "short"


def test_what_is_usually_retryable_can_be_said_otherwise() -> None:
    assert not ProviderError("x").retryable
    assert OverloadedError("x").retryable
    assert not OverloadedError("x", retryable=False).retryable


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_survives_pickle(cls: type[AgentError]) -> None:
    error = made(cls)
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is cls
    assert (str(copied), copied.to_dict()) == (str(error), error.to_dict())
