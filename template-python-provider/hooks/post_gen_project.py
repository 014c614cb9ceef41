"""Puts together what the chosen kind consists of, from the parts that cookiecutter has rendered.

Every part lies once in the template, in ``parts/``; a kind is a list of parts. What is not chosen
is removed.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

PARTS = {
    "openai-compatible": ("provider", "openai-compatible", "application"),
    "custom-format": ("provider", "custom-format", "application"),
    "extension": ("extension",),
    "feature": ("feature",),
    "tool": ("tool", "application"),
    "feature-tool": ("feature-tool",),
    "store": ("store",),
    "mix": ("provider", "openai-compatible", "extension", "tool", "application"),
}


def assemble(root: Path, parts: list[str]) -> None:
    """Move the files of these parts to where they belong, and remove the others."""
    for cache in [*root.rglob("__pycache__")]:
        # Installers compile what they can of the template.
        shutil.rmtree(cache)
    for part in parts:
        folder = root / "parts" / part
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            place = root / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                sys.exit(f"error: two parts of the template have {place.relative_to(root)}")
            file.rename(place)
    shutil.rmtree(root / "parts")


if __name__ == "__main__":
    chosen = [*PARTS["{{ cookiecutter.kind }}"], "licence-{{ cookiecutter.licence }}"]
    assemble(Path.cwd(), chosen + (["docs"] if "{{ cookiecutter.docs }}" == "True" else []))
    if "{{ cookiecutter._tells_next }}" == "True":
        # The host, if it has called us, says more than this.
        # Environments that uv makes have no pip.
        install = "python -m pip install" if find_spec("pip") else "uv pip install"
        test = f'{install} -e ".[test]" && python -m pytest'
        sys.stdout.write(f"Next:\n  cd {shlex.quote(str(Path.cwd()))} && {test}\n")
