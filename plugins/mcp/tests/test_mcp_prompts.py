"""Prompts of servers as commands, and their resources as attachments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import application, approve, config_of, home, modern, plain

from agent_host import AgentApplication, ToolError
from agent_host.input import InputError

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("home")

ERAS = ("auto", "legacy")


def agent_host(config: Path, *words: str, typed: str | None = None) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "agent_host", *words, "--config", str(config)],
        input=typed,
        stdin=subprocess.DEVNULL if typed is None else None,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def config_file(folder: Path, **described: dict[str, Any]) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(config_of("allow", **described)), encoding="utf-8")
    return file


@pytest.mark.parametrize("mode", ERAS)
def test_the_prompts_of_a_server_are_read_in_every_era(mode: str) -> None:
    approve(one=modern(mode))
    with application(one=modern(mode)) as app:
        found = {each.name: each for each in app.list_prompts()}
        assert [*found] == ["one:greet", "one:talk", "one:hidden"]
        (name,) = found["one:greet"].arguments
        assert (name.name, name.required) == ("name", True)
        assert app.read_prompt("one:greet", {"name": "Ada"}) == ["Please greet Ada."]
        assert app.read_prompt("one:hidden") == ["Be kind."]
        question, picture, answer, note = app.read_prompt("one:talk")
        assert (question, answer) == ("[user] What is this?", "[assistant] A pixel.")
        assert isinstance(picture, dict)
        assert picture["type"] == "image"
        assert note == "[user] [notes://tomorrow]\nRest."


@pytest.mark.parametrize("mode", ERAS)
def test_the_resources_of_a_server_are_parts_in_every_era(mode: str) -> None:
    approve(one=modern(mode))
    with application(one=modern(mode)) as app:

        def part(address: str) -> Any:
            parts = app.read_attachment(address)
            assert parts is not None
            (found,) = parts
            return found

        today = part("one:notes://today")
        assert today["content"]["text"] == "one:notes://today:\n```\nWrite tests.\n```"
        # Of a template, and in a fence that its text cannot end.
        monday = part("one:notes://monday")["content"]["text"]
        assert monday == "one:notes://monday:\n````\nOn monday: ```rest```.\n````"
        pixel = part("one:pixels://one")
        assert pixel["type"] == "image"
        assert pixel["metadata"]["media_type"] == "image/png"
        with pytest.raises(InputError, match="is said to be image/jpeg, but its content is"):
            part("one:pixels://lie")
        with pytest.raises(ToolError, match="refused"):
            part("one:nothing://here")
        assert app.read_attachment("two:notes://today") is None


def test_a_resource_is_cut_at_its_limit_and_whoever_attaches_it_is_told() -> None:
    approve(one=modern())
    told: list[str] = []
    settings = {"mcp": {"servers": {"one": modern()}, "max_resource_bytes": 60}}
    with application(one=modern()) as app:

        def read(address: str) -> Any:
            return app.read_attachment(
                address, warn=lambda text, _: told.append(text), settings=settings
            )

        (part,) = read("one:notes://long")
        note = "one:notes://long was cut: 60 of 5,000 bytes are attached"
        assert told == [note]
        assert f"[{note}]" in part["content"]["text"]
        assert len(part["content"]["text"]) < 200
        # A piece of a picture is worth nothing.
        with pytest.raises(ToolError, match="60 are allowed in all"):
            read("one:pixels://one")


def test_nothing_is_attached_of_a_server_that_nobody_approved() -> None:
    with (
        application(one=modern()) as app,
        pytest.raises(ToolError, match="'one' is not approved, so nothing of it is attached"),
    ):
        app.read_attachment("one:notes://today")


def test_a_prompt_that_has_changed_is_not_used(tmp_path: Path) -> None:
    described = plain("prompt_pull", tmp_path / "pulled")
    approve(one=described)
    with application(one=described) as app:
        assert app.read_prompt("one:greet") == ["Hello."]
        (tmp_path / "pulled").touch()
        with pytest.raises(ToolError, match=r"prompt 'greet' .* is not as it was approved"):
            app.read_prompt("one:greet")


def test_a_prompt_with_an_odd_name_gets_one_that_can_be_typed(tmp_path: Path) -> None:
    described = plain("prompt_pull", tmp_path / "pulled")
    approve(one=described)
    with application(one=described) as app:
        names = [each.name for each in app.list_prompts()]
        assert names[0] == "one:greet"
        assert names[1].startswith("one:odd_name")
        assert not {"/", " ", "."} & {*names[1]}
        assert app.read_prompt(names[1]) == ["Hello."]


def test_prompts_and_resources_on_the_command_line_and_in_chat(tmp_path: Path) -> None:
    file = config_file(tmp_path, one=modern())
    approved = agent_host(file, "mcp", "approve", "one", "--yes")
    assert "The prompt /one:greet says of itself:" in approved.stdout
    assert "with 7 tools and 3 prompts" in approved.stdout
    listed = agent_host(file, "mcp", "prompts").stdout
    assert "/one:greet name=…" in listed
    resources = agent_host(file, "mcp", "resources").stdout
    assert "@one:notes://today" in resources
    assert "@one:notes://{day}" in resources
    lines = "/one:greet Ada\n/one:greet name=Grace\nWhat is in @one:notes://today?\n/exit\n"
    talk = agent_host(file, "chat", "--plain", typed=lines)
    assert talk.returncode == 0, talk.stderr
    assert "Please greet Ada." in talk.stdout
    assert "Please greet Grace." in talk.stdout
    assert "Write tests." in talk.stdout
    ran = agent_host(file, "run", "Read it.", "--attach", "one:notes://monday")
    assert "On monday" in ran.stdout
    ran = agent_host(file, "run", "Read @one:notes://today now.")
    assert "Write tests." in ran.stdout


def test_a_server_may_not_have_more_tools_than_are_allowed() -> None:
    with pytest.raises(ToolError, match="lists 20000 tools or more, and 1000 are allowed") as wrong:
        approve(one=plain("many"))
    assert "mcp.max_tools" in wrong.value.hint


def test_parts_of_prompts_and_resources_go_into_a_run_of_a_program() -> None:
    approve(one=modern())
    with AgentApplication(config_of(one=modern())) as app:
        parts = app.read_attachment("one:notes://today")
        assert parts is not None
        answer = app.run([*app.read_prompt("one:greet", {"name": "Ada"}), *parts])
        message = next(each for each in answer.session.messages if each["role"] == "user")
        assert message["content"] == "Please greet Ada."
        assert "Write tests." in message["multipartContent"][0]["content"]["text"]
