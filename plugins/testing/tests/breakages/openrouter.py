"""Breakages of the provider of OpenRouter, whose servers sign their reasoning."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add

__all__ = ["BREAKAGES"]

_SUITE = Suite("openrouter", "test_openrouter_conformance", "TestOpenRouter")
_TESTS = "test_openrouter_provider.py::"


def _breakage(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("openrouter", _SUITE, name, kind, sentence, red, changes)


_FORGETFUL = """\
def _finalize(self: Any, native_messages: Any, state: State, context: Any = None) -> Any:
    finals, natives, state = _known(self, native_messages, state, context)
    finals[0].pop("reasoning_details", None)
    return finals, natives, state


_known = OpenRouterProvider.finalize
OpenRouterProvider.finalize = _finalize
"""

BREAKAGES = (
    _breakage(
        "openrouter-drops-details",
        "reasoning",
        "Signed reasoning is not sent back.",
        ("test_reasoning_round_trip", "test_changed_instructions_leave_the_history"),
        add("provider.py", _FORGETFUL),
    ),
    _breakage(
        "openrouter-asks-for-no-cost",
        "the vendor's own",
        "The cost of an answer is not asked for.",
        (f"{_TESTS}test_usage_with_cost_is_asked_for_and_kept",),
        Change("provider.py", 'body={"usage": {"include": True}}', "body={}"),
    ),
    _breakage(
        "openrouter-hides-its-name",
        "the vendor's own",
        "The application's name is in no header.",
        (f"{_TESTS}test_the_application_is_named_in_headers_that_config_can_change",),
        Change(
            "provider.py",
            '"X-Title": config.get("app_name")',
            '"X-Name": config.get("app_name")',
        ),
    ),
    _breakage(
        "openrouter-misroutes",
        "the vendor's own",
        "Routing is sent under a name that nobody reads.",
        (f"{_TESTS}test_routing_settings_become_keys_of_the_body",),
        Change(
            "provider.py",
            '    "routing": (\n        "provider",',
            '    "routing": (\n        "routing",',
        ),
    ),
    _breakage(
        "openrouter-ignores-effort",
        "knobs",
        "Any effort is the model's own.",
        (f"{_TESTS}test_reasoning_is_asked_for_as_an_object",),
        Change("reasoning.py", 'wanted["effort"] = effort', 'wanted["enabled"] = bool(effort)'),
    ),
    _breakage(
        "openrouter-knows-no-efforts",
        "the vendor's own",
        "A model that takes all efforts is said to take none.",
        (f"{_TESTS}test_null_efforts_are_all_and_no_word_of_them_is_none",),
        Change("listing.py", "return list(EFFORTS)", "return []"),
    ),
)
