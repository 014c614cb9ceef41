"""``python -m agent_host`` does what ``agent-host`` does."""

from __future__ import annotations

import sys

from agent_host.cli import main

sys.exit(main())
