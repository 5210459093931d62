"""Hawkeye: GRPO on short chains of thought from which a frozen small model answers, with a quadratic length penalty.

Title: Hawkeye: Efficient Reasoning with Model Collaboration
Paper: arXiv 2504.00424 (2025)
Claim: Comparable answers from 35 % of the full chain of thought, up to 3.4 times as fast and at 60 % less cost.
Reading: The length penalty is in shares of the initial model's chain of thought; its weight was not found: 1. GRPO
    trains the policy only. Held-out accuracy is that of both models together.
Left out: The search for redundancy before training. Nothing prevents a chain of thought from containing the answer.
Acts: reward/short_chain < 0 and fact/plain_tokens > 0 and tokens_advised > 0 with answerer=MODEL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.agents.support.episode_loop import OtherModel
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.rollout_limits import REFERENCE
from strop.generate.strategies.independent import Independent
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Agent, Dialogue, Episode, LLMClient, Player, Reward, Strategy
from strop.run import Run
from strop.text.sanitize import quoted
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message, Origin, Rollout, Sampling, Start, Task

# Hawkeye's length penalty (2504.00424): the squared excess over a share of the plain chain of thought.
#
# Reading: lengths are relative to the plain chain of thought, with weight 1; the paper's square of raw tokens would
# explode. If the plain rollout has no tokens, because its environment failed, there is no penalty.

PLAIN = "plain_tokens"  # fact: length of the initial model's plain rollout of the same task


@dataclass(frozen=True)
class ShortChain(Reward):
    """-max(0, tokens / plain tokens - free)^2."""

    free: float = 0.3  # share of the plain length without a penalty
    weight: float = 1.0  # of this reward relative to others

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "short_chain"

    def __post_init__(self) -> None:
        if self.free < 0:
            raise ConfigurationError(f"ShortChain needs free >= 0, got {self.free}")

    def __call__(self, group: Group) -> list[float]:
        return [-(max(0.0, self._length(rollout) - self.free) ** 2) for rollout in group.rollouts]

    def _length(self, rollout: Rollout) -> float:
        if PLAIN not in rollout.facts:
            raise ConfigurationError(f"rollout {rollout.id} has no {PLAIN}: use the strategy MeasuredByPlain")
        plain = rollout.facts[PLAIN]
        return rollout.num_tokens / plain if plain else 0.0


# Hawkeye's two models (2504.00424): the policy writes a chain of thought, from which a small model answers.


@dataclass(frozen=True)
class Relayed(Agent):
    """Agent whose completion is a chain of thought; a small model answers from it and the policy gets the reward.

    The small model decodes greedily. Its answers are in no rollout: they are neither trained on nor counted.
    """

    answerer: LLMClient
    max_tokens: int = 64  # maximum tokens of an answer
    asks: str = "{question} hint: {chain}"  # prompt of the small model

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if "{chain}" not in self.asks or self.max_tokens < 1:
            raise ConfigurationError(
                f"Relayed needs {{chain}} in asks and max_tokens >= 1, got {self.asks!r} and {self.max_tokens}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("Relayed cannot continue a prefix: use a strategy that starts from the prompt")
        await episode.reset(task)
        chain = await dialogue.completion()
        sampling = Sampling(temperature=0.0, max_tokens=self.max_tokens)
        small = OtherModel("answerer", self.answerer, [*self._question(task, chain.content)], dialogue.key, sampling)
        answer = await episode.step(await small.completion())
        return () if answer.reward is None else (answer.reward,)

    def _question(self, task: Task, chain: str) -> tuple[Message, ...]:
        *before, last = task.messages
        words = quoted(chain.replace(OPEN, " ").replace(CLOSE, " ")).strip()
        return (*before, replace(last, content=self.asks.format(question=last.content, chain=words)))


# Hawkeye's reference length (2504.00424): that of the initial model's full chain of thought for the same question.
#
# Reading: it is sampled once per group and is no rollout of the group; its length is a fact of every rollout.


@dataclass(frozen=True)
class MeasuredByPlain(Strategy):
    """Rollouts of `inner`, with the length of a `plain` rollout of the reference policy; needs `WithReference`."""

    inner: Strategy
    plain: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await self.inner(group, starts, play)
        known = [rollout.facts[PLAIN] for rollout in group.rollouts if PLAIN in rollout.facts]
        size = known[0] if known else (await play(play.another(policy_name=REFERENCE), self.plain)).num_tokens
        for rollout in rollouts:
            rollout.facts[PLAIN] = float(size)
        return rollouts


def hawkeye(
    setting: Setting = Setting(),
    *,
    answerer: str,  # the small model that answers from the chain of thought (a named part)
    free: float = 0.3,  # share of the plain length without a penalty
    price: float = 1.0,  # weight of the squared excess length
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """GRPO of the policy; the model `answerer` is frozen."""
    agent = Relayed(named_part("answerer", answerer, setting), setting.max_tokens)
    run = setting.run(
        "hawkeye",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", kl)),
        agent=agent,
        engine=WithReference(engine_on(setting.device), engine_on(setting.device)),
        strategy=MeasuredByPlain(Independent(), Chat()),
        reduction=SequenceMean(),
    )
    run.rewards = (*run.rewards, ShortChain(free, price))
    return replace(run, evaluation=replace(run.evaluation, agent=agent))
