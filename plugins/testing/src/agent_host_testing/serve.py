"""A fake server that stands alone: ``python -m agent_host_testing.serve FORMAT``.

It owns the command line and nothing else. With ``--script`` the answers come from a JSON file, the
form of which `script_file` describes. Without, or when the script has come to its end, the model
makes up its answers: it repeats what the user said, calls each offered tool that the user names
(one a turn, with arguments made from its schema), and thinks when the request asks for reasoning.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn, get_args

from agent_host_testing import script_file
from agent_host_testing.formats import FORMATS, wire_format
from agent_host_testing.formats.openai_chat import OpenAIChat, ReasoningField
from agent_host_testing.improvisation import Improviser
from agent_host_testing.server import FakeServer

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted; mistakes in the arguments exit with 2, a port in use with 1."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        script = script_file.load_script(options.script) if options.script else []
    except script_file.ScriptError as error:
        parser.error(str(error))
    if options.reasoning and options.format != OpenAIChat.name:
        parser.error(f"--reasoning is for {OpenAIChat.name}; {options.format} has its own")
    try:
        found = OpenAIChat(options.reasoning) if options.reasoning else wire_format(options.format)
    except LookupError as error:
        parser.error(str(error))
    server = FakeServer(
        found,
        models=tuple(options.models.split(",")),
        key=options.key,
        strict=not options.lenient,
        rest=Improviser(found),
        log=_log,
        host=options.host,
        port=options.port,
    )
    for answer, faults in script:
        server.queue(answer, fault=faults)
    try:
        server.start()
    except OSError as error:
        _fail(
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}; "
            "choose another --port, or 0 for any that is free"
        )
    ended = _interruption()
    _announce(server, options.json)
    # A wait without a limit cannot be interrupted on every system.
    while not ended.wait(0.5):
        continue
    server.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agent_host_testing.serve",
        description="Serve a fake model API on a local port, until interrupted.",
        epilog="Without a script the model repeats what the user said, calls the tools whose names "
        "the user mentions, and thinks when the request asks for reasoning. Requests and their "
        "problems are written to standard error, one line each.",
    )
    known = f"{', '.join(FORMATS)}, or a format of your own as module:NAME"
    parser.add_argument("format", metavar="FORMAT", help=known)
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument("--key", help="the API key that requests must have")
    parser.add_argument(
        "--lenient", action="store_true", help="answer wrong requests too; they are still logged"
    )
    parser.add_argument(
        "--models", default="fake-model", help="what the list of models has, separated by commas"
    )
    parser.add_argument(
        "--reasoning",
        choices=get_args(ReasoningField),
        help=f"the field of {OpenAIChat.name} in which thoughts are shown, as the servers of open "
        "models and routers have it",
    )
    parser.add_argument("--script", metavar="FILE", help="answers in JSON, given in order")
    parser.add_argument("--json", action="store_true", help="print what is served as JSON")
    return parser


def _announce(server: FakeServer, as_json: bool) -> None:
    told = {"format": server.format.name, "base_url": server.base_url, "url": server.url}
    sys.stdout.write((json.dumps(told) if as_json else server.base_url) + "\n")
    sys.stdout.flush()


def _interruption() -> threading.Event:
    """What is set when the process is asked to end."""
    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    return ended


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _fail(message: str) -> NoReturn:
    _log(f"error: {message}")
    raise SystemExit(1)


if __name__ == "__main__":
    main()
