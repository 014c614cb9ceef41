"""Sessions that no run has made can be stored all the same, with their native history."""

from __future__ import annotations

from pathlib import Path

from agent_host import AgentApplication, Session


def asked(application: AgentApplication, session: Session, text: str) -> Session:
    """The session after a request of the core, which stores nothing."""
    session = session.with_added({"role": "user", "content": text})
    session, _ = application.core.send_request(session, {"provider": "echo"})
    return session


def test_an_added_session_is_found_whole_in_another_process(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    with AgentApplication({}, store=store) as application:
        session = asked(application, application.create_session("Be brief."), "Hello")
        made = application.sessions.add(session, name="first")
    with AgentApplication({}, store=store) as application:
        found = application.sessions.load("first")
        assert found.id == made.id
        assert found.messages == session.messages
        assert found.metadata == session.metadata
        going_on = asked(application, found, "And more")
        natives = going_on.metadata["native_messages"]
        assert natives[: len(session.metadata["native_messages"])] == [
            *session.metadata["native_messages"]
        ]


def test_what_goes_on_from_a_stored_session_shares_its_beginning(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    with AgentApplication({}, store=store) as application:
        session = asked(application, application.create_session(), "Hello")
        first = application.sessions.add(session)
        one = application.sessions.add(asked(application, session, "One"), parent=first.id)
        other = application.sessions.add(asked(application, session, "Other"), parent=first.id)
        assert (one.parent, one.shared_count) == (first.id, 2)
        for made, text in ((one, "One"), (other, "Other")):
            found = application.sessions.load(made.id)
            assert [each["content"] for each in found.messages][2:] == [text, text]
            assert found.metadata["native_messages"][-1]["content"] == text
        assert application.sessions.load(first.id).count == 2
        # Nobody is left as the writer.
        assert application.sessions.find(one.id).owner is None
