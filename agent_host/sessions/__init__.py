"""Conversations as values, their native history, and the actions plugins offer on them."""
