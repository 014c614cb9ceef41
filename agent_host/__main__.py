"""``python -m agent_host`` does what ``agent-host`` does."""

from __future__ import annotations

import os
import sys

# Python puts the working folder first on the path, where anybody's packages may lie, and metadata
# that says they were installed. The command has it nowhere; only a source tree needs it.
_TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if sys.path and sys.path[0] in ("", os.getcwd()) and os.getcwd() != _TREE:
    del sys.path[0]

from agent_host.cli import main  # noqa: E402 - only now nothing is taken from the working folder

sys.exit(main())
