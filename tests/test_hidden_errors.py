"""No error is hidden: whoever catches one raises, uses, logs or tells it, or says why it may not.

The source is read, not run. A handler that does nothing with its error, and every ``suppress``, has
a comment of the form ``# Nothing is lost: …`` that says in a sentence why nobody has to know.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("agent_host", "hookspecs/src", "plugins/*/src")
#: What is raised to say that something is over, and is no error.
SIGNALS = {"StopIteration", "StopAsyncIteration", "Empty"}
#: A sentence, which may go on in the lines below.
REASON = re.compile(r"# Nothing is lost: \S.{10,}")
#: Who tells a person, a program or a log of an error.
TELLERS = {"log", "log_failure", "warn", "warnings", "echo"}


def sources() -> Iterator[Path]:
    for room in ROOMS:
        for folder in ROOT.glob(room):
            yield from sorted(folder.rglob("*.py"))


def hidden_errors(source: str) -> list[int]:
    """The lines at which an error is caught and nothing becomes of it."""
    lines = source.splitlines()
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            first, last = node.lineno, node.body[0].end_lineno or node.lineno
            if (
                not is_signal(node.type)
                and not uses_error(node)
                and not says_why(lines, first, last)
            ):
                found.append(first)
        elif (
            isinstance(node, (ast.With, ast.AsyncWith))
            and any(map(is_suppress, node.items))
            and not says_why(lines, node.lineno, node.body[0].lineno)
        ):
            found.append(node.lineno)
    return found


def names_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def is_signal(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(
        each is not None and next(names_in(each), "").rpartition(".")[2] in SIGNALS
        for each in kinds
    )


def uses_error(handler: ast.ExceptHandler) -> bool:
    """Whether something is raised, or said, or the error goes on by its name."""
    for node in (each for statement in handler.body for each in ast.walk(statement)):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Name) and node.id == handler.name:
            return True
        if isinstance(node, ast.Call) and not TELLERS.isdisjoint(names_in(node.func)):
            return True
    return False


def is_suppress(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and "suppress" in names_in(call.func)


def says_why(lines: list[str], first: int, last: int) -> bool:
    return any(REASON.search(line) for line in lines[max(first - 1, 0) : last])


@pytest.mark.parametrize("file", [*sources()], ids=lambda file: str(file.relative_to(ROOT)))
def test_no_error_is_hidden(file: Path) -> None:
    found = hidden_errors(file.read_text("utf-8"))
    assert not found, f"{file.relative_to(ROOT)}: an error is hidden at lines {found}"


@pytest.mark.parametrize(
    ("body", "hidden"),
    [
        ("except ValueError:\n    pass", True),
        ("except ValueError as error:\n    result = None", True),
        ("except ValueError:\n    return None", True),
        ("except ValueError:  # Nothing is lost: the caller looks again.\n    pass", False),
        ("except ValueError:\n    # Nothing is lost: the caller looks again.\n    pass", False),
        ("except ValueError:  # Nothing is lost:\n    pass", True),
        ("except ValueError as error:\n    result = error", False),
        ("except ValueError as error:\n    raise KeyError from error", False),
        ("except ValueError:\n    log.warning('broken')", False),
        ("except StopIteration:\n    pass", False),
        ("except (StopIteration, KeyError):\n    pass", True),
        ("except:\n    pass", True),
    ],
)
def test_a_handler_that_hides_an_error_is_found(body: str, hidden: bool) -> None:
    source = f"def work():\n    try:\n        begin()\n{textwrap.indent(body, '    ')}\n"
    assert bool(hidden_errors(source)) == hidden


@pytest.mark.parametrize(
    ("comment", "hidden"), [("", True), ("  # Nothing is lost: it may be closed by now.", False)]
)
def test_a_suppressed_error_is_found(comment: str, hidden: bool) -> None:
    source = f"with contextlib.suppress(OSError):{comment}\n    close()\n"
    assert bool(hidden_errors(source)) == hidden
