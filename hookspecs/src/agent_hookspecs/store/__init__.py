"""Where sessions and runs are stored: what a store must offer, and what all stores share.

The protocol, the values that go in and out, the errors, and the pure rules (how content is encoded
and addressed, who is alive, what retention removes) that every store follows alike. Whoever writes
a store needs this room alone; plugins that store nothing need none of it. Names are loaded when
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_hookspecs import _lazy_names

if TYPE_CHECKING:
    from agent_hookspecs.store.encoding import *
    from agent_hookspecs.store.errors import *
    from agent_hookspecs.store.options import *
    from agent_hookspecs.store.owners import *
    from agent_hookspecs.store.protocol import *
    from agent_hookspecs.store.rules import *
    from agent_hookspecs.store.tables.database import *
    from agent_hookspecs.store.tables.schema import *
    from agent_hookspecs.store.tables.store import *
    from agent_hookspecs.store.values import *

__getattr__, __dir__ = _lazy_names(
    globals(),
    "errors values protocol options owners encoding rules "
    "tables.database tables.schema tables.store",
)
