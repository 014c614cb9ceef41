"""Stacks: how hooks combine, what a failing plugin does, and how long a stack lives."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Generator
from typing import Any

import pytest

from agent_hookspecs import (
    FeaturePlugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
    hookimpl,
)
from agent_hookspecs.errors import (
    CollisionError,
    ConfigError,
    ContractError,
    HookError,
    HookResultError,
    InvalidRequestError,
    PluginError,
    UnknownPluginError,
)
from agent_hookspecs.specs import SpecRole, hooks_of
from agent_host import AgentCore, AgentError
from talking import WAYS, Way, ask, core_with, events_of, said, talker

Natives = list[dict[str, Any]]


def feature(name: str, **methods: Any) -> type[FeaturePlugin]:
    return type(name, (FeaturePlugin,), {"name": name, **methods})


def extension(name: str, **methods: Any) -> type[ProviderExtensionPlugin]:
    return type(name, (ProviderExtensionPlugin,), {"name": name, **methods})


def noting(name: str) -> Any:
    """An ``initialize_request`` that adds a native message and says who has been there."""

    def initialize_request(self: Any, native_messages: Natives, state: Any) -> Any:
        note = {"role": "system", "content": f"{name} after {state.get('by', 'nobody')}"}
        return [*native_messages, note], {**state, "by": name}

    return initialize_request


def provider_with(hook: str, method: Any) -> type[ProviderPlugin]:
    return type("Changed", (talker(),), {hook: method})


# --- combining ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_fold_hands_natives_and_state_on_role_by_role(way: Way) -> None:
    sent: list[Natives] = []
    core = core_with(
        talker(sent, initialize_request=noting("p")),
        feature("f", initialize_request=noting("f")),
        extension("b", initialize_request=noting("b"), after=["a"]),
        extension("a", initialize_request=noting("a")),
    )
    ask(core, said("x"), {}, way)
    assert [m["content"] for m in sent[0][1:]] == [
        "p after nobody",
        "a after p",
        "b after a",
        "f after b",
    ]


_ADDING: tuple[SpecRole, ...] = ("extension", "feature")


def test_a_fold_that_returns_nothing_changes_nothing() -> None:
    def silent(self: Any, **given: Any) -> None:
        return None

    hooks = ("init", "to_native_messages", "from_native_messages")
    quiet = extension("quiet", **dict.fromkeys(hooks, silent))
    session, finals = ask(core_with(talker(), quiet, feature("also", init=silent)), said("x"))
    assert finals[-1]["content"] == "Hi"
    assert len(session.metadata["native_messages"]) == 2


@pytest.mark.parametrize(
    ("role", "hook", "parts"),
    [
        (role, name, hook.combining.over)
        for role in _ADDING
        for name, hook in hooks_of(role).items()
        if len(hook.combining.over) > 1
    ],
)
def test_a_fold_over_several_that_forgets_its_return_is_told_what_it_must_return(
    role: str, hook: str, parts: tuple[str, ...]
) -> None:
    def forgetful(self: Any, **given: Any) -> None:
        return None

    core = core_with(talker(), MAKE[role]("forgetful", **{hook: forgetful}))
    words = re.escape(
        f"plugin 'forgetful': hook {hook!r} must return a tuple of ({', '.join(parts)}), not None"
    )
    with pytest.raises(HookResultError, match=words) as caught:
        ask(core, said("x"), {}, "stream")
    assert (caught.value.plugin, caught.value.hook) == ("forgetful", hook)


def test_a_wrapper_encloses_the_whole_fold() -> None:
    order: list[str] = []

    class Wrapping(ProviderExtensionPlugin):
        name = "a_wrapping"

        @hookimpl(wrapper=True)
        def initialize_request(self, native_messages: Natives) -> Generator[None, Any, Any]:
            order.append(f"before {len(native_messages)}")
            natives, state = yield
            order.append(f"after {len(natives)}")
            return natives[1:], state

    def counted(self: Any, native_messages: Natives, state: Any) -> Any:
        order.append("inside")
        return [*native_messages, *native_messages], state

    sent: list[Natives] = []
    plugins = [extension(name, initialize_request=counted) for name in ("b", "c")]
    ask(core_with(talker(sent), Wrapping, *plugins), said("x"))
    assert order == ["before 1", "inside", "inside", "after 4"]
    assert len(sent[0]) == 3


def test_a_provider_may_wrap_its_own_hooks() -> None:
    class Wrapped(talker()):  # type: ignore[misc]
        @hookimpl(wrapper=True, specname="call_api")
        def around(self, state: Any) -> Generator[None, Any, Any]:
            partials, finals, natives, state = yield
            return partials, [{**final, "content": "wrapped"} for final in finals], natives, state

    assert ask(core_with(Wrapped), said("x"))[1][-1]["content"] == "wrapped"


def test_interop_contributions_rank_config_provider_extension_tool() -> None:
    ranks: list[str] = []

    class Accessor:
        format = "none"

        def __init__(self, rank: str) -> None:
            self.rank = rank

        def matches_call(self, call: Any) -> bool:
            ranks.append(self.rank)
            return False

        def inspect_call(self, call: Any, limit: int) -> Any:
            raise AssertionError("it matches nothing")

        def sanitize_call(self, call: Any) -> Any:
            raise AssertionError("it matches nothing")

    def contributing(rank: str) -> Any:
        return lambda self, config: {"call_accessors": [Accessor(rank)]}

    core = core_with(
        talker(get_tool_interop_contribution=contributing("provider")),
        extension("e", get_tool_interop_contribution=contributing("extension")),
        tool("t", get_tool_interop_contribution=contributing("tool")),
    )
    config = {"tool_interop": {"call_accessors": [Accessor("config")]}}
    core.execute_tool_calls([{"odd": True}], config)
    assert ranks[:4] == ["config", "provider", "extension", "tool"]


def test_accepted_formats_are_collected_without_repetition() -> None:
    seen: list[Any] = []

    def accepted(*formats: str) -> Any:
        return lambda self, config, models: [*formats]

    def look(self: Any, native_messages: Natives, state: Any, *, context: Any) -> Any:
        seen.append(context["tool_interop"]["schema_target_formats"])
        return native_messages, state

    core = core_with(
        talker(accepted_tool_schema_formats=accepted("a", "b")),
        extension("e", accepted_tool_schema_formats=accepted("b", "c")),
        feature("f", initialize_request=look),
    )
    ask(core, said("x"))
    assert seen == [["a", "b", "c"]]


# --- failures -------------------------------------------------------------------------------------


def failing(self: Any, **given: Any) -> Any:
    raise ValueError("out of order")


FOLDS = [
    ("extension", "init"),
    ("extension", "to_native_messages"),
    ("extension", "initialize_request"),
    ("extension", "process_chunk"),
    ("extension", "finalize"),
    ("extension", "from_native_messages"),
    ("feature", "init"),
    ("feature", "initialize_request"),
    ("feature", "finalize"),
]
FOLDED = ("partial_messages", "final_messages", "native_messages", "state")
MAKE = {"extension": extension, "feature": feature}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("role", "hook"), FOLDS)
def test_an_exception_names_plugin_and_hook(role: str, hook: str, way: Way) -> None:
    core = core_with(talker(), MAKE[role]("shaky", **{hook: failing}))
    with pytest.raises(HookError, match="ValueError: out of order") as caught:
        ask(core, said("x"), {}, way)
    assert (caught.value.plugin, caught.value.hook) == ("shaky", hook)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    "hook", ["init", "to_native_messages", "initialize_request", "call_api", "from_native_messages"]
)
def test_an_exception_of_the_provider_names_it(hook: str) -> None:
    with pytest.raises(HookError) as caught:
        ask(core_with(provider_with(hook, failing)), said("x"))
    assert (caught.value.plugin, caught.value.hook) == ("talker", hook)


def test_an_error_of_our_tree_passes_as_it_is() -> None:
    mine = InvalidRequestError("too blue")

    def refusing(self: Any, native_messages: Natives, state: Any) -> Any:
        raise mine

    with pytest.raises(InvalidRequestError) as caught:
        ask(core_with(talker(call_api=refusing)), said("x"))
    assert caught.value is mine
    assert mine.provider == "talker"


@pytest.mark.parametrize(
    ("hook", "result", "words"),
    [
        ("init", 3, "must return a dict"),
        ("initialize_request", 3, r"tuple of \(native_messages, state\)"),
        ("initialize_request", ([], {}, 3), "not a tuple of 3"),
        ("initialize_request", (None, {}), "a list as native_messages"),
        ("initialize_request", ([], None), "a dict as state"),
        ("to_native_messages", None, "must return a list"),
        ("call_api", None, "tuple of"),
        ("call_api", ([], [], [], None), "a dict as state"),
        ("from_native_messages", {}, "must return a list"),
        ("from_native_messages", ["text"], "dicts as messages"),
        ("from_native_messages", [None], "dicts as messages"),
        ("call_api", (["text"], [], [], {}), "dicts as partials"),
        ("call_api", ([], [None], [], {}), "dicts as finals"),
        ("call_api", ([{"content": ["text"]}], [], [], {}), "with text as content"),
    ],
)
def test_a_provider_that_returns_the_wrong_shape_is_told_what_is_wanted(
    hook: str, result: Any, words: str
) -> None:
    with pytest.raises(HookResultError, match=words) as caught:
        ask(core_with(provider_with(hook, lambda self, **given: result)), said("x"))
    assert (caught.value.plugin, caught.value.hook) == ("talker", hook)


@pytest.mark.parametrize(
    ("hook", "result", "words"),
    [
        ("init", [], "a dict as state"),
        ("initialize_request", {}, r"tuple of \(native_messages, state\)"),
        ("initialize_request", ("no", {}), "a list as native_messages"),
        ("finalize", ([], []), "not a tuple of 2"),
        ("finalize", ([], [], []), "a dict as state"),
        ("to_native_messages", {}, "a list as converted_messages"),
        ("from_native_messages", "no", "a list as messages"),
        ("from_native_messages", [None], "dicts as messages"),
        ("finalize", (["text"], [], {}), "dicts as final_messages"),
        ("process_chunk", 3, "tuple of"),
        ("process_chunk", ([], [], []), "not a tuple of 3"),
        ("process_chunk", [[], [], [], {}], "tuple of"),
        ("process_chunk", ([], [], None, {}), "a list as native_messages"),
        ("process_chunk", ([], [], [], None), "a dict as state"),
        ("process_chunk", (["text"], [], [], {}), "dicts as partial_messages"),
        ("process_chunk", ([], [None], [], {}), "dicts as final_messages"),
        ("process_chunk", ([{"tool_calls": ["text"]}], [], [], {}), "list of dicts as tool_calls"),
    ],
)
def test_an_extension_that_returns_the_wrong_shape_is_told_what_is_wanted(
    hook: str, result: Any, words: str
) -> None:
    with pytest.raises(HookResultError, match=words) as caught:
        ask(core_with(talker(), extension("e", **{hook: lambda self, **g: result})), said("x"))
    assert (caught.value.plugin, caught.value.hook) == ("e", hook)


@pytest.mark.parametrize("stream", [True, False])
def test_of_several_extensions_the_one_that_returns_the_wrong_shape_is_named(stream: bool) -> None:
    def spoiling(self: Any, native_chunk: Any, partial_messages: Any, final_messages: Any) -> Any:
        return partial_messages, final_messages, None, {}

    def handing_on(self: Any, **given: Any) -> Any:
        return tuple(given[name] for name in FOLDED)

    core = core_with(
        talker(),
        extension("a", process_chunk=handing_on),
        extension("b", process_chunk=spoiling),
        extension("c", process_chunk=handing_on),
    )
    with pytest.raises(HookResultError, match="a list as native_messages") as caught:
        ask(core, said("x"), {}, "stream" if stream else "call")
    assert caught.value.plugin == "b"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "tuple of"),
        (([], [], []), "not a tuple of 3"),
        (([], [], None, {}), "a list as native_messages"),
        (([], [], [], None), "a dict as state"),
        (([], [None], [], {}), "dicts as finals"),
        ((["text"], [], [], {}), "dicts as partials"),
        (([{"content": 3}], [], [], {}), "with text as content"),
    ],
)
def test_a_provider_whose_chunks_become_the_wrong_shape_is_told_what_is_wanted(
    answer: Any, words: str
) -> None:
    def process_chunk(self: Any, native_chunk: Any, native_messages: Any, state: Any) -> Any:
        if answer is None:
            return None
        # As most do, it hands on what it has no reason to change.
        given = {"partials": [], "finals": [], "native_messages": native_messages, "state": state}
        changed = dict(zip(given, answer, strict=False))
        kept = {key: value for key, value in changed.items() if value not in ([], {})}
        return tuple({**given, **kept}[key] for key in changed)

    streaming = talker(
        stream_api=lambda self, native_messages: iter([{"a": 1}]), process_chunk=process_chunk
    )
    core = core_with(
        streaming,
        extension("e", process_chunk=lambda self, **given: tuple(given[name] for name in FOLDED)),
    )
    with pytest.raises(HookResultError, match=words) as caught:
        events_of(core, said("x"))
    assert (caught.value.plugin, caught.value.hook) == ("talker", "process_chunk")


def test_a_plugin_that_cannot_take_part_is_left_out_with_a_warning() -> None:
    def not_made(self: Any) -> None:
        raise ValueError("out of order")

    gating = feature("gating", init=failing, is_enabled=failing)
    core = core_with(talker(), extension("shaky", __init__=not_made), gating)
    events = events_of(core, said("x"))
    warnings = {e["message"].split("'")[1]: e["message"] for e in events if e["type"] == "warning"}
    assert set(warnings) == {"shaky", "gating"}
    assert "ValueError: out of order" in warnings["shaky"]
    assert events[-1]["type"] == "done"


def test_a_state_without_its_config_is_refused() -> None:
    with pytest.raises(ContractError, match=r"state\['config'\]"):
        ask(core_with(talker(), feature("f", init=lambda self, config, state: {})), said("x"))


# --- going on without a plugin --------------------------------------------------------------------

EARLY = [pair for pair in FOLDS if pair[1] in ("init", "to_native_messages", "initialize_request")]
LATE = [pair for pair in FOLDS if pair not in EARLY]
SKIP = {"on_plugin_error": "skip"}


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize(("role", "hook"), EARLY)
def test_skip_drops_an_optional_plugin_from_the_values_before_it(
    role: str, hook: str, way: Way
) -> None:
    later: list[str] = []

    def spoiling(self: Any, **given: Any) -> Any:
        if "native_messages" in given:
            given["native_messages"].append({"role": "system", "content": "spoilt"})
        if "state" in given:
            given["state"]["config"]["base_url"] = "spoilt"
            given["state"]["spoilt"] = True
        raise ValueError("out of order")

    def look(self: Any, finals: Natives, natives: Natives, state: Any) -> Any:
        later.append("spoilt" if "spoilt" in repr((natives, state)) else "clean")
        return finals, natives, state

    shaky = MAKE[role]("shaky", **{hook: spoiling, "finalize": failing})
    core = core_with(talker(), shaky, feature("look", finalize=look))
    events = events_of(core, said("x"), SKIP, way)
    (warning,) = [event for event in events if event["type"] == "warning"]
    assert warning["plugin"] == "shaky"
    assert "ValueError: out of order" in warning["message"]
    kinds = [event["type"] for event in events]
    assert kinds.index("warning") < kinds.index("partial")
    assert kinds[-1] == "done"
    assert later == ["clean"]
    assert events[-2]["session"].metadata["native_origin"] == ["talker", ""]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("role", "hook"), LATE)
def test_skip_is_over_with_the_first_chunk(role: str, hook: str, way: Way) -> None:
    core = core_with(talker(), MAKE[role]("shaky", **{hook: failing}))
    with pytest.raises(HookError, match="shaky"):
        ask(core, said("x"), SKIP, way)


@pytest.mark.parametrize("hook", ["init", "to_native_messages", "initialize_request"])
def test_skip_never_drops_the_provider(hook: str) -> None:
    with pytest.raises(HookError, match="talker"):
        ask(core_with(provider_with(hook, failing)), said("x"), SKIP)


BUILDING = ["accepted_tool_schema_formats", "get_tool_interop_contribution"]


@pytest.mark.parametrize("wrong", ["raises", "returns"])
@pytest.mark.parametrize("hook", BUILDING)
def test_skip_drops_an_extension_that_fails_while_the_stack_is_built(hook: str, wrong: str) -> None:
    seen: list[str] = []

    def look(self: Any, config: Any, state: Any) -> None:
        seen.append("init")

    method = failing if wrong == "raises" else (lambda self, **given: 3)
    core = core_with(talker(), extension("shaky", **{hook: method, "init": look}))
    for _ in range(2):
        events = events_of(core, said("x"), SKIP)
        (warning,) = [event for event in events if event["type"] == "warning"]
        assert "'shaky' is left out" in warning["message"]
        assert events[-1]["type"] == "done"
    assert seen == []
    with pytest.raises(PluginError) as caught:
        ask(core, said("x"))
    assert caught.value.plugin == "shaky"
    assert caught.value.to_dict()["hook"] == hook


@pytest.mark.parametrize("hook", BUILDING)
def test_skip_does_not_drop_a_provider_that_fails_while_the_stack_is_built(hook: str) -> None:
    with pytest.raises(HookError, match="ValueError: out of order") as caught:
        ask(core_with(provider_with(hook, failing)), said("x"), SKIP)
    assert (caught.value.plugin, caught.value.hook) == ("talker", hook)
    assert isinstance(caught.value.__cause__, ValueError)


def test_skip_closes_the_tools_that_were_prepared_before_something_failed() -> None:
    life: list[str] = []
    shaky = extension("shaky", accepted_tool_schema_formats=failing)
    with core_with(talker(), shaky, tool("t", "look", log=life)) as core:
        ask(core, said("x"), SKIP)
        assert life == ["init", "close 1", "init"]


@pytest.mark.parametrize("role", ["extension", "feature"])
def test_models_that_cannot_be_listed_are_a_warning(role: str) -> None:
    core = core_with(talker(), MAKE[role]("shaky", get_models=failing))
    events = events_of(core, said("x"))
    (warning,) = [event for event in events if event["type"] == "warning"]
    assert "'shaky' was left out of get_models: ValueError: out of order" in warning["message"]


def test_skip_keeps_a_plugin_of_another_role_with_the_same_name() -> None:
    seen: list[str] = []

    def look(self: Any, native_messages: Natives, state: Any) -> None:
        seen.append("feature")

    core = core_with(talker(), extension("twin", init=failing))
    core.register_feature(feature("twin", initialize_request=look))
    ask(core, said("x"), SKIP)
    assert seen == ["feature"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_skip_passes_over_a_wrapper_that_fails(when: str) -> None:
    class Wrapping(FeaturePlugin):
        name = "wrapping"

        @hookimpl(wrapper=True)
        def initialize_request(self, native_messages: Natives) -> Generator[None, Any, Any]:
            if when == "before":
                raise ValueError("out of order")
            yield
            raise ValueError("out of order")

    core = core_with(talker(), Wrapping)
    events = events_of(core, said("x"), SKIP)
    assert [e["plugin"] for e in events if e["type"] == "warning"] == ["wrapping"]
    with pytest.raises(HookError, match="wrapping"):
        events_of(core, said("x"))


def test_the_next_request_asks_a_dropped_plugin_again() -> None:
    failures = iter([True, False])

    def sometimes(self: Any, config: Any, state: Any) -> Any:
        if next(failures):
            raise ValueError("out of order")
        return state

    core = core_with(talker(), feature("shaky", init=sometimes))
    kinds = [[e["type"] for e in events_of(core, said("x"), SKIP)] for _ in range(2)]
    assert ["warning" in each for each in kinds] == [True, False]


def test_on_plugin_error_is_checked() -> None:
    with pytest.raises(ConfigError, match="on_plugin_error is 'ignore'") as caught:
        ask(core_with(talker()), said("x"), {"on_plugin_error": "ignore"})
    assert caught.value.key == "on_plugin_error"


# --- the life of a stack --------------------------------------------------------------------------


def tool(name: str, *names: str, log: list[str] | None = None, **methods: Any) -> type[ToolPlugin]:
    """A tool plugin that offers ``names`` and writes its life down."""
    life = log if log is not None else []

    class Tool(ToolPlugin):
        def init(self, config: Any) -> Any:
            life.append("init")
            return {"number": life.count("init")}

        def get_tool_schemas(self, state: Any) -> Any:
            return [{"name": n, "description": "", "parameters": {"type": "object"}} for n in names]

        def execute_tool(self, tool_name: str, payload: Any, state: Any) -> Any:
            return state["number"]

        def close(self, state: Any) -> None:
            life.append(f"close {state['number']}")

    return type(name, (Tool,), {"name": name, **methods})


def test_a_stack_lives_as_long_as_its_config_is_the_same() -> None:
    life: list[str] = []
    core = core_with(talker(), tool("t", "look", log=life))
    for _ in range(2):
        ask(core, said("x"), {"model": "a", "nested": {"b": 1, "a": 2}})
    ask(core, said("x"), {"nested": {"a": 2, "b": 1}, "model": "a"})
    assert life == ["init"]
    ask(core, said("x"), {"model": "b"})
    assert life == ["init", "init"]
    core.register_feature(feature("f"))
    ask(core, said("x"), {"model": "a", "nested": {"b": 1, "a": 2}})
    assert life == ["init"] * 3
    core.close()
    assert sorted(life[3:]) == ["close 1", "close 2", "close 3"]
    ask(core, said("x"), {"model": "a"})
    assert life[-1] == "init"


def test_old_stacks_make_room_and_close_their_tools() -> None:
    life: list[str] = []
    with core_with(talker(), tool("t", "look", log=life)) as core:
        for number in range(70):
            core.warm_up({"number": number})
        assert life.count("init") == 70
        assert [each for each in life if each != "init"] == [f"close {n}" for n in range(1, 7)]
    assert len(life) == 140


CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


class Watched:
    """A tool that waits while it is looked at, and says whether it was closed meanwhile."""

    def __init__(self, *, progress: bool = False) -> None:
        self.life: list[str] = []
        self.at_work, self.go_on = threading.Event(), threading.Event()
        self.closed = threading.Event()

        def execute(plugin: Any, tool_name: str, payload: Any, state: Any) -> Any:
            self.at_work.set()
            assert self.go_on.wait(60)
            self.life.append("worked")
            return "fine"

        def reporting(plugin: Any, tool_name: str, payload: Any, state: Any) -> Any:
            yield execute(plugin, tool_name, payload, state)

        def close(plugin: Any, state: Any) -> None:
            self.life.append("close")
            self.closed.set()

        self.plugin = tool(
            "t", "look", execute_tool=reporting if progress else execute, close=close
        )

    def let_go(self, core: AgentCore, how: str) -> None:
        """Make the core drop the stack of the config ``{}``."""
        if how == "closed":
            core.close()
            return
        plain = [{"number": number} for number in range(64)]
        for config in plain:
            core.warm_up(config)


@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("how", ["evicted", "closed"])
def test_a_tool_is_not_closed_while_it_is_at_work(how: str, progress: bool) -> None:
    watched = Watched(progress=progress)
    core = core_with(talker(), watched.plugin)
    results: list[Any] = []
    thread = threading.Thread(
        target=lambda: results.extend(core.execute_tool_calls([CALL], {})), daemon=True
    )
    thread.start()
    assert watched.at_work.wait(60)
    watched.let_go(core, how)
    assert watched.life == []
    watched.go_on.set()
    thread.join(60)
    assert results[0]["content"] == "fine"
    assert watched.life == ["worked", "close"]
    core.close()
    assert watched.life.count("close") == (1 if how == "closed" else 65)


@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("how", ["evicted", "closed"])
def test_a_tool_that_nobody_waits_for_any_more_is_not_closed_while_it_is_at_work(
    how: str, progress: bool
) -> None:
    watched = Watched(progress=progress)
    core = core_with(talker(), watched.plugin)

    async def cancelled() -> None:
        task = asyncio.create_task(core.aexecute_tool_calls([CALL], {}))
        await asyncio.to_thread(watched.at_work.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    watched.let_go(core, how)
    assert watched.life == []
    watched.go_on.set()
    assert watched.closed.wait(60)
    assert watched.life == ["worked", "close"]


def test_the_tools_of_a_request_stay_open_until_its_end() -> None:
    life: list[str] = []
    core = core_with(talker(), tool("t", "look", log=life))
    with core.send_request_stream(said("x"), {}) as stream:
        next(stream)
        core.close()
        assert life == ["init"]
    assert life == ["init", "close 1"]
    ask(core, said("x"), {})
    assert life == ["init", "close 1", "init"]


def test_a_config_with_objects_in_it_is_told_apart_by_them() -> None:
    life: list[str] = []
    core = core_with(talker(), tool("t", "look", log=life))
    one, two = object(), object()
    for each in (one, two, one):
        ask(core, said("x"), {"thing": each})
    assert life == ["init", "init"]


def test_what_a_plugin_does_to_its_config_ends_with_the_request() -> None:
    seen: list[Any] = []

    def edit(self: Any, config: Any, state: Any) -> Any:
        seen.append((config["list"][:], config["tools"][0]["description"], "more" in config))
        config["list"].append(2)
        config["tools"][0]["description"] = "changed"
        config["more"] = True
        return state

    core = core_with(talker(), feature("f", init=edit), tool("t", "look"))
    config: dict[str, Any] = {"list": [1]}
    ask(core, said("x"), config)
    ask(core, said("x"), config)
    assert seen == [([1], "", False)] * 2
    assert config == {"list": [1]}


def test_what_the_caller_does_to_its_config_later_is_another_config() -> None:
    seen: list[Any] = []

    def look(self: Any, config: Any, state: Any) -> None:
        seen.append(config["list"])

    core = core_with(talker(), feature("f", init=look))
    config: dict[str, Any] = {"list": [1]}
    ask(core, said("x"), config)
    config["list"].append(2)
    ask(core, said("x"), {"list": [1]})
    ask(core, said("x"), config)
    assert seen == [[1], [1], [1, 2]]


THING = object()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({1: "a"}, {"1": "a"}),
        ({None: "a"}, {"null": "a"}),
        ({True: "a"}, {"true": "a"}),
        ({1: "a"}, {"\0int 1": "a"}),
        (1, True),
        (1, 1.0),
        (1, "1"),
        (None, "null"),
        (b"1", "1"),
        (b"1", b"2"),
        ((1, 2), [1, 2]),
        ((1, 2), {"\0": [1, 2]}),
        pytest.param(THING, f"object at {id(THING):x}", id="object"),
        (THING, {"\0": f"object at {id(THING):x}"}),
    ],
)
def test_configs_that_differ_share_no_stack(one: Any, other: Any) -> None:
    life: list[str] = []
    core = core_with(talker(), tool("t", "look", log=life))
    for value in (one, other, one, other):
        ask(core, said("x"), {"deep": [value]})
    assert life == ["init", "init"]


CIRCLE: dict[str, Any] = {}
CIRCLE["circle"] = CIRCLE


@pytest.mark.parametrize("config", [{1: 2, "a": 3}, {1: 2}, CIRCLE], ids=["keys", "key", "circle"])
def test_a_config_that_is_not_plain_data_is_refused(config: Any) -> None:
    with pytest.raises(ConfigError, match="not plain data"):
        ask(core_with(talker()), said("x"), config)


def test_threads_that_resolve_at_once_share_one_instance_of_each_class() -> None:
    made: list[str] = []
    life: list[str] = []
    start = threading.Barrier(8)

    def counted(name: str) -> Any:
        return lambda self: made.append(name)

    core = core_with(
        talker(__init__=counted("provider")),
        extension("e", __init__=counted("extension")),
        feature("f", __init__=counted("feature")),
        tool("t", "look", log=life, __init__=counted("tool")),
    )
    failures: list[BaseException] = []

    def run() -> None:
        try:
            start.wait(10)
            ask(core, said("x"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(made) == ["extension", "feature", "provider", "tool"]


def test_whoever_is_too_late_with_a_stack_closes_its_tools() -> None:
    life: list[str] = []
    both = threading.Barrier(2)

    def prepare(self: Any, config: Any, state: Any) -> None:
        both.wait(10)

    core = core_with(talker(), tool("t", "look", log=life, prepare=prepare))
    threads = [threading.Thread(target=core.warm_up, args=({},)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert life.count("init") == 2
    assert sum(each.startswith("close") for each in life) == 1
    core.close()
    assert sum(each.startswith("close") for each in life) == 2


def test_a_tool_that_cannot_be_prepared_is_left_out_with_a_warning() -> None:
    life: list[str] = []
    core = core_with(
        talker(),
        tool("bad_init", "one", init=failing),
        tool("bad_schemas", "two", log=life, get_tool_schemas=failing),
        tool("good", "three"),
    )
    events = events_of(core, said("x"))
    warnings = [e["message"] for e in events if e["type"] == "warning"]
    assert len(warnings) == 2
    assert all("could not be prepared: ValueError: out of order" in w for w in warnings)
    assert life == ["init", "close 1"]
    assert [d.tool_name for d in core.get_tool_schemas({})] == ["three"]


def test_two_tools_of_one_name_are_refused_and_closed() -> None:
    life: list[str] = []
    core = core_with(talker(), tool("one", "look", log=life), tool("two", "look", log=life))
    with pytest.raises(CollisionError, match=r"'look'.*'one'.*'two'"):
        ask(core, said("x"))
    assert [each for each in life if each.startswith("close")] == ["close 1", "close 2"]


def test_a_tool_does_not_see_the_keys_of_others() -> None:
    seen: list[dict[str, Any]] = []

    def init(self: Any, config: Any) -> Any:
        seen.append(config)
        return {"number": 0}

    def execute(self: Any, tool_name: str, payload: Any, state: Any, context: Any) -> str:
        seen.append(context["config"])
        return "core" if "core" in context else "alone"

    core = core_with(
        talker(get_config_schema=lambda self: {"pass_phrase": {"type": "string", "secret": True}}),
        tool(
            "t",
            "look",
            init=init,
            execute_tool=execute,
            get_config_schema=lambda self: {"search_key": {"type": "string", "secret": True}},
        ),
    )
    config = {
        "api_key": "k-1234",
        "pass_phrase": "open up",
        "search_key": "s-1234",
        "depth": 2,
        "headers": {"Authorization": "Bearer abc", "Accept": "text"},
    }
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    (result,) = core.execute_tool_calls([call], config)
    assert result["content"] == "alone"
    for config_seen in seen:
        assert {"search_key", "depth"} <= set(config_seen)
        assert not {"api_key", "pass_phrase"} & set(config_seen)
        assert config_seen["headers"] == {"Accept": "text"}


# --- who takes part -------------------------------------------------------------------------------


def test_plugins_that_are_off_by_default_are_named_by_the_config() -> None:
    seen: list[str] = []

    def noted(name: str) -> Any:
        return lambda self, config, state: seen.append(name)

    core = core_with(
        talker(),
        feature("off", init=noted("off"), default_enabled=False),
        feature("tagged", init=noted("tagged"), required_tags=["never"]),
    )
    ask(core, said("x"))
    assert seen == []
    ask(core, said("x"), {"enabled_plugins": ["off"], "force_enabled_plugins": ["tagged"]})
    assert seen == ["off", "tagged"]
    with pytest.raises(ConfigError, match="enabled_plugins"):
        ask(core, said("x"), {"enabled_plugins": "off"})


def test_without_a_name_the_only_provider_is_meant() -> None:
    core = core_with(talker())
    assert ask(core, said("x"), {"model": "m"})[1]
    core.register_provider(talker(name="second"))
    with pytest.raises(UnknownPluginError, match="no provider was named"):
        ask(core, said("x"), {"model": "m"})
    assert ask(core, said("x"), {"provider": "second"})[1]
    with pytest.raises(UnknownPluginError, match="no provider 'third'"):
        ask(core, said("x"), {"provider": "third"})


@pytest.mark.parametrize(
    ("register", "plugin", "error", "words"),
    [
        ("register_provider", len, ContractError, "register a class"),
        ("register_feature", talker(), ContractError, "register_provider"),
        ("register_provider", type("P", (ProviderPlugin,), {}), ContractError, "build_request"),
        ("register_tool", type("T", (ToolPlugin,), {}), ContractError, "get_tool_schemas"),
        ("register_provider", talker(supports_tools=1), ContractError, "supports_tools"),
    ],
)
def test_what_cannot_be_registered_is_refused_at_once(
    register: str, plugin: Any, error: type[AgentError], words: str
) -> None:
    with pytest.raises(error) as caught:
        getattr(AgentCore(), register)(plugin)
    assert words in caught.value.explain()


def test_a_name_is_registered_once() -> None:
    core = core_with(talker())
    with pytest.raises(CollisionError, match="'talker' is registered twice"):
        core.register_provider(talker())


def test_a_plain_class_will_do() -> None:
    class Plain:
        supports_tools = True

        def init(self, config: Any) -> Any:
            return {"config": config}

        def call_api(self, native_messages: Natives, state: Any) -> Any:
            final = {"role": "assistant", "content": "plain"}
            return [], [final], [*native_messages, final], state

    core = AgentCore()
    core.register_provider(Plain)
    assert ask(core, said("x"), {"provider": "Plain"})[1][-1]["content"] == "plain"
