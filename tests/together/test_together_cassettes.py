"""What the host records of every API it replays without a key, and the kit can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stops import STOPS, TOOL_BUNDLES, Stop

from agent_host import AgentApplication, Answer
from agent_host_testing import say
from agent_host_testing.corpus import in_scope, load_recordings, translate_recording


def ask(settings: dict[str, Any], **cassettes: Any) -> Answer:
    with AgentApplication({"denied_plugins": [*TOOL_BUNDLES, "context"]}, **cassettes) as app:
        return app.run("Tell me of Ulm.", settings=settings)


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_recorded_run_is_replayed_without_a_key_and_read_by_the_kit(
    stop: Stop, tmp_path: Path
) -> None:
    with stop.serve() as server:
        server.queue(say("It has the highest steeple."))
        settings = stop.config(server, model=stop.bare)
        for name in stop.settings:
            del settings[name]
        live = ask(settings, record=tmp_path)
    key = settings.pop("api_key", "")
    played = ask(settings, replay=tmp_path)
    assert (played.text, played.usage) == (live.text, live.usage)
    assert played.text == "It has the highest steeple."
    assert all(key not in file.read_text("utf-8") for file in tmp_path.iterdir() if key)
    (recording,) = filter(in_scope, load_recordings(tmp_path))
    assert "Tell me of Ulm." in str(translate_recording(recording).entries[-1].blocks)
