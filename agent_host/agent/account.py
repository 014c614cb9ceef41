"""What a run has used and cost, and the budgets that it must not pass.

Here everything is added up and compared; who is told, and that the run ends, is the loop's affair.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from agent_hookspecs.messages import CoreMessage, Limit, Usage
from agent_hookspecs.values import dataclass
from agent_host.agent.costs import Budget, RunCosts, estimate_input, find_passed
from agent_host.agent.limits import Limits, Spending
from agent_host.drivers.effects import Call, Steps
from agent_host.turn.turn import Warnings
from agent_host.usage import add_usage, cost_of

if TYPE_CHECKING:
    from agent_host.plugins.stack import Stack
    from agent_host.runs.recorder import RunRecorder
    from agent_host.sessions.session import Session

__all__ = ["RunAccount"]


@dataclass(slots=True)
class RunAccount:
    """The account of one run, in which the runs that it makes are counted too.

    ``costs`` prices answers; without it only what providers tell is known. ``recorder`` knows what
    other runs have cost, if they are stored. ``warnings`` takes what is to be said of costs.
    ``parent`` is the account of the run that this one is a part of. ``usage`` is that of all turns.
    """

    limits: Limits
    warnings: Warnings
    costs: RunCosts | None = None
    recorder: RunRecorder | None = None
    parent: RunAccount | None = None
    usage: Usage = field(default_factory=lambda: cast(Usage, {}))
    #: What the runs that it made have used; their own records say so too, but not whose they were.
    children_usage: Usage = field(default_factory=lambda: cast(Usage, {}))
    spending: Spending = field(init=False)
    #: What the session had cost before this run; read when a budget first asks.
    _session_cost: Decimal | None = None
    #: Children that run at once report at once.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.spending = Spending(self.limits)

    # --- counting --------------------------------------------------------------------------------

    def add_usage(self, usage: Usage) -> None:
        """Count what an answer has used."""
        with self._lock:
            self._count(usage)

    def add_child_usage(self, usage: Usage) -> None:
        """Count what a run has used that this one has made; its own record says so, too."""
        with self._lock:
            self._count(usage)
            self.children_usage = add_usage(self.children_usage, usage)

    def go_on_from(self, usage: Usage, children_usage: Usage, *, calls: int) -> None:
        """Count what a stored run has used that goes on now."""
        self.children_usage = children_usage
        self.spending.calls = calls
        self._count(add_usage(usage, children_usage))

    def _count(self, usage: Usage) -> None:
        self.spending.add_usage(usage)
        self.usage = add_usage(self.usage, usage)
        if self.has_unknown_cost:
            self.usage.pop("cost", None)

    @property
    def has_unknown_cost(self) -> bool:
        """Whether some answer came whose cost nobody knows, so that the whole is not known."""
        return self.spending.has_unknown_cost

    def note_unknown_cost(self) -> None:
        """An answer came of which nobody says what it has used."""
        self.spending.has_unknown_cost = True
        self.usage.pop("cost", None)

    def note_missing_usage(self, messages: Iterable[CoreMessage]) -> None:
        """Note it if these are an answer of which nobody says what it has used."""
        if not any(message["metadata"].get("usage") for message in messages):
            self.note_unknown_cost()

    def cost_with(self, usage: Usage) -> Decimal | None:
        """What the run's own turns, of this usage, and its children have cost, if it is known."""
        if self.has_unknown_cost:
            return None
        return cost_of(add_usage(usage, self.children_usage))

    def add_cost(self, usage: Usage, stack: Stack) -> Usage:
        """What an answer has used, with what that costs if anybody knows."""
        if self.costs is None:
            return usage
        return self.costs.add_cost(usage, stack, self.warnings.add)

    def payer_of(self, stack: Stack) -> str:
        """Who is billed for a turn."""
        return stack.provider.name if self.costs is None else self.costs.account_of(stack)

    # --- limits and budgets ----------------------------------------------------------------------

    def reached_limit(self) -> Limit | None:
        """The limit that ends the run after this turn: its own, or that of all it is a part of."""
        limit, outer = self.spending.reached_limit(), self.parent
        while limit is None and outer is not None:
            limit, outer = outer.spending.reached_shared_limit(), outer.parent
        return limit

    def find_passed_budget(self, stack: Stack, session: Session) -> Steps[Limit | None]:
        """The budget that the next request would pass, which ``warnings`` has words for."""
        budgets = yield from self._read_budgets(stack)
        if not budgets:
            return None
        next_cost = self._highest_cost(stack, session.messages)
        passed = find_passed(budgets, next_cost)
        if passed is not None:
            self.warnings.add(passed.describe(next_cost))
        elif self.has_unknown_cost:
            passed = budgets[0]
            self.warnings.add(
                f"{passed.limit} is set, and what an answer has cost is not known. Nothing more is "
                f"sent; state what {_model_name(stack)} costs under prices in the config"
            )
        elif next_cost is None:
            self.warnings.add(
                f"{budgets[0].limit} is set, and what {_model_name(stack)} costs is not known: it "
                "counts only what the provider tells afterwards; state it under prices in the "
                "config, or install agent-host-prices"
            )
        return None if passed is None else passed.limit

    def _highest_cost(self, stack: Stack, messages: Iterable[CoreMessage]) -> Decimal | None:
        """The most that a request with these messages should cost; None if nobody knows."""
        prices = None if self.costs is None else self.costs.find(stack, self.warnings.add)
        if prices is None:
            return None
        # Without a longest answer only what is sent counts before it is known.
        longest = stack.config.get("max_output_tokens")
        tools = [each.schema for each in stack.descriptors]
        return prices.highest_cost(
            estimate_input(messages, tools), longest if isinstance(longest, int) else 0
        )

    def _read_budgets(self, stack: Stack) -> Steps[list[Budget]]:
        """All that this run must not pass, with what was spent of it by now."""
        found: list[Budget] = []
        account: RunAccount | None = self
        while account is not None:
            # A part of another run spends what that one has.
            root = account
            if root.limits.cost is not None:
                found.append(Budget.of("max_cost", root.limits.cost, root.spending.cost))
            account = root.parent
        limits, recorder = self.limits, self.recorder
        if recorder is None or limits.needs_store is None:
            return found
        if limits.session_cost is not None:
            before = yield from root._read_cost_before()
            spent = before + root.spending.cost
            found.append(Budget.of("max_session_cost", limits.session_cost, spent))
        if limits.key_cost is None and limits.day_cost is None:
            return found
        costs: Mapping[str, Decimal] = yield Call(recorder.read_day_costs)
        payer, key_cost = self.payer_of(stack), limits.key_cost
        amount = key_cost.get(payer) if isinstance(key_cost, Mapping) else key_cost
        if amount is not None:
            found.append(Budget.of("max_key_cost", amount, costs.get(payer, Decimal(0))))
        if limits.day_cost is not None:
            spent = sum(costs.values(), Decimal(0))
            found.append(Budget.of("max_day_cost", limits.day_cost, spent))
        return found

    def _read_cost_before(self) -> Steps[Decimal]:
        """What the session had cost when the run began; nobody else can add to it meanwhile."""
        if self._session_cost is None and self.recorder is not None:
            self._session_cost = yield Call(self.recorder.read_session_cost)
        return self._session_cost or Decimal(0)


def _model_name(stack: Stack) -> str:
    return "/".join(filter(None, (stack.provider.name, stack.config.get("model"))))
