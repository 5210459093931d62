"""Questions to the policy outside of its task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import LLMClientError
from strop.generate.policy import Policy
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Sampling, Task

# One completion and no environment: the policy is asked something (to reflect, to extract, to judge), and nobody checks
# it.


@dataclass(frozen=True)
class OneCompletion(Agent):
    """Reads what its start says in place of the task, and completions once.

    Its rollouts are GUIDED: they say nothing about how hard the task is.
    """

    origin: ClassVar[Origin] = Origin.GUIDED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if not dialogue.is_cut:
            await dialogue.completion()
        return ()


# A policy that is asked a question outside of any rollout: nothing of what it says is trained on.


async def answer_of(
    policy: Policy | None, messages: Sequence[Message], sampling: Sampling, key: int
) -> tuple[str, int]:
    """What its engine answers, and in how many tokens; within the room that its context leaves."""
    if policy is None:
        raise LLMClientError("the policy is asked before it was met: it answers only where the run's engine is")
    prompt = policy.template.opening(messages)
    room = policy.context - len(prompt)
    if room < 1:
        raise LLMClientError(f"a question of {len(prompt)} tokens, and context={policy.context}: set it higher")
    with policy.busy:
        written = await policy.engine.sample(prompt, replace(sampling, max_tokens=min(sampling.max_tokens, room)), key)
    return policy.template.text(written.tokens), len(written.tokens)
