"""The settings of this package's plugins, checked."""

from __future__ import annotations

from dataclasses import dataclass

from agent_hookspecs import Config, ConfigError
from agent_host_skills.declarations import CONFIG_SCHEMA

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a config says of skills; ``patterns`` is None where all skills are wanted."""

    folders: tuple[str, ...]
    patterns: tuple[str, ...] | None
    file_bytes: int
    list_bytes: int

    @classmethod
    def of(cls, config: Config) -> Settings:
        wanted = config.get("use_skills")
        return cls(
            _texts("skills_folders", config.get("skills_folders") or ()),
            None if wanted is None else _texts("use_skills", wanted),
            _positive("max_skill_bytes", config.get("max_skill_bytes")),
            _positive("max_skill_list_bytes", config.get("max_skill_list_bytes")),
        )


def _texts(key: str, value: object) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if isinstance(given, (list, tuple)) and all(
        isinstance(each, str) and each and "\0" not in each for each in given
    ):
        return tuple(given)
    raise ConfigError(
        f"plugin 'skills': setting {key!r} is no list of texts",
        key=key,
        hint=f'write it like this: {key} = ["…"]',
    )


def _positive(key: str, value: object) -> int:
    if value is None:
        value = CONFIG_SCHEMA[key]["default"]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(
            f"plugin 'skills': setting {key!r} is no whole number above 0",
            key=key,
            hint=f"set a number of bytes, such as {CONFIG_SCHEMA[key]['default']}",
        )
    return value
