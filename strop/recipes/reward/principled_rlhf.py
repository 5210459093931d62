"""Principled RLHF: a Plackett-Luce or Bradley-Terry reward model, then a policy on its pessimistic score.

Title: Principled Reinforcement Learning with Human Feedback from Pairwise or K-wise Comparisons
Paper: arXiv 2301.11270 (2023)
Claim: Maximum likelihood on rankings converges; a policy that maximizes its reward may fail where a pessimistic one,
    under coverage, does not. K-wise likelihood is more efficient than splitting into pairs.
Reading: Two runs of one recipe: without judge it trains the reward model (Plackett-Luce on rankings of group_size
    completions, or Bradley-Terry on all their pairs with split=true); with judge=FOLDER it trains a policy on that
    model's score less the penalty. The paper's reward is linear in known features: here they are the hidden states
    before the verdict. Its penalty is for a whole policy, ours for each completion. Bound, ridge and the policy's
    optimizer are ours, as the paper is theory.
Acts: score_margin != 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.environments.judging.preferences import Preferences, asked_of, completions_of
from strop.errors import ConfigurationError
from strop.generate.reward_model import RewardModel
from strop.models.torch_setup import BesideLoop
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_model
from strop.recipes.preference_pairs import preferring
from strop.recipes.setting import Setting
from strop.roles import Environment, Loss, Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.arithmetic.siblings import mean_over_pairs, ordered_pairs
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.losses.kl import Kl
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.losses.reinforce import Reinforce
from strop.training.requirements import Need
from strop.types import Group, Message, Metrics

if TYPE_CHECKING:
    from strop.generate.policy import Policy


# Pessimism (Zhu et al., 2301.11270): a reward model's score less its uncertainty about the completion.
#
# The score of a verdict is linear: theta . h, h the hidden state after the question and theta the difference of the two
# verdict tokens' rows of the output layer; so the paper's theory for linear rewards applies. The penalty here is per
# completion, where the paper has it for a whole policy.

Table = NDArray[np.float64]


@dataclass
class Pessimistic(Reward):
    """theta . v - bound * sqrt(v' (Sigma + ridge * I)^-1 v), v = h - the mean h of the pairs.

    Sigma is the mean outer product of differences of h within `pairs` pairs of the environments it was trained on.
    """

    model: RewardModel
    envs: tuple[Environment, ...]  # of pairs
    bound: float = 0.1  # coefficient of the penalty; 0: the score alone, up to a constant
    ridge: float = 0.1  # added to the diagonal of Sigma
    pairs: int = 256
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # a thread computes, and no code of a completion is executed

    _beside: BesideLoop = field(default_factory=BesideLoop, init=False, repr=False, compare=False)
    _known: tuple[Table, Table] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.bound < 0 or not self.ridge > 0 or self.pairs < 1:
            found = f"got {self.bound}, {self.ridge} and {self.pairs}"
            raise ConfigurationError(f"Pessimistic needs bound >= 0, ridge > 0 and pairs >= 1, {found}")

    def meet(self, policy: Policy) -> None:
        self.open_resources()

    def open_resources(self) -> None:
        """Load the model and compute the covariance of its pairs, before any rollout's deadline runs."""
        each = -(-self.pairs // len(self.envs))
        tasks = [env.task(index) for env in self.envs for index in range(each)]
        states = self.model.states(
            [(asked_of(task), completion) for task in tasks for completion in completions_of(task)[:2]]
        )
        pairs = states.reshape(-1, 2, states.shape[1])
        read = pairs[~np.isnan(pairs).any((1, 2))]  # pairs that exceed the context are left out
        if not len(read):
            raise ConfigurationError(
                f"none of {len(pairs)} pairs fits the reward model's context: use shorter tasks or completions"
            )
        self._known = read.mean((0, 1)), precision(read[:, 0] - read[:, 1], self.ridge)

    async def __call__(self, group: Group) -> list[float]:
        asked = [(rollout.task.messages, rollout.completion) for rollout in group.rollouts]
        return await self._beside(self._scores, asked)

    async def close(self) -> None:
        self._beside.close()

    def _scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        if self._known is None:
            raise ConfigurationError("Pessimistic has no covariance yet: call open_resources() first")
        centred = self.model.states(asked) - self._known[0]  # [N, H]
        return pessimistic(centred, self.model.direction, self._known[1], self.bound)


def precision(differences: Table, ridge: float) -> Table:
    """The inverse of the mean outer product [H, H] of rows [N, H], with `ridge` on its diagonal."""
    size = differences.shape[1]
    covariance = differences.T @ differences / len(differences) + ridge * np.eye(size)
    return np.asarray(np.linalg.inv(covariance), dtype=np.float64)


def pessimistic(centred: Table, direction: Table, inverse: Table, bound: float) -> list[float]:
    """Scores of rows [N, H] along a direction [H], less `bound` times their length in the metric of `inverse`."""
    lengths = np.sqrt(np.einsum("nh,hk,nk->n", centred, inverse, centred))
    return [float(each) for each in centred @ direction - bound * lengths]


# Plackett-Luce (Zhu et al., 2301.11270): a reward model's likelihood of whole rankings.


@dataclass(frozen=True)
class PlackettLuce(Loss):
    """-sum over k of log(exp(score of the k-th best) / sum of exp(score) over it and all worse ones).

    For two siblings it is Bradley-Terry. Siblings with equal rewards are not ranked against each other: each competes
    with the worse ones. Every token carries its group's loss, for the sequence-mean reduction.
    """

    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        scores = verdict_scores(output, batch)  # [A]
        is_worse = (batch.groups.unsqueeze(1) == batch.groups) & (batch.rewards.unsqueeze(1) > batch.rewards)
        left = is_worse | torch.eye(len(scores), dtype=torch.bool, device=scores.device)  # [A, A]
        rest = torch.where(left, scores.unsqueeze(0), -torch.inf).logsumexp(1)  # [A]
        each = scores.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, rest - scores)  # [G]
        loss = torch.where(batch.trainable, batch.on_tokens(each[batch.groups]), 0.0)
        pairs = ordered_pairs(batch)
        gaps = (scores[pairs[0]] - scores[pairs[1]]).detach()
        ahead = mean_over_pairs((gaps > 0).to(gaps.dtype), pairs, batch)
        apart = mean_over_pairs(gaps, pairs, batch)
        metrics = {"preferred_share": ahead, "score_margin": apart}
        return loss, {name: batch.metric(batch.on_tokens(metric)) for name, metric in metrics.items()}


def principled_rlhf(
    setting: Setting = Setting(env="arithmetic:2", group_size=4, groups_per_step=32, learning_rate=1e-3),
    judge: str = "",  # folder of a reward model; empty: train one
    split: bool = False,  # split rankings into pairs, for the reward model
    bound: float = 0.1,  # coefficient of the uncertainty penalty
    ridge: float = 0.1,  # added to the diagonal of the pairs' covariance
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """Without judge a reward model, with it a policy."""
    if not judge:
        loss: Loss = BradleyTerry() if split else PlackettLuce()
        return preferring(setting, "principled_rlhf", (loss,), completions=setting.group_size)
    run = setting.run("principled_rlhf", GroupMean(), (Reinforce(), Kl("k3", kl)))
    envs = tuple(Preferences(env) for env in run.envs)
    model = RewardModel(named_model("judge", judge), setting.device)
    run.rewards = (Pessimistic(model, envs, bound, ridge), measured(run.envs))
    return run
