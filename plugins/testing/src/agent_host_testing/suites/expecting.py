"""What a suite expects its plugin to claim: a claim that gets lost must not switch its checks off.

What a claim is, a tag or a hook, is for the suites of the roles to say.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import pytest

from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.package import PackageConformance
from agent_host_testing.violations import require

__all__ = ["UNEXPECTED", "ClaimConformance"]

#: The name under which pytest's reports carry claims that the suite does not expect.
UNEXPECTED = "conformance_unexpected"


class ClaimConformance(PackageConformance):
    """A suite about a plugin that is checked for what it claims.

    ``expects`` has what the plugin is expected to claim; ``claims_are`` is how claims of the role
    are called.
    """

    expects: ClassVar[Sequence[str] | None] = None
    claims_are: ClassVar[str]

    def claimed(self) -> Collection[str]:
        """What the plugin claims."""
        raise NotImplementedError

    @check("claims", "docs/testing.md#passed-failed-not-claimed")
    def test_claims(self, request: pytest.FixtureRequest) -> None:
        """The plugin claims what its suite expects of it."""
        claimed = self.claimed()
        told = ", ".join(map(repr, sorted(claimed)))
        if self.expects is None:
            not_claimed(f"nothing is expected; now it could be 'expects = ({told},)'")
        lost = [each for each in self.expects if each not in claimed]
        require(
            not lost,
            f"{', '.join(lost)} is expected and not claimed, so it is not checked; "
            f"the {self.claims_are} are {told or 'none'}",
        )
        unexpected = sorted({*claimed} - {*self.expects})
        request.node.user_properties.append((UNEXPECTED, unexpected))
