"""The form of a written session, as it is checked when one is imported.

What a message must be is the session's own rule, wherever the message comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_hookspecs.errors import SessionError
from agent_host.checking import find_problem, json_schema, pydantic_alone

__all__ = ["SessionDocument", "read_document"]

M = TypeVar("M")


with pydantic_alone():

    class _Versioned(BaseModel):
        model_config = ConfigDict(frozen=True)

        schema_version: Annotated[int, Field(strict=True, ge=1)]

    class SessionDocument(_Versioned):
        """What `Session.to_dict` writes; further keys are left alone."""

        id: Annotated[str, Field(strict=True, min_length=1)]
        messages: list[Mapping[Any, Any]]
        metadata: Mapping[Any, Any] = {}

    _VERSIONED = TypeAdapter(_Versioned)
    _DOCUMENT = TypeAdapter(SessionDocument)


def read_document(document: object, newest: int) -> SessionDocument:
    """Check what was read; a `SessionError` says which key is wrong and what would be right.

    ``newest`` is the last version that can be read.
    """
    # On its own, because the rest of a newer version may have another form.
    version = _validate(_VERSIONED, document).schema_version
    if version > newest:
        raise SessionError(
            f"the session has schema version {version}, this host reads up to {newest}",
            hint="upgrade agent-host-core",
        )
    return _validate(_DOCUMENT, document)


def _validate(model: TypeAdapter[M], document: object) -> M:
    try:
        return model.validate_python(document)
    except ValidationError as error:
        problem = find_problem(error, json_schema(model, "session"))
        raise SessionError(
            f"the session cannot be read: {problem.what}", hint=problem.remedy
        ) from None
