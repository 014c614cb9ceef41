"""What the host costs, as ratios to plain code that does the same: ``python -m benchmarks``."""
