"""Random teams, said in the place of whoever builds them: how a model first learns what can be built (MasHost).

Papers: mashost
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.demonstrations import demonstrating
from strop.environments.multi_agent.agent_graph import EXIT, HOST, ROLES, AgentGraph, heard_of, host_reads
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class DemonstrateTeam(Agent):
    """1 to `most` agents of any role, each of which reads one before it or none, and then the world's own answer.

    Without the answer, a model that learns to build forgets how to solve. No team is better than another here: what is
    learned about teams is learned from rewards.
    """

    most: int = 3  # agents of a team

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        stream, graph = random.Random(dialogue.key), AgentGraph(self.most)
        host = dialogue.aside(host_reads(task), HOST)
        for number in range(stream.randint(1, self.most)):
            edges = f" {stream.randint(1, number)}" if number and stream.random() < 0.5 else ""
            action = f"{stream.choice(sorted(ROLES))}{edges}"
            host.say(Message("assistant", action))
            graph = graph.after(action) or graph
            host.hear([heard_of(graph)])
        host.say(Message("assistant", EXIT))
        await environment.reset(task)
        dialogue.restart(task.messages, "solve")
        dialogue.say(demonstrating(environment).demonstrate())
        return ()
