"""``agent-host skills`` at a terminal and in scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from skills_made import write_package, write_skill

from agent_host.cli import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


class Shell:
    """Runs the command, and has what it printed last."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def run(self, *arguments: str) -> int:
        code = main(["skills", *arguments])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *arguments: str) -> Any:
        self.run(*arguments, "--json")
        assert self.out.isascii()
        return json.loads(self.out)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_list_says_what_there_is_and_what_is_left_out(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    write_skill(home / "skills")
    write_skill(home / "skills", "broken", "name: wrong\ndescription: B.\n")
    servers = {"db": {"type": "stdio", "command": "npx"}}
    write_package(tmp_path / "package", servers=servers, hooks={})
    config = tmp_path / "named.json"
    config.write_text(json.dumps({"request_defaults": {"skills_folders": ["package"]}}), "utf-8")
    assert shell.run("list", "--config", str(config)) == 0
    for part in (
        "package acme-tools, config: ",
        "db (stdio), of package acme-tools",
        "agent-host skills show --package NAME",
        f"{home / 'skills' / 'pdf-forms'}: {tmp_path / 'package'}",
        "broken/SKILL.md:2: name: is not the name of the skill's folder",
        "hooks: is no field of a manifest",
    ):
        assert part in shell.out, part
    said = shell.json("list", "--config", str(config))
    assert [each["name"] for each in said["skills"]] == ["pdf-forms"]
    assert [each["name"] for each in said["hidden"]] == ["pdf-forms"]
    assert {each["lost"] for each in said["problems"]} == {"skill", None}
    assert said["packages"][0]["mcpServers"]["db"]["command"] == "npx"


def test_list_without_skills_says_so(shell: Shell) -> None:
    assert shell.run("list") == 0
    assert shell.out == "There are no skills.\n"
    assert shell.json("list")["skills"] == []


def test_list_knows_the_settings_of_an_agent(shell: Shell, home: Path) -> None:
    for name in ("ant", "mole"):
        write_skill(home / "skills", name)
    config = {"agents": {"digger": {"provider": "echo", "use_skills": ["m*"]}}}
    (home / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert [each["name"] for each in shell.json("list")["skills"]] == ["ant", "mole"]
    said = shell.json("list", "--agent", "digger")
    assert [each["name"] for each in said["skills"]] == ["mole"]
    assert [each["name"] for each in said["switched_off"]] == ["ant"]


def test_show_prints_a_skill_and_its_files_as_data(shell: Shell, home: Path) -> None:
    body = "Hello \x1b[2J \u202e \U000e0041\n"
    head = "name: pdf-forms\ndescription: F.\nallowed-tools: Bash\n"
    folder = write_skill(home / "skills", head=head, body=body)
    (folder / "notes.md").write_text("a \x07 note\n", encoding="utf-8")
    assert shell.run("show", "pdf-forms") == 0
    assert "  Hello ␛[2J <U+202E> <U+E0041>\n" in shell.out
    assert "Bash (the policy decides)" in shell.out
    assert "notes.md" in shell.out
    assert shell.run("show", "pdf-forms", "notes.md") == 0
    assert shell.out == "  a ␇ note\n"
    assert shell.json("show", "pdf-forms")["text"].endswith(body)


@pytest.mark.parametrize(
    "asked",
    [["nothing"], ["pdf-forms", "../secret"], ["pdf-forms", "nope.md"], ["--package", "nothing"]],
)
def test_show_says_what_there_is_instead(shell: Shell, home: Path, asked: list[str]) -> None:
    write_skill(home / "skills")
    assert shell.run("show", *asked) == 1
    assert "there are: " in shell.err
    assert shell.json("show", *asked)["error"]["message"]


def test_show_prints_the_servers_of_a_package_as_settings(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    servers = {"db": {"type": "stdio", "command": "./bin/db", "args": ["${PLUGIN_DATA}"]}}
    write_package(home / "skills" / "acme", servers=servers)
    assert shell.run("show", "--package", "acme-tools") == 0
    printed = json.loads(shell.out[shell.out.index("{") : shell.out.rindex("}") + 1])
    said = shell.json("show", "--package", "acme-tools")
    assert printed == {"mcpServers": said["mcpServers"]}
    root, data = str(home / "skills" / "acme"), str(home / "plugin-data" / "acme-tools")
    assert printed["mcpServers"]["db"] == {
        "type": "stdio",
        "command": f"{root}/bin/db",
        "args": [data],
        "env": {"PLUGIN_ROOT": root, "PLUGIN_DATA": data},
        "cwd": root,
    }


def test_validate_is_for_ci(shell: Shell, tmp_path: Path) -> None:
    write_skill(tmp_path / "good")
    write_skill(tmp_path / "bad", head="name: Wrong\nlicense: []\n")
    write_skill(tmp_path / "long", body="x\n" * 600)
    assert shell.run("validate", str(tmp_path / "good")) == 0
    assert shell.out == "valid: skill pdf-forms\n"
    assert shell.run("validate", str(tmp_path / "good" / "pdf-forms")) == 0
    assert shell.run("validate", str(tmp_path / "good"), str(tmp_path / "bad")) == 1
    assert shell.out.count("error: ") == 4
    assert shell.out.endswith("invalid: skill pdf-forms\n")
    assert shell.run("validate", str(tmp_path / "long")) == 0
    assert "advice: " in shell.out
    assert shell.run("validate", "--strict", str(tmp_path / "long")) == 1
    said = shell.json("validate", str(tmp_path / "bad"))
    assert said["valid"] is False
    assert {"file", "line", "key", "message", "hint", "lost", "advice"} == {*said["problems"][0]}


def test_validate_needs_neither_config_nor_trust(shell: Shell, tmp_path: Path) -> None:
    Path("agent-host.json").write_text("{broken", encoding="utf-8")
    write_skill(tmp_path / "good")
    assert shell.run("validate", str(tmp_path / "good")) == 0
    assert shell.run("validate", "nowhere") == 1
    assert "nowhere" in shell.out
    assert shell.run("validate") == 2


def test_a_field_that_is_unknown_is_an_error_for_ci(shell: Shell, tmp_path: Path) -> None:
    write_skill(tmp_path, head="name: pdf-forms\ndescription: F.\ncolour: red\n")
    assert shell.run("validate", str(tmp_path / "pdf-forms")) == 1
    assert "colour: is no field of a skill" in shell.out
