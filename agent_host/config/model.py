"""The model of the config file: every key, what it may hold, and what it is for.

Only what is wrong with a file is decided here; what becomes of its values is not. Imported when
there is a file to check, because it brings pydantic.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
)

from agent_hookspecs.roles import Effect
from agent_host.agent.limits import EmptyFinal
from agent_host.agent.policy import Verdict
from agent_host.checking import CHOICE, Problem, find_problem, json_schema, pydantic_alone

__all__ = ["check_config", "config_schema"]

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _check_day(text: str) -> str:
    """Not as a date, which JSON has not: values are plain, and the same from every file."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("write the day as 2026-01-31") from None


Day = Annotated[str, AfterValidator(_check_day)]


def _key(description: str) -> Any:
    """A key that may be left out."""
    return Field(default=None, description=description)


def _either(plain: Any, several: Any, kind: type) -> Any:
    """One of two forms, told apart by whether the value is of a kind, so that errors name keys."""
    one, other = f"{CHOICE}plain", f"{CHOICE}several"
    return Annotated[
        Annotated[plain, Tag(one)] | Annotated[several, Tag(other)],
        Discriminator(lambda value: other if isinstance(value, kind) else one),
    ]


with pydantic_alone():

    class _Closed(BaseModel):
        """An object that has no other keys."""

        model_config = ConfigDict(strict=True, extra="forbid")

    class _Open(BaseModel):
        """An object whose further keys are for plugins to know."""

        model_config = ConfigDict(strict=True, extra="allow")

    class Provider(_Open):
        provider: Name
        model: str = Field(default="")
        api_key: str = Field(default="")
        api_key_command: Name | Annotated[list[Name], Field(min_length=1)] = _key(
            "A command that prints the key, run without a shell and again when the key is old."
        )
        api_key_file: Name = _key("A file with the key, read again when it has changed.")
        api_key_name: Name = _key("The name under which the key store, or a vault, has the key.")
        api_key_seconds: Annotated[float, Field(gt=0)] = _key(
            "How long the output of the command is used that does not say so itself."
        )
        base_url: str = Field(default="")
        add_tags: list[Name] = _key("What the model can do besides.")
        remove_tags: list[Name] = _key("What the model cannot do after all.")

    class Agent(_Open):
        provider: str = _key("An alias, or a plugin id.")
        model: str = Field(default="")
        system: str = _key("The system prompt.")
        tools: list[Name] = _key("Patterns of the tools it may use.")

    class Rule(_Closed):
        tool: Name = Field(default="")
        effect: Effect = Field(default="execute")
        decision: Verdict

    class Tools(_Closed):
        effects: dict[Effect, Verdict] = _key("What to do with calls of each effect.")
        rules: list[Rule] = _key("By name pattern and effect; the first that fits counts.")
        approved_distributions: list[Name] = _key("Whose claim that a tool only reads is believed.")
        max_turns: Count = Field(default=1)
        max_tool_calls: Count = Field(default=1)
        max_tool_calls_per_turn: Count = Field(default=1)
        max_tokens: Count = Field(default=1)
        max_seconds: Annotated[float, Field(ge=0)] = Field(default=0)
        max_call_seconds: Annotated[float, Field(gt=0)] = _key("How long one call may take.")
        max_parallel_calls: Annotated[int, Field(gt=0)] = _key(
            "How many calls run at once, where calls run in parallel."
        )
        max_cost: Amount = _key("US dollars that one run may cost.")
        max_session_cost: Amount = _key("US dollars that the runs of a session may cost.")
        max_key_cost: _either(Amount, dict[Name, Amount], dict) = _key(  # type: ignore[valid-type]
            "US dollars of one day (UTC) for each provider account; or by account, which is an "
            "alias or a plugin id."
        )
        max_day_cost: Amount = _key("US dollars of one day (UTC) in this store.")
        max_argument_bytes: Count = Field(default=1)
        max_result_bytes: Count = Field(default=1)
        parallel: bool = Field(default=False)
        empty_final: EmptyFinal = _key(
            "What to do when a run that has called tools ends without a word."
        )

    class Amounts(_Closed):
        input: Amount = _key("US dollars for a million tokens of input.")
        cached_input: Amount = _key("Of those that a cache had; else as input.")
        cache_write: Amount = _key("Of those that were put into a cache; else as input.")
        cache_write_1h: Amount = _key("Of those that stay there for an hour; else as cache_write.")
        output: Amount = _key("US dollars for a million tokens of output.")
        reasoning: Amount = _key("Of those of reasoning; else as output.")
        request: Amount = _key("US dollars for each request.")
        search: Amount = _key("US dollars for each search that the provider makes.")

    class Tier(Amounts):
        above: Annotated[int, Field(ge=0)]

    class Prices(Amounts):
        from_: Day = Field(default="", alias="from")
        until: Day = Field(default="")
        tiers: list[Tier] = _key("Prices of requests with more tokens of input than above.")

    AnyPrices = _either(Prices, list[Prices], list)

    class StoreOptions(_Open):
        content: bool = _key("False stores only usage and states, and nothing that was said.")
        keep_days: Annotated[float, Field(gt=0)] = _key(
            "Sessions that nobody has changed for so long are removed; without it none are."
        )

    class Config(_Closed):
        """The whole file."""

        schema_: str = Field(default="", alias="$schema")
        plugins: list[Name] = _key(
            "Plugin sources besides what is installed: path:, pkg: and git+."
        )
        plugin_cache_dir: str = _key("Where git+ sources are kept.")
        allowed_plugins: list[Name] = _key("Use only these bundles.")
        denied_plugins: list[Name] = _key("Never use these bundles.")
        enabled_plugins: list[Name] = _key("Plugins that are off by default.")
        force_enabled_plugins: list[Name] = _key("Take part whatever the tags say.")
        prefer_plugins: dict[str, str] = _key(
            "From role:name to the distribution that wins a collision."
        )
        providers: dict[str, Provider] = _key(
            "Aliases: a provider plugin with its settings. One alone is used by agents that name "
            "none."
        )
        agents: dict[str, Agent] = _key("Agents by name; 'default' is used when none is named.")
        tools: Tools = _key("Policy and limits of tool use.")
        prices: dict[Name, AnyPrices] = _key(  # type: ignore[valid-type]
            "What models cost, by provider/model, where * stands for anything; before what "
            "plugins know."
        )
        env: dict[str, str] = _key(
            "Values for ${env:NAME}, put into the environment for plugins too."
        )
        request_defaults: dict[str, Any] = _key("Settings of every request that nothing else sets.")
        http: Literal["httpx", "httpx2"] = _key("The HTTP library.")
        catalog: Name = _key("The file or URL of the index that plugins search reads.")
        store: str = _key("The URL of the session store.")
        store_options: StoreOptions = _key("What the session store keeps, and for how long.")

    _CONFIG = TypeAdapter(Config)


@cache
def config_schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return json_schema(_CONFIG, "agent-host config")


def check_config(values: object) -> Problem | None:
    """The first thing that is wrong with decoded values, or None."""
    try:
        _CONFIG.validate_python(values)
    except ValidationError as error:
        return find_problem(error, config_schema())
    return None
