"""Think-RM: pairwise RLHF, with advantages from a reasoning judge's comparisons of all pairs of siblings.

Title: Think-RM: Enabling Long-Horizon Reasoning in Generative Reward Models
Paper: arXiv 2505.16265 (2025)
Claim: 8 % more on RM-Bench than Bradley-Terry reward models and generative ones that are scaled otherwise.
Reading: The judge is asked once per pair, for a verdict from -3 to 3 without 0, with both sides in pseudo-random order.
    The LLM client is rules that check calculations, or a language model behind an address. A verdict that cannot be
    parsed is missing, and divisors count the known ones; the release has none missing. The environment's own reward is
    logged with weight 0.
Left out: Making the judge: its warm-up on long thoughts and its training by whether its verdict has the right sign.
Acts: advantage > 0 and reward/outcome != 0
Break: rewards.0.weight=0: the judge counts for nothing
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import LLMClientError
from strop.filter.judges.batch_ask import all_of, judged, key_of, text_of, transcript
from strop.filter.judges.readers import Number
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import Advantage, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.comparisons import compared
from strop.text.llm_prompt import judgement
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Sampling, Task

# Think-RM's pairwise RLHF (2505.16265): advantages from comparisons of all siblings, without individual scores.

WANTED = (
    "Think about which of both completions is the better one, [completion] or [other]. End with a line 'verdict: N', "
    "N from 3 (completion is much better) over 2, 1, -1 and -2 to -3 (other is much better)."
)
VERDICT = Number(-3, 3, clamps=False)  # the form of an answer
_EPSILON = 1e-6


@dataclass(frozen=True)
class PairwiseLead(Reward):
    """(1/G) sum over j of d_ij, divided by sqrt(sum of d^2 / (2 G (G - 1)) + 1e-6); d_ij is the verdict for i over j.

    One judgement per pair, with sides in pseudo-random order. Verdicts that cannot be parsed are left out of sums and
    divisors; a rollout without any known verdict has no reward. If d_ij = r_i - r_j, this is GRPO with the unbiased
    standard deviation.
    """

    judge: LLMClient
    max_tokens: int = 2048  # of a judgement, including its thoughts
    weight: float = 1.0
    prompt: str = WANTED  # what the judge is asked, below task and both completions

    is_inline: ClassVar[bool] = True  # awaits its judge
    is_relative: ClassVar[bool] = True

    async def __call__(self, group: Group) -> list[float]:
        completions = [transcript(rollout) for rollout in group.rollouts]
        pairs = list(combinations(range(len(completions)), 2))
        verdicts = await all_of(self._lead(group.task, completions[i], completions[j]) for i, j in pairs)
        ahead = np.full((len(completions), len(completions)), np.nan)
        for (i, j), lead in zip(pairs, verdicts, strict=True):
            ahead[i, j], ahead[j, i] = lead, -lead
        return leads(ahead)

    async def _lead(self, task: Task, one: str, other: str) -> float:
        """The judge's verdict for `one` over `other`; NaN if it gives none."""
        is_turned = bool(key_of(f"{one}\n{other}") & 1)
        first, second = (other, one) if is_turned else (one, other)
        asked = judgement(self.prompt, task=text_of(task), completion=first, other=second)
        sampling = Sampling(temperature=0.0, max_tokens=self.max_tokens)
        try:
            lead = await judged(self.judge, asked, VERDICT, sampling)
        except LLMClientError:
            return math.nan
        return -lead if is_turned else lead


def leads(ahead: NDArray[np.float64]) -> list[float]:
    """Leads from d [G, G], NaN for unknown verdicts and on the diagonal."""
    known = ~np.isnan(ahead)
    counts, squares = known.sum(1), np.nansum(ahead**2)
    spread = math.sqrt(squares / (2 * max(int(known.sum()), 1)) + _EPSILON)
    sums: Sequence[float] = np.nansum(ahead, 1).tolist()
    return [
        total / (int(count) + 1) / spread if count or len(ahead) == 1 else math.nan
        for total, count in zip(sums, counts, strict=True)
    ]


# Rewards that are advantage already: nothing is taken off and nothing divided.


@dataclass(frozen=True)
class Given(Advantage):
    """A = the rollout's reward, at each of its tokens."""

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for rollout in group.scored:
                rollout.set_advantage(rollout.reward)


def think_rm(
    setting: Setting = Setting(group_size=4),
    judge: str = "rules",  # compares two completions (a named part)
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """G (G - 1) / 2 judgements per task, and no score of a single completion."""
    run = setting.run("think_rm", Given(), (Clip(clip, clip), Kl("k3", kl)), minibatches=2)
    truth = measured(run.envs)
    run.rewards = (PairwiseLead(named_part("judge", judge, setting, compared)), truth)
    run.reward_seconds = reward_seconds(judge)
    return run
