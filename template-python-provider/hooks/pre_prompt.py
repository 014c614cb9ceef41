"""Suggests the author that git knows, before anything is asked.

Cookiecutter runs this file in a copy of the template, whose questions it may change;
``agent-host plugins new`` loads it and asks it. So it needs the standard library only.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

#: The questions, and what git calls the answers.
GIT_NAMES = {"author": "user.name", "email": "user.email"}


def git_answers() -> dict[str, str]:
    """What git is configured with; nothing where there is no git, or it knows nobody."""
    found = {}
    for key, name in GIT_NAMES.items():
        try:
            told = subprocess.run(
                ["git", "config", "--get", name],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=10,
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        if told.returncode == 0 and told.stdout.strip():
            found[key] = told.stdout.strip()
    return found


if __name__ == "__main__":
    file = Path("cookiecutter.json")
    questions = json.loads(file.read_text("utf-8"))
    # What begins an instruction of the template's own would be taken for one.
    given = {key: value for key, value in git_answers().items() if "{" not in value}
    file.write_text(json.dumps({**questions, **given}, indent=2), "utf-8")
