"""What is wrong with a skill or a package, as a value: where, what, and what it costs.

The rules themselves are not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Loss", "Problem"]

#: What is left out because of a problem; empty if nothing is.
Loss = Literal["", "source", "package", "skills", "skill", "servers", "server", "file"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in ``file``, under ``key`` and on ``line`` as far as there are any.

    ``lost`` is what is left out for it. What is only ``advice`` breaks no rule.
    """

    file: str
    message: str
    hint: str = ""
    key: str = ""
    line: int | None = None
    lost: Loss = ""
    advice: bool = False

    def to_dict(self) -> dict[str, object]:
        """As data, for programs."""
        return {
            "file": self.file,
            "line": self.line,
            "key": self.key or None,
            "message": self.message,
            "hint": self.hint or None,
            "lost": self.lost or None,
            "advice": self.advice,
        }
