"""`Agent`: one agent of an application, to run by itself or to be called by others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.roles import Effect
from agent_host.agent.children import AgentTool
from agent_host.agent.limits import Limits, LimitSettings
from agent_host.application.answer import answer_of_run

if TYPE_CHECKING:
    from agent_host.agent.loop import AgentRun
    from agent_host.application.run_maker import RunMaker

__all__ = ["Agent"]


class Agent:
    """An agent that the config describes, by its name."""

    def __init__(self, name: str, runs: RunMaker) -> None:
        # An agent that is not there is refused at once.
        runs.config.system_prompt(name)
        self.name = name
        self._runs = runs

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "read",
        limits: Limits | LimitSettings | None = None,
        tools: Iterable[object] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> AgentTool:
        """The agent as a tool that takes a prompt and gives its answer.

        Each call is a run of its own, with ``limits`` of its own, whose calls are decided about
        like any others: so calling it changes nothing by itself, unless ``effect`` says otherwise.
        Who approves and what the tools are given is what its parent has; it cannot wait for people
        who are not there.
        """
        own_tools, own_settings = tuple(tools), dict(settings or {})

        def begin(prompt: str, parent: AgentRun) -> AgentRun:
            return self._runs.begin_run(
                prompt,
                asynchronous=parent.setup.asynchronous,
                agent=self.name,
                parent=parent.run_id,
                park=False,
                settings=own_settings,
                tools=own_tools,
                deps=parent.setup.deps,
                approve=parent.setup.approve,
                ask=parent.setup.ask,
                limits=limits,
                context=parent.setup.context,
            )

        said = description or f"Ask the agent {self.name!r}."
        return AgentTool(self.name, name or self.name, said, effect, begin, _text_of)


def _text_of(run: AgentRun) -> str:
    return answer_of_run(run).text
