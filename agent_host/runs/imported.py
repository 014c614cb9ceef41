"""What an exported session says of itself and its runs, checked: a file may be anybody's.

What was decided elsewhere counts for nothing here: a run that was not over is, it waits for no
answer and has none, and it goes on with none of its settings, of which some name addresses and
programs. Imported when a session is, because it brings pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agent_hookspecs.errors import SessionError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.store.values import FINAL_STATES, RunState, StoredRun
from agent_host.checking import pydantic_alone

__all__ = ["ImportedHead", "read_head", "read_run"]

log = get_logger(__name__)

_HINT = "use what sessions export has written"
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
_Name = Annotated[str, Field(max_length=1000)]
#: Seconds since 1970, up to a year that calendars know.
_Time = Annotated[float, Field(ge=0, lt=2e11, allow_inf_nan=False)]
_STRICT = ConfigDict(strict=True, extra="ignore")


with pydantic_alone():

    class ImportedHead(BaseModel):
        """The first line: the session itself."""

        model_config = _STRICT

        id: _Id
        name: _Name | None = None
        created: _Time | None = None
        parent: _Id | None = None
        metadata: dict[str, Any] | None = None
        origin: list[str] | None = None
        checkpoints: list[Annotated[tuple[int, int, str], Field(strict=False)]] | None = None

    class _Asked(BaseModel):
        """Whom a run asked: names, and nothing that they stand for."""

        model_config = _STRICT

        agent: _Name | None = None
        provider: _Name | None = None
        model: _Name | None = None
        use_tools: list[_Name] | None = None
        settings: Annotated[dict[str, Any], AfterValidator(lambda given: {})] = {}

    class _Details(BaseModel):
        model_config = _STRICT

        asked: _Asked | None = None
        park: bool = False
        first: Annotated[int, Field(ge=0)] = 0
        started: list[_Name] = []

    class _Run(BaseModel):
        model_config = _STRICT

        id: _Id
        state: RunState
        parent: _Id | None = None
        agent: _Name | None = None
        provider: _Name | None = None
        model: _Name | None = None
        created: _Time = 0.0
        ended: _Time | None = None
        usage: dict[str, int | float | dict[str, Any] | None] = {}
        cost: Annotated[Decimal, Field(ge=0, strict=False, allow_inf_nan=False)] | None = None
        reason: _Name | None = None
        error: dict[str, Any] | None = None
        details: _Details = _Details()


def read_head(line: Mapping[str, Any]) -> ImportedHead:
    """What a session says of itself; a `SessionError` if it is none."""
    try:
        return ImportedHead.model_validate(dict(line))
    except (ValidationError, RecursionError) as error:
        raise _wrong("the session", error) from None


def read_run(values: object, session: str) -> StoredRun:
    """A run of a session, as one that is over."""
    try:
        run = _Run.model_validate(values)
    except (ValidationError, RecursionError) as error:
        raise _wrong("a run", error) from None
    given = run.model_dump(exclude_unset=True)
    left_out = _left_out(values)
    if run.state not in FINAL_STATES:
        given["state"] = "cancelled"
        left_out.append(f"that it was {run.state}")
    if left_out:
        log.warning("run_imported_in_part", run=run.id, left_out=", ".join(left_out))
    return StoredRun(**{**given, "session": session})


def _left_out(values: Any) -> list[str]:
    """What a run says that counts for nothing here, by its names."""
    asked = (values.get("details") or {}).get("asked") or {}
    questions = ["its questions"] if values.get("questions") else []
    return [*sorted(asked.get("settings") or ()), *questions]


def _wrong(what: str, error: Exception) -> SessionError:
    found = error.errors(include_input=False)[0] if isinstance(error, ValidationError) else None
    where = ".".join(map(str, found["loc"])) if found else "it"
    said = found["msg"] if found else "it is nested too deeply"
    return SessionError(f"{what} cannot be read: {where}: {said}", hint=_HINT)
