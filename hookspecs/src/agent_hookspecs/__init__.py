"""The contract between Agent Host and its plugins.

A plugin imports this package and nothing of the host. What the contract is stands here, what helps
to write plugins in `agent_hookspecs.authoring`. Names are loaded when first used, so that a host
which only lists plugins does not pay for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hookspecs._version import *
    from agent_hookspecs.errors import *
    from agent_hookspecs.events import *
    from agent_hookspecs.logs import *
    from agent_hookspecs.markers import *
    from agent_hookspecs.messages import *
    from agent_hookspecs.roles import *
    from agent_hookspecs.session import *


def _lazy_names(
    namespace: dict[str, Any], module_names: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that offers what its modules offer.

    ``module_names`` has a space between them. A name is looked for from the first to the last, and
    none is imported after the one that has it; so those that every plugin needs come first, and
    those that cost most come last.
    """
    package, modules = namespace["__name__"], module_names.split()

    def load_name(name: str) -> Any:
        if name == "__all__":
            return list_names()
        # The import system asks for a module too, before it looks for the file.
        for module in modules if name not in modules else ():
            found = import_module(f"{package}.{module}")
            if name in found.__all__:
                value = namespace[name] = getattr(found, name)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_names() -> list[str]:
        loaded = [import_module(f"{package}.{module}") for module in modules]
        return sorted(name for module in loaded for name in module.__all__)

    return load_name, list_names


__getattr__, __dir__ = _lazy_names(
    globals(), "_version messages errors roles markers logs session events"
)
