"""Whether released plugins work: each on several Pythons, with several hosts and contracts.

Every combination is a cell, tried in a fresh environment that tox makes. It installs nothing into
the environment that it runs in, and knows plugins by their wheels alone.
"""
