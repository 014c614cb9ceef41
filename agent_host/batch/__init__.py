"""Many prompts at once, each a line of a file or an item of a list, and a result for each.

Lines are read and checked, an engine has them answered under the limits that all workers share, and
results are written so that a batch that ends early is gone on with. It must not know any provider,
nor what an answer costs.
"""

from __future__ import annotations

from agent_host.batch.batch import AsyncBatch, Batch, BatchOptions
from agent_host.batch.errors import BatchError
from agent_host.batch.progress import BatchProgress
from agent_host.batch.results import BatchResult

__all__ = ["AsyncBatch", "Batch", "BatchError", "BatchOptions", "BatchProgress", "BatchResult"]
