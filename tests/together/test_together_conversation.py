"""One session through all bundled providers, each with tools, against servers that forgive nothing.

The servers refuse what the vendors would: signatures that they did not make, ids and names that
they would not take, results that answer nothing, fields that they do not know.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from stops import PROVIDERS, STOPS
from touring import PIXEL, WAYS, Visit, Way, touring

#: Every stop with parallel calls where ``calls`` is two, and the first one again.
ROUND = (
    *(Visit(each, calls=1 + number % 2) for number, each in enumerate(STOPS)),
    Visit(STOPS[0], calls=2),
)
#: The stops whose APIs sign reasoning, and want it back.
SIGNERS = {"openai-responses", "anthropic", "google", "openrouter"}


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("AGENT_HOST_HOME", str(folder))


def test_the_round_passes_every_provider_with_parallel_calls_in_three() -> None:
    assert {visit.stop.provider for visit in ROUND} == {*PROVIDERS}
    assert len(PROVIDERS) == 7
    assert len({visit.stop.provider for visit in ROUND if visit.calls > 1}) >= 3


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_one_session_goes_through_all_providers_and_back(way: Way) -> None:
    with touring() as tour:
        for visit in ROUND:
            tour.visit(visit, way)
        tour.check()
        assert tour.warnings == []
        sent = {name: b"".join(each.raw for each in s.requests) for name, s in tour.servers.items()}
        back = {maker for signed, maker in tour.signed.items() if signed.encode() in sent[maker]}
        assert back == SIGNERS
        told = [message["metadata"].get("reasoning") for message in tour.session.messages]
        assert len([*filter(None, told)]) == 2 * sum(visit.stop.shows for visit in ROUND)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_stored_session_goes_round_once_more(way: Way) -> None:
    with touring() as tour:
        for visit in ROUND:
            tour.visit(visit, way)
            tour.store()
        for visit in reversed(ROUND):
            tour.visit(visit, way)
        tour.check()


def test_an_application_started_anew_goes_on_with_what_was_stored() -> None:
    with touring() as before:
        for visit in ROUND:
            before.visit(visit, WAYS[0])
    with touring() as tour:
        tour.session, tour.said = before.session, before.said
        tour.store()
        tour.payloads, tour.signed = before.payloads, before.signed
        tour.noted += before.noted
        # Servers at other addresses are other origins, even where they speak the same language.
        before_now = dict(tour.signed)
        for visit in ROUND:
            tour.visit(visit, WAYS[1])
        tour.check()
        sent = b"".join(each.raw for server in tour.servers.values() for each in server.requests)
        assert [each for each in before_now if each.encode() in sent] == []


@pytest.mark.parametrize("first", STOPS, ids=lambda each: each.name)
def test_a_picture_is_seen_where_it_is_shown_and_on_the_way(first: object) -> None:
    order = sorted(STOPS, key=lambda each: each is not first)
    with touring() as tour:
        for number, each in enumerate(order):
            tour.visit(Visit(each, picture=number == 0), WAYS[0])
        tour.check()
        sees = tour.servers[order[0].name].requests[-1].raw
        assert PIXEL.encode() in sees


visits = st.builds(
    Visit,
    st.sampled_from(STOPS),
    calls=st.integers(0, 3),
    thinks=st.booleans(),
    picture=st.booleans(),
    ids=st.sampled_from(["own", "made", "same"]),
)


@settings(
    max_examples=12,
    deadline=None,
    # A journey takes a second; its visits are listed when it fails, and need no shrinking.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(visits, st.sampled_from(WAYS), st.booleans()), min_size=2, max_size=9))
def test_any_order_of_providers_is_one_conversation(
    journey: list[tuple[Visit, Way, bool]],
) -> None:
    with touring() as tour:
        for visit, way, stored in journey:
            tour.visit(visit, way)
            if stored:
                tour.store()
        tour.check()
