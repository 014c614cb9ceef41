"""The tool plugin ``shell``: a command in, its output and its end out.

Owns the checking of arguments and settings, what happens where there is no sandbox, and the wording
of results. How a command is kept apart is the sandbox's concern, and its end that of the run.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from agent_hookspecs import (
    Config,
    ConfigError,
    Context,
    State,
    ToolArgumentsError,
    ToolError,
    ToolPlugin,
    UnknownToolError,
)
from agent_hookspecs.authoring import ToolContext
from agent_hookspecs.protection import ProtectedPaths
from agent_host_shell._version import __version__
from agent_host_shell.declarations import CONFIG_SCHEMA, EFFECTS, SCHEMAS
from agent_host_shell.output import Output
from agent_host_shell.running import Launch, Run
from agent_host_shell.sandbox import (
    Bubblewrap,
    NoSandboxError,
    Sandboxed,
    Unsandboxed,
    make_environment,
)
from agent_host_shell.view import View, home_folders, is_below, make_view, scratch_folders

__all__ = ["ShellTools"]

#: Linux takes no longer argument.
_MAX_COMMAND_BYTES = 100_000
#: Seconds between two reports of what a command says.
_REPORT_SECONDS = 0.1
_TOOL = "run_command"
#: What shells say when they do not find a program, or may not run it.
_NOT_FOUND = (126, 127)

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Settings:
    root: str
    #: Which folder the root was when it was set.
    identity: tuple[int, int]
    seconds: float
    output_bytes: int
    network: bool
    readable: tuple[str, ...]
    environment: tuple[str, ...]
    may_ask: bool
    protected: tuple[str, ...]


@dataclass(slots=True)
class _Shell:
    """What is kept between calls: the settings, bubblewrap once it has worked, and who runs."""

    settings: _Settings
    lock: threading.Lock = field(default_factory=threading.Lock)
    bubblewrap: Bubblewrap | None = None
    runs: set[Run] = field(default_factory=set)

    def find_sandbox(self) -> Bubblewrap:
        # A failure is not remembered: somebody may install what is missing.
        with self.lock:
            if self.bubblewrap is None:
                self.bubblewrap = Bubblewrap.find()
            return self.bubblewrap


class ShellTools(ToolPlugin):
    """Runs commands in the workspace, in a sandbox."""

    name = "shell"
    version = __version__
    label = "Shell"
    effects = EFFECTS

    def get_config_schema(self) -> dict[str, Any]:
        return deepcopy(CONFIG_SCHEMA)

    def init(self, config: Config) -> State:
        return {"shell": _Shell(_read_settings(config))}

    def close(self, state: State) -> None:
        shell: _Shell = state["shell"]
        with shell.lock:
            runs = [*shell.runs]
        for run in runs:
            run.stop()
        for run in runs:
            run.close()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return deepcopy([*SCHEMAS])

    def preview_tool(self, tool_name: str, payload: Any, state: State) -> list[Result] | None:
        """What the command may change; whether it is kept apart is what a person has to know."""
        shell: _Shell = state["shell"]
        _read_arguments(tool_name, payload, shell.settings)
        try:
            shell.find_sandbox()
            network = "the network" if shell.settings.network else "no network"
            note = f"in a sandbox, which may change only this folder and has {network}"
        except NoSandboxError as error:
            if not shell.settings.may_ask:
                raise _refusal(error) from None
            note = f"WITHOUT A SANDBOX: it can do whatever you can ({error})"
        return [{"path": shell.settings.root, "change": "updated", "note": note}]

    def execute_tool(
        self, tool_name: str, payload: Any, state: State, context: Context
    ) -> Generator[str, None, Result]:
        """Run one command; what it says is reported meanwhile."""
        shell: _Shell = state["shell"]
        command, seconds = _read_arguments(tool_name, payload, shell.settings)
        _require_root(shell.settings)
        launch, view = _make_launch(shell, command, context)
        is_cancelled: Callable[[], bool] = context.get("cancelled") or bool
        run = Run(launch, Output(shell.settings.output_bytes), seconds, is_cancelled)
        with shell.lock:
            shell.runs.add(run)
        run.start()
        try:
            while not run.is_over.wait(_REPORT_SECONDS):
                if news := run.output.take_news():
                    yield news
        finally:
            # Whoever does not want to know the end of it does not want it to go on.
            run.stop()
            with shell.lock:
                shell.runs.discard(run)
        return _make_result(run, command, seconds, launch, view)

    def format_tool_result(self, tool_name: str, result: Any) -> Result:
        text: str = result["text"]
        return {
            "role": "tool",
            "content": text,
            "toolResult": {"type": "tool_result", "text": text},
            "metadata": {"display": result["display"]},
        }


def _read_settings(config: Config) -> _Settings:
    root = _read_root(config)
    protected = tuple(
        path for path in config.get("protected_paths") or () if isinstance(path, str) and path
    )
    if ProtectedPaths.of(config).holds(root):
        raise _wrong("root", "is a place of the host itself", "set another folder")
    status = os.stat(root)
    return _Settings(
        root=root,
        identity=(status.st_dev, status.st_ino),
        seconds=_positive(config, "max_command_seconds"),
        output_bytes=int(_positive(config, "max_output_bytes")),
        network=_flag(config, "command_network"),
        readable=_texts(config, "readable_paths"),
        environment=_texts(config, "command_environment"),
        may_ask=_choice(config, "without_sandbox") == "ask",
        protected=protected,
    )


def _read_root(config: Config) -> str:
    given = config.get("root")
    if given is not None and not (isinstance(given, str) and given):
        raise _wrong("root", "is not the path of a folder", "set a folder")
    if os.name != "posix":
        raise ToolError("plugin 'shell': commands are run on POSIX systems only")
    root = os.path.realpath(os.path.expanduser(given or "."))
    if not os.path.isdir(root):
        raise _wrong("root", f"{given!r} is no folder", "set a folder that is there")
    for folder in (*home_folders(), *scratch_folders()):
        if is_below(folder, root):
            raise _wrong(
                "root",
                f"is {root!r}, where things are that no command should reach",
                "set it to the folder of a project, or start in one",
            )
    return root


def _value(config: Config, key: str) -> Any:
    value = config.get(key)
    return CONFIG_SCHEMA[key]["default"] if value is None else value


def _positive(config: Config, key: str) -> float:
    value = _value(config, key)
    kinds = int if CONFIG_SCHEMA[key]["type"] == "integer" else (int, float)
    # Also refuses what is not a number; a timer takes neither that nor infinity.
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 2**31:
        raise _wrong(key, f"is {value!r}", "set a number above 0")
    return float(value)


def _flag(config: Config, key: str) -> bool:
    value = _value(config, key)
    if not isinstance(value, bool):
        raise _wrong(key, f"is {value!r}", "set true or false")
    return value


def _texts(config: Config, key: str) -> tuple[str, ...]:
    value = _value(config, key)
    fits = isinstance(value, Sequence) and not isinstance(value, str)
    if not fits or not all(isinstance(each, str) and each for each in value):
        raise _wrong(key, "is no list of texts", "set a list of texts")
    return tuple(value)


def _choice(config: Config, key: str) -> str:
    value = _value(config, key)
    choices = CONFIG_SCHEMA[key]["enum"]
    if value not in choices:
        raise _wrong(key, f"is {value!r}", f"set one of {', '.join(choices)}")
    return str(value)


def _wrong(key: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"plugin 'shell': setting {key!r} {what}", key=key, hint=hint)


def _read_arguments(tool: str, payload: object, settings: _Settings) -> tuple[str, float]:
    """The command, and the seconds that it has."""
    if tool != _TOOL:
        raise UnknownToolError(f"plugin 'shell' has no tool {tool!r}", tool=tool)
    if not isinstance(payload, Mapping):
        raise ToolArgumentsError(f"{tool} takes an object of named arguments", tool=tool)
    known = SCHEMAS[0]["parameters"]["properties"]
    for key in payload:
        if key not in known:
            raise ToolArgumentsError(
                f"{tool} has no argument {key!r}; it has {', '.join(known)}", tool=tool
            )
    command = payload.get("command")
    if not isinstance(command, str) or not command.strip():
        raise ToolArgumentsError(f"{tool} needs the argument 'command', as text", tool=tool)
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolArgumentsError("the command has half a surrogate pair", tool=tool) from None
    if "\0" in command:
        raise ToolArgumentsError("the command has a NUL, which none can have", tool=tool)
    if size > _MAX_COMMAND_BYTES:
        raise ToolArgumentsError(
            f"the command has {size} bytes; at most {_MAX_COMMAND_BYTES} are taken. Write a script "
            "and run that",
            tool=tool,
        )
    return command, _read_seconds(payload.get("seconds"), settings.seconds)


def _read_seconds(given: object, most: float) -> float:
    # Some models write null for what they leave out.
    if given is None:
        return most
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ToolArgumentsError(
            "the argument 'seconds' must be a whole number of at least 1", tool=_TOOL
        )
    if given > most:
        raise ToolArgumentsError(
            f"the argument 'seconds' is {given}; a command has at most {most:g}", tool=_TOOL
        )
    return given


def _require_root(settings: _Settings) -> None:
    """Refuse to work in a folder that was put in the place of the one that was meant."""
    try:
        status = os.stat(settings.root, follow_symlinks=False)
    except OSError as error:
        raise ToolError(f"the workspace cannot be opened: {error.strerror}") from None
    if (status.st_dev, status.st_ino) != settings.identity:
        raise ToolError("the workspace is not the folder that it was; start a new request")


def _make_launch(shell: _Shell, command: str, context: Context) -> tuple[Launch, View | None]:
    """How the command is started: in the sandbox, or, after a person has said so, without."""
    settings = shell.settings
    try:
        bubblewrap = shell.find_sandbox()
    except NoSandboxError as error:
        if not settings.may_ask:
            raise _refusal(error) from None
        question = f"There is no sandbox: {error}. Run the command with all that you may do?"
        if ToolContext[None](context, _TOOL).ask_person(question, ("yes", "no")) != "yes":
            raise ToolError(
                "the person does not want the command to run without a sandbox"
            ) from None
        home = os.path.expanduser("~")
        environment = make_environment(os.environ, home, settings.environment)
        return Unsandboxed(settings.root, environment, command), None
    view = make_view(settings.root, settings.readable, settings.protected)
    environment = make_environment(os.environ, view.home, settings.environment)
    return Sandboxed(bubblewrap, view, settings.network, environment, command), view


def _refusal(error: NoSandboxError) -> ToolError:
    return ToolError(
        f"commands are not run without a sandbox, and there is none: {error}",
        tool=_TOOL,
        hint="install bubblewrap, or set 'without_sandbox' to 'ask'",
    )


def _make_result(
    run: Run, command: str, seconds: float, launch: Launch, view: View | None
) -> Result:
    said = run.output.text()
    if run.problem:
        raise ToolError(f"{run.problem}{f': {said.strip()}' if said.strip() else ''}", tool=_TOOL)
    notes = [_describe_end(run, seconds)]
    if not launch.is_sandboxed:
        notes.append("it ran without a sandbox")
    if view is not None and run.code in _NOT_FOUND:
        notes += _hidden_programs(view, launch.environment.get("PATH", ""))
    if view is not None and not view.complete:
        notes.append("the workspace has too many files to hide all configs of the host")
    lines = [said if not said or said.endswith("\n") else f"{said}\n", f"[{'; '.join(notes)}]"]
    display = {
        "kind": "command",
        "command": command,
        "exit_code": run.code,
        "ending": run.ending,
        "seconds": round(run.lasted, 3),
        "output_bytes": run.output.size,
        "sandbox": launch.is_sandboxed,
    }
    return {"text": "".join(lines), "display": display}


def _describe_end(run: Run, seconds: float) -> str:
    if run.ending == "time":
        return f"ended after {seconds:g} s, which is all the time it had"
    if run.ending == "cancelled" or run.code is None:
        return "cancelled"
    number = run.code - 128
    if number in {*signal.Signals}:
        # Shells tell a signal so; a program may use the number for something else.
        return f"exit code {run.code}, as after the signal {signal.Signals(number).name}"
    return f"exit code {run.code}"


def _hidden_programs(view: View, path: str) -> list[str]:
    """That folders with programs are hidden, where they are: else nobody would find out why."""
    shown = (view.root, *view.readable)
    hidden = [
        each
        for each in dict.fromkeys(filter(os.path.isabs, path.split(os.pathsep)))
        if any(is_below(each, folder) for folder in view.scratch)
        and not any(is_below(each, folder) for folder in shown)
    ]
    if not hidden:
        return []
    return [f"the sandbox hides {', '.join(hidden)}; the setting 'readable_paths' shows it"]
