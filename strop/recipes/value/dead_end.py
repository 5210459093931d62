"""Dead-end analysis: a value model of undesired endings caps the next-token probabilities at decoding.

Title: Systematic Rectification of Language Models via Dead-end Analysis
Paper: arXiv 2302.14003 (2023)
Claim: Less toxic text than other controlled decoding, by a small value model that needs only the output distribution.
Reading: An undesired ending is a wrong answer. Run it twice: the first run trains the value model with the policy
    frozen; the second, with values=RUN/checkpoints/step-N/values, caps the next token's probability at 1 + Q - margin.
    As in the release: three passes over each batch, a target network with rate 0.1, a margin of 0.1. The value is that
    of the sampled completions, so if most of them are wrong every cap is low: after 4 steps of training on
    arithmetic:4, 0 of 8 held-out tasks were solved with caps and 2 without. The method suits environments in which most
    completions end well, as most texts are not toxic.
Left out: A value model smaller than the policy.
Acts: value_grad_norm > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.guided import Guided
from strop.recipes.setting import Setting
from strop.roles import Guidance, ValueModel
from strop.run import Run
from strop.success import success
from strop.training.advantages.constant import Constant, Residual
from strop.training.arithmetic.calibration import calibration
from strop.training.losses.reinforce import Reinforce
from strop.training.machine.value_body import AFTER, Part, ValueBody
from strop.types import Group, Metrics, Rollout

# The rectified policy (2302.14003): a token's probability is at most its probability of avoiding a dead end.
#
# Reading: the cap holds after renormalization, as in the paper's bound; the release caps twice and ends above it.
# Tokens below their cap keep their proportions to each other.

_LEAST = 1e-7  # smallest cap


@dataclass(frozen=True)
class Capped(Guidance):
    """min(s * p, cap), s such that probabilities add up to 1; cap = 1 + Q - margin for candidates, 1 for other tokens.

    If all caps add up to less than 1, probabilities are proportional to the caps.
    """

    margin: float = 0.1  # subtracted from the cap 1 + Q

    file: ClassVar[str] = "dead_end_weights.safetensors"

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise ConfigurationError(f"Capped needs a margin of at least 0 and below 1, got {self.margin}")

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        caps = torch.ones(len(base), dtype=torch.float64, device=base.device)
        caps[candidates] = (1 + told.double() - self.margin).clamp(_LEAST, 1.0)
        return capped(base.double().softmax(-1), caps).log().to(base.dtype)


def capped(probabilities: Tensor, caps: Tensor) -> Tensor:
    """The distribution in which every probability is at its cap or s times its old value: [V].

    Tokens reach their caps in the order of cap / p; one pass in that order finds s.
    """
    if float(caps.sum()) <= 1:
        return caps / caps.sum()
    order = torch.argsort(caps / probabilities)
    taken = caps[order].cumsum(0)  # mass if the first k + 1 tokens are at their caps
    left = 1 - torch.cat([taken.new_zeros(1), taken[:-1]])  # mass for the others if the first k are
    rest = probabilities[order].flip(0).cumsum(0).flip(0)  # [V], old mass of tokens from k on
    scale = left / rest
    free = int((scale * probabilities[order] <= caps[order]).to(torch.int8).argmax())  # first token below its cap
    return torch.minimum(probabilities * scale[free], caps)


# Dead-end analysis (2302.14003): value of an undesired ending, learned by SARSA.
#
# Reading: a success below 0.5 is undesired; in the paper, toxic text. As in the release, the value is that of the
# sampled completions, not of the best ones.

_NAME, _SLOW = "dead_end", "dead_end_slow"


@dataclass
class DeadEnd(ValueModel):
    """Q of each token from -1 (undesired ending) to 0, trained with the mean of (Q - y)^2 over all tokens.

    y is -1 or 0 at a rollout's last token, and before it the target network's Q of the next token, clamped to [-1, 0].
    The target network follows by `rate` after every step. `values` are 1 + Q, the probability of a good ending.
    """

    learning_rate: float = 3e-4  # of Adam
    rate: float = 0.1  # of the target network's moving average
    steps: int = 3  # per batch
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    needs_success: ClassVar[bool] = True
    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)
    _slow: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.rate <= 1:
            raise ConfigurationError(f"DeadEnd needs steps >= 1 and 0 < rate <= 1, got {self.steps} and {self.rate}")

    def open(self, model: Path, seed: int) -> None:
        self._body, self._slow = (ValueBody.open(model, 1, self.max_tokens, self.device) for _ in range(2))

    def predict(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        found = self._ready()[0].told(rollouts)
        for rollout in rollouts:
            own = found.get(rollout.id, np.zeros((0, 2, 1), dtype=np.float32))[:, AFTER, 0]
            rollout.values = 1 + own.clip(-1, 0)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        body, slow = self._ready()
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        values = np.array([rollout.values[-1] for rollout in rollouts if rollout.values is not None])
        metrics = calibration(values, np.array([1 + ending(rollout) for rollout in rollouts]))
        parts, count = body.parts(rollouts), sum(rollout.num_tokens for rollout in rollouts)
        for _ in range(self.steps if parts else 0):
            goals = {name: column[:, AFTER, 0] for name, column in slow.told(rollouts).items()}
            loss = partial(_loss, later=goals, count=count)
            metrics["value_grad_norm"] = body.step(parts, loss, self.learning_rate)
            self._follow()
        return metrics

    @torch.no_grad()
    def _follow(self) -> None:
        body, slow = self._ready()
        for name, weight in slow.optimizer.parameters.items():
            weight.lerp_(body.optimizer.parameters[name], self.rate)

    def save(self, folder: Path) -> None:
        body, slow = self._ready()
        body.save(folder, _NAME)
        slow.save(folder, _SLOW)

    def resume(self, folder: Path) -> None:
        body, slow = self._ready()
        body.resume(folder, _NAME)
        slow.resume(folder, _SLOW)

    def _ready(self) -> tuple[ValueBody, ValueBody]:
        if self._body is None or self._slow is None:
            raise ConfigurationError("DeadEnd has no model yet: call open(model, seed) first")
        return self._body, self._slow


def ending(rollout: Rollout) -> float:
    """-1 for an undesired rollout, else 0."""
    return -1.0 if success(rollout) < 0.5 else 0.0


def targets(later: NDArray[np.float32], end: float) -> NDArray[np.float64]:
    """Target of each token: the target network's Q of the next token; `end` for the last one: [N]."""
    return np.asarray(np.append(later[1:].astype(np.float64), end).clip(-1, 0))


def _loss(outputs: Tensor, part: Part, later: dict[str, NDArray[np.float32]], count: int) -> Tensor:
    goals = part.column([targets(later[rollout.id], ending(rollout)) for rollout in part.rollouts])
    return (outputs[:, AFTER, 0] - goals).square().sum() / count


def dead_end(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: train the value model
    margin: float = 0.1,  # subtracted from the cap 1 + Q
) -> Run:
    """Trains a value model; with `values`, decodes with its caps. The policy stays frozen."""
    frozen_policy = (Reinforce(weight=0.0),)
    if values:
        engine = Guided(values, Capped(margin), device=setting.device)
        return setting.run("dead_end", Constant(), frozen_policy, engine=engine, rescore_every=0)
    return setting.run("dead_end", Residual(), frozen_policy, values=DeadEnd(device=setting.device))
