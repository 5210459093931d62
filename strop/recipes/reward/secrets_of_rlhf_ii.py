"""Secrets of RLHF II: a reward model on noisy pairs, with labels, smoothing and margins from an ensemble's vote.

Key: secrets-of-rlhf-ii
Title: Secrets of RLHF in Large Language Models Part II: Reward Modeling
Paper: arXiv 2401.06080 (2024)
Claim: Reward models and policies trained on pairs whose strength was measured are more stable and generalise better.
Reading: judges are folders of reward models, joined by +: runs of this recipe without judges and with other seeds, ten
    in the paper. Labels count as wrong if their mean score difference is among the lowest 20 % of pairs and below 0 (in
    the paper's data that is the same), are smoothed if it is below 0 otherwise, and all pairs have it as margin. A
    share of noisy labels stands in for those of annotators. The release has the plain loss only.
Left out: The contrastive loss on features, and the meta-learning of spread on the policy's samples.
Acts: flipped_share > 0 and strength != 0 with judges=MODEL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from strop.environments.judging.preferences import asked_of, completions_of
from strop.errors import ConfigurationError
from strop.generate.policy import Policy
from strop.generate.reward_model import RewardModel
from strop.recipes.named_parts import named_model
from strop.recipes.preference_pairs import preferring
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledShare, share_for
from strop.roles import Environment, Loss, Player, Strategy
from strop.run import Run
from strop.training.arithmetic.siblings import margins, per_group
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.requirements import Aux, Need
from strop.types import Group, Metrics, Rollout, Start, Task

# Preference strength of a pair by an ensemble of reward models (Secrets of RLHF II, 2401.06080).
#
# Reading: the paper trains ten models on the same pairs, each in another order, which are ten runs here. A label is
# wrong if the mean difference is among the lowest `wrong` share of pairs and against the label. The threshold is
# computed on `sample` pairs before the first step, so that it does not depend on the order of groups.


@dataclass
class EnsembleVotes(Strategy):
    """The rollouts of `inner` with u, the judges' mean score difference, and whether u makes the label wrong.

    Both values are in `Turn.aux["strength"]` of both rollouts, u also in their facts. For a pair that does not fit a
    judge's context u is 0.
    """

    inner: Strategy
    judges: tuple[RewardModel, ...]
    envs: tuple[Environment, ...]  # of pairs
    wrong: float = 0.2  # largest share of pairs whose labels count as wrong
    sample: int = 256  # pairs that set the threshold

    _lowest: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.judges or not 0 <= self.wrong < 1 or self.sample < 1:
            found = f"got {len(self.judges)}, {self.wrong} and {self.sample}"
            raise ConfigurationError(f"EnsembleVotes needs a judge, 0 <= wrong < 1 and sample >= 1, {found}")

    def meet(self, policy: Policy) -> None:
        """Compute the threshold of u below which a label is wrong."""
        each = -(-self.sample // len(self.envs))
        found = self.strengths([env.task(index) for env in self.envs for index in range(each)])
        # never above 0, as in the paper's data: a label that the judges agree with is not wrong
        self._lowest = min(float(np.nanquantile(found, self.wrong)), 0.0) if self.wrong else -np.inf

    def strengths(self, tasks: Sequence[Task]) -> list[float]:
        """u of each pair; NaN if it does not fit a judge's context."""
        asked = [(asked_of(task), completion) for task in tasks for completion in completions_of(task)[:2]]
        scores = np.array([judge.scores(asked) for judge in self.judges])  # [M, 2 N]
        return [float(each) for each in (scores[:, 0::2] - scores[:, 1::2]).mean(0)]

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if self._lowest is None:
            raise ConfigurationError("EnsembleVotes has no threshold yet: call meet(policy) first")
        rollouts = await self.inner(group, starts, play)
        (strength,) = self.strengths([group.task])
        is_wrong = strength < self._lowest  # false for NaN
        vote = np.array([[np.nan_to_num(strength), is_wrong]], dtype=np.float32)  # one row for the whole turn
        return [_with_vote(rollout, vote) for rollout in rollouts]


def _with_vote(rollout: Rollout, vote: np.typing.NDArray[np.float32]) -> Rollout:
    turns = tuple(replace(turn, aux={**turn.aux, "strength": vote}) for turn in rollout.turns)
    return replace(rollout, turns=turns, facts=rollout.facts | {"strength": float(vote[0, 0])})


# Preference loss by strength (Secrets of RLHF II, 2401.06080): flipped and smoothed labels, adaptive margin.

STRENGTH = Aux("strength")  # u of the pair, and whether its label is wrong


@dataclass(frozen=True)
class MarginPreference(Loss):
    """-(1 - a) log s(d - u) - a log s(u - d), s the sigmoid, d the labelled better one's score less the other's.

    u, from `EnsembleVotes`, is the mean difference of several reward models' scores, a constant. For a wrong label d
    and u change signs. a is `soft` if u < 0, else 0; without `has_margin` the loss has u = 0, but a still depends on u.
    """

    soft: float = 0.1  # label smoothing of pairs with u < 0
    has_margin: bool = True
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS, STRENGTH})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 <= self.soft < 0.5:
            raise ConfigurationError(f"MarginPreference needs 0 <= soft < 0.5, got {self.soft}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        scores = verdict_scores(output, batch)
        votes = batch.aux.get(STRENGTH.name)
        if votes is None or votes.shape[1:] != (2,):
            raise ConfigurationError("MarginPreference needs preference strengths: use the strategy EnsembleVotes")
        strength, turned = (self._of_pairs(votes[:, place].to(scores.dtype), batch) for place in (0, 1))  # [G]
        side = 1 - 2 * turned  # [G], -1 where the label is wrong
        known = side * strength
        gap = side * margins(scores, batch, self) - (known if self.has_margin else 0.0)
        unsure = torch.where(known < 0, self.soft, 0.0)
        each = (1 - unsure) * functional.softplus(-gap) + unsure * functional.softplus(gap)
        loss = torch.where(batch.trainable, batch.on_tokens(each[batch.groups]), 0.0)
        agrees = (side * margins(scores, batch, self) > 0).to(scores.dtype)
        metrics = {"preferred_share": agrees, "flipped_share": turned, "strength": strength}
        return loss, {name: batch.metric(batch.on_tokens(metric[batch.groups])) for name, metric in metrics.items()}

    def _of_pairs(self, values: Tensor, batch: Batch) -> Tensor:
        """Value of each pair, which both of its rollouts carry at their verdict: [T] -> [G]."""
        return per_group(batch.per_rollout(values), batch) / 2


def secrets_of_rlhf_ii(
    setting: Setting = Setting(env="arithmetic:2", group_size=2, groups_per_step=64, learning_rate=1e-3),
    judges: str = "",  # folders of reward models, joined by +; empty: the plain loss, which trains such models
    noise: float = BundledShare(0.2),  # share of pairs whose labels are made wrong
    wrong: float = 0.2,  # largest share of pairs whose labels count as wrong, among those with u < 0
    soft: float = 0.1,  # label smoothing of pairs with u < 0
) -> Run:
    """Bradley-Terry on noisy labels; with judges, on labels that they correct."""
    if not judges:
        return preferring(setting, "secrets_of_rlhf_ii", (BradleyTerry(),), noise=share_for(setting, noise))
    run = preferring(setting, "secrets_of_rlhf_ii", (MarginPreference(soft),), noise=share_for(setting, noise))
    models = tuple(RewardModel(named_model("judges", folder), setting.device) for folder in judges.split("+"))
    run.strategy = EnsembleVotes(run.strategy, models, run.envs, wrong)
    return run
