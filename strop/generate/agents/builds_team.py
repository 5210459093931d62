"""MasHost (2506.08507): the policy builds a team for each question, and the team it built answers.

Papers: mashost
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.multi_agent.agent_graph import EXIT, HOST, ROLES, AgentGraph, heard_of, host_reads
from strop.errors import ConfigurationError
from strop.generate.agents.support.peer_messages import told_by_others
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class BuildsTeam(Agent):
    """The host says one action at a time and hears what became of it; then every agent speaks once, in order.

    An agent reads the question in the words of its role, and behind it what those said that it reads. The agent that
    was added last answers the world. A host that never exits is taken at its word after `most` * 2 actions; without an
    agent nobody answers.
    """

    most: int = 3  # agents at a time

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ConfigurationError(f"BuildsTeam needs most >= 1, got {self.most}")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "BuildsTeam begins at the beginning: use a strategy that does not go on from a middle"
            )
        await environment.reset(task)
        graph = await self._built(dialogue.aside(host_reads(task), HOST))
        answer = await self._answered(task, dialogue, graph)
        paid = (await environment.step(answer)).reward
        return () if paid is None else (*[0.0] * (len(dialogue.turns) - 1), paid)

    async def _built(self, host: Dialogue) -> AgentGraph:
        graph = AgentGraph(self.most)
        for _ in range(2 * self.most):
            if host.is_cut:
                break
            action = (await host.reply()).content
            after = graph.after(action)
            if after is not None and action.split() == [EXIT]:
                break
            graph = after or graph
            host.hear([heard_of(after)])
        return graph

    async def _answered(self, task: Task, dialogue: Dialogue, graph: AgentGraph) -> Message:
        """The last agent's word; those before it speak aside."""
        said: dict[int, str] = {}
        for number, (role, edges) in graph.agents.items():
            *before, question = told_by_others(task, [said[edge] for edge in edges if edge in said])
            read = (*before, replace(question, content=ROLES[role].format(question=question.content)))
            if number == max(graph.agents):
                dialogue.restart(read, role)
                return Message("assistant", "") if dialogue.is_cut else await dialogue.reply()
            talk = dialogue.aside(read, role)
            if not talk.is_cut:
                said[number] = (await talk.reply()).content
        return Message("assistant", "")
