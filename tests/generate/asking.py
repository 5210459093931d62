"""A group's player over an engine whose completions are a function of what it reads, in an environment of the
package.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import LLMClientError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.roles import Agent, Engine, Environment, LLMClient, Strategy
from strop.types import SUCCESS, Group, IntArray, Message, Sampling, Task
from tests.generate.talking import END, ids, policy_of, save_folder
from tests.generate.talking import _text as text_of


@dataclass
class Speaking(Engine):
    """Says what `script` makes of the prompt and the number of the call, and keeps every prompt."""

    script: Callable[[str, int], str]
    prompts: list[str] = field(default_factory=list)

    def open(self, model: Path) -> None:
        pass

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.prompts.append(text_of(prompt))
        tokens = np.array([*ids(self.script(self.prompts[-1], len(self.prompts) - 1)), END])[: sampling.max_tokens]
        count = len(tokens)
        stop = Stop.STOP if tokens[-1] == END else Stop.LENGTH
        return Completion(tokens, np.full(count, -0.5, np.float32), np.zeros(count, np.int64), stop)

    async def load(self, version: WeightVersion) -> str:
        return version.fingerprint

    def abort(self, key: int) -> None:
        pass


@dataclass
class Late(Speaking):
    """Says something of the key alone, `late` of it later, and keeps who was asked what."""

    late: Callable[[int], int] = lambda key: 0
    asked: dict[int, str] = field(default_factory=dict)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        for _ in range(self.late(key)):
            await asyncio.sleep(0)
        self.asked[key] = text_of(prompt)
        return await super().sample(prompt, sampling, key)


def asked_of(
    folder: Path, env: Environment, task: Task, strategy: Strategy, late: Callable[[int], int]
) -> dict[int, str]:
    """What was asked with each key in a group of three, of whose completions some come so much later."""
    engine = Late(lambda prompt, call: "0", late=late)
    play = GroupPlayer(
        Group(0, task, []), policy_of(save_folder(folder), engine, max_tokens=200), (env,), Chat(), 0, as_paid
    )
    brought = asyncio.run(strategy(play.group, [play.another() for _ in range(3)], play))
    assert len(brought) == 3 and set(engine.asked) <= set(play.keys), "whoever hurries a group knows all its keys"
    assert len({*play.made}) == len(engine.asked), "no two have one name"
    return engine.asked


@dataclass
class Counsel(LLMClient):
    """Says its answers one after the other, the last of them for ever; one that is None is no answer."""

    answers: Sequence[str | None]
    asked: list[str] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.asked.append(messages[-1].content)
        said = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if said is None:
            raise LLMClientError("nobody there")
        return said


async def as_paid(group: Group) -> None:
    """What the environment paid, all turns together."""
    for rollout in group.rollouts:
        rollout.reward = sum(rollout.turn_rewards)
        rollout.rewards = {"outcome": rollout.reward}
        rollout.facts[SUCCESS] = rollout.reward


def player_of(
    folder: Path, env: Environment, task: Task, script: Callable[[str, int], str], agent: Agent | None = None
) -> tuple[GroupPlayer, Speaking]:
    engine = Speaking(script)
    policy = policy_of(save_folder(folder), engine, max_tokens=200)
    return GroupPlayer(Group(0, task, []), policy, (env,), agent or Chat(), 0, as_paid), engine
