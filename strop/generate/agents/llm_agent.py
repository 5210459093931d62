"""Teacher as an agent: another LLM, with any tokenizer, writes every completion in place of the policy.

Papers: ampo
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from strop.roles import Agent, Dialogue, Episode, LLMClient
from strop.types import Message, Origin, Sampling, Task


@dataclass(frozen=True)
class LLMAgent(Agent):
    """Agent in which an LLM client reads the conversation and writes the completions, for at most `max_turns` turns.

    If the client does not answer, `LLMClientError` is raised, and the strategy continues without the rollout.
    """

    llm_client: LLMClient
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=1024))  # of its answers
    max_turns: int = 8  # per rollout

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        heard, paid = list(task.messages), list[float | None]()
        while len(paid) < self.max_turns and not dialogue.is_cut:
            said = Message("assistant", await self.llm_client.ask(heard, self.sampling, dialogue.key))
            dialogue.say(said)
            answer = await episode.step(said)
            paid.append(answer.reward)
            if answer.done:
                break
            dialogue.hear(answer.messages)
            heard += [said, *answer.messages]
        return tuple(reward or 0.0 for reward in paid) if any(reward is not None for reward in paid) else ()
