"""Runs and sessions that outlive their process: what a run stores, and who looks at it later."""
