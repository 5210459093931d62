"""Extra questions to the policy outside the task's episode, e.g. to reflect, extract or judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import LLMClientError
from strop.generate.policy import Policy
from strop.roles import Agent, Dialogue, Episode
from strop.text.llm_prompt import cut_to
from strop.types import Message, Origin, Sampling, Task

# As a rollout: one completion without an environment.


@dataclass(frozen=True)
class OneCompletion(Agent):
    """Agent for one completion of the start's messages, in place of the task's.

    Its rollouts are GUIDED: they do not count for the task's pass rate.
    """

    origin: ClassVar[Origin] = Origin.GUIDED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if not dialogue.is_cut:
            await dialogue.completion()
        return ()


# As an engine request outside of any rollout: nothing is trained on.


async def answer_of(
    policy: Policy | None, messages: Sequence[Message], sampling: Sampling, key: int
) -> tuple[str, int]:
    """The engine's answer and its number of tokens, within the context's limit."""
    if policy is None:
        raise LLMClientError("the policy is not connected yet: it answers only within a run")
    *before, last = messages
    template, most = policy.template, policy.context - min(sampling.max_tokens, policy.context // 2)
    cut = cut_to(last.content, most, lambda text: len(template.opening([*before, replace(last, content=text)])))
    prompt = template.opening([*before, replace(last, content=cut)])
    room = policy.context - len(prompt)
    if room < 1:
        raise LLMClientError(f"a question of {len(prompt)} tokens exceeds context={policy.context}: increase context")
    with policy.busy:
        written = await policy.engine.sample(prompt, replace(sampling, max_tokens=min(sampling.max_tokens, room)), key)
    return policy.template.text(written.tokens), len(written.tokens)
