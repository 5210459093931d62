"""A reward model from noisy pairs: several others vote on each, and decide its label, its certainty and its margin.

Key: secrets-of-rlhf-ii
Title: Secrets of RLHF in Large Language Models Part II: Reward Modeling
Paper: arXiv 2401.06080 (2024)
Claim: Reward models and policies trained on pairs whose strength was measured are more stable and generalise better.
Reading: judges are folders of reward models, joined by +: runs of this recipe without any and with other seeds, ten in
    the paper. Labels are wrong where their mean difference is among the lowest 20 % of pairs and below 0 (in the
    paper's data that is one thing), soft where it is below 0 otherwise, and all pairs have it as margin. A share of
    noisy labels stands for those of annotators. The release has the plain loss only.
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
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.reward_model import RewardModel
from strop.models.loading.model_names import model_folder
from strop.recipes.reward_model_runs import preferring
from strop.recipes.setting import Setting
from strop.roles import Environment, Loss, Strategy
from strop.run import Run
from strop.training.arithmetic.siblings import margins, per_group
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.requirements import Aux, Need
from strop.types import Group, Metrics, Rollout, Start, Task

# How strongly several reward models prefer the better one of a pair (Secrets of RLHF II, 2401.06080).
#
# Reading: the paper trains ten models on the same pairs in another order each, which are ten runs here; those whose
# mean difference is among the lowest `wrong` of pairs, and against the label, have a wrong one. Which value that is, is
# found on `sample` pairs of the environments before the first step, so that it depends on no order of groups.


@dataclass
class Voted(Strategy):
    """The rollouts of `inner`, with the mean of the judges' differences u, and whether it says that the label is wrong.

    Both stand in `Turn.aux["strength"]` of the two, and in their facts. A pair that does not fit a judge's context has
    no vote: u is 0.
    """

    inner: Strategy
    judges: tuple[RewardModel, ...]
    envs: tuple[Environment, ...]  # of pairs
    wrong: float = 0.2  # most of pairs whose labels are
    sample: int = 256  # pairs

    _lowest: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.judges or not 0 <= self.wrong < 1 or self.sample < 1:
            told = f"got {len(self.judges)}, {self.wrong} and {self.sample}"
            raise ConfigurationError(f"Voted needs a judge, 0 <= wrong < 1 and sample >= 1, {told}")

    def meet(self, policy: Policy) -> None:
        """Find out below which u a label is wrong."""
        each = -(-self.sample // len(self.envs))
        found = self.strengths([env.task(index) for env in self.envs for index in range(each)])
        # never above 0, as in the paper's data: a label that the judges agree with is not wrong, however little they do
        self._lowest = min(float(np.nanquantile(found, self.wrong)), 0.0) if self.wrong else -np.inf

    def strengths(self, tasks: Sequence[Task]) -> list[float]:
        """u of each pair; NaN where a judge cannot read one."""
        asked = [(asked_of(task), completion) for task in tasks for completion in completions_of(task)[:2]]
        told = np.array([judge.scores(asked) for judge in self.judges])  # [M, 2 N]
        return [float(each) for each in (told[:, 0::2] - told[:, 1::2]).mean(0)]

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if self._lowest is None:
            raise ConfigurationError("Voted does not know which labels are wrong: call meet(policy) first")
        rollouts = await self.inner(group, starts, play)
        (strength,) = self.strengths([group.task])
        is_wrong = strength < self._lowest  # never of NaN
        told = np.array([[np.nan_to_num(strength), is_wrong]], dtype=np.float32)  # one row for the whole turn
        return [_told(rollout, told) for rollout in rollouts]


def _told(rollout: Rollout, told: np.typing.NDArray[np.float32]) -> Rollout:
    turns = tuple(replace(turn, aux={**turn.aux, "strength": told}) for turn in rollout.turns)
    return replace(rollout, turns=turns, facts=rollout.facts | {"strength": float(told[0, 0])})


# Pairs by how strongly others prefer one (Secrets of RLHF II, 2401.06080): flipped, softened, and with a margin.

STRENGTH = Aux("strength")  # how strongly others prefer the labelled one of a pair, and whether they are too sure


@dataclass(frozen=True)
class MarginPreference(Loss):
    """-(1 - a) log s(d - u) - a log s(u - d), d the score of the labelled better one less that of the other.

    u is what `Voted` left in `Turn.aux`: the mean difference of several reward models' scores, a constant. Where they
    are so sure of the opposite that the label must be wrong, d and u change their signs. `soft` is a where u < 0, and 0
    elsewhere; without `has_margin` u is 0 in the margin alone.
    """

    soft: float = 0.1  # how far an unsure label is from certainty
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
        told = batch.aux.get(STRENGTH.name)
        if told is None or told.shape[1:] != (2,):
            raise ConfigurationError("MarginPreference needs the strength of preferences: need rollouts of Voted")
        strength, turned = (self._of_pairs(told[:, place].to(scores.dtype), batch) for place in (0, 1))  # [G]
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
        """A number that both rollouts of a pair bear at their verdict: [T] -> [G]."""
        return per_group(batch.per_rollout(values), batch) / 2


def secrets_of_rlhf_ii(
    setting: Setting = Setting(env="arithmetic:2", group_size=2, groups_per_step=64, learning_rate=1e-3),
    judges: str = "",  # folders of reward models, joined by +; empty: the plain loss, which makes such models
    noise: float = 0.2,  # share of pairs whose labels are wrong
    wrong: float = 0.2,  # share of pairs whose labels are taken for wrong, of those that the judges speak against
    soft: float = 0.1,  # how far an unsure label is from certainty
) -> Run:
    """Bradley-Terry on noisy labels, and with judges on labels that they have mended."""
    if not judges:
        return preferring(setting, "secrets_of_rlhf_ii", (BradleyTerry(),), noise=noise)
    run = preferring(setting, "secrets_of_rlhf_ii", (MarginPreference(soft),), noise=noise)
    models = tuple(RewardModel(str(model_folder(folder)), setting.device) for folder in judges.split("+"))
    run.strategy = Voted(run.strategy, models, run.envs, wrong)
    return run
