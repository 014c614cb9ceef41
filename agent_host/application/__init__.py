"""Config, installed plugins and the tool loop around a core: what most programs use.

`application` is the façade; `run_maker` makes runs of what a caller gives it, which `options` and
`limits` describe; `answer` says what a run came to, `request_config` which settings a request has,
and `storage` where it is stored. `observers` says who is shown its events: plugins, `watching`
programs, and the log with its `story`.
"""

from __future__ import annotations

from agent_host.application.answer import Answer
from agent_host.application.application import AgentApplication

__all__ = ["AgentApplication", "Answer"]
