"""A session that is stored and loaded goes on as if nothing had happened."""

from __future__ import annotations

import json
from typing import Any

from agent_host import AgentCore, Session
from agent_host.plugins.load import load_catalog
from agent_host_testing import FakeServer, Reply, Text, Thought, say

from fake_api import WIRE


def test_another_core_sends_what_the_first_would_have_sent() -> None:
    first = Reply((Thought("Hm.", "c2VhbA=="), Text("Hi.")))
    with FakeServer(WIRE, first, say("Yes."), say("Yes.")) as server:
        config: dict[str, Any] = {
            "provider": "{{ cookiecutter.plugin_id }}",
            "model": "fake-model",
            "base_url": server.base_url,
        }
        with AgentCore(catalog=load_catalog()) as core:
            session = core.add_message(core.create_session(), "user", "Hello")
            session, _ = core.send_request(session, config)
            session = core.add_message(session, "user", "Really?")
            stored = json.dumps(session.to_dict())
            core.send_request(session, config)
        with AgentCore(catalog=load_catalog()) as core:
            core.send_request(Session.from_dict(json.loads(stored)), config)
        here, there = [sent.raw for sent in server.requests if sent.method == "POST"][-2:]
        assert here == there
        assert not server.problems
