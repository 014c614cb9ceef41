"""Checks with bytes that real servers have sent: the wire shapes by number, and recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from agent_host.core import AgentCore
from agent_host_testing.corpus import (
    EVERY_WAY,
    WAYS,
    RecordedProtocol,
    Recording,
    group_sessions,
    in_scope,
    load_recordings,
    play_session,
    protocol_of,
    session_differences,
)
from agent_host_testing.formats import wire_format
from agent_host_testing.shapes import Shape, check_shape, shapes_for
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import CANARY
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.violations import require

__all__ = ["ShapeChecks"]

#: Enough to cut in the head, the middle and the end; all places are another check's business.
_SPLITS = 3


@dataclass(frozen=True, slots=True)
class _Subject:
    """The provider under test, for those who bring their own server."""

    suite: ProviderSuite
    without: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        return self.suite.require_wire().name

    def core(self) -> AgentCore:
        return AgentCore(catalog=self.suite.catalog())

    def config(self, base_url: str) -> dict[str, Any]:
        config = self.suite.config(api_key=CANARY, base_url=base_url)
        return {key: value for key, value in config.items() if key not in self.without}


class ShapeChecks(ProviderSuite):
    """Wire shapes and recordings.

    ``dialects`` names the servers whose own shapes the provider should bear too; ``recorded`` those
    whose recordings, below the folder of ``--corpus``, it is replayed, all of its format if empty.
    ``protocol`` is how those of a `WireFormat` of the author's own are read.
    """

    dialects: ClassVar[Sequence[str]] = ()
    recorded: ClassVar[Sequence[str]] = ()
    protocol: ClassVar[RecordedProtocol | None] = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each shape, and of each recorded session, of the subclass's format."""
        if "wire_shape" in metafunc.fixturenames:
            shapes = self._shapes() or [None]
            ids = [each.name if each else "none" for each in shapes]
            metafunc.parametrize("wire_shape", shapes, ids=ids)
        if "recorded_session" in metafunc.fixturenames:
            groups = self._sessions(metafunc.config.getoption("corpus", None)) or [None]
            ids = [each[0].name if each else "none" for each in groups]
            metafunc.parametrize("recorded_session", groups, ids=ids)

    def _format(self) -> str:
        if self.wire is None:
            return ""
        return (wire_format(self.wire) if isinstance(self.wire, str) else self.wire).name

    def _shapes(self) -> list[Shape | None]:
        return [*shapes_for(self._format(), self.dialects)]

    def _sessions(self, folder: str | None) -> list[list[Recording] | None]:
        if not folder or self.wire is None:
            return []
        return [
            group
            for group in group_sessions(filter(in_scope, self._recordings(folder)))
            if protocol_of(group[0]).format == self._format()
            and (not self.recorded or group[0].provider in self.recorded)
        ]

    def _recordings(self, folder: str) -> list[Recording]:
        """All that are in the folder, those of the author's own protocol with how they are read."""
        own = self.protocol
        return [
            replace(each, own=own) if own is not None and each.protocol == own.format else each
            for each in load_recordings(folder)
        ]

    def _why_nothing_is_replayed(self, folder: str | None) -> str:
        if not folder:
            return "--corpus names no folder with recordings"
        mine = [each for each in self._recordings(folder) if each.protocol == self._format()]
        if mine and not any(map(in_scope, mine)):
            return (
                f"the suite does not say in 'protocol' how recordings of {self._format()!r} are "
                "read, of which there are some: docs/testing.md#recordings"
            )
        return f"the folder of --corpus has no recordings of {self._format()!r}"

    def _can_have(self, claim: str) -> bool:
        """Whether the tag is claimed, or lets somebody in if a user adds it."""
        if self.claims(claim):
            return True
        with self.host() as host:
            configs = (self.config(), self.config(add_tags=[claim]))
            without, having = (host.core.resolution(config).gating.enabled for config in configs)
        return without != having

    @check("wire shapes", "docs/testing.md#wire-shapes", slow=True)
    def test_wire_shape(self, wire_shape: Shape | None) -> None:
        """Bytes that real servers have sent give the right answer or a clear typed error."""
        if wire_shape is None:
            not_claimed("the kit knows no shapes of this wire")
        for claim in wire_shape.claims:
            if not self._can_have(claim):
                not_claimed(f"shapes with what {claim} stands for")
        found = check_shape(wire_shape, _Subject(self), splits=_SPLITS)
        require(not found, "\n".join(found))

    @check("recordings", "docs/testing.md#recordings", slow=True)
    def test_recording(
        self, recorded_session: list[Recording] | None, pytestconfig: pytest.Config
    ) -> None:
        """A recorded session gives what the vendor's SDK made of it, and goes on as recorded."""
        if recorded_session is None:
            self.require_wire()
            not_claimed(self._why_nothing_is_replayed(pytestconfig.getoption("corpus", None)))
        subject = _Subject(self, without=("model",))
        found = [
            f"{way}: {difference}"
            for way in (EVERY_WAY if pytestconfig.getoption("corpus_thorough", False) else WAYS)
            for difference in session_differences(
                play_session(recorded_session, lambda _: subject, way)
            )
        ]
        require(not found, "\n".join(found))
