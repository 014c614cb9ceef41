"""The environment of measured processes: alike for all, and like that of an installed program."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache

__all__ = ["environment"]


def environment() -> dict[str, str]:
    """Ours, without proxies, which are not what is measured, and without anybody calling home.

    Installers leave bytecode behind; a tree that is worked on, or a setting, may lack it. So it is
    kept in a folder of its own for as long as the run lasts.
    """
    known = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    known.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **known,
        "PYTHONPYCACHEPREFIX": _bytecode(),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


@cache
def _bytecode() -> str:
    folder = tempfile.mkdtemp(prefix="benchmarks-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
