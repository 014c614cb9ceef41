"""`agent-host config init`, `set`, `get`, `edit`: a config asked for, changed and checked."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import ConfigError
from agent_host.config.document import ConfigDocument, split_key
from making import Run, full, run_host, write_package
from terminals import open_terminal

SECRET = "sk-typed-where-nobody-looks"


def host(place: Path, *arguments: str, **environment: str) -> Run:
    return run_host(*arguments, cwd=place, home=place / "home", **environment)


def own(place: Path) -> str:
    return (place / "home" / "config.toml").read_text("utf-8")


# set and get --------------------------------------------------------------------------------------

WRITTEN = """\
# Mine, and I like it so.
[agents.default]  # the one
provider = "echo"   # offline
model = 'echo-1'

[tools]
# Enough for most.
max_turns = 5
"""


def write_own(place: Path, text: str = WRITTEN) -> Path:
    (place / "home").mkdir()
    file = place / "home" / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_value_is_set_and_everything_else_stays_as_it_is(tmp_path: Path) -> None:
    file = write_own(tmp_path)
    assert host(tmp_path, "config", "set", "tools.max_turns", "9").code == 0
    assert own(tmp_path) == WRITTEN.replace("max_turns = 5", "max_turns = 9")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    host(tmp_path, "config", "set", "tools.effects.write", "deny")
    host(tmp_path, "config", "set", "agents.other.system", "Be brief.")
    assert host(tmp_path, "config", "get", "agents.other.system").out == "Be brief.\n"
    assert host(tmp_path, "config", "get", "tools", "--json").json["value"] == {
        "max_turns": 9,
        "effects": {"write": "deny"},
    }
    assert "# Enough for most." in own(tmp_path)
    host(tmp_path, "config", "set", "tools.effects", "--unset")
    missing = host(tmp_path, "config", "get", "tools.effects")
    assert (missing.code, "tools.effects is not set" in missing.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tools.max_turn", "9"], "did you mean 'max_turns'?"),
        (["tools.max_turns", "many"], "tools.max_turns"),
        (["agents.default.temprature", "1"], "did you mean 'temperature'?"),
        (["agents.default.provider.x", "1"], "is no section"),
        (["denied_plugins", '["ecko"]'], "there is no bundle 'ecko'"),
        (["tools..x", "1"], "is no key"),
        (["tools.parallel", "--unset"], "does not set tools.parallel"),
    ],
)
def test_what_would_not_be_valid_is_not_written(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    write_own(tmp_path)
    done = host(tmp_path, "config", "set", *arguments)
    assert (done.code, words in done.err) == (1, True), done.err
    assert own(tmp_path) == WRITTEN


def test_a_secret_is_not_taken_from_the_command_line(tmp_path: Path) -> None:
    done = host(tmp_path, "config", "set", "providers.a.api_key", SECRET)
    assert (done.code, "agent-host keys set a" in done.err) == (2, True)
    assert SECRET not in done.err
    assert not (tmp_path / "home" / "config.toml").exists()


def test_a_json_file_stays_json_and_a_projects_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "agent-host.json"
    file.write_text('{"agents": {"default": {"provider": "echo"}}}', encoding="utf-8")
    file.chmod(0o644)
    done = host(tmp_path, "config", "set", "tools.max_turns", "3", "--config", str(file))
    assert done.code == 0, done.err
    assert json.loads(file.read_text("utf-8"))["tools"] == {"max_turns": 3}
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("key", "steps"),
    [("a", ["a"]), ("a.b", ["a", "b"]), ('a."b.c".d', ["a", "b.c", "d"]), ('"x"', ["x"])],
)
def test_a_key_has_steps(key: str, steps: list[str]) -> None:
    assert split_key(key) == steps


@pytest.mark.parametrize("key", ["", ".", "a.", 'a."b', "a..b"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="is no key"):
        split_key(key)


def test_a_document_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name, text in (("a.toml", "a = "), ("a.json", "{")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"is not (TOML|JSON)"):
            ConfigDocument.read(tmp_path / name)


# show ---------------------------------------------------------------------------------------------


def test_show_says_where_each_value_comes_from(tmp_path: Path) -> None:
    write_own(tmp_path, '[providers.mine]\nprovider = "echo"\nmodel = "${env:MY_MODEL:-echo-1}"\n')
    project = {"agents": {"helper": {"provider": "mine"}}}
    (tmp_path / "agent-host.json").write_text(json.dumps(project), encoding="utf-8")
    found = host(tmp_path, "config", "show", "--json", "--model", "echo/echo-reasoner").json
    origins = {key: where.partition(" (")[0] for key, where in found["origins"].items()}
    assert origins == {
        "providers.mine.provider": "own file",
        "providers.mine.model": "own file",
        "agents.helper.provider": "project file",
    }
    assert found["request"]["model"] == ["echo-reasoner", "the command line"]
    named = host(tmp_path, "config", "show", "--json", AGENT_HOST_MODEL="echo/echo-1").json
    assert named["request"]["provider"] == ["echo", "own file (providers.mine)"]


def test_show_without_a_config_says_who_would_answer_and_why(tmp_path: Path) -> None:
    nothing = host(tmp_path, "config", "show")
    assert (nothing.code, "no config file: the defaults" in nothing.out) == (0, True)
    assert "no provider is named and none has a key" in " ".join(nothing.out.split())
    named = host(tmp_path, "config", "show", "--json", AGENT_HOST_MODEL="echo/echo-1").json
    assert named["request"]["model"] == ["echo-1", "environment (AGENT_HOST_MODEL)"]


# edit ---------------------------------------------------------------------------------------------


def editor(place: Path, *contents: str) -> dict[str, str]:
    """The environment of an editor that saves one text after the other, each time it is opened."""
    for number, text in enumerate(contents):
        (place / f"edit{number}").write_text(text, encoding="utf-8")
    script = place / "editor.py"
    script.write_text(
        "import pathlib, shutil, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "first = min(here.glob('edit[0-9]'))\n"
        "shutil.copyfile(first, sys.argv[1]); first.unlink()\n",
        encoding="utf-8",
    )
    return {"EDITOR": f"{sys.executable} {script}", "VISUAL": ""}


def test_a_file_is_edited_and_kept_if_it_is_valid(tmp_path: Path) -> None:
    write_own(tmp_path)
    done = host(tmp_path, "config", "edit", **editor(tmp_path, "[tools]\nmax_turns = 1\n"))
    assert (done.code, "is changed" in done.out) == (0, True)
    assert own(tmp_path) == "[tools]\nmax_turns = 1\n"
    broken = host(tmp_path, "config", "edit", **editor(tmp_path, "[tools]\nmax_turn = 1\n"))
    assert (broken.code, "did you mean 'max_turns'" in broken.err) == (1, True)
    assert "is as it was" in broken.out
    assert own(tmp_path) == "[tools]\nmax_turns = 1\n"
    gone = host(tmp_path, "config", "edit", EDITOR=str(tmp_path / "none"), VISUAL="")
    assert (gone.code, "cannot be run" in gone.err) == (1, True)
    failing = host(tmp_path, "config", "edit", EDITOR="false", VISUAL="")
    assert (failing.code, "ended with 1; nothing was changed" in failing.err) == (1, True)


def test_on_a_terminal_one_may_edit_again_or_go_back(tmp_path: Path) -> None:
    write_own(tmp_path)
    good = "[tools]\nmax_turns = 2\n"
    with open_terminal(
        "config", "edit", cwd=tmp_path, env=editor(tmp_path, "nonsense", good)
    ) as seen:
        seen.expect("Edit it again? Else it stays as it was [Y/n]:")
        seen.type("\n")
        assert seen.end() == 0
    assert own(tmp_path) == good
    with open_terminal("config", "edit", cwd=tmp_path, env=editor(tmp_path, "nonsense")) as seen:
        seen.expect("Edit it again?")
        seen.type("n\n")
        assert seen.end() == 1
    assert own(tmp_path) == good


# init ---------------------------------------------------------------------------------------------

#: A provider with an element of every type, and one of a type that nobody knows.
WIZARD = """
from agent_hookspecs import ProviderPlugin

