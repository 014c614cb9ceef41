"""The file of a comparison: whom to ask, what, with which settings, and how answers are checked.

Imported when there is such a file, because it brings pydantic. It must not know how it is asked.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_hookspecs.errors import AgentError
from agent_host.checking import find_problem, json_schema, pydantic_alone
from agent_host.json_schemas import compile_schema

__all__ = ["Case", "CasesError", "Check", "Comparison", "Target", "load_cases"]

Name = Annotated[str, Field(min_length=1)]
#: The keys of a check of which each says by itself what is looked at.
_KINDS = ("contains", "lacks", "equals", "regex", "output_schema", "tool", "judge")


class CasesError(AgentError):
    """A file of cases is wrong; ``key`` is where."""

    details: tuple[str, ...] = ("key",)

    def __init__(self, message: str, *, key: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key


with pydantic_alone():

    class _Closed(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid")

    class Check(_Closed):
        """What an answer has to be; exactly one of the keys up to ``judge`` is given."""

        contains: Name | None = None
        lacks: Name | None = None
        equals: str | None = None
        regex: Name | None = None
        output_schema: dict[str, Any] | None = None
        tool: Name | None = None
        judge: Name | None = None
        arguments: dict[str, Any] | None = None
        ignore_case: bool = False

        @property
        def kind(self) -> str:
            """Which of them it is."""
            return next(kind for kind in _KINDS if getattr(self, kind) is not None)

        def describe(self) -> str:
            """The check in a few words."""
            wanted = getattr(self, self.kind)
            if self.kind == "output_schema":
                return "fits the schema"
            more = f" with {json.dumps(self.arguments)}" if self.arguments else ""
            return f"{self.kind} {json.dumps(wanted, ensure_ascii=False)}{more}"

    class Case(_Closed):
        """One thing to ask."""

        name: Name
        prompt: Name | None = None
        messages: list[dict[str, Any]] | None = None
        system: str | None = None
        use_tools: list[str] | None = None
        output_schema: dict[str, Any] | None = None
        settings: dict[str, Any] | None = None
        checks: list[Check] = Field(default_factory=list)

    class Target(_Closed):
        """Whom to ask."""

        name: Name | None = None
        agent: str | None = None
        provider: str | None = None
        model: str | None = None
        settings: dict[str, Any] = Field(default_factory=dict)

        def label(self) -> str:
            """What reports call it."""
            named = "/".join(part for part in (self.provider, self.model) if part)
            return self.name or named or self.agent or "default"

    class Judge(_Closed):
        """Who answers the questions of checks."""

        agent: str | None = None
        provider: str | None = None
        model: str | None = None
        settings: dict[str, Any] = Field(default_factory=dict)

    class Comparison(_Closed):
        """The whole file: every case goes to every target with all settings of every variant."""

        repeat: Annotated[int, Field(ge=1)] = 1
        targets: Annotated[list[Target], Field(min_length=1)]
        variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
        judge: Judge | None = None
        cases: Annotated[list[Case], Field(min_length=1)]

    _CASES = TypeAdapter(Comparison)


@cache
def _schema() -> dict[str, Any]:
    return json_schema(_CASES, "agent-host cases")


def load_cases(file: Path) -> Comparison:
    """The comparison in a TOML or JSON file."""
    try:
        text = file.read_text("utf-8")
        if file.suffix == ".toml":
            library = "tomllib" if sys.version_info >= (3, 11) else "tomli"
            values = import_module(library).loads(text)
        else:
            values = json.loads(text)
    except OSError as error:
        raise CasesError(f"{file} cannot be read: {error.strerror}", hint="name a file") from error
    except (ValueError, RecursionError) as error:
        kind = "TOML" if file.suffix == ".toml" else "JSON"
        raise CasesError(f"{file} is no {kind}: {error}", hint="mend it there") from error
    try:
        comparison = _CASES.validate_python(values)
    except ValidationError as error:
        problem = find_problem(error, _schema())
        raise CasesError(
            f"{file}: {problem.what}", key=problem.where, hint=problem.remedy
        ) from error
    _check(file, comparison)
    return comparison


def _check(file: Path, comparison: Comparison) -> None:
    """Refuse what a model of single keys does not see."""
    labels = [target.label() for target in comparison.targets]
    _refuse_repeats(file, "targets", labels)
    _refuse_repeats(file, "cases", [case.name for case in comparison.cases])
    for number, case in enumerate(comparison.cases):
        where = f"cases[{number}]"
        if (case.prompt is None) == (case.messages is None):
            raise CasesError(
                f"{file}: {where} ({case.name}) has not one of prompt and messages",
                key=where,
                hint="give one of them",
            )
        for place, each in enumerate(case.checks):
            _check_check(file, f"{where}.checks[{place}]", each, comparison)


def _check_check(file: Path, where: str, check: Check, comparison: Comparison) -> None:
    given = [kind for kind in _KINDS if getattr(check, kind) is not None]
    if len(given) != 1:
        raise CasesError(
            f"{file}: {where} has {' and '.join(given) or 'nothing to check'}",
            key=where,
            hint=f"give exactly one of {', '.join(_KINDS)}",
        )
    if check.arguments is not None and check.tool is None:
        raise CasesError(f"{file}: {where} has arguments of no tool", key=where, hint="name a tool")
    if check.judge is not None and comparison.judge is None:
        raise CasesError(
            f"{file}: {where} asks a judge, and there is none",
            key="judge",
            hint="name one: [judge] with provider and model",
        )
    try:
        if check.regex is not None:
            re.compile(check.regex)
        if check.output_schema is not None:
            compile_schema(json.dumps(check.output_schema))
    except Exception as error:
        raise CasesError(
            f"{file}: {where} cannot be used: {error}", key=where, hint="mend it"
        ) from error


def _refuse_repeats(file: Path, key: str, names: list[str]) -> None:
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise CasesError(
            f"{file}: two {key} are called {sorted(repeated)[0]!r}",
            key=key,
            hint="give each a name of its own",
        )
