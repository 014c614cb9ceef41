"""A folder and an environment in which the commands of a page are run as they stand there.

The environment sees what this one has installed and nothing else: no index, no network. It must not
know the pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from documented import Block, Command, changed, commands, same_output

__all__ = ["Workshop"]

#: Installing goes on as a page says it, from what is there already.
PIP = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    # pip reads this one the other way round: false switches isolation off.
    "PIP_NO_BUILD_ISOLATION": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_CONFIG_FILE": os.devnull,
}


class Workshop:
    """Where a page is followed, block by block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "work"
        self.folder.mkdir()
        programs = _environment(root / "venv")
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
            **PIP,
            "PATH": os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)]),
            "AGENT_HOST_HOME": str(root / "home"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
        }

    def follow(self, block: Block) -> None:
        """Run the block's commands, or write or change the file that it names."""
        if block.language in ("console", "sh"):
            for command in commands(block):
                self.run(command, block.where)
        elif block.file:
            self._write(block)
        else:
            raise AssertionError(f"{block.where}: no file is named before the block")

    def _write(self, block: Block) -> None:
        file = self.folder / block.file
        text = block.text
        if block.language == "diff":
            text = changed(file.read_text("utf-8"), block.text)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def run(self, command: Command, where: str) -> None:
        """Run one command; its end and its output must be those of the page."""
        ended_in = self.root / "ended-in"
        done = subprocess.run(
            ["bash", "-c", f'{command.line}\nended=$?; pwd > "{ended_in}"; exit $ended'],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=300,
            check=False,
        )
        said = f"{where}: $ {command.line}\n{done.stdout}"
        assert (done.returncode != 0) is command.fails, f"{said}ended with {done.returncode}"
        if command.output:
            same = same_output(command.output, done.stdout)
            assert same, f"{said}\nand not as the page says:\n{command.output}"
        # A command may have changed the folder, and the next one is typed there.
        self.folder = Path(ended_in.read_text("utf-8").strip())
        assert self.folder.is_relative_to(self.root), f"{said}\nleft {self.root}"


def _environment(folder: Path) -> Path:
    """An environment that sees what this one sees; where its programs are."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    seen = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    # Each as a site folder: editable installs are lines in files there.
    lines = [f"import site; site.addsitedir({each!r})\n" for each in seen]
    (packages / "what_this_one_sees.pth").write_text("".join(lines), encoding="utf-8")
    script = folder / "bin" / "agent-host"
    code = "import sys; from agent_host.cli import main; sys.exit(main())"
    script.write_text(f"#!/bin/sh\nexec {folder}/bin/python -c '{code}' \"$@\"\n", "utf-8")
    script.chmod(0o755)
    return folder / "bin"
