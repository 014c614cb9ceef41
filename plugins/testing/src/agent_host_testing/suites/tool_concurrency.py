"""Checks that calls of a tool know nothing of each other, however they run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_host.plugins.stack import PreparedTool
from agent_host_testing.sandbox.tool_trial import outcome_of
from agent_host_testing.suites.beside import kept_texts, run_in_turns
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import Host
from agent_host_testing.suites.leftovers import left_behind
from agent_host_testing.suites.tool_suite import ToolSuite
from agent_host_testing.violations import require

__all__ = ["ToolConcurrencyChecks", "without_paths"]

_WHERE = "docs/testing.md#requests-beside-each-other"
#: Characters from which on a text of a payload says whose it is.
_TELLING = 4
#: Mostly something measured, such as the time that a call took; twice the same by chance only.
_FRACTION = re.compile(r"\b\d+\.\d+(?:e-?\d+)?\b")


class ToolConcurrencyChecks(ToolSuite):
    """Calls in two worlds at once, and what an instance keeps."""

    @pytest.mark.parametrize("way", ["taking turns", "threads"])
    @check("concurrency", _WHERE)
    def test_calls_do_not_mix(self, way: str, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Calls for two configs beside each other do in each world what they do by themselves."""
        folders = [tmp_path_factory.mktemp("world") for _ in range(4)]
        settings = [dict(self.prepare_world(folder)) for folder in folders]
        lone: list[dict[str, Any]] = []
        for folder, made in zip(folders[:2], settings[:2], strict=True):
            with self.host() as host:
                tool, names = self._prepared_with(host, made), self._separable(host, settings)
                results = {name: self._call(tool, name)() for name in names}
            lone.append({**results, **_contents(folder)})
        with self.host() as host:
            tools = [self._prepared_with(host, made) for made in settings[2:]]
            beside: list[dict[str, Any]] = [{}, {}]
            for name in names:
                jobs = [self._call(tool, name) for tool in tools]
                threads = way == "threads"
                said = run_in_turns(self.package, jobs) if threads else [job() for job in jobs]
                for known, result in zip(beside, said, strict=True):
                    known[name] = result
        for folder, found in zip(folders[2:], beside, strict=True):
            found |= _contents(folder)
            for what, alone in lone[0].items():
                # What is not the same whenever it runs alone says nothing, such as the time.
                if lone[1].get(what) == alone:
                    now = found.get(what)
                    require(now == alone, f"{what} alone gives {alone!r}, beside another {now!r}")
            more = sorted({*found} - {*lone[0], *lone[1]})
            require(not more, f"beside another it makes {', '.join(more)} in the wrong world")

    def _prepared_with(self, host: Host, made: dict[str, Any]) -> PreparedTool:
        self._made = made
        return self.prepared(host)

    def _separable(self, host: Host, settings: list[dict[str, Any]]) -> list[str]:
        """The samples that do not get in each other's way: all, if each world has its settings."""
        names = [*self.runnable(host)]
        if settings[2] == settings[3]:
            effects = self.loaded().entry.tools
            names = [name for name in names if effects.get(name) == "read"]
        if not names:
            not_claimed("all samples change one world, which prepare_world gives no settings for")
        return names

    def _call(self, tool: PreparedTool, name: str) -> Callable[[], str]:
        """A call of the sample that tells its result, or its error, without the world's path."""
        return partial(_told, tool, name, deepcopy(self.samples[name]))

    @check("concurrency", _WHERE)
    def test_nothing_of_a_call_is_kept(self) -> None:
        """After a call neither plugin, class nor module of the package holds its payload."""
        with self.host() as host:
            tool = self.prepared(host)
            instance = tool.plugin.instance
            known = [text for texts in self._kept(instance).values() for text in texts]
            fresh = {
                name: [text for text in _texts(payload) if _is_telling(text, known)]
                for name, payload in self.runnable(host).items()
            }
            if not any(fresh.values()):
                not_claimed("the samples have no text that does not stand in the package already")
            for name in fresh:
                self._call(tool, name)()
            kept = self._kept(instance)
            for name, telling in fresh.items():
                found = [
                    place
                    for place, texts in kept.items()
                    if any(mine in text for text in texts for mine in telling)
                ]
                require(not found, f"of a call of {name} there is something in {', '.join(found)}")

    @check("process", "docs/testing.md#what-is-left-in-the-process")
    def test_nothing_is_left_in_the_process(
        self, capfd: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """Calls print nothing, and leave no thread, no open file and no setting of all changed."""

        def run() -> None:
            made = dict(self.prepare_world(tmp_path_factory.mktemp("world")))
            with self.host() as host:
                tool = self._prepared_with(host, made)
                for name in self.runnable(host):
                    self._call(tool, name)()

        found = left_behind(run, capfd)
        require(not found, "; ".join(found))

    def _kept(self, instance: object) -> dict[str, list[str]]:
        return kept_texts(self.package, [instance])


def _is_telling(text: str, known: Sequence[str]) -> bool:
    """Whether it says of a place where it is found that it was left there."""
    return len(text) >= _TELLING and not any(text in each for each in known)


def _told(tool: PreparedTool, name: str, payload: Any) -> str:
    context = {"config": tool.config, "cancelled": bool}
    try:
        result = outcome_of(
            tool.ask(
                "execute_tool", tool_name=name, payload=payload, state=tool.state, context=context
            )
        )
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return _FRACTION.sub("a fraction", without_paths(repr(result)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _contents(folder: Path) -> dict[str, Any]:
    """Every file below the folder, by its path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def without_paths(text: str) -> str:
    """The text without the names of temporary folders, which are never the same."""
    return re.sub(r"world\d+", "world", text)
