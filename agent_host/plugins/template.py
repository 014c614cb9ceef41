"""The cookiecutter template that comes with the host: its questions, its rules, and baking it.

The questions are in the template's ``cookiecutter.json`` and the rules in its hook, so that plain
cookiecutter asks and refuses the same. It must not know a terminal, nor who answers.
"""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from agent_hookspecs.errors import AgentError
from agent_hookspecs.values import dataclass

__all__ = ["Question", "Template"]

_PACKAGE = Path(__file__).resolve().parent.parent
#: Where an installed host has the template, and where a checkout has it.
_PLACES = (_PACKAGE / "_template", _PACKAGE.parent / "template-python-provider")
_RULES, _SUGGESTIONS = "hooks/pre_gen_project.py", "hooks/pre_prompt.py"


@dataclass(frozen=True, slots=True)
class Question:
    """One question: ``default`` may be made of earlier answers; ``choices`` maps each to words."""

    key: str
    words: str
    default: str | bool
    choices: Mapping[str, str]


class Template:
    """The template in a folder; without one, that of this host."""

    def __init__(self, folder: Path | None = None) -> None:
        places = _PLACES if folder is None else (folder,)
        found = next((each for each in places if (each / "cookiecutter.json").is_file()), None)
        if found is None:
            raise AgentError(
                f"the template for plugin packages is not in {' or '.join(map(str, places))}",
                hint="install agent-host-core again: its wheel has the template",
            )
        self.folder = found

    def require_tools(self) -> None:
        """Refuse to go on without cookiecutter, on which the host does not depend."""
        if find_spec("cookiecutter") is None:
            raise AgentError(
                "making a plugin package needs cookiecutter, which is not installed",
                hint='python -m pip install "agent-host-core[new]"',
            )

    @cached_property
    def _context(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "cookiecutter.json").read_text("utf-8"))
        return found

    @cached_property
    def rules(self) -> ModuleType:
        """The module with the rules."""
        return self._load_hook(_RULES)

    def _load_hook(self, name: str) -> ModuleType:
        """A hook of the template. Compiled here, so that nothing is written beside it."""
        file = self.folder / name
        module = ModuleType(f"agent_host_template_{file.stem}")
        exec(compile(file.read_text("utf-8"), str(file), "exec"), module.__dict__)
        return module

    @cached_property
    def _suggested(self) -> dict[str, str]:
        """Answers that git gives, those that are allowed."""
        found: dict[str, str] = self._load_hook(_SUGGESTIONS).git_answers()
        return {key: value for key, value in found.items() if not self.problems(found, [key])}

    @property
    def questions(self) -> list[Question]:
        """What has to be answered, in order."""
        prompts = self._context["__prompts__"]
        return [
            _read_question(key, value, prompts[key])
            for key, value in self._context.items()
            if not key.startswith("_")
        ]

    def default(self, question: Question, answers: Mapping[str, Any]) -> str | bool:
        """The question's default, given the answers so far."""
        if isinstance(question.default, bool):
            return question.default
        if question.key in ("author", "email") and question.key in self._suggested:
            return self._suggested[question.key]
        return self._render_text(question.default, answers)

    def _render_text(self, text: str, answers: Mapping[str, Any]) -> str:
        extensions = ["cookiecutter.extensions.SlugifyExtension"]
        environment = import_module("jinja2").Environment(extensions=extensions)
        rendered: str = environment.from_string(text).render(cookiecutter=answers)
        return rendered

    def problems(self, answers: Mapping[str, Any], only: Collection[str] = ()) -> list[str]:
        """A sentence for each thing that is wrong with the answers, or with some of them."""
        taken = self._taken_names if not only or "plugin_id" in only else ()
        found: list[str] = self.rules.problems(answers, taken, only)
        return found

    @cached_property
    def _taken_names(self) -> set[str]:
        found: set[str] = self.rules.taken_names()
        return found

    def target(self, answers: Mapping[str, Any], output: Path) -> Path:
        """The folder that baking would make."""
        return output / self._render_text(self._context["__folder"], answers)

    def bake(self, answers: Mapping[str, Any], output: Path) -> Path:
        """Make the package, and give its folder; nothing is written if something is wrong."""
        wrong = self.problems(answers)
        if wrong:
            raise AgentError(" ".join(wrong), hint="nothing was written")
        target = self.target(answers, output)
        if target.exists():
            raise AgentError(
                f"{target} is there already",
                hint="choose another name or --output; nothing was written",
            )
        errors = import_module("cookiecutter.exceptions")
        try:
            # Beside its place, where it is whole before anybody sees it.
            there = next(each for each in (output, *output.absolute().parents) if each.is_dir())
            with tempfile.TemporaryDirectory(prefix=".agent-host-new-", dir=there) as scratch:
                made = self._bake_in(answers, Path(scratch))
                output.mkdir(parents=True, exist_ok=True)
                made.rename(target)
        except (errors.CookiecutterException, OSError) as error:
            raise AgentError(
                f"the package could not be made: {error}", hint="nothing was kept of it"
            ) from error
        return target

    def _bake_in(self, answers: Mapping[str, Any], scratch: Path) -> Path:
        # A config of our own: the user's has defaults for other templates, and cookiecutter would
        # keep a copy of the answers in the home folder.
        config = scratch / "config.yaml"
        places = {"replay_dir": f"{scratch}/replay", "cookiecutters_dir": f"{scratch}/clones"}
        config.write_text(json.dumps(places), encoding="utf-8")
        with _hold_interrupts():
            made: str = import_module("cookiecutter.main").cookiecutter(
                str(self.folder),
                no_input=True,
                extra_context={**answers, "_tells_next": False},
                output_dir=str(scratch),
                config_file=str(config),
            )
        return Path(made)


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait a moment, for ourselves and for the scripts that cookiecutter starts.

    A script that is interrupted shows a traceback, and nobody could keep it from doing so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _read_question(key: str, value: Any, prompt: Any) -> Question:
    if isinstance(prompt, dict):
        choices = {choice: prompt[choice] for choice in value}
        return Question(key, prompt["__prompt__"], value[0], choices)
    if isinstance(value, list):
        return Question(key, prompt, value[0], dict.fromkeys(value, ""))
    return Question(key, prompt, value, {})
