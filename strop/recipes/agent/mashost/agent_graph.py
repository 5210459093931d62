"""Graph of a multi-agent team that the policy builds action by action (MasHost, 2506.08507).

Actions are text: `ROLE 1 3` adds an agent that reads the outputs of agents 1 and 3, `delete 2` removes one, `exit`
ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from strop.types import Message, Task

ROLES: Mapping[str, str] = {"solve": "{question}", "careful": "careful: {question}", "quick": "quick: {question}"}
DELETE, EXIT = "delete", "exit"
HOST = "host"  # the policy name that builds


@dataclass(frozen=True)
class AgentGraph:
    """Agents numbered in order of addition: each has a role and the numbers of the agents that it reads."""

    most: int  # agents at a time
    agents: Mapping[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    added: int = 0  # agents so far, those taken away too: numbers are never used again

    def after(self, action: str) -> AgentGraph | None:
        """What an action makes of it; None: it is invalid, and nothing changes. Exit is valid once there are agents."""
        match action.split():
            case [word] if word == EXIT:
                return self if self.agents else None
            case [word, number] if word == DELETE:
                return self._without(number)
            case [role, *read] if role in ROLES:
                return self._with(role, read)
        return None

    def _with(self, role: str, read: Sequence[str]) -> AgentGraph | None:
        edges = tuple(int(each) for each in read if each.isascii() and each.isdigit() and len(each) < 4)
        is_valid = len(edges) == len(read) == len(set(edges)) and all(each in self.agents for each in edges)
        if not is_valid or len(self.agents) >= self.most:
            return None
        return AgentGraph(self.most, {**self.agents, self.added + 1: (role, edges)}, self.added + 1)

    def _without(self, number: str) -> AgentGraph | None:
        known = {str(each): each for each in self.agents}
        if number not in known:
            return None
        gone = known[number]
        left = {
            each: (role, tuple(edge for edge in edges if edge != gone))
            for each, (role, edges) in self.agents.items()
            if each != gone
        }
        return AgentGraph(self.most, left, self.added)


def action_rewards(actions: Sequence[str], most: int, price: float) -> list[float]:
    """-price for each agent that is added, -1 for an invalid action, 0 for others."""
    graph, found = AgentGraph(most), list[float]()
    for action in actions:
        after = graph.after(action)
        found.append(-1.0 if after is None else -price * (after.added - graph.added))
        graph = after or graph
    return found


def host_reads(task: Task) -> tuple[Message, ...]:
    """The question as the host is asked it."""
    *before, question = task.messages
    return (*before, replace(question, content=f"{HOST}: {question.content}"))


def heard_of(graph: AgentGraph | None) -> Message:
    """What the host hears of its action: how many agents there are, or that it was invalid."""
    return Message("user", "error" if graph is None else str(len(graph.agents)))
