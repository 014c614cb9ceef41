"""``agent-host plugins new``: by flags, for scripts, at a terminal, and when it cannot."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_host.cli import new
from making import run_host, run_python
from terminals import open_terminal as terminal

pytest.importorskip("cookiecutter")


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is known to git, whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


FLAGS = ("plugins", "new", "Acme AI", "--no-input")
#: How to install here.
INSTALL = "python -m pip install" if find_spec("pip") else "uv pip install"


def test_flags_answer_the_questions(tmp_path: Path) -> None:
    run = run_host(
        *(*FLAGS, "--kind", "extension", "--id", "acme-sources", "--description", "Sources."),
        *("--author", "Ada", "--license", "BSD-3-Clause", "--python", "3.12", "--docs"),
        cwd=tmp_path,
    )
    assert run.code == 0, run.err
    folder = tmp_path / "agent-host-acme-sources"
    project = (folder / "pyproject.toml").read_text("utf-8")
    for line in (
        'name = "agent-host-acme-sources"',
        'description = "Sources."',
        'requires-python = ">=3.12"',
        'license = "BSD-3-Clause"',
        'authors = [{ name = "Ada" }]',
        'acme-sources = "agent_host_acme_sources"',
    ):
        assert line in project
    assert (folder / "docs").is_dir()


def test_it_says_what_to_type_next(tmp_path: Path) -> None:
    run = run_host(*FLAGS, "--kind", "tool", "--output", "with space", cwd=tmp_path)
    assert run.out.splitlines() == [
        "Made agent-host-acme-ai in with space/agent-host-acme-ai.",
        "Next:",
        f"  cd 'with space/agent-host-acme-ai' && {INSTALL} -e \".[test]\" && python -m pytest",
    ]


def test_without_pip_the_next_command_is_one_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new, "find_spec", lambda name: None)
    assert new._next_command(tmp_path, "3.10") == (
        f'cd {tmp_path} && uv pip install -e ".[test]" && python -m pytest'
    )


def test_scripts_get_json(tmp_path: Path) -> None:
    run = run_host("plugins", "new", "Acme", "--kind", "tool", "--json", cwd=tmp_path)
    assert run.code == 0
    assert run.json["path"] == "agent-host-acme"
    assert run.json["answers"]["plugin_id"] == "acme"
    assert run.json["answers"]["docs"] is False
    assert run.json["next"].startswith("cd agent-host-acme && ")
    assert (tmp_path / "agent-host-acme" / "README.md").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("echo", "--kind", "tool"), "plugin_id 'echo' is taken by an installed plugin"),
        (("Acme", "--kind", "tool", "--package", "json"), "shadow a module of the standard"),
        (("Acme", "--kind", "tool", "--id", "A B"), "plugin_id 'A B' is not lower-case words"),
        (("漢字", "--kind", "tool", "--email", "x"), "email 'x' is no address"),
        (("!!!", "--kind", "tool"), "plugin_id '' is not lower-case words"),
    ],
)
def test_bad_answers_stop_before_anything_is_written(
    tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    run = run_host("plugins", "new", *flags, "--no-input", cwd=tmp_path)
    assert run.code == 1
    assert said in run.err
    assert "nothing was written" in run.err
    assert not [*tmp_path.iterdir()]


def test_a_kind_that_does_not_exist_is_answered_with_those_that_do(tmp_path: Path) -> None:
    run = run_host("plugins", "new", "Acme", "--kind", "toll", "--no-input", cwd=tmp_path)
    assert run.code == 2
    assert "'toll' is not one of 'openai-compatible', 'custom-format'" in run.err
    assert not [*tmp_path.iterdir()]


def test_bad_answers_are_json_for_scripts(tmp_path: Path) -> None:
    run = run_host("plugins", "new", "echo", "--kind", "tool", "--json", cwd=tmp_path)
    assert run.code == 1
    assert "taken" in run.json["error"]["message"]
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "agent-host-acme-ai").mkdir()
    run = run_host(*FLAGS, "--kind", "tool", cwd=tmp_path)
    assert run.code == 1
    assert "agent-host-acme-ai is there already" in run.err
    assert not [*(tmp_path / "agent-host-acme-ai").iterdir()]


@pytest.mark.parametrize(("flags", "needed"), [(("--kind", "tool"), "NAME"), (("Acme",), "--kind")])
def test_name_and_kind_are_needed_where_nothing_is_asked(
    tmp_path: Path, flags: tuple[str, ...], needed: str
) -> None:
    run = run_host("plugins", "new", *flags, cwd=tmp_path)
    assert run.code == 2
    assert f"{needed} is needed" in run.err
    assert (": one of openai-compatible, custom-format, " in run.err) is (needed == "--kind")
    assert not [*tmp_path.iterdir()]


def test_without_cookiecutter_it_says_how_to_get_it(tmp_path: Path) -> None:
    run = run_python(
        "sys.modules['cookiecutter'] = None\n"
        "from agent_host.cli import main\nsys.exit(main(sys.argv[1:]))",
        *(*FLAGS, "--kind", "tool"),
        cwd=tmp_path,
    )
    assert run.code == 1
    assert "needs cookiecutter" in run.err
    assert 'python -m pip install "agent-host-core[new]"' in run.err
    assert not [*tmp_path.iterdir()]


def test_a_person_is_asked_and_may_just_press_return(tmp_path: Path) -> None:
    with terminal("plugins", "new", cwd=tmp_path, columns=120) as seen:
        for question, answer in (
            ("Name, as people read it [My Plugin]: ", "Acme AI"),
            ("Kind [openai-compatible]: ", "4"),
            ("Plugin id, as configs and commands name it [acme-ai]: ", ""),
            ("Distribution, as pip installs it [agent-host-acme-ai]: ", ""),
            ("Package, as Python imports it [agent_host_acme_ai]: ", ""),
            ("What it is good for, in one sentence [A plugin for Agent Host]: ", "Good."),
            ("Author [Your Name]: ", "Ada"),
            ("E-mail address, or nothing: ", ""),
            ("Licence [MIT]: ", "apache-2.0"),
            ("Oldest Python [3.10]: ", "2"),
            ("Add a folder with docs [y/N]: ", "y"),
        ):
            seen.expect(question)
            seen.type(f"{answer}\n")
        assert seen.end() == 0
    assert "  4  feature            a feature: adds to requests of any provider" in seen.shown
    assert "Made agent-host-acme-ai in agent-host-acme-ai." in seen.shown
    made = tmp_path / "agent-host-acme-ai"
    assert (made / "src" / "agent_host_acme_ai" / "feature.py").exists()
    assert (made / "docs" / "index.md").exists()
    about = (made / "pyproject.toml").read_text("utf-8")
    assert 'requires-python = ">=3.11"' in about
    assert 'license = "Apache-2.0"' in about


def test_a_bad_answer_is_asked_for_again(tmp_path: Path) -> None:
    flags = ("--kind", "tool", "--distribution", "acme", "--package", "acme_ai", "--author", "Ada")
    more = ("--email", "ada@example.org", "--license", "MIT", "--python", "3.10", "--no-docs")
    with terminal("plugins", "new", "Acme", *flags, *more, cwd=tmp_path, columns=120) as seen:
        seen.expect("Plugin id, as configs and commands name it [acme]: ")
        seen.type("echo\n")
        seen.expect("error: plugin_id 'echo' is taken by an installed plugin; choose another.")
        seen.expect("Plugin id, as configs and commands name it [acme]: ")
        seen.type("acme-2\n")
        seen.expect("What it is good for, in one sentence [A plugin for Agent Host]: ")
        seen.type("\n")
        assert seen.end() == 0
    assert (tmp_path / "acme" / "pyproject.toml").exists()


def test_a_folder_that_is_there_is_told_when_its_name_is(tmp_path: Path) -> None:
    (tmp_path / "agent-host-acme").mkdir()
    with terminal("plugins", "new", "Acme", "--kind", "tool", cwd=tmp_path, columns=120) as seen:
        seen.expect("Plugin id, as configs and commands name it [acme]: ")
        seen.type("\n")
        seen.expect("Distribution, as pip installs it [agent-host-acme]: ")
        seen.type("\n")
        seen.expect("error: agent-host-acme is there already.")
        seen.expect("Distribution, as pip installs it [agent-host-acme]: ")
        seen.interrupt()
        assert seen.end() == 130


@pytest.mark.parametrize(
    ("oldest", "install"),
    [
        ("3.10", INSTALL),
        ("3.13", "python3.13 -m venv .venv && . .venv/bin/activate && python -m pip install"),
    ],
)
def test_a_package_for_newer_pythons_gets_an_environment_of_its_own(
    tmp_path: Path, oldest: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        pytest.skip("environments are made in another way there")
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))
    assert new._next_command(tmp_path / "some", oldest) == (
        f'cd {tmp_path}/some && {install} -e ".[test]" && python -m pytest'
    )


def test_leaving_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    with terminal("plugins", "new", "Acme", cwd=tmp_path) as seen:
        seen.expect("Kind [openai-compatible]: ")
        seen.interrupt()
        assert seen.end() == 130
    assert not [name for name in os.listdir(tmp_path) if name.startswith("agent-host")]
