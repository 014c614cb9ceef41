"""The environment that the host runs in: who made it, and which installer its owner uses.

It must not know what is installed there, nor change anything.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from agent_hookspecs.values import dataclass
from agent_host.distributions.errors import DistributionError

__all__ = ["Environment", "InstallerName", "find_environment"]

InstallerName = Literal["pip", "uv"]
Maker = Literal["venv", "uv", "uv tool", "pipx"]


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with distributions of its own, and who changes them: pip, or the program ``uv``."""

    python: str
    prefix: Path
    maker: Maker
    installer: InstallerName
    uv: str = ""

    @property
    def folders(self) -> list[Path]:
        """Where installers put files: modules of both kinds, and scripts."""
        paths = [sysconfig.get_path(name) for name in ("purelib", "platlib", "scripts")]
        return [*dict.fromkeys(Path(path).resolve() for path in paths)]


def find_environment(installer: InstallerName | None = None) -> Environment:
    """The environment of this process, unless it is one that nobody should change this way."""
    prefix = Path(sys.prefix)
    if (prefix / "conda-meta").is_dir():
        raise DistributionError(
            f"{prefix} belongs to conda, which would not know what is installed here",
            hint="install the host by itself: uv tool install agent-host-core",
        )
    if sys.prefix == sys.base_prefix:
        raise DistributionError(
            f"{prefix} is a Python of the system, whose distributions are not ours to change",
            hint="install the host by itself: uv tool install agent-host-core, "
            "or pipx install agent-host-core",
        )
    maker = _find_maker(prefix)
    uv = os.environ.get("UV") or shutil.which("uv") or ""
    has_pip = find_spec("pip") is not None
    chosen = installer or _choose_installer(maker, bool(uv), has_pip)
    if chosen == "uv" and not uv:
        raise DistributionError(
            f"{prefix} was made by uv, which is not on the PATH",
            hint="install uv, or let it have pip: python -m ensurepip",
        )
    if chosen == "pip" and not has_pip:
        raise DistributionError(
            f"there is no pip in {prefix}", hint="python -m ensurepip, or take --installer uv"
        )
    return Environment(sys.executable, prefix, maker, chosen, uv)


def _find_maker(prefix: Path) -> Maker:
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx"
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        # Nothing is lost: without the file nobody says that uv made it.
        lines = []
    return "uv" if any(line.partition("=")[0].strip() == "uv" for line in lines) else "venv"


def _choose_installer(maker: Maker, has_uv: bool, has_pip: bool) -> InstallerName:
    """Uv where it made the environment or where there is nothing else."""
    if maker in ("uv", "uv tool"):
        return "uv" if has_uv or not has_pip else "pip"
    return "pip" if has_pip or not has_uv else "uv"
