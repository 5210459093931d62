"""Graph of a multi-agent team that the policy builds action by action (MasHost, 2506.08507).

Actions are text: `ROLE 1 3` adds an agent that reads the outputs of agents 1 and 3, `delete 2` removes one, `exit`
ends. Of a longer text its last line counts, without thoughts, signs and capitals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from strop.text.llm_prompt import without_reasoning
from strop.types import Message, Task

ROLES: Mapping[str, str] = {"solve": "{question}", "careful": "careful: {question}", "quick": "quick: {question}"}
OWN_ROLES: Mapping[str, str] = {
    "solve": "{question}",
    "plan": "{question}\n\nDo not solve it yet: write a plan of at most five steps.",
    "check": "{question}\n\nCheck each step of what other agents said, and give the right answer.",
}  # for models that were not taught the bundled ones
DELETE, EXIT = "delete", "exit"
HOST = "host"  # the policy name that builds
ASKED = HOST + ": {question}"
INSTRUCTIONS = (
    "You build a team of agents that answers the question below. One action adds an agent: its role, and the numbers "
    "of the agents whose output it reads, as in `{first}` or `{last} 1`. The roles are {roles}; at most {most} agents. "
    "`delete 1` removes agent 1 and `exit` ends. The agent that is added last gives the answer. After each action you "
    "read how many agents there are, or `error`. Write one action, and nothing else.\n\nQuestion:\n{question}"
)


@dataclass(frozen=True)
class AgentGraph:
    """Agents numbered in order of addition: each has a role and the numbers of the agents that it reads."""

    most: int  # agents at a time
    agents: Mapping[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    added: int = 0  # agents so far, those taken away too: numbers are never used again
    roles: Mapping[str, str] = field(default_factory=lambda: ROLES)  # the wording of the question for each

    def after(self, action: str) -> AgentGraph | None:
        """What an action makes of it; None: it is invalid, and nothing changes. Exit is valid once there are agents."""
        match words_of(action):
            case [word] if word == EXIT:
                return self if self.agents else None
            case [word, number] if word == DELETE:
                return self._without(number)
            case [role, *read] if role in self.roles:
                return self._with(role, read)
        return None

    def _with(self, role: str, read: Sequence[str]) -> AgentGraph | None:
        edges = tuple(int(each) for each in read if each.isascii() and each.isdigit() and len(each) < 4)
        is_valid = len(edges) == len(read) == len(set(edges)) and all(each in self.agents for each in edges)
        if not is_valid or len(self.agents) >= self.most:
            return None
        return replace(self, agents={**self.agents, self.added + 1: (role, edges)}, added=self.added + 1)

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
        return replace(self, agents=left)


def words_of(action: str) -> list[str]:
    """The words of an action's last line."""
    lines = [line for line in without_reasoning(action).splitlines() if line.strip()]
    return [word.strip("`*\"'.,()[]").lower() for word in lines[-1].split()] if lines else []


def action_rewards(actions: Sequence[str], most: int, price: float, roles: Mapping[str, str] = ROLES) -> list[float]:
    """-price for each agent that is added, -1 for an invalid action, 0 for others."""
    graph, found = AgentGraph(most, roles=roles), list[float]()
    for action in actions:
        after = graph.after(action)
        found.append(-1.0 if after is None else -price * (after.added - graph.added))
        graph = after or graph
    return found


def host_reads(task: Task, most: int, roles: Mapping[str, str] = ROLES, asks: str = ASKED) -> tuple[Message, ...]:
    """The question as the host is asked it."""
    *before, question = task.messages
    names = {"first": next(iter(roles)), "last": list(roles)[-1], "roles": ", ".join(roles), "most": most}
    return (*before, replace(question, content=asks.format(question=question.content, **names)))


def heard_of(graph: AgentGraph | None) -> Message:
    """What the host hears of its action: how many agents there are, or that it was invalid."""
    return Message("user", "error" if graph is None else str(len(graph.agents)))
