"""The same prompts to several models, with several settings, and checks of what they answer.

Answers are those of a batch; reports are for people, for programs and for CI. It must not know any
provider.
"""

from __future__ import annotations

from agent_host.comparison.cases import CasesError, Comparison, load_cases
from agent_host.comparison.compare import CheckedAnswer, compare
from agent_host.comparison.reports import junit_report, make_report

__all__ = [
    "CasesError",
    "CheckedAnswer",
    "Comparison",
    "compare",
    "junit_report",
    "load_cases",
    "make_report",
]
