"""The folder as a command."""

from __future__ import annotations

import sys
from pathlib import Path

# Where the package itself is found: Python looks only inside the folder that it was given.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from breakages.command import main

raise SystemExit(main(sys.argv[1:]))
