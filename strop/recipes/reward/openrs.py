"""OpenRS: GRPO on the win rate against siblings, judged pairwise by rubrics made from the pair's differences.

Title: Open Rubric System: Scaling Reinforcement Learning with Pairwise Adaptive Rubric
Paper: arXiv 2602.14069 (2026)
Claim: Preferences that a judge gives criterion by criterion and code adds up are better rewards than one number.
Reading: The weights of core, important and highlight, the fatal criteria, and both orders are the release's. Only the
    abstract describes the use in training: here the win rate within the group, a tie counting 1/2. The programmed check
    is the environment's reward, so a rollout that alone is right wins without a judge. A comparison whose judge fails
    is left out, where the release counts a tie. Rules stand in for the judge (`judge=http://...#MODEL` asks a model).
Left out: Rubrics refined from the judge's errors.
Acts: fact/decided > 0
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from strop.errors import LLMClientError
from strop.filter.judges.batch_ask import transcript
from strop.filter.judges.pairwise_criteria import ASKED, compared
from strop.filter.reward_values import plain_scores
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.criteria import compared_by_criteria
from strop.success import is_right
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group

# OpenRS's reward (2602.14069): the share of siblings that a rollout beats by a rubric made from their differences.
#
# Reading: the win rate within the group, a tie counting 1/2. If only one of two rollouts passes the programmed check,
# it wins without a judge.


@dataclass(frozen=True)
class RubricWins(Reward):
    """Mean over known comparisons: 1 for a win in both orders, 0 for a loss in both, else 1/2; NaN without any."""

    judge: LLMClient  # compares two completions, in both orders
    check: Reward | None = None  # programmed check: a rollout that alone passes wins
    weight: float = 1.0
    prompt: str = ASKED  # how a comparison is asked for, below task and both completions

    is_inline: ClassVar[bool] = True  # awaits its judge
    is_relative: ClassVar[bool] = True

    @property
    def needs_success(self) -> bool:
        return self.check is not None

    async def __call__(self, group: Group) -> list[float]:
        pairs = list(combinations(range(len(group.rollouts)), 2))
        if self.check is not None:
            await plain_scores(self, self.check, group)
        passed = [is_right(rollout) for rollout in group.rollouts] if self.check else []
        works = (self._first_share(group, one, other, passed) for one, other in pairs)
        found = _known(await asyncio.gather(*works, return_exceptions=True))
        shares: list[list[float]] = [[] for _ in group.rollouts]
        for (one, other), share in zip(pairs, found, strict=True):
            if share is not None:
                shares[one].append(share)
                shares[other].append(1 - share)
        for rollout, known in zip(group.rollouts, shares, strict=True):
            rollout.facts["decided"] = sum(share != 0.5 for share in known) / max(len(known), 1)
        return [sum(known) / len(known) if known else math.nan for known in shares]

    async def _first_share(self, group: Group, one: int, other: int, passed: Sequence[bool]) -> float:
        first, second = transcript(group.rollouts[one]), transcript(group.rollouts[other])
        if passed and passed[one] != passed[other]:
            return float(passed[one])
        return 0.5 if first == second else await compared(group.task, first, second, self.judge, self.prompt)


def _known(found: Sequence[float | BaseException]) -> list[float | None]:
    """Results with None for failed judgements; raises if all of them failed or for any other error."""
    errors = [each for each in found if isinstance(each, BaseException)]
    other = [each for each in errors if not isinstance(each, LLMClientError)]
    if other or (errors and len(errors) == len(found)):
        raise (other or errors)[0]
    return [None if isinstance(each, BaseException) else each for each in found]


def openrs(
    setting: Setting = Setting(),
    judge: str = "rules",  # compares two completions (a named part)
    checked: bool = True,  # a rollout that alone passes the environment's check wins without a judge
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """Every pair of rollouts of a group is compared in both orders."""
    run = setting.run("openrs", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    truth = measured(run.envs)
    wins = RubricWins(
        named_part("judge", judge, setting, compared_by_criteria), truth if checked and truth.grades else None
    )
    run.rewards, run.reward_seconds = (wins, truth), reward_seconds(judge)
    return run
