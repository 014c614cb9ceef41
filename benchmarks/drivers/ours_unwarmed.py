"""The host as it is when nobody asked it to warm up: JSON is decoded by the standard library."""

from __future__ import annotations

from benchmarks.drivers import ours


class Driver(ours.Driver):
    warm = False
