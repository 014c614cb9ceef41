"""The version of this distribution and of the contract it holds."""

from __future__ import annotations

__all__ = ["API_VERSION", "__version__"]

#: The version of this distribution.
__version__ = "0.1.0"

#: The contract's own version, which a descriptor's ``api`` range is checked against. The first
#: number changes when a plugin written for the old contract would break.
API_VERSION = "1.0"