OPTIONS = [{"value": "low", "label": "Low"}, {"value": "high", "label": "High"}]


class Plugin(ProviderPlugin):
    name = "wizard"
    requires_api_key = True

    def get_config_schema(self):
        return SCHEMA

    def get_models(self, config):
        return [{"id": "w-1", "name": "One"}, {"id": "w-2", "name": "Two"}]

    def get_ui_elements(self, models):
        options = [{"value": each["id"], "label": each["name"]} for each in models]
        return [
            {"type": "select", "key": "model", "label": "Model", "options": options},
            {"type": "text", "key": "greeting", "label": "Greeting"},
            {"type": "checkbox", "key": "polite", "label": "Be polite"},
            {"type": "number", "key": "count", "label": "Count"},
            {"type": "select", "key": "level", "label": "Level", "options": OPTIONS},
            {"type": "constellation", "key": "stars", "label": "Stars"},
        ]

    def call_api(self, native_messages, state):
        raise NotImplementedError


"""
SCHEMA: dict[str, Any] = {
    "model": {"type": "string", "required": True, "description": "The model's id."},
    "api_key": {"type": "string", "required": False, "secret": True},
    "greeting": {"type": "string", "required": False, "description": "What to say first."},
    "polite": {"type": "boolean", "required": False},
    "count": {"type": "integer", "required": False, "description": "How many."},
    "level": {"type": "string", "required": False, "enum": ["low", "high"]},
    "stars": {"type": "array", "required": False},
    "pass_token": {"type": "string", "required": False, "secret": True},
    "depth": {"type": "number", "required": False, "default": 1.5},
}


@pytest.fixture
def wizard(tmp_path: Path) -> Path:
    """A site folder with the provider in it, which is installed for whoever has it on the path."""
    described = full(
        "wizard_pkg",
        "provider",
        "wizard",
        requires_api_key=True,
        key_variable="WIZARD_KEY",
        dynamic=["get_models"],
        config_schema=SCHEMA,
        description="A provider that asks a lot.",
    )
    source = WIZARD.replace("SCHEMA", repr(SCHEMA), 1)
    write_package(tmp_path / "tree", "wizard_pkg", descriptor=described, source=source)
    metadata = tmp_path / "tree" / "dist_wizard-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dist-wizard\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[agent_host.plugins]\nwizard = wizard_pkg\n")
    return tmp_path


def test_init_asks_for_everything_that_plugins_suggest_and_checks_it_as_it_is_typed(
    wizard: Path,
) -> None:
    path = os.pathsep.join([str(wizard / "tree"), os.environ.get("PYTHONPATH", "")])
    with open_terminal("config", "init", cwd=wizard, env={"PYTHONPATH": path}) as seen:

        def answer(question: str, typed: str) -> None:
            seen.expect(question)
            seen.type(f"{typed}\n")

        answer("Provider (number or name) [echo]:", "no such one")
        seen.expect("that is none of them")
        answer("Provider (number or name) [echo]:", "wiz")
        answer("Key of wizard (nothing to set it later):", SECRET)
        seen.expect("2. w-2  Two")
        answer("Model (number or name):", "2")
        answer("Set what is usually set (5)? [y/N]:", "y")
        seen.expect("What to say first.")
        answer("Greeting:", "Good day")
        answer("Be polite (yes or no):", "perhaps")
        answer("Be polite (yes or no):", "yes")
        answer("Count (a number):", "several")
        seen.expect("that is no number")
        answer("Count (a number):", "1.5")
        seen.expect("wants a whole number")
        answer("Count (a number):", "3")
        answer("Level (number or name):", "HIGH")
        answer("Stars:", "vega, deneb")
        seen.expect("Set anything else (")
        seen.type("y\n")
        answer("pass_token: the environment variable that has it:", "not a name")
        seen.expect("that is no name of a variable")
        answer("pass_token: the environment variable that has it:", "MY_TOKEN")
        answer("depth (a number) [1.5]:", "")
        # Whatever else is installed asks too, and is left as it is.
        seen.type("\n" * 40)
        seen.expect("is written")
        assert seen.end() == 0, seen.shown
    assert SECRET not in seen.raw
    text = own(wizard)
    assert SECRET not in text
    assert "# A provider that asks a lot." in text
    assert '# What to say first.\ngreeting = "Good day"' in text
    assert "# The key is not here: agent-host keys set wizard keeps it." in text
    values = ConfigDocument.read(wizard / "home" / "config.toml").values
    mine = values["providers"]["wizard"]
    assert {key: mine[key] for key in ("provider", "model", "polite", "count", "level")} == {
        "provider": "wizard",
        "model": "w-2",
        "polite": True,
        "count": 3,
        "level": "high",
    }
    assert mine["stars"] == ["vega", "deneb"]
    assert "depth" not in mine
    assert "# depth = 1.5" in text
    assert "warning: not set in the environment yet: MY_TOKEN" in seen.shown
    assert mine["pass_token"] == "${env:MY_TOKEN}"
    assert values["agents"]["default"]["provider"] == "wizard"
    kept = json.loads((wizard / "home" / "keys.json").read_text("utf-8"))
    assert kept["keys"]["wizard"]["provider"] == "wizard"


def test_init_without_input_writes_the_defaults_and_keeps_what_is_there(tmp_path: Path) -> None:
    write_own(tmp_path)
    done = host(tmp_path, "config", "init", "--provider", "echo", "--no-input")
    assert (done.code, done.err) == (0, "")
    text = own(tmp_path)
    assert text.startswith("# Mine, and I like it so.\n")
    assert "# Enough for most." in text
    values = ConfigDocument.read(tmp_path / "home" / "config.toml").values
    assert values["providers"]["echo"] == {"provider": "echo", "model": "echo-reasoner"}
    assert values["agents"]["default"] == {"provider": "echo", "model": "echo-1"}
    assert host(tmp_path, "run", "--no-store", "Hello").out == "Hello\n"


def test_the_key_prompt_shows_nothing_of_what_is_typed(tmp_path: Path) -> None:
    described = full("hidden_pkg", "provider", "hidden", requires_api_key=True)
    write_package(tmp_path / "p", "hidden_pkg", descriptor=described, source="")
    (tmp_path / "c.json").write_text(json.dumps({"plugins": ["path:p"]}), encoding="utf-8")
    with open_terminal("keys", "set", "hidden", "--config", "c.json", cwd=tmp_path) as seen:
        seen.expect("Key of hidden:")
        seen.type(f"{SECRET}\n")
        seen.expect("The key of hidden is kept")
        assert seen.end() == 0
    assert SECRET not in seen.raw
