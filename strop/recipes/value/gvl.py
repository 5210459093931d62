"""GVL: an LLM scores the progress of shuffled steps; rollouts with rising progress are imitated, weighted by it.

Title: Vision Language Models are In-Context Value Learners
Paper: arXiv 2411.04549 (2024)
Claim: Progress of more than 300 real robot tasks is predicted without training, and serves to select and weight data.
Reading: Steps of a dialogue replace frames of a video. Rollouts are the policy's own; the paper uses collected ones.
    Rollouts with a value-order correlation of at least 0.5 are kept, and each step is imitated with the weight
    exp(sharpness * its progress). Both constants are not verified against the paper. The environment's own reward is
    logged with weight 0.
Left out: Images. Solved examples in the LLM's context.
Acts: reward/in_context_progress != 0 and progress_weight_spread > 0
Break: sharpness=0: progress weighs nothing
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import judged
from strop.filter.judges.progress_frames import (
    ASKED,
    ORDER,
    PROGRESS,
    frames,
    order_correlation,
    question,
)
from strop.filter.judges.readers import PerItem
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.progress import guessing
from strop.training.losses.reinforce import Reinforce
from strop.types import GateResult, Group, Metrics, Rollout, Sampling

# GVL's data selection (2411.04549): rollouts whose predicted progress rises with time.


@dataclass(frozen=True)
class Ordered(Gate):
    """Keeps rollouts with a value-order correlation of at least `least`; unscored rollouts are dropped."""

    least: float = 0.5  # from -1 to 1

    def __post_init__(self) -> None:
        if not -1 <= self.least <= 1:
            raise ConfigurationError(f"Ordered needs least from -1 to 1, got {self.least}")

    def __call__(self, group: Group) -> GateResult:
        kept = [rollout for rollout in group.scored if rollout.facts.get(ORDER, -2.0) >= self.least]
        if not kept:
            return GateResult(None, f"no rollout has a value-order correlation of {self.least:g} or more")
        return GateResult(replace(group, rollouts=kept), f"kept {len(kept)} rollouts that made progress")


# GVL's progress (2411.04549): an LLM reads a rollout's steps in shuffled order and estimates the progress of each.
#
# The score is the rank correlation of the estimates with time. Readings: steps of a dialogue replace frames of a video.
# An answer that misses a step, or gives all steps the same number, is no score; a single step scores 0.


@dataclass(frozen=True)
class InContextProgress(Reward):
    """The value-order correlation of each rollout, from -1 to 1; 0 for a single step."""

    llm_client: LLMClient
    weight: float = 1.0
    prompt: str = ASKED  # what is asked below the task, its first step and the numbered others

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)
    is_inline: ClassVar[bool] = True  # it only waits for its LLM client

    async def __call__(self, group: Group) -> list[float]:
        return list(await asyncio.gather(*(self._score(rollout) for rollout in group.rollouts)))

    async def _score(self, rollout: Rollout) -> float:
        first, *others = frames(rollout) or [""]
        if not others:
            return 0.0
        key = int.from_bytes(hashlib.sha256(f"{rollout.id} {others}".encode()).digest()[:8], "big") >> 1
        order = np.random.default_rng(key).permutation(len(others))
        asked = question(rollout.task.messages[-1].content, first, [others[place] for place in order], self.prompt)
        estimates = await judged(self.llm_client, asked, PerItem(len(others)), Sampling(temperature=0.0), key)
        values = [0.0] * (len(others) + 1)
        for place, value in zip(order.tolist(), estimates, strict=True):
            values[place + 1] = value
        if (found := order_correlation(values)) is None:
            return math.nan
        rollout.facts |= {f"{PROGRESS}{turn}": value for turn, value in enumerate(values)} | {ORDER: found}
        return found


# GVL's advantage-weighted regression (2411.04549): a turn is weighted by its progress.


@dataclass(frozen=True)
class ProgressWeighted(Advantage):
    """exp(sharpness * (progress after the turn - progress before it)) for all tokens of a turn; 1 if unknown.

    Progress is 0 before the first turn and after it: the first turn is the reference for all others.
    """

    sharpness: float = 1.0  # 0: plain imitation

    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.sharpness < 0:
            raise ConfigurationError(f"ProgressWeighted needs sharpness >= 0, got {self.sharpness}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            weights, sizes = self.weights(rollout), [len(turn.tokens) for turn in rollout.turns]
            rollout.advantages = np.repeat(np.array(weights, np.float32), sizes)

    def weights(self, rollout: Rollout) -> list[float]:
        """One weight per turn."""
        progress = [rollout.facts.get(f"{PROGRESS}{turn}") for turn in range(len(rollout.turns))]
        made = [
            0.0 if now is None or before is None else now - before
            for before, now in zip([0.0, *progress], progress, strict=False)
        ]
        return [math.exp(self.sharpness * each) for each in made]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Learns nothing; reports the standard deviation of the turns' weights."""
        weights = [each for group in groups for rollout in group.scored for each in self.weights(rollout)]
        return {"progress_weight_spread": float(np.std(weights)) if weights else 0.0}


def gvl(
    setting: Setting = Setting(env="guess:3"),
    judge: str = "rules",  # says how far each step is (a named part)
    least: float = 0.5,  # smallest value-order correlation of a rollout that is imitated
    sharpness: float = 1.0,  # exponent of a turn's weight per unit of progress
) -> Run:
    """Imitation of own rollouts, selected and weighted by progress alone; no answers are used."""
    run = setting.run("gvl", ProgressWeighted(sharpness), (Reinforce(),), gates=(Ordered(least),))
    outcome = as_one(run.rewards)
    progress = InContextProgress(named_part("judge", judge, setting, guessing, ("guess",)))
    run.rewards = (progress, replace(outcome, weight=0.0))  # type: ignore[type-var]
    return run
