"""What a breakage is: exact changes to one reference package, and the checks it turns red.

Owns how changes are made to a copy of the sources. It must not know how checks are run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TESTS", "Breakage", "Change", "descriptor", "own_error", "suite_file"]

#: Where the reference packages and their suites are.
TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Change:
    """The one place where ``old`` stands in a file of the package becomes ``new``."""

    old: str
    new: str
    file: str = "plugin.py"

    def applied(self, text: str) -> str:
        """The text with the change; a ValueError if there is not exactly one place for it."""
        places = text.count(self.old)
        if places != 1 or self.old == self.new:
            raise ValueError(f"{self.old!r} is {places} times in {self.file}, instead of once")
        return text.replace(self.old, self.new)


def descriptor(old: str, new: str) -> Change:
    """A change of the package's descriptor."""
    return Change(old, new, "agent_plugin.json")


_OWN_ERROR = """\
    def map_error(self, status: int, headers: dict[str, str], body: bytes) -> Any:
        from agent_hookspecs import errors

        if not ({condition}):
            return None
        request_id = headers["x-request-id"]
        about = {{"provider": NAME, "status": status, "request_id": request_id}}
        return errors.{error}(body.decode(), **about, **{more!r})

    def stream_complete("""


def own_error(condition: str, error: str, **more: object) -> Change:
    """A provider's own error for the refusals of which the condition is true."""
    return Change(
        "    def stream_complete(",
        _OWN_ERROR.format(condition=condition, error=error, more=more),
    )


@dataclass(frozen=True, slots=True)
class Breakage:
    """A mistake in a package. ``red`` are the checks that fail, and no others do.

    A check is named by its method, or with the case in brackets if only that one fails.
    """

    package: str
    name: str
    sentence: str
    red: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def with_shapes(self) -> bool:
        """Whether wire shapes are run: for breakages that are about them.

        They say once more, in the bytes of real servers, what other checks ask, so that nearly
        every breakage would turn some of them red too.
        """
        return any(name.startswith("test_wire_shape") for name in self.red)

    def make(self, package: Path) -> None:
        """Break the copy of the package in that folder."""
        for change in self.changes:
            file = package / change.file
            file.write_text(change.applied(file.read_text("utf-8")), encoding="utf-8")

    def judge(self, failed: Iterable[str]) -> list[str]:
        """What is wrong with the checks that failed, each named with its case in brackets."""
        failed = list(failed)
        unseen = [name for name in self.red if not any(_covers(name, each) for each in failed)]
        unexpected = [each for each in failed if not any(_covers(name, each) for name in self.red)]
        return [f"{name} stays green" for name in unseen] + [
            f"{name} turns red too" for name in unexpected
        ]


def _covers(name: str, failed: str) -> bool:
    return failed == name or failed.partition("[")[0] == name


def suite_file(package: str) -> Path:
    """The test file with the package's suite; it finds the package in a folder beside itself."""
    return TESTS / f"test_testing_{package}.py"
