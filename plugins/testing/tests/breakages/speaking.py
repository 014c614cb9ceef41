"""Breakages of features that speak to models, or act on sessions: of ``skills`` and ``context``."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add
from breakages.wrapping import around

__all__ = ["BREAKAGES"]

_SKILLS = ("skills", "feature.py", "Skills", "TestSkills")
_MANY = ("context", "many_tools.py", "ManyTools", "TestManyTools")
_COMPACTION = ("context", "feature.py", "Compaction", "TestCompaction")
_Subject = tuple[str, str, str, str]


def _breakage(
    subject: _Subject, name: str, kind: str, sentence: str, red: str, change: Change
) -> Breakage:
    distribution, _, owner, suite = subject
    judge = Suite(distribution, f"test_{distribution}_conformance", suite)
    whole = f"{distribution}-{owner.lower()}-{name}"
    return Breakage(distribution, judge, whole, kind, sentence, (red,), (change,))


def _around(subject: _Subject, hook: str, lines: str) -> Change:
    return around(subject[1], subject[2], hook, lines)


def _append(subject: _Subject, code: str) -> Change:
    return add(subject[1], code.format(owner=subject[2]))


def _speaking(subject: _Subject) -> tuple[Breakage, ...]:
    """What a feature with ``get_instructions`` can get wrong."""
    return (
        _breakage(
            subject,
            "falls-silent",
            "claims",
            "The feature has nothing more to say to models, and its hook is gone.",
            "test_claims",
            _append(subject, "del {owner}.get_instructions\n"),
        ),
        _breakage(
            subject,
            "writes-what-it-said",
            "persistence",
            "What was said to models is written into a file.",
            "test_nothing_is_written_elsewhere",
            _around(
                subject,
                "get_instructions",
                'with open("said.txt", "a") as file:\n    file.write("said")\nreturn ask()',
            ),
        ),
    )


def _usual(subject: _Subject) -> tuple[Breakage, ...]:
    """What any feature can get wrong."""
    misspelt = "def _init(self, state): ...\n\n\n{owner}.finalise = _init\n"
    return (
        _breakage(
            subject,
            "misspells-a-hook",
            "packages",
            "A method has nearly the name of a hook, and so is never called.",
            "test_hooks_are_spelt_right",
            _append(subject, misspelt),
        ),
        _breakage(
            subject,
            "is-described-as-another",
            "packages",
            "The class has another label than the descriptor.",
            "test_descriptor_equals_code",
            _append(subject, '{owner}.label = "Another"\n'),
        ),
        _breakage(
            subject,
            "starts-a-thread",
            "packages",
            "Importing the package does work.",
            "test_import_does_no_work",
            _append(subject, "import threading\n\nthreading.Thread(target=int).start()\n"),
        ),
    )


BREAKAGES: tuple[Breakage, ...] = (
    *_speaking(_SKILLS),
    *_speaking(_MANY),
    *_usual(_SKILLS),
    *_usual(_MANY),
    *_usual(_COMPACTION),
    _breakage(
        _COMPACTION,
        "has-no-action",
        "claims",
        "The action is gone.",
        "test_claims",
        _append(_COMPACTION, "del {owner}.get_actions\ndel {owner}.execute_action\n"),
    ),
    _breakage(
        _COMPACTION,
        "acts-on-the-session",
        "what others keep",
        "The action changes the metadata of the session that it is given.",
        "test_actions_change_nothing_themselves",
        _around(
            _COMPACTION,
            "execute_action",
            'session.metadata["compacted"] = True\nreturn ask()',
        ),
    ),
    _breakage(
        _COMPACTION,
        "writes-what-it-did",
        "persistence",
        "The action writes into a file that it has run.",
        "test_nothing_is_written_elsewhere",
        _around(
            _COMPACTION,
            "execute_action",
            'with open("done.txt", "a") as file:\n    file.write(action_id)\nreturn ask()',
        ),
    ),
)
