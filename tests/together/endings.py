"""Every way in which a run can end: what a person sees, what a program gets, and the exit code.

This is the one table. ``docs/endings.md`` is written from it, and ``test_together_endings`` makes
each of its rows happen. It must import nothing that a reader of the docs may not have.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["ENDINGS", "Ending"]

#: Which table of the page a row stands in.
Part = Literal["answers", "limits", "tools", "refusals", "transport", "before", "people"]

_RETRY = "warning: trying again in … s: …"
_LOOKED = "→ look()\n← look: a tree"


class Ending(NamedTuple):
    """One way to end.

    ``out`` and ``err`` are what stands on standard output and standard error, where ``…`` is any
    text; ``gets`` is what a program gets: the ``finish`` of its answer, the error that is raised,
    or the state of its stream. ``code`` is the exit code of ``agent-host run``.
    """

    part: Part
    name: str
    out: str
    err: str
    gets: str
    code: int

    @property
    def raises(self) -> bool:
        return self.gets.endswith("Error")


ENDINGS: tuple[Ending, ...] = (
    Ending("answers", "the answer is whole", "Yes.", "", "stop", 0),
    Ending(
        "answers",
        "there was no room for the rest",
        "Half an",
        "cut off: there was no room for the rest of the answer",
        "length",
        3,
    ),
    Ending("answers", "the model declines", "", "refused: I would rather not.", "refusal", 3),
    Ending(
        "answers",
        "the provider withholds the rest",
        "Half an",
        "blocked: the provider withheld the rest of the answer (content_filter)",
        "blocked",
        3,
    ),
    Ending("answers", "the answer is empty", "", "warning: …", "stop", 0),
    Ending("answers", "the provider pauses, and is asked to go on", "One.\nTwo.", "", "stop", 0),
    Ending("answers", "a try fails, and the next succeeds", "Yes.", _RETRY, "stop", 0),
    Ending(
        "limits",
        "the most turns (`max_turns`)",
        "",
        f"{_LOOKED}\nstopped: max_turns was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the most tool calls (`max_tool_calls`)",
        "",
        f"{_LOOKED}\nstopped: max_tool_calls was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the most tokens (`max_tokens`)",
        "",
        f"{_LOOKED}\nstopped: max_tokens was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the longest time (`max_seconds`)",
        "",
        f"{_LOOKED}\nstopped: max_seconds was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the budget of the run (`max_cost`)",
        "",
        "warning: …\nstopped: max_cost was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the budget of the session (`max_session_cost`)",
        "",
        "warning: …\nstopped: max_session_cost was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the budget of the account for the day (`max_key_cost`)",
        "",
        "warning: …\nstopped: max_key_cost was reached",
        "limit",
        3,
    ),
    Ending(
        "limits",
        "the budget of the day (`max_day_cost`)",
        "",
        "warning: …\nstopped: max_day_cost was reached",
        "limit",
        3,
    ),
    Ending("tools", "a tool is used", "A tree.", _LOOKED, "stop", 0),
    Ending(
        "tools",
        "a tool fails",
        "I see.",
        ("→ fall()\n← fall: Tool 'fall' failed: RuntimeError: out of order"),
        "stop",
        0,
    ),
    Ending(
        "tools",
        "a call is denied",
        "I see.",
        "← push: Tool call denied: effect write, and nobody can be asked.",
        "stop",
        0,
    ),
    Ending(
        "tools",
        "a call has arguments that do not fit",
        "I see.",
        "← push: Invalid arguments for tool 'push': metres must be integer. …",
        "stop",
        0,
    ),
    Ending(
        "tools",
        "a tool is called that is not there",
        "I see.",
        "← pull: Tool not found: pull. Available: look, fall, push.",
        "stop",
        0,
    ),
    Ending(
        "refusals",
        "the key is wrong",
        "",
        (
            "error: … answered HTTP 401: …\n"
            "hint: check the API key of this provider and what it is allowed to do"
        ),
        "AuthenticationError",
        1,
    ),
    Ending(
        "refusals",
        "the request is refused",
        "",
        "error: … answered HTTP 400: …",
        "InvalidRequestError",
        1,
    ),
    Ending(
        "refusals",
        "there is no such model",
        "",
        ("error: … answered HTTP 404: …\nhint: check the model's name and the base URL"),
        "ModelNotFoundError",
        1,
    ),
    Ending(
        "refusals",
        "the conversation is too long",
        "",
        (
            "error: … answered HTTP 400: …\n"
            "hint: shorten the conversation or choose a model with a larger window"
        ),
        "ContextLengthError",
        1,
    ),
    Ending(
        "refusals",
        "too many requests, also after the retries",
        "",
        (
            f"{_RETRY}\n"
            "error: … answered HTTP 429: …\n"
            "hint: the provider asks to wait … s; wait, or lower the number of requests"
        ),
        "RateLimitError",
        1,
    ),
    Ending(
        "refusals",
        "the provider is busy",
        "",
        ("error: … answered HTTP 503: …\nhint: try again later"),
        "OverloadedError",
        1,
    ),
    Ending(
        "refusals",
        "the provider fails",
        "",
        ("error: … answered HTTP 500: …\nhint: try again later"),
        "ServerError",
        1,
    ),
    Ending(
        "refusals",
        "the provider fails in the middle",
        "Half an",
        ("error: … reported an error in its answer: …\nhint: try again later"),
        "ServerError",
        1,
    ),
    Ending(
        "refusals",
        "the provider withholds everything",
        "",
        ("error: … withheld its answer, …\nhint: rephrase the request, …"),
        "ContentBlockedError",
        1,
    ),
    Ending(
        "refusals",
        "the provider gives up on a call",
        "",
        ("error: the model wrote a tool call that … could not read, …\nhint: ask again; …"),
        "MalformedCallError",
        1,
    ),
    Ending(
        "transport",
        "nobody listens there",
        "",
        (
            "error: no connection to … could be made: …\n"
            "hint: check the base URL, the network and the proxy settings"
        ),
        "ConnectionFailedError",
        1,
    ),
    Ending(
        "transport",
        "the answer does not come in time",
        "",
        (
            "error: … did not begin to answer within 0.2 s\n"
            "hint: raise the first_byte timeout if this is to be expected"
        ),
        "RequestTimeoutError",
        1,
    ),
    Ending(
        "transport",
        "the answer is cut",
        "Half an answer",
        (
            "error: the connection to … broke: the server closed the connection before its "
            "answer was complete\n"
            "hint: try again; …"
        ),
        "StreamCutError",
        1,
    ),
    Ending(
        "transport",
        "the connection is reset",
        "",
        ("error: the connection to … broke: …\nhint: try again; …"),
        "StreamCutError",
        1,
    ),
    Ending(
        "transport",
        "the body is empty",
        "",
        ("error: … answered with an empty body\nhint: ask again; …"),
        "StreamCutError",
        1,
    ),
    Ending(
        "transport",
        "a web page answers",
        "",
        (
            "error: the answer holds no server-sent event, but an HTML page titled 'Sign "
            "in'\n"
            "hint: check the base URL: something other than the model's API answers there"
        ),
        "ProtocolError",
        1,
    ),
    Ending(
        "transport",
        "the answer is too large",
        "",
        (
            "error: the answer is larger than 500 bytes\n"
            "hint: set max_answer_bytes higher if answers of this size are expected"
        ),
        "AnswerTooLargeError",
        1,
    ),
    Ending(
        "before",
        "the config is wrong",
        "",
        (
            "error: …: there is no key 'agents.default.sytem', and no installed plugin has "
            "such a setting\n"
            "hint: did you mean 'system'?"
        ),
        "ConfigError",
        1,
    ),
    Ending(
        "before",
        "a key is missing",
        "",
        (
            "error: provider 'openai' needs the setting 'api_key'\n"
            "hint: run: agent-host keys set openai; or set api_key, api_key_command, "
            "api_key_file or api_key_name in the config, or OPENAI_API_KEY in the environment"
        ),
        "ConfigError",
        1,
    ),
    Ending(
        "before",
        "there is no such provider",
        "",
        ("error: …: there is no provider 'nobody'\nhint: there are: …"),
        "ConfigError",
        1,
    ),
    Ending(
        "before",
        "a plugin raises",
        "",
        "error: plugin 'raising': hook 'init' raised ValueError: of its own",
        "HookError",
        1,
    ),
    Ending(
        "before",
        "the command line is wrong",
        "",
        ("error: the prompt is empty\nhint: see agent-host run --help"),
        "–",
        2,
    ),
    Ending("people", "it is interrupted", "Half…", "interrupted", "cancelled", 130),
    Ending("people", "whoever reads the output has seen enough", "Half…", "", "–", 0),
    Ending(
        "people",
        "a fault of agent-host itself",
        "",
        (
            "error: agent-host itself failed: …\n"
            "hint: set AGENT_HOST_DEBUG=1 for the traceback and report it"
        ),
        "–",
        70,
    ),
)
