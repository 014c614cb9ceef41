"""`agent-host chat` as a person sees it: on a pseudo-terminal, with a model that a test plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from model_server import ModelServer, model_server
from person import at_terminal

pytest.importorskip("prompt_toolkit")
pytest.importorskip("rich")


@pytest.fixture
def model(tmp_path: Path) -> Iterator[ModelServer]:
    with model_server() as served:
        served.describe_in(tmp_path, allowed_plugins=["like_pkg"])
        yield served


CHAT = ("chat", "--config", "c.json")


def test_an_answer_is_drawn_and_stays_above_the_line(tmp_path: Path, model: ModelServer) -> None:
    with at_terminal(*CHAT, cwd=tmp_path) as person:
        person.see("›")
        person.enter("What is **it**?")
        model.say("# It\n\nA *thing* wi")
        person.see("A *thing* wi")
        model.say("th `code`.\n\n```python\nx = 1\n```\n\n- one\n- two\n")
        person.see("x = 1")
        model.finish(prompt_tokens=12, completion_tokens=3)
        person.see("12 in")
        assert person.everything == ""
