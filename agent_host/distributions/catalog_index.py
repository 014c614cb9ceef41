"""The index of a published catalog: distributions that could be added, and what is in them.

The model is the one statement of the file ``index.json``: the tool that makes catalogs writes it,
and ``agent-host plugins search`` reads it. All text in it is from outside, whoever made the file.
It must not know where an index comes from. Brings pydantic.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_host.checking import find_problem, json_schema, pydantic_alone
from agent_host.distributions.errors import CatalogError

__all__ = [
    "INDEX_NAME",
    "SCHEMA_VERSION",
    "CatalogIndex",
    "IndexedDistribution",
    "IndexedLink",
    "IndexedPlugin",
    "IndexedSetting",
    "Tier",
    "decode_index",
    "index_schema",
]

INDEX_NAME = "index.json"
#: Changes when a reader of the old form would misunderstand the new one; new keys change nothing.
SCHEMA_VERSION: Final = 1

Tier = Literal["", "bronze", "silver", "gold"]
Role = Literal["", "provider", "extension", "feature", "tool"]


def _key(description: str, **how: Any) -> Any:
    return Field(description=description, **how)


with pydantic_alone():

    class _Part(BaseModel):
        """An object of the index; keys that are not known are for newer readers."""

        model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    class IndexedSetting(_Part):
        """One setting of a plugin."""

        key: str = _key("As it stands in a config.")
        type: str = _key("The JSON type, or several with 'or' between.", default="any")
        required: bool = _key("Nothing works without it.", default=False)
        secret: bool = _key("It must not be shown.", default=False)
        default: str = _key("As JSON; empty without one.", default="")
        choices: list[str] = _key("All that it may be, as JSON.", default=[])
        description: str = _key("What it is for.", default="")

    class IndexedPlugin(_Part):
        """One plugin of a distribution."""

        name: str = _key("The plugin id; the class if nothing else is known.")
        role: Role = _key("Empty if only the class knows it.", default="")
        label: str = _key("The name people see.", default="")
        description: str = _key("What it is good for.", default="")
        provides_tags: list[str] = _key("Tags it adds when it takes part.", default=[])
        required_tags: list[str] = _key("Tags that must all be present.", default=[])
        forbidden_tags: list[str] = _key("Tags of which none may be present.", default=[])
        required_plugins: list[str] = _key("Plugins without which it does nothing.", default=[])
        hooks: list[str] = _key(
            "Hooks that its descriptor claims or that its source defines.", default=[]
        )
        inherits: list[str] = _key(
            "Classes outside of the wheel whose hooks it has besides.", default=[]
        )
        settings: list[IndexedSetting] = _key("Its settings.", default=[])
        settings_are_asked: bool = _key("Only the class knows its settings.", default=False)
        tools: dict[str, str] = _key("The tools it offers, and the effect of each.", default={})
        commands: list[str] = _key("Commands it adds to agent-host.", default=[])
        stores: list[str] = _key("URL schemes of the stores it opens.", default=[])
        default_enabled: bool = _key("False: it takes part only when named.", default=True)
        requires_api_key: bool = _key("It cannot work without a key.", default=False)

    class IndexedLink(_Part):
        """A link that the author gives; only those to web servers are taken."""

        label: str = _key("What the author calls it.")
        url: str = _key("Begins with https:// or http://.", pattern=r"^https?://")

    class IndexedDistribution(_Part):
        """One distribution at its newest version."""

        name: str = _key("As installers compare names.", pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
        version: str = _key("The newest of those that were looked at.")
        versions: list[str] = _key("All that are known, the newest first.", default=[])
        summary: str = _key("One line of its metadata.", default="")
        description: str = _key("The long text of its metadata, cut if it is too long.", default="")
        description_type: str = _key("The media type of that text.", default="")
        licence: str = _key("An SPDX expression, or what the author wrote.", default="")
        python: str = _key("The versions of Python it works with.", default="")
        pythons: list[str] = _key("The versions of Python that its author names.", default=[])
        contract: str = _key("The versions of the contract it works with.", default="")
        tier: Tier = _key("The quality tier that results in its wheel show.", default="")
        tier_words: str = _key("What is to be said of the tier, and of a claim.", default="")
        needs: list[str] = _key("Other distributions with plugins that it needs.", default=[])
        links: list[IndexedLink] = _key("Homepage, documentation and others.", default=[])
        keywords: list[str] = _key("Of its metadata.", default=[])
        wheel: str = _key("The name of the wheel that was looked at.", default="")
        sha256: str = _key("The digest of that wheel.", default="")
        problems: list[str] = _key("What is wrong with its descriptors.", default=[])
        plugins: list[IndexedPlugin] = _key("What is in it.", default=[])

        def tags(self) -> list[str]:
            """Every tag that one of its plugins provides or needs, once."""
            return sorted(
                {t for each in self.plugins for t in (*each.provides_tags, *each.required_tags)}
            )

        def roles(self) -> list[str]:
            return sorted({each.role for each in self.plugins if each.role})

    class CatalogIndex(_Part):
        """The whole file."""

        schema_version: Literal[1] = _key("The form of the file.")
        title: str = _key("What the catalog is called.", default="")
        made: str = _key("When it was made: a date and time in UTC, as ISO 8601.", default="")
        distributions: list[IndexedDistribution] = _key("By their names.")

    _INDEX = TypeAdapter(CatalogIndex)


@cache
def index_schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return json_schema(_INDEX, INDEX_NAME, "What a catalog of plugins for Agent Host offers.")


def decode_index(raw: bytes, source: str) -> CatalogIndex:
    """Read and check an index; a `CatalogError` says what is wrong with the one of ``source``."""
    import json

    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CatalogError(
            f"{source} is not JSON: {error}", source=source, hint=f"name the {INDEX_NAME} itself"
        ) from None
    found = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(found, int) and found > SCHEMA_VERSION:
        raise CatalogError(
            f"{source} has the form {found}, which is newer than this host knows",
            source=source,
            hint="upgrade the host: agent-host plugins upgrade agent-host-core",
        )
    try:
        return _INDEX.validate_python(document)
    except ValidationError as error:
        problem = find_problem(error, index_schema())
        raise CatalogError(
            f"{source} is no index of a catalog: {problem.what}",
            source=source,
            hint=f"{problem.where or 'the file'}: {problem.remedy}",
        ) from None
