"""The limits of a run, from what its caller gives."""

from __future__ import annotations

from collections.abc import Mapping

from agent_hookspecs.errors import ConfigError
from agent_host.agent.limits import Limits, LimitSettings
from agent_host.checking import suggest_name

__all__ = ["read_limits"]


def read_limits(given: Limits | LimitSettings | None, default: Limits) -> Limits:
    """The limits that were given; of a mapping those it names, and else the default ones."""
    if given is None or isinstance(given, Limits):
        return default if given is None else given
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"limits is {type(given).__name__}, and neither Limits nor a mapping",
            key="limits",
            hint="limits=Limits(turns=1), or limits={'max_turns': 1}",
        )
    known = LimitSettings.__annotations__
    for key in given:
        if key not in known:
            hint = suggest_name(str(key), known)
            raise ConfigError(f"there is no limit {key!r}", key=f"limits.{key}", hint=hint)
    # Brings pydantic, which a run without such limits has no use for.
    from agent_host.config.model import check_config

    problem = check_config({"tools": dict(given)})
    if problem is not None:
        where = problem.where.replace("tools", "limits", 1)
        what = problem.what.replace("tools.", "limits.", 1)
        raise ConfigError(what, key=where, hint=problem.remedy)
    return default.with_settings(given)
