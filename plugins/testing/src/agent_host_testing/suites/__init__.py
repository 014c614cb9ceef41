"""The suites to subclass, one for each role, and what they are made of."""
