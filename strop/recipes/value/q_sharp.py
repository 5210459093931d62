"""Learn how likely the frozen model is to succeed, then decode it under that guidance.

Title: Q#: Provably Optimal Distributional RL for LLM Post-Training
Paper: arXiv 2502.20548 (2025)
Claim: Better accuracy on mathematics at a smaller KL to the reference than other guided methods.
Reading: `strength` is 1 / kappa, as in the code; the paper's eta is its inverse. Run it twice: the policy rests while
    the value learns, then `values`, its `checkpoints/step-N/values`, guides rollouts and
    learns no more: its labels must be those of the reference alone.
Left out: Rounds that begin with guided tokens, and returns other than 0 and 1.
Acts: value_grad_norm > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.guided import Guided
from strop.generate.guided_decoding import Guidance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant, Residual
from strop.training.arithmetic.calibration import calibration
from strop.training.losses.reinforce import Reinforce
from strop.training.machine.value_body import AFTER, BEFORE, Part, ValueBody
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics

# Q#'s guidance (2502.20548): the optimum under a KL penalty to the model, for a return of 0 or 1.
#
# Reading: `strength` is 1 / kappa, as in the code; the paper's eta is its inverse.


@dataclass(frozen=True)
class QSharp(Guidance):
    """Adds log(1 - p + p e^strength) to candidates, p the probability of success, lowered to a least of 0.

    That is log E[exp(strength * return)] with the logit of p told.
    """

    strength: float = 10.0  # 1 / kappa

    file: ClassVar[str] = "success_weights.safetensors"

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        offsets = softplus(self.strength + told) - softplus(told)  # [C]
        return base.index_add(0, candidates, (offsets - offsets.min()).to(base.dtype))


# Q#'s value (2502.20548): how likely the reference is to succeed from here, learned by maximum likelihood.
#
# Labels are rewards of rollouts that the reference finished, so the policy must rest while this learns; decoding with
# it is `generate/guided_decoding.py`.


@dataclass
class Success(Bodied):
    """p = sigmoid(h) after every token, by binary cross-entropy to the rollout's reward, averaged within rollouts.

    The state after the last token, the end of the completion, is among them: decoding asks about just that one before
    it stops. `values` are p before each token, which is what was expected of it.
    """

    learning_rate: float = 1e-4  # of Adam
    steps: int = 2  # per batch
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _name: ClassVar[str] = "success"

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)

    def predict(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        told = self._ready().told(rollouts)
        for rollout in rollouts:
            logit = told.get(rollout.id, np.zeros((0, 2, 1), dtype=np.float32))[:, BEFORE, 0]
            rollout.values = torch.from_numpy(logit).sigmoid().numpy()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if wrong := [rollout.reward for rollout in rollouts if not 0 <= rollout.reward <= 1]:
            raise ConfigurationError(f"Success learns a probability and needs rewards from 0 to 1, got {wrong[0]:g}")
        values = np.concatenate([*(np.zeros(0) if a.values is None else a.values for a in rollouts), np.zeros(0)])
        rewards = np.concatenate([*(np.full(a.num_tokens, a.reward) for a in rollouts), np.zeros(0)])
        metrics = calibration(values, rewards) if len(values) == len(rewards) else {}
        body, count = self._ready(), max(len(rollouts), 1)
        parts = body.parts(rollouts)
        for _ in range(self.steps if parts else 0):
            metrics["value_grad_norm"] = body.step(
                parts, lambda out, part: _loss(out, part) / count, self.learning_rate
            )
        return metrics


def _loss(outputs: Tensor, part: Part) -> Tensor:
    """Mean over the states after each rollout's tokens, summed over rollouts."""
    labels = part.column([np.full(rollout.num_tokens, rollout.reward) for rollout in part.rollouts])
    weights = part.column([np.full(rollout.num_tokens, 1 / rollout.num_tokens) for rollout in part.rollouts])
    return torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, AFTER, 0], labels, weights, reduction="sum")


def q_sharp(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: learn them
    strength: float = 10.0,  # of guidance, 1 / kappa
) -> Run:
    """The policy rests. With `values`, a saved `checkpoints/step-N/values`, rollouts are guided by it."""
    resting = (Reinforce(weight=0.0),)
    if values:
        engine = Guided(values, QSharp(strength), device=setting.device)
        return setting.run("q_sharp", Constant(), resting, engine=engine, rescore_every=0)
    return setting.run("q_sharp", Residual(), resting, values=Success(device=setting.device))
