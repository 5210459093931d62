"""A reward model whose states on the way of a good completion resemble those at its end, and not those of a bad one.

Title: Learning Goal-Conditioned Representations for Language Reward Models
Paper: arXiv 2407.13887 (2024)
Claim: Up to 0.09 AUROC on mathematics and 2.3 % accuracy on Helpful-Harmless; partial replies can be judged, which
    filters up to 55 % of tokens.
Reading: As released: weight 0.5, 16 draws per completion, each source with one goal. A state is that in which a token
    was chosen.
Left out: Scoring partial completions by their cosine to the mean end of good ones, and steering by it.
Acts: score_margin != 0 and goal_cosine != 0 and other_cosine != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.generate.strategies.verdict_data import RecitedVerdicts
from strop.recipes.reward_model_runs import preferring
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.arithmetic.siblings import sides
from strop.training.arithmetic.token_draws import token_keys, uniforms
from strop.training.arithmetic.verdict_logits import VERDICTS
from strop.training.batch import Batch, Output
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.requirements import Need
from strop.types import Metrics

# Goal-conditioned representations (2407.13887): what a good completion is like on the way is like where it ends up.


@dataclass(frozen=True)
class GoalContrast(Loss):
    """-log mean s(cos(h, goal)) - log(1 - mean s(cos(h, other))), a loss of each pair beside Bradley-Terry.

    `draws` times, by a probability of seed, step and rollout: h is a state of the better completion, goal a strictly
    later one of
    it, other any of the worse completion. The logarithm is of the mean. Cosines are within -1 and 1, so the loss has a
    floor. A completion of one token, a tie and what is no completion (the verdict) take no part. Every token carries
    its pair's loss, for the sequence-mean reduction.
    """

    draws: int = 16
    seed: int = 0
    weight: float = 0.5

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ConfigurationError(f"GoalContrast needs draws >= 1, got {self.draws}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        side, states, keys = sides(batch, self), output.states, token_keys(batch, self.seed)
        found = [self._pair(group, side, batch, states, keys) for group in range(len(batch.group_numbers))]
        near, far = (torch.stack(each) for each in zip(*found, strict=True))  # [G, K]
        each = -near.sigmoid().mean(1).log() - torch.log1p(-far.sigmoid().mean(1))  # [G]
        is_known = ~near.isnan().any(1)
        each = torch.where(is_known, each, 0.0)
        loss = torch.where(batch.trainable, batch.on_tokens(each[batch.groups]), 0.0)
        told = {"goal_cosine": near, "other_cosine": far}
        means = {name: torch.where(is_known, cosines.detach().mean(1), 0.0) for name, cosines in told.items()}
        return loss, {name: batch.metric(batch.on_tokens(mean[batch.groups])) for name, mean in means.items()}

    def _pair(self, group: int, side: Tensor, batch: Batch, states: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines to goals and to others: [K], [K]; NaN without gradient where the pair has none."""
        rows = [self._completion(group, side > 0, batch), self._completion(group, side < 0, batch)]  # better, worse
        if len(rows[0]) < 2 or not len(rows[1]):
            return states.new_full((self.draws,), torch.nan), states.new_full((self.draws,), torch.nan)
        probability = uniforms(keys[rows[0][:1]], 3 * self.draws).view(3, self.draws)
        last = len(rows[0]) - 1
        source = (probability[0] * last).long()  # 0 to last - 1
        goal = source + 1 + (probability[1] * (last - source)).long()  # source + 1 to last
        other = (probability[2] * len(rows[1])).long()
        here = states[rows[0][source]]
        near = functional.cosine_similarity(here, states[rows[0][goal]], dim=1)
        return near, functional.cosine_similarity(here, states[rows[1][other]], dim=1)

    def _completion(self, group: int, chosen: Tensor, batch: Batch) -> Tensor:
        """Places of the completion's tokens, without the verdict: [N]."""
        is_verdict = (batch.aux[VERDICTS.name] != 0).any(-1)
        wanted = batch.on_tokens(chosen & (batch.groups == group))
        return (wanted & batch.trainable & ~is_verdict).nonzero().squeeze(1)


def goal_conditioned_rm(
    setting: Setting = Setting(env="arithmetic:2", group_size=2, groups_per_step=64, learning_rate=1e-3),
    beta: float = 0.5,  # weight of the contrast beside Bradley-Terry
    draws: int = 16,  # of a state and a later one, of each completion
) -> Run:
    """Bradley-Terry at the verdict, and a contrast of states within the completions."""
    losses = (BradleyTerry(), GoalContrast(draws, setting.seed, beta))
    run = preferring(setting, "goal_conditioned_rm", losses)
    run.strategy = RecitedVerdicts(says_completions=True)
    return run
