"""What a check is, and the base of all suites.

A check is a test method whose docstring is the contract's sentence. Whatever goes wrong in it is
told as a violation of that sentence, with the last bytes on the wire.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import pytest

from agent_hookspecs.roles import PluginRole
from agent_host_testing.suites.advice import ADVICE
from agent_host_testing.violations import Contract, Exchange, explain_violation

if TYPE_CHECKING:
    from agent_host_testing.server import FakeServer

__all__ = ["PROPERTY", "Conformance", "check", "checks_of", "contract_of"]

#: The name under which pytest's reports carry what a check is about.
PROPERTY = "conformance"

#: The variable that pytest itself sets anew for each part of a test.
_OF_PYTEST = frozenset({"PYTEST_CURRENT_TEST"})

Method = TypeVar("Method", bound=Callable[..., None])


class Conformance:
    """What the suites share: whose plugin it is, and the servers a check has used.

    ``plugin`` is the plugin's id, ``package`` where its code is, ``role`` what kind of plugin the
    suite is about; stores and engines are not plugins but what one opens. A package that is not
    installed is looked for in ``folder``.
    """

    plugin: ClassVar[str] = ""
    package: ClassVar[str] = ""
    folder: ClassVar[str | Path] = ""
    role: ClassVar[PluginRole | Literal["store", "engine"]]

    @pytest.fixture(autouse=True)
    def _prepare(self, request: pytest.FixtureRequest) -> Iterator[None]:
        self.servers: list[FakeServer] = []
        contract = contract_of(request.function)
        if contract is not None:
            name = request.function.__name__
            about = {"plugin": self.plugin, "role": self.role, "check": name, **asdict(contract)}
            known = checks_of(type(self))
            about |= {"order": known.index(name), "of": len(known), "typed": self.is_typed()}
            about |= {"package": self.package, "folder": str(self.folder)}
            request.node.user_properties.append((PROPERTY, about))
        folder, variables = os.getcwd(), {**os.environ}
        yield
        for server in self.servers:
            server.close()
        # What a plugin has set in one check would not be seen in the one that looks for it.
        os.chdir(folder)
        for name in {*variables, *os.environ} - _OF_PYTEST:
            _put_back(name, variables.get(name))

    def is_typed(self) -> bool | None:
        """Whether the package says that it has types; None where there is no package."""
        return None

    def require_claim(self, claim: str) -> None:
        """End the check if the plugin does not claim the tag; suites that know tags say how."""

    def exchanges(self) -> list[Exchange]:
        """What went over the wire in this check, in order."""
        return [exchange for server in self.servers for exchange in server.exchanges]


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    elif os.environ.get(name) != value:
        os.environ[name] = value


def check(
    capability: str, where: str, *, claim: str = "", change: str = "", slow: bool = False
) -> Callable[[Method], Method]:
    """Make a method a check: a row of the report, a place in the docs, and perhaps a claim.

    ``change`` says what to change in a plugin that fails, if `ADVICE` has no words for the row.
    """

    def decorate(method: Method) -> Method:
        sentence = " ".join((method.__doc__ or "").split())
        advice = change or ADVICE.get(capability, "")
        contract = Contract(capability, sentence, where, claim, advice, slow)

        @wraps(method)
        def checked(self: Conformance, *args: Any, **kwargs: Any) -> None:
            __tracebackhide__ = True
            try:
                if claim:
                    self.require_claim(claim)
                method(self, *args, **kwargs)
            except Exception as error:
                told = explain_violation(
                    contract, self.plugin, error, self.exchanges(), self.package
                )
                # What led to it is in the kit and the host; of the package's part it says where.
                raise told from None

        checked.contract = contract  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def contract_of(method: object) -> Contract | None:
    """What a check holds a plugin to; None if the method is no check."""
    found = getattr(method, "contract", None)
    return found if isinstance(found, Contract) else None


def checks_of(suite: type[Conformance]) -> list[str]:
    """The names of a suite's checks in the order in which pytest runs them."""
    names = (name for base in reversed(suite.__mro__) for name in vars(base))
    return list(dict.fromkeys(name for name in names if contract_of(getattr(suite, name, None))))
