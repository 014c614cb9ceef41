"""Text of skills on its way to a terminal: shown, never obeyed.

Whoever wrote a skill wrote for a model. Nothing of it moves the cursor, recolours the screen, or
hides from the person who reads it.
"""

from __future__ import annotations

from agent_host_skills.problems import Problem

__all__ = ["describe_problem", "show_line", "show_lines"]

#: What counts as a letter or a mark, and is shown as nothing.
_INVISIBLE = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)


def show_line(text: str) -> str:
    """Foreign text as one line, with a number for whatever cannot be seen."""
    return "".join(map(_show, " ".join(text.split("\n"))))


def show_lines(text: str) -> str:
    """The same for text of several lines."""
    return "".join(each if each in "\n\t" else _show(each) for each in text)


def describe_problem(problem: Problem) -> str:
    """A problem in one line: where, what, what it costs, and what to do."""
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
    key = f"{problem.key}: " if problem.key else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return show_line(f"{place}: {key}{problem.message}{hint}")


def _show(letter: str) -> str:
    code = ord(letter)
    if letter.isprintable() and code not in _INVISIBLE:
        return letter
    # The picture of a control character, which Unicode has for each of them.
    return chr(0x2400 + code) if code < 0x20 else f"<U+{code:04X}>"
