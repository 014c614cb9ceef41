"""What the help says works: its groups have every command, and its examples can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agent_host.cli.app import root
from agent_host.cli.lazy import LazyGroup
from making import run_host

_REDIRECTS = re.compile(r"\s\d?[<>].*")


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, (*path, name))


COMMANDS = dict(_commands(root, ("agent-host",)))


def examples_of(command: click.Command) -> list[str]:
    """The lines of examples, each from where ``agent-host`` begins."""
    _, found, rest = (command.epilog or "").partition("Examples:\n")
    lines = rest.partition("\n\n")[0].splitlines() if found else []
    return [line[line.index("agent-host ") :] for line in lines if "agent-host " in line]


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_of_every_command_has_examples_that_it_understands(path: str) -> None:
    examples = examples_of(COMMANDS[path])
    assert examples, f"{path} --help has no examples"
    for example in examples:
        typed = _REDIRECTS.sub("", example).rstrip(')"') if "$(" not in example else example
        words = shlex.split(_REDIRECTS.sub("", example).removesuffix(')"'))[1:] if typed else []
        _parse(root, words, example)


def _parse(command: click.Command, words: list[str], example: str) -> None:
    """Read the words as the command line does, and run nothing."""
    while isinstance(command, click.Group):
        if not words or words[0].startswith("-"):
            return
        inner = command.get_command(click.Context(command), words[0])
        assert inner is not None, f"there is no such command: {example}"
        command, words = inner, words[1:]
    # The values are not checked: what files an example names is the reader's affair.
    parser = command.make_parser(click.Context(command))
    _, left, _ = parser.parse_args(list(words))
    assert not [word for word in left if word.startswith("--")], example


def test_every_command_of_ours_stands_in_a_group_of_what_people_do(tmp_path: Path) -> None:
    shown = run_host("--help", cwd=tmp_path).out
    for title in ("Talk:", "Set up:", "Look back:", "Extend and understand:"):
        assert title in shown
    # Plugins that are installed here may have added some of theirs.
    grouped = shown.partition("From plugins:")[0]
    for name in LazyGroup.list_commands(root, click.Context(root)):
        assert re.search(rf"^  {name}\s", grouped, re.MULTILINE), name


@pytest.mark.parametrize("example", examples_of(root))
def test_the_first_examples_work_offline_with_nothing_set_up(tmp_path: Path, example: str) -> None:
    done = run_host(*shlex.split(example)[1:], cwd=tmp_path, home=tmp_path / "home")
    assert done.code == 0, done.err
    assert done.out
