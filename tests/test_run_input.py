"""What `run` is given beside text, and in which form it answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ConfigError
from agent_host.cli.prompts import find_files, make_prompt
from agent_host.cli.schemas import parse_schema
from making import run_host

STRING = {"type": "string"}


def test_files_are_named_by_words_that_begin_with_an_at_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "my file.txt"):
        Path(name).write_text("x")
    typed = 'See @a.txt, and (@a.txt) me@a.txt @nobody @"my file.txt".'
    assert find_files(typed) == ["a.txt", "my file.txt"]
    assert make_prompt("Hello", []) == "Hello"


@pytest.mark.parametrize(
    ("given", "properties", "required"),
    [
        ("name", {"name": STRING}, ["name"]),
        (
            "name, age int, tags list",
            {
                "name": STRING,
                "age": {"type": "integer"},
                "tags": {"type": "array", "items": STRING},
            },
            ["name", "age", "tags"],
        ),
        (
            "born int?: the year\nscores float list",
            {
                "born": {"type": "integer", "description": "the year"},
                "scores": {"type": "array", "items": {"type": "number"}},
            },
            ["scores"],
        ),
    ],
)
def test_fields_make_a_schema(given: str, properties: dict[str, Any], required: list[str]) -> None:
    schema = parse_schema(given)
    assert schema["properties"] == properties
    assert schema["required"] == required


def test_a_schema_may_be_json_or_a_file_of_it(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"type": "array"}')
    assert parse_schema(str(file)) == parse_schema('{"type": "array"}') == {"type": "array"}


@pytest.mark.parametrize("given", ["", "age integer", "two words too many", "a, a", "no.json", "{"])
def test_what_is_no_schema_is_refused_with_a_way_out(given: str) -> None:
    with pytest.raises(ConfigError):
        parse_schema(given)


def test_an_answer_has_the_form_that_was_asked_for(tmp_path: Path) -> None:
    command = ("run", "--provider", "echo", "--schema", "name, age int")
    done = run_host(*command, '{"name": "Ann", "age": 3}', cwd=tmp_path, home=tmp_path)
    assert (done.code, done.json) == (0, {"name": "Ann", "age": 3})
    done = run_host(*command, '{"age": "x"}', cwd=tmp_path, home=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "error: " in done.err


def test_a_text_that_is_attached_or_named_goes_with_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from a file")
    for options in (
        ("-a", "a.txt", "Read it"),
        ("Read @a.txt",),
        ("-a", "a.txt", "-a", "./a.txt", "Read @a.txt"),
    ):
        done = run_host("run", "--provider", "echo", *options, cwd=tmp_path, home=tmp_path)
        assert done.code == 0
        assert done.out.count("from a file") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
@pytest.mark.parametrize("way", ["-a", "@"])
def test_what_is_no_file_of_the_folder_is_not_sent_by_its_name(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "work"
    (folder / "in").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("SECRET")
    (folder / "a.txt").write_text("from a file")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in" / "fine.txt").symlink_to("../a.txt")

    def run(name: str) -> Any:
        options = ("-a", name, "Read it") if way == "-a" else (f"Read @{name}",)
        return run_host("run", "--provider", "echo", *options, cwd=folder, home=tmp_path)

    for name in ("link.txt", "up/secret.txt", "in/../link.txt"):
        done = run(name)
        assert (done.code, "SECRET" in done.out) == (1, False)
        assert f"{name} is a link to {tmp_path / 'secret.txt'}" in done.err.replace("\n", " ")
    assert "SECRET" in run("../secret.txt").out, "it was named itself"
    assert "from a file" in run("in/fine.txt").out


def test_what_was_used_is_said_on_request(tmp_path: Path) -> None:
    done = run_host(
        "run", "--provider", "echo", "--usage", "Hello there", cwd=tmp_path, home=tmp_path
    )
    assert done.out == "Hello there\n"
    assert "echo/echo-reasoner · 2 in · 2 out" in done.err
