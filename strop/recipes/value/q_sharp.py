"""Q#: distributional value of the frozen reference policy, used to guide decoding towards the KL-regularized optimum.

Title: Q#: Provably Optimal Distributional RL for LLM Post-Training
Paper: arXiv 2502.20548 (2025)
Claim: Better accuracy on mathematics at a smaller KL to the reference than other guided methods.
Reading: `strength` is 1 / kappa, as in the code; the paper's eta is its inverse. Run it twice: the first run trains
    the value model with the policy frozen; the second, with values=RUN/checkpoints/step-N/values, guides decoding with
    it. The value model is not trained in the second run, as its labels must come from the unguided reference.
Left out: Rounds with guided prefixes, and returns other than 0 and 1.
Acts: value_grad_norm > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from strop.generate.engines.wrappers.guided import Guided
from strop.recipes.setting import Setting
from strop.roles import Guidance
from strop.run import Run
from strop.success import success
from strop.training.advantages.constant import Constant, Residual
from strop.training.arithmetic.calibration import calibration
from strop.training.losses.reinforce import Reinforce
from strop.training.machine.value_body import AFTER, BEFORE, Part
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics

# Q#'s guidance (2502.20548): the KL-regularized optimum for a return of 0 or 1.
#
# Reading: `strength` is 1 / kappa, as in the code; the paper's eta is its inverse.


@dataclass(frozen=True)
class QSharp(Guidance):
    """Adds log(1 - p + p e^strength) to the candidates' logits, shifted so that the smallest offset is 0.

    p is the probability of success; the offset is log E[exp(strength * return)].
    """

    strength: float = 10.0  # 1 / kappa

    file: ClassVar[str] = "success_weights.safetensors"

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        offsets = softplus(self.strength + told) - softplus(told)  # [C]
        return base.index_add(0, candidates, (offsets - offsets.min()).to(base.dtype))


# Q#'s value (2502.20548): probability that the reference succeeds from a state, learned by maximum likelihood.
#
# Labels are rewards of the reference's rollouts, so the policy must stay frozen. `generate/guided_decoding.py` decodes
# with this value.


@dataclass
class Success(Bodied):
    """Success probability sigmoid(h) after every token, trained by binary cross-entropy to the rollout's success.

    The loss is averaged within rollouts. The state after the last token is included, because decoding queries it before
    it stops. `values` hold p before each token.
    """

    steps: int = 2  # per batch

    needs_success: ClassVar[bool] = True
    _name: ClassVar[str] = "success"

    def predict(self, groups: Sequence[Group]) -> None:
        for rollout, outputs in self._outputs(groups):
            rollout.values = torch.from_numpy(outputs[:, BEFORE, 0]).sigmoid().numpy()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        values = np.concatenate([*(np.zeros(0) if a.values is None else a.values for a in rollouts), np.zeros(0)])
        rewards = np.concatenate([*(np.full(a.num_tokens, success(a)) for a in rollouts), np.zeros(0)])
        metrics = calibration(values, rewards) if len(values) == len(rewards) else {}
        count, parts = max(len(rollouts), 1), self._ready().parts(rollouts)
        return metrics | self._fit(lambda out, part: _loss(out, part) / count, parts, self.steps)


def _loss(outputs: Tensor, part: Part) -> Tensor:
    """Cross-entropy, averaged over each rollout's tokens and summed over rollouts."""
    labels = part.column([np.full(rollout.num_tokens, success(rollout)) for rollout in part.rollouts])
    weights = part.column([np.full(rollout.num_tokens, 1 / rollout.num_tokens) for rollout in part.rollouts])
    return torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, AFTER, 0], labels, weights, reduction="sum")


def q_sharp(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: train the value model
    strength: float = 10.0,  # of guidance, 1 / kappa
) -> Run:
    """Trains a value model; with `values`, decodes with it. The policy stays frozen."""
    frozen_policy = (Reinforce(weight=0.0),)
    if values:
        engine = Guided(values, QSharp(strength), device=setting.device)
        return setting.run("q_sharp", Constant(), frozen_policy, engine=engine, rescore_every=0)
    return setting.run("q_sharp", Residual(), frozen_policy, values=Success(device=setting.device))
