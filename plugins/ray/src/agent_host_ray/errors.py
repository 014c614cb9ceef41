"""What keeps a cluster from answering lines."""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = ["ClusterError", "FilesError", "LostLineError"]


class ClusterError(AgentError):
    """A Ray cluster cannot be reached, or cannot answer the lines of a batch."""


class LostLineError(ClusterError):
    """A line has no answer, because every worker was lost that tried."""


class FilesError(AgentError):
    """Lines cannot be read, or results not be written, where they were said to be."""
