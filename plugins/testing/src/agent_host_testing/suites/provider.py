"""`ProviderConformance`: everything that is asked of a provider, and what it claims with tags."""

from __future__ import annotations

from agent_host.plugins.catalog import PluginRecord
from agent_host_testing.suites.addresses import AddressChecks
from agent_host_testing.suites.answers import AnswerChecks
from agent_host_testing.suites.batches import BatchChecks
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.conversation import ConversationChecks
from agent_host_testing.suites.costs import CostChecks
from agent_host_testing.suites.declared_tools import DeclaredToolChecks
from agent_host_testing.suites.failures import FailureChecks
from agent_host_testing.suites.history import HistoryChecks
from agent_host_testing.suites.interleaving import InterleavingChecks
from agent_host_testing.suites.knobs import KnobChecks
from agent_host_testing.suites.markup import MarkupChecks
from agent_host_testing.suites.pictures import PictureChecks
from agent_host_testing.suites.restraint import RestraintChecks
from agent_host_testing.suites.secrecy import SecrecyChecks
from agent_host_testing.suites.speech import SpeechChecks
from agent_host_testing.suites.tool_search import ToolSearchChecks
from agent_host_testing.suites.tool_turns import ToolTurnChecks
from agent_host_testing.suites.wire_shapes import ShapeChecks
from agent_host_testing.violations import require

__all__ = ["ProviderConformance"]


# pytest runs the last base's checks first: so the plainest are there.
class ProviderConformance(
    ShapeChecks,
    SecrecyChecks,
    BatchChecks,
    CostChecks,
    FailureChecks,
    SpeechChecks,
    HistoryChecks,
    InterleavingChecks,
    AddressChecks,
    PictureChecks,
    RestraintChecks,
    MarkupChecks,
    KnobChecks,
    ConversationChecks,
    ToolSearchChecks,
    DeclaredToolChecks,
    ToolTurnChecks,
    AnswerChecks,
):
    """Subclass it in a test file and say which provider is meant.

    ::

        class TestAcme(ProviderConformance):
            package = "agent_host_acme"
            plugin = "acme"
            wire = "openai.chat"
            settings = {"model": "acme-1"}

    Checks of capabilities that the provider's tags do not claim (``supports_tools``,
    ``supports_reasoning``) are reported as not claimed.
    """

    @check("tags", "docs/hooks.md#provider-get_tags")
    def test_tags(self) -> None:
        """A provider is known by the tag provider:NAME, and asked or not its tags agree."""
        plugin = self.loaded()
        server = None if self.wire is None else self.serve()
        config = self.request_config(server)
        with self.host() as host:
            tags, models = host.core.get_tags(config), host.core.get_models(config)
        wanted = f"provider:{self.plugin}"
        require(wanted in tags, f"{wanted!r} is not among {tags}")
        for hook in plugin.implementations.get("get_tags", ()):
            asked = hook.call(config, models)
            missing = sorted({*plugin.entry.provides_tags} - {*asked})
            require(not missing, f"provides_tags has {missing}, which get_tags does not give")

    def gated_records(self) -> list[PluginRecord]:
        """All that go with the provider in its package."""
        return [record for record in self.own_records() if record.role != "provider"]
