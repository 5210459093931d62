"""Debate of two roles of one policy until they agree (Optima, 2410.08115): a solver and an examiner.

Papers: optima
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_loop import HINTED, Speaker, played_on, speaker
from strop.roles import Agent, Dialogue, Episode, LLMClient
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class Debate(Agent):
    """The solver answers, the examiner reads question and answer and answers too, and the solver reads that.

    Each role has its own context, and another model may play the examiner. The debate ends when both give the same
    answer, when one is cut, or after `rounds`; the solver's last message goes to the environment. Further turns are the
    solver's alone.
    """

    rounds: int = 2  # how often the solver may read the examiner's answer
    asks: str = HINTED  # how a role is shown the other's message
    max_turns: int = 8  # of the solver with the environment
    models: dict[str, LLMClient] = field(default_factory=dict)  # who plays a role in place of the policy

    policy_names: ClassVar[tuple[str, str]] = ("solver", "examiner")
    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.rounds < 1 or "{said}" not in self.asks:
            raise ConfigurationError(f"Debate needs rounds >= 1 and {{said}} in asks, got {self.rounds}, {self.asks!r}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("Debate starts at the prompt: use a strategy without rollouts continued midway")
        await episode.reset(task)
        dialogue.restart(task.messages, self.policy_names[0])
        answer = await self._talk(task, dialogue)
        return await played_on(dialogue, dialogue, episode, answer, self.max_turns)

    async def _talk(self, task: Task, solver: Dialogue) -> Message:
        """The solver's final message."""
        answer = await solver.completion()
        examiner = speaker(solver, self._told(task, answer), self.policy_names[1], self.models)
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
        """The task with the other role's message after its question."""
        *before, question = task.messages
        words = said.content.replace(OPEN, " ").replace(CLOSE, " ").strip()
        return (*before, replace(question, content=self.asks.format(question=question.content, said=words)))


def _is_over(*talks: Speaker) -> bool:
    return any(talk.is_cut for talk in talks)
