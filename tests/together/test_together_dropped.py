"""What is dropped on its way to a model is a warning of the run that names the provider."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from stops import STOPS, TOOL_BUNDLES, Stop
from touring import PIXEL

from agent_hookspecs.authoring import attachment
from agent_hookspecs.events import WarningEvent
from agent_host import AgentApplication
from agent_host.application import Answer
from agent_host_testing import say

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "pixel.png"
    file.write_bytes(base64.b64decode(PIXEL))
    return file


def asked(stop: Stop, picture: Path | None, **settings: Any) -> tuple[Answer, bytes]:
    """The answer to a run, and what was sent for it."""
    with (
        stop.serve() as server,
        AgentApplication({"denied_plugins": [*TOOL_BUNDLES, "context"]}) as app,
    ):
        server.queue(say("Yes."))
        session = app.create_session()
        if picture is not None:
            parts = [attachment(picture)]
            message = {"role": "user", "content": "A picture.", "multipartContent": parts}
            session = session.with_added(message)
        config = stop.config(server, model=stop.bare, **settings)
        for name in stop.settings:
            del config[name]
        answer = app.run("What do you see?", session=session, settings=config)
        assert server.problems == []
        return answer, server.requests[-1].raw


def about(warnings: list[WarningEvent], provider: str, word: str) -> list[WarningEvent]:
    return [w for w in warnings if w["plugin"] == provider and word in w["message"]]


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_picture_that_is_not_sent_is_a_warning(stop: Stop, picture: Path) -> None:
    dropped, body = asked(stop, picture)
    assert PIXEL.encode() not in body
    assert len(about(dropped.warnings, stop.provider, "attachments_root")) == 1
    sent, body = asked(stop, picture, attachments_root=str(picture.parent))
    assert PIXEL.encode() in body
    assert sent.warnings == []


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_schema_that_is_not_sent_is_a_warning(stop: Stop) -> None:
    answer, body = asked(
        stop, None, response_schema=SCHEMA, remove_tags=["supports_structured_output"]
    )
    assert b'"name"' not in body
    (warning,) = answer.warnings
    assert warning["plugin"] == stop.provider
    assert warning["message"].startswith("'response_schema' is set")
