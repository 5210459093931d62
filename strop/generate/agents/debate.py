"""Two policy names of one policy talk about a task until they agree (Optima's debate, 2410.08115): one solves, one
examines.

Papers: optima
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.errors import ConfigurationError
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class Debate(Agent):
    """The solver answers, the examiner reads it beside the question and answers too, and the solver hears of it.

    Each has a context of its own. It ends when both give the same answer, when one is cut, or after `rounds`; the
    solver's last word goes to the environment, which hears nothing else.
    """

    rounds: int = 2  # how often the solver may hear of the examiner
    asks: str = "{question} hint: {said}"  # what one reads of the other

    policy_names: ClassVar[tuple[str, str]] = ("solver", "examiner")
    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.rounds < 1 or "{said}" not in self.asks:
            raise ConfigurationError(f"Debate needs rounds >= 1 and {{said}} in asks, got {self.rounds}, {self.asks!r}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("Debate begins at the beginning: use a strategy that does not go on from a middle")
        await episode.reset(task)
        dialogue.restart(task.messages, self.policy_names[0])
        answer = await self._talk(task, dialogue)
        paid = (await episode.step(answer)).reward
        return () if paid is None else (*[0.0] * (len(dialogue.turns) - 1), paid)

    async def _talk(self, task: Task, solver: Dialogue) -> Message:
        """The solver's last word."""
        answer = await solver.completion()
        examiner = solver.aside(self._told(task, answer), self.policy_names[1])
        for _ in range(self.rounds):
            if _is_over(solver, examiner):
                break
            other = await examiner.completion()
            if final_answer(other.content) == final_answer(answer.content) != "":
                break
            solver.hear(self._told(task, other)[-1:])
            if _is_over(solver, examiner):
                break
            answer = await solver.completion()
            examiner.hear(self._told(task, answer)[-1:])
        return answer

    def _told(self, task: Task, said: Message) -> tuple[Message, ...]:
        """The task with what the other said behind its question."""
        *before, question = task.messages
        words = said.content.replace(OPEN, " ").replace(CLOSE, " ").strip()
        return (*before, replace(question, content=self.asks.format(question=question.content, said=words)))


def _is_over(*talks: Dialogue) -> bool:
    return any(talk.is_cut for talk in talks)
