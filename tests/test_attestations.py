"""Who published a file is verified, remembered, and asked about when it changes.

The attestations are real ones, which the source distribution of the library that verifies them has
beside its tests; nothing of it is in this repository.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from agent_host.distributions.attestations import Attested, verify_published
from agent_host.distributions.indexes import read_pip_indexes, read_uv_indexes
from agent_host.distributions.manage import Plan
from agent_host.distributions.pins import Pin, read_lock, write_lock
from agent_host.distributions.published import can_verify, look_up_published
from agent_host.distributions.verify import find_forgeries
from agent_host.distributions.wanted import WantedList
from indexes import Index, make_wheel, serve_index

VARIABLE = "AGENT_HOST_ATTESTATIONS"
WHEEL = "circleci_sign_publish_example-0.0.1.dev137-py3-none-any.whl"
NAME = "circleci-sign-publish-example"
PUBLISHER = "CircleCI github.com/CircleCI-Public/sign-and-publish-examples"
OTHER = "GitHub acme/acme ci.yml"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with serve_index(tmp_path) as served:
        yield served


@pytest.fixture
def attested(index: Index) -> Pin:
    """A wheel of somebody else, on the index with its real attestation."""
    folder = os.environ.get(VARIABLE)
    found = sorted(Path(folder).glob("pypi_attestations-*.tar.gz")) if folder else []
    missing = "" if can_verify() else "pypi-attestations is not installed"
    if not found:
        missing = (
            f"{VARIABLE} names no folder with the source of pypi-attestations: pip download "
            "--no-deps --no-binary :all: pypi-attestations"
        )
    if missing and os.environ.get("CI", "").lower() == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with tarfile.open(found[-1]) as archive:
        root = found[-1].name.removesuffix(".tar.gz")
        for name in (WHEEL, f"{WHEEL}.provenance"):
            member = archive.extractfile(f"{root}/test/assets/{name}")
            assert member is not None
            (index.folder / name).write_bytes(member.read())
    index.provenance[WHEEL] = (index.folder / f"{WHEEL}.provenance").read_bytes()
    return pin_of(index, index.folder / WHEEL)


def pin_of(index: Index, wheel: Path) -> Pin:
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    url = f"{index.url}/files/{wheel.name}"
    return Pin(name.replace("_", "-"), version, "wheel", url, sha256=digest)


def index_of(pin: Pin) -> str:
    return pin.url.partition("/files/")[0] + "/simple/"


def check(pin: Pin) -> list[Attested]:
    return verify_published({pin.name: pin}, [index_of(pin)])


def test_a_real_attestation_names_its_publisher(attested: Pin) -> None:
    (found,) = check(attested)
    assert found.state == "verified", found.reason
    assert found.publisher.startswith(f"{PUBLISHER} ")


def test_an_attestation_of_another_file_does_not_hold(index: Index, attested: Pin) -> None:
    wheel = make_wheel(index.folder, "acme")
    index.provenance[wheel.name] = index.provenance[WHEEL]
    (found,) = check(pin_of(index, wheel))
    assert (found.state, found.publisher) == ("failed", "")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[" * 10_000, b'{"version": 1}', b"\xff"])
def test_what_is_no_attestation_does_not_hold(index: Index, attested: Pin, raw: bytes) -> None:
    index.provenance[WHEEL] = raw
    assert check(attested)[0].state == "failed"


def test_an_attestation_that_was_altered_does_not_hold(index: Index, attested: Pin) -> None:
    raw = index.provenance[WHEEL]
    index.provenance[WHEEL] = raw.replace(b"CircleCI-Public", b"Somebody-Else")
    assert index.provenance[WHEEL] != raw
    (found,) = check(attested)
    assert (found.state, found.publisher) == ("failed", "")


def test_provenance_without_attestations_proves_nothing(index: Index, attested: Pin) -> None:
    index.provenance[WHEEL] = b'{"version": 1, "attestation_bundles": []}'
    assert check(attested)[0].state == "failed"


def test_what_nobody_attests_is_never_verified(index: Index) -> None:
    (found,) = check(pin_of(index, make_wheel(index.folder, "acme")))
    assert (found.state, found.publisher) == ("absent", "")


def test_an_index_that_is_gone_proves_nothing(index: Index) -> None:
    pin = pin_of(index, make_wheel(index.folder, "acme"))
    index.is_down = True
    (found,) = check(pin)
    assert found.state == "unknown"
    assert found.reason


def test_what_no_index_offers_is_not_asked_about(tmp_path: Path) -> None:
    assert check(Pin("acme", "1.0", "folder", tmp_path.as_uri())) == []


def published(pin: Pin, *locked: Pin) -> tuple[Pin, list[tuple[str, str]]]:
    known, told = look_up_published(
        [pin], {each.name: each for each in locked}, lambda: [index_of(pin)], with_age=False
    )
    return known[pin.name], [(each.level, each.message) for each in told]


def test_the_first_publisher_is_trusted_and_locked(attested: Pin, tmp_path: Path) -> None:
    known, told = published(attested)
    assert told == []
    assert known.publisher.startswith(PUBLISHER)
    write_lock(tmp_path / "pylock.toml", [known])
    assert read_lock(tmp_path / "pylock.toml") == {NAME: known}


def test_a_new_publisher_is_a_question(attested: Pin) -> None:
    before = replace(attested, version="0.0.1", sha256="0" * 64, publisher=OTHER)
    known, ((level, message),) = published(attested, before)
    assert level == "question"
    assert f"was published by {OTHER}" in message
    assert f"is published by {PUBLISHER}" in message
    assert known.publisher.startswith(PUBLISHER)


@pytest.mark.skipif(not can_verify(), reason="needs pypi-attestations")
def test_a_publisher_who_is_gone_is_a_question(index: Index) -> None:
    pin = pin_of(index, make_wheel(index.folder, "acme"))
    before = replace(pin, version="0.9", sha256="0" * 64, publisher=OTHER)
    known, ((level, message),) = published(pin, before)
    assert (level, known.publisher) == ("question", "")
    assert "no attestation" in message


def test_a_forged_attestation_forbids_the_change(index: Index, attested: Pin) -> None:
    index.provenance[WHEEL] = index.provenance[WHEEL].replace(b"CircleCI-Public", b"Somebody-Else")
    _, ((level, _),) = published(attested)
    assert level == "problem"


def test_what_is_locked_is_not_asked_about_again(index: Index, attested: Pin) -> None:
    index.is_down = True
    locked = {NAME: replace(attested, publisher=OTHER)}
    assert look_up_published([attested], locked, list, with_age=True) == ({}, [])


def test_questions_are_for_people_unless_they_were_accepted(attested: Pin, tmp_path: Path) -> None:
    before = replace(attested, version="0.0.1", sha256="0" * 64, publisher=OTHER)
    _, told = look_up_published(
        [attested], {NAME: before}, lambda: [index_of(attested)], with_age=False
    )
    plan = Plan((), tuple(told), {}, WantedList(tmp_path / "plugins.txt"))
    assert not plan.is_forbidden
    assert [each.distribution for each in plan.questions([])] == [NAME]
    assert plan.questions(["CircleCI_Sign_Publish_Example"]) == []


def test_a_lock_that_names_another_publisher_is_a_deviation(attested: Pin) -> None:
    locked = {NAME: replace(attested, publisher=OTHER)}
    (found,) = find_forgeries(locked, check(attested))
    assert f"locked is {OTHER}" in found.message
    assert [*find_forgeries({NAME: attested}, check(attested))] == []


def test_the_age_is_asked_of_the_index_where_the_installer_does_not_tell_it(index: Index) -> None:
    wheel = make_wheel(index.folder, "acme")
    index.uploaded[wheel.name] = "2026-01-02T03:04:05.678900Z"
    pin = pin_of(index, wheel)
    asked = [f"{index.url}/nothing", f"{index.url}/simple/"]
    known, told = look_up_published([pin], {}, lambda: asked, with_age=True)
    assert known["acme"].uploaded == datetime(2026, 1, 2, 3, 4, 5, 678900, timezone.utc)
    assert told == []
    assert datetime.now(timezone.utc) - known["acme"].uploaded > timedelta()


def test_an_age_that_the_index_does_not_tell_is_told_in_one_line(index: Index) -> None:
    names = ("acme", "beta", "gamma", "delta")
    pins = [pin_of(index, make_wheel(index.folder, each)) for each in names]
    _, told = look_up_published(pins, {}, lambda: [f"{index.url}/simple"], with_age=True)
    ((level, message),) = [(each.level, each.message) for each in told]
    assert level == "warning"
    assert "acme, beta, gamma and 1 more" in message


def test_indexes_are_those_that_the_installers_are_configured_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (
        ":env:.extra-index-url='https://b.example/ https://c.example/simple'\n"
        "global.cert='/etc/a=b.crt'\n"
        "global.extra-index-url='https://not.example/'\n"
        "global.index-url='https://u:p@a.example/simple'\n"
    )
    wanted = ["https://u:p@a.example/simple", "https://b.example/", "https://c.example/simple"]
    assert read_pip_indexes(listed) == wanted
    assert read_pip_indexes("") == ["https://pypi.org/simple"]
    for name in [each for each in os.environ if each.startswith("UV_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "uv.toml"
    file.write_text(
        'extra-index-url = ["https://b.example/"]\n[[index]]\nurl = "https://d.example/"\n'
        'default = true\n[pip]\nindex-url = "https://a.example/"\n'
    )
    monkeypatch.setenv("UV_CONFIG_FILE", str(file))
    assert read_uv_indexes() == ["https://b.example/", "https://a.example/"]
    monkeypatch.setenv("UV_INDEX", "own=https://e.example/")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://f.example/")
    assert read_uv_indexes() == ["https://e.example/", "https://b.example/", "https://f.example/"]
