"""Requests and answers in files: written as they go over the wire, and played back without one.

A cassette is a folder with a file for each exchange, in the form in which the testing kit reads
recorded traffic. It must not know what any of it means.
"""

from __future__ import annotations

from agent_host.wire.cassettes.errors import CassetteError, ReplayMissError
from agent_host.wire.cassettes.folder import Recorder, Replayer

__all__ = ["CassetteError", "Recorder", "ReplayMissError", "Replayer"]
