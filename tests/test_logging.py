"""What is logged, and that secrets never are, wherever they would come up."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
import uuid
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import FeaturePlugin, ProviderPlugin, ToolPlugin, get_logger, redact
from agent_hookspecs.errors import AgentError, HookError, ProviderError
from agent_hookspecs.logs import names_secret, redact_error, remember_secrets
from agent_host import AgentCore
from agent_host.redaction import mask_config, named_secrets
from loopback import Peer, Request, serve
from talking import WAYS, Way, ask, core_with, events_of, said, talker

log = get_logger("tests.logging")


def test_an_event_is_logged_with_its_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        log.info("answer", status=200, body={"a": 1}, text="two words")
    (record,) = caplog.records
    assert record.getMessage() == "answer status=200 body={'a': 1} text=two words"
    assert (record.name, record.levelname) == ("tests.logging", "INFO")
    assert record.event == "answer"  # type: ignore[attr-defined]
    assert record.values == {"status": "200", "body": "{'a': 1}", "text": "two words"}  # type: ignore[attr-defined]
    assert record.filename == "test_logging.py"


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_each_level_is_there_and_off_where_it_is_not_wanted(
    level: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("nobody listens, so nothing needs to be shown")

    with caplog.at_level(level.upper()):
        getattr(log, level)("here")
    assert [record.levelname for record in caplog.records] == [level.upper()]
    with caplog.at_level(logging.CRITICAL):
        getattr(log, level)("here", value=Loud())
    assert len(caplog.records) == 1


def test_values_may_have_any_name(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("named", event=1, self=2, level=3, name="n")
    assert caplog.records[0].getMessage() == "named event=1 self=2 level=3 name=n"


@given(st.text(), st.text())
def test_no_value_forges_a_line_or_acts_on_a_terminal(event: str, value: str) -> None:
    records: list[logging.LogRecord] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Kept()
    logger = logging.getLogger("tests.logging")
    logger.addHandler(handler)
    try:
        log.warning(event, value=value, inner=[value], error=OSError(value))
        log.warning("x", value="a\nWARNING forged\x1b[2J\u202e")
    finally:
        logger.removeHandler(handler)
    assert all(record.getMessage().isprintable() for record in records)
    assert records[-1].getMessage() == r"x value=a\nWARNING forged\x1b[2J\u202e"


def test_long_values_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("long", a="x" * 5000, b="y" * 2000, c=["z" * 3000])
    values = caplog.records[0].values  # type: ignore[attr-defined]
    assert values["a"] == "x" * 2000 + "…"
    assert values["b"] == "y" * 2000
    assert len(values["c"]) == 2001


def test_a_value_that_cannot_be_shown_is_named(caplog: pytest.LogCaptureFixture) -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    log.warning("shy", value=Shy())
    assert "value=<Shy whose repr raised RuntimeError>" in caplog.text


# --- redaction ------------------------------------------------------------------------------------

secrets = st.text(st.characters(codec="utf-8"), min_size=6, max_size=20)


@given(secrets.map(lambda text: f"§{text}§"), st.text(max_size=5))
def test_a_remembered_value_is_masked_in_every_form(secret: str, around: str) -> None:
    remember_secrets([secret])
    nested = json.dumps({"inner": json.dumps({"key": secret})})
    for text in (secret, repr(secret), json.dumps(secret), repr([secret]), nested):
        assert secret not in (shown := redact(around + text + around))
        assert repr(secret)[1:-1] not in shown
        assert json.dumps(secret)[1:-1] not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:p%40ss@host:8000/v1 at 10:20", "https://[redacted]@host:8000/v1 at 10:20"),
        ("git+https://token@host/repo@abc", "git+https://[redacted]@host/repo@abc"),
        ("https://a@b:c@host", "https://[redacted]@host"),
        ("ssh://git:pass@host/repo", "ssh://git:[redacted]@host/repo"),
        ("ssh://git@host/repo", "ssh://git@host/repo"),
        ("http://host:80/a:b@c", "http://host:80/a:b@c"),
        ("http://host?to=a@b", "http://host?to=a@b"),
        ('{"url": "http://host","to":"a@b"}', '{"url": "http://host","to":"a@b"}'),
    ],
)
def test_credentials_in_a_url_are_masked(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "api_key",
        "apiKey",
        "X-Api-Key",
        "private_key",
        "access_token",
        "access_tokens",
        "token",
        "client_secret",
        "password",
        "passwd",
        "credentials",
        "Authorization",
        "x-auth",
        "cookie",
        "signature",
        "bearer",
        "passphrase",
        "pat",
        "github_pat",
        "pin",
        "pwd",
        "sig",
        "jwt",
    ],
)
def test_a_credentials_name_is_known(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "model",
        # Numbers of tokens.
        "max_tokens",
        "max_output_tokens",
        "reasoning_max_tokens",
        "input_tokens",
        "token_count",
        # What a key is called, and where it is sent.
        "key_variable",
        "key_header",
        "api_key_name",
        # No secret opens anything with them.
        "prompt_cache_key",
        "keywords",
        "author",
        "tokenizer",
        # Words that merely contain such a word.
        "path",
        "pattern",
        "pinned",
        "signal",
        "spin",
    ],
)
def test_a_name_that_only_looks_like_a_credentials_is_none(name: str) -> None:
    assert not names_secret(name)


@given(
    secret=st.text(min_size=8, max_size=60),
    before=st.binary(max_size=9),
    after=st.binary(max_size=9),
)
def test_a_secret_does_not_survive_in_base64(secret: str, before: bytes, after: bytes) -> None:
    # What decodes to most of a secret tells it.
    data = secret.encode("utf-8", "replace")
    remember_secrets([secret])
    text = b64encode(before + data + after).decode()
    assert len(redact(text).replace("[redacted]", "")) <= len(text) - len(data) * 4 // 3 + 10
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # Not words that a test marks as secret, for the whole process.
        ("https://h/x?sig=q7wzk2vt9m&se=1", "https://h/x?sig=[redacted]&se=1"),
        ("https://h/x?a=1&code=q7wzk2vt9m", "https://h/x?a=1&code=[redacted]"),
        ("X-Auth-Value: q7wzk2vt9m", "X-Auth-Value: [redacted]"),
        ("ghp_" + "q7" * 18, "[redacted]"),
        ("xoxb-q7wzk2vt9m-w2z", "[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmVk", "[redacted]"),
        ("as x-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmVk", "as x-[redacted]"),
        ("eyJ" + "a" * 3000 + ".eyJzdWIiOiIxIn0.c2lnbmVk", "[redacted]"),
        ("exit code: 12345678", "exit code: 12345678"),
        # So long that nobody would see the end if all of it were looked at from each hyphen.
        ("eyJ-" * 100_000, "eyJ-" * 100_000),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_secret_at_the_edge_of_a_cut_does_not_survive_in_part(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = f"edge{uuid.uuid4().hex}"
    remember_secrets([secret])
    log.warning("edge", body="x" * 1990 + secret)
    assert secret[:8] not in caplog.text


def test_an_event_itself_may_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    secret = f"event{uuid.uuid4().hex}"
    remember_secrets([secret])
    log.warning(f"event {secret}")
    assert secret not in repr(vars(caplog.records[0]))


def test_an_error_is_redacted_in_all_that_it_says() -> None:
    secret = f"error{uuid.uuid4().hex}"
    remember_secrets([secret])
    error = ProviderError(
        f"m {secret}", hint=f"h {secret}", excerpt=f"e {secret}", code=secret, request_id=secret
    )
    redact_error(error)
    assert secret not in repr(error) + str(error) + json.dumps(error.to_dict()) + error.explain()


@pytest.mark.parametrize(
    "values",
    [
        {"api_key": "{}"},
        {"password": "{}"},
        {"token": 123456},
        {"headers": {"X-Api-Key": "{}"}},
        {"servers": [{"deep": ({"client_secret": ["{}"]},)}]},
    ],
)
def test_what_is_logged_under_a_credentials_name_is_masked(
    values: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    secret = f"plum{uuid.uuid4().hex}"
    log.warning("named", **json.loads(json.dumps(values).replace("{}", secret)), other="visible")
    assert "[redacted]" in caplog.text
    assert "visible" in caplog.text
    assert not leaks(secret, caplog)
    assert not leaks("123456", caplog)


def test_that_there_is_no_credential_may_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("named", api_key=None, password="", token=False)
    assert caplog.records[0].getMessage() == "named api_key=None password= token=False"


def test_a_value_that_holds_itself_is_logged_without_its_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    around: dict[str, Any] = {"password": "plums and pears"}
    around["again"] = [around]
    log.warning("around", value=around)
    assert "value={'password': '[redacted]'" in caplog.text
    assert "plums" not in caplog.text


# --- secrets of a config, through the core --------------------------------------------------------


def secret_of(name: str) -> str:
    # Nothing about it looks like a key, so that only the marking can tell.
    return f"{name} {uuid.uuid4().hex[:12]} plum"


SCHEMAS: dict[str, Any] = {
    "flat": {"phrase": {"type": "string", "secret": True}},
    "password": {"phrase": {"type": "string", "format": "password"}},
    "object": {"type": "object", "properties": {"phrase": {"type": "string", "secret": True}}},
}


def leaks(secret: str, caplog: pytest.LogCaptureFixture, *shown: object) -> bool:
    records = [repr(vars(record)) + record.getMessage() for record in caplog.records]
    return any(secret in text for text in (*records, *map(str, shown), *map(repr, shown)))


def raising(hook: str, key: str = "phrase") -> Any:
    """A hook that raises with the secret in its words."""

    def method(self: Any, **given: Any) -> Any:
        config = given.get("config") or given["state"]["config"]
        raise ValueError(f"cannot use {config[key]!r} in {json.dumps(config, default=str)}")

    return method


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
@pytest.mark.parametrize("hook", ["init", "initialize_request", "call_api", "to_native_messages"])
def test_a_marked_secret_is_in_no_error_event_or_log(
    hook: str, schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    secret = secret_of("marked")
    provider = talker(get_config_schema=lambda self: schema, **{hook: raising(hook)})
    with caplog.at_level("DEBUG"):
        stream = core_with(provider).send_request_stream(said("x"), {"phrase": secret})
        events: list[Any] = []
        with pytest.raises(HookError) as caught:
            events.extend(stream)
        events.extend(stream)
    error = caught.value
    assert "[redacted]" in str(error)
    assert not leaks(secret, caplog, error, error.to_dict(), error.explain(), events)


@pytest.mark.parametrize(
    "hook", ["get_models", "get_tags", "accepted_tool_schema_formats", "get_ui_elements"]
)
def test_a_marked_secret_is_safe_before_the_first_request(
    hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = secret_of("early")
    provider = talker(get_config_schema=lambda self: SCHEMAS["flat"], **{hook: raising(hook)})
    core = core_with(provider)
    shown: list[object] = []
    for ask_core in (core.get_models, core.get_tags, core.get_ui_elements, core.warm_up):
        try:
            shown.append(ask_core({"phrase": secret}))
        except AgentError as error:
            shown += [error, error.to_dict()]
    assert not leaks(secret, caplog, *shown)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_error_that_a_plugin_words_itself_is_redacted_outside_a_request_too(
    asynchronous: bool,
) -> None:
    secret = secret_of("worded")

    class Acting(FeaturePlugin):
        name = "acting"

        def get_config_schema(self) -> Any:
            return SCHEMAS["flat"]

        def get_actions(self) -> Any:
            return [{"id": "act"}]

        def execute_action(self, action_id: str, context: Any) -> Any:
            raise ProviderError("refused", excerpt=f"with {context['config']['phrase']}")

    core = core_with(talker(), Acting)
    config = {"phrase": secret}

    def act() -> Any:
        if asynchronous:
            return asyncio.run(core.aexecute_session_action(said("x"), "act", config))
        return core.execute_session_action(said("x"), "act", config)

    with pytest.raises(ProviderError) as caught:
        act()
    assert caught.value.excerpt == "with [redacted]"


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_a_plugin_words_itself_is_redacted_in_a_request(way: Way) -> None:
    secret = secret_of("worded")

    def refuse(self: Any, native_messages: Any, state: Any) -> Any:
        said_back = f"with {state['config']['phrase']}"
        raise ProviderError(said_back, hint=said_back, excerpt=said_back)

    provider = talker(get_config_schema=lambda self: SCHEMAS["flat"], call_api=refuse)
    with pytest.raises(ProviderError) as caught:
        ask(core_with(provider), said("x"), {"phrase": secret}, way)
    error = caught.value
    assert [error.message, error.hint, error.excerpt] == ["with [redacted]"] * 3
    assert str(error) == "with [redacted] (with [redacted])"


def test_the_error_event_and_the_error_say_the_same() -> None:
    secret = secret_of("both")
    provider = talker(get_config_schema=lambda self: SCHEMAS["flat"], call_api=raising("call_api"))
    stream = core_with(provider).send_request_stream(said("x"), {"phrase": secret})
    events: list[Any] = []

    def drain() -> None:
        for event in stream:
            events.append(event)

    with pytest.raises(HookError) as caught:
        drain()
    assert events[-1] == {"type": "error", "error": caught.value.to_dict()}
    assert secret not in json.dumps(events)


def test_secrets_of_features_tools_and_nested_settings_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, two, three, four = (secret_of(name) for name in ("one", "two", "three", "four"))

    class Feature(FeaturePlugin):
        name = "feature"

        def get_config_schema(self) -> Any:
            inner = {"words": {"type": "string", "secret": True}, "open": {"type": "string"}}
            return {
                "feature_words": {"secret": True},
                "nested": {"type": "object", "properties": inner},
            }

        def init(self, config: Any, state: Any) -> Any:
            log.warning("init", config=config)
            state["config"]["api_key"] = four

    class Tool(ToolPlugin):
        name = "tool"

        def get_config_schema(self) -> Any:
            return {"tool_words": {"type": "array", "secret": True}}

        def get_tool_schemas(self, state: Any) -> Any:
            return [{"name": "look", "parameters": {"type": "object"}}]

        def execute_tool(self, tool_name: str, payload: Any, state: Any, context: Any) -> Any:
            raise ValueError(f"no use: {context['config']['tool_words']}")

    def answer(natives: Any) -> str:
        log.warning("later", key=four)
        return "ok"

    config = {
        "feature_words": one,
        "nested": {"words": two, "open": "visible"},
        "tool_words": [three, "visible too"],
    }
    core = core_with(talker(answer=answer), Feature, Tool)
    ask(core, said("x"), config)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    (result,) = core.execute_tool_calls([call], config)
    assert "visible" in caplog.text
    for secret in (one, two, three, four):
        assert not leaks(secret, caplog, result)


@pytest.mark.parametrize(
    ("schema", "config"),
    [
        ({"phrase": {"type": "string"}}, {"phrase": "{}"}),
        ({"list": {"items": {"properties": {"pin": {"secret": True}}}}}, {"list": [{"pin": "{}"}]}),
        ({"vault": {"additionalProperties": {"secret": True}}}, {"vault": {"a": "{}"}}),
        ({}, {"servers": [{"api_key": "{}"}]}),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_at_any_depth_and_by_anybodys_word_is_in_no_error(
    schema: Any, config: dict[str, Any], way: Way
) -> None:
    secret = secret_of("deep")

    class Marking(FeaturePlugin):
        name = "marking"

        def get_config_schema(self) -> Any:
            return SCHEMAS["flat"]

    def refuse(self: Any, native_messages: Any, state: Any) -> Any:
        raise ProviderError(f"refused {json.dumps(state['config'])}")

    provider = talker(get_config_schema=lambda self: schema, call_api=refuse)
    given = json.loads(json.dumps(config).replace("{}", secret))
    with pytest.raises(ProviderError) as caught:
        ask(core_with(provider, Marking), said("x"), given, way)
    assert "[redacted]" in str(caught.value)
    assert secret not in str(caught.value)


@pytest.mark.parametrize("on_plugin_error", ["raise", "skip"])
@pytest.mark.parametrize("place", ["replaced", "nested", "failing"])
def test_a_token_that_an_init_brings_is_secret_for_the_next_one(
    place: str, on_plugin_error: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = secret_of("brought")

    class Bringing(FeaturePlugin):
        name = "bringing"

        def init(self, config: Any, state: Any) -> Any:
            if place == "replaced":
                return {**state, "config": {**config, "api_key": token}}
            if place == "nested":
                state["config"]["servers"][0]["api_key"] = token
                return state
            state["config"]["api_key"] = token
            raise ValueError(f"no use: {token}")

    class Failing(FeaturePlugin):
        name = "failing"

        def init(self, config: Any, state: Any) -> Any:
            log.warning("seen", text=f"with {token}")
            raise ValueError(f"bad: {token}")

    core = core_with(talker(), Bringing, Failing)
    config = {"servers": [{"name": "a"}], "on_plugin_error": on_plugin_error}
    events: list[Any] = []
    try:
        with core.send_request_stream(said("x"), config) as stream:
            events.extend(stream)
    except HookError as error:
        events.append(error.to_dict())
    assert "[redacted]" in repr(events)
    assert not leaks(token, caplog, events)


@pytest.mark.parametrize(
    "key", ["api_key", "X-Api-Key", "access_token", "password", "client_secret"]
)
def test_what_stands_under_a_credentials_name_is_secret_without_a_schema(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = secret_of("unmarked")

    def failing(self: Any, config: Any) -> Any:
        raise ValueError(f"no models for {config}")

    core = core_with(talker(get_models=failing))
    assert core.get_models({"deep": {key: secret}, key: secret}) == []
    assert "models_unavailable" in caplog.text
    assert not leaks(secret, caplog)


@pytest.mark.parametrize(
    "config",
    [
        {"base_url": "http://me:{quoted}@host/v1"},
        {"base_url": "http://{quoted}@host/v1"},
        {"base_url": "http://host/v1?a=1&code={quoted}"},
        {"base_url": "http://host/v1?api-key={quoted}#there"},
        {"servers": [{"url": "https://me:{quoted}@host"}]},
        {"extra_headers": {"Authorization": "Bearer {}"}},
        {"extra_headers": {"Cookie": "theme=dark; sid={}; x=y"}},
        {"extra_headers": {"X-Odd": "{}"}},
        {"servers": [{"headers": {"X-Odd": "{}", "Accept": "for me at host"}}]},
    ],
    ids=str,
)
def test_what_is_secret_within_a_value_is_so_by_itself(
    config: Any, caplog: pytest.LogCaptureFixture
) -> None:
    secret = f"plum@{uuid.uuid4().hex[:12]}"
    text = json.dumps(config).replace("{quoted}", quote(secret)).replace("{}", secret)

    def failing(self: Any, config: Any) -> Any:
        raise ValueError(f"the server says that {secret} is wrong, in the dark, for me at host")

    core = core_with(talker(get_models=failing))
    assert core.get_models(json.loads(text)) == []
    assert "[redacted] is wrong, in the dark, for me at host" in caplog.text
    assert not leaks(secret, caplog)


def test_a_key_in_the_path_of_an_address_is_secret(caplog: pytest.LogCaptureFixture) -> None:
    secret = f"a1{uuid.uuid4().hex}"

    def failing(self: Any, config: Any) -> Any:
        raise ValueError(f"{secret} is unknown to gpt-4o-mini-2024-07-18 of /openai/deployments")

    core = core_with(talker(get_models=failing))
    path = f"/openai/deployments/gpt-4o-mini-2024-07-18/{secret}/v1"
    assert core.get_models({"base_url": f"https://host{path}"}) == []
    told = "[redacted] is unknown to gpt-4o-mini-2024-07-18 of /openai/deployments"
    assert told in caplog.text
    assert not leaks(secret, caplog)


@pytest.mark.parametrize(
    ("name", "is_harmless"),
    [
        ("accept", True),
        ("Accept-Language", True),
        ("content-type", True),
        ("User-Agent", True),
        ("anthropic-version", True),
        ("anthropic-beta", True),
        ("HTTP-Referer", True),
        ("X-Title", True),
        ("X-Odd", False),
        ("x-account", False),
        ("X-Forwarded-Access", False),
    ],
)
def test_headers_are_secret_unless_their_names_say_otherwise(name: str, is_harmless: bool) -> None:
    value = f"value-{uuid.uuid4().hex}"
    config = {"extra_headers": {name: value}}
    assert [*named_secrets(config)] == ([] if is_harmless else [value])
    assert (value in repr(mask_config(config))) is is_harmless


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_logged_chunks_are_redacted(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    secret = secret_of("echoed")

    class Echoing(ProviderPlugin):
        name = "echoing"

        def get_config_schema(self) -> Any:
            return SCHEMAS["flat"]

        def stream_api(self, native_messages: Any, state: Any) -> Any:
            yield {"echo": state["config"]["phrase"], "n": 1}

        def process_chunk(self, native_chunk: Any, native_messages: Any, state: Any) -> Any:
            return [], [], native_messages, state

    with caplog.at_level("INFO"):
        events_of(core_with(Echoing), said("x"), {"phrase": secret, "debug_stream": True}, way)
    assert "chunk chunk={'echo': '[redacted]', 'n': 1}" in caplog.text
    assert not leaks(secret, caplog)


def test_what_a_server_says_back_is_redacted(caplog: pytest.LogCaptureFixture) -> None:
    secret = uuid.uuid4().hex

    class Wired(ProviderPlugin):
        name = "wired"

        def initialize_request(self, native_messages: Any, state: Any) -> Any:
            config = state["config"]
            headers = {"X-Phrase": config["phrase"]}
            state["request"] = {"url": config["base_url"], "headers": headers, "payload": {}}
            return native_messages, state

        def get_config_schema(self) -> Any:
            return SCHEMAS["flat"]

        def process_chunk(self, native_chunk: Any, native_messages: Any, state: Any) -> Any:
            return [], [], native_messages, state

    def play(peer: Peer, request: Request) -> None:
        said_back = {"error": {"message": f"bad {request.headers['x-phrase']}", "code": secret}}
        peer.answer(json.dumps(said_back).encode(), status="401 No")

    with serve(play) as server, AgentCore() as core:
        core.register_provider(Wired)
        with caplog.at_level("DEBUG", logger="agent_host"), pytest.raises(AgentError) as caught:
            core.send_request(said("x"), {"base_url": server.url, "phrase": secret})
    error = caught.value
    told = "".join(traceback.format_exception_only(error))
    assert "[redacted]" in error.message
    own = [record for record in caplog.records if record.name.startswith("agent_host")]
    assert not any(secret in record.getMessage() for record in own)
    assert secret not in told + json.dumps(error.to_dict()) + repr(error.__cause__)


def test_a_short_value_masks_nothing() -> None:
    remember_secrets(["abc", 3, None])
    assert redact("abc 3 None") == "abc 3 None"
