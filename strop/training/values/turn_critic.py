"""ArCHer's turn-level critic (2402.19446): values of whole turns, learned by TD with slow target networks.

Reading: the target of V uses the recorded turns instead of freshly sampled ones, which on-policy is the same in
expectation; both heads are on the policy's own architecture. Above an expectile of 0.5, V learns the value of good
turns (implicit Q-learning), for training on conversations of other policies.
Papers: archer-hierarchical, imagined-conversations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import ValueModel
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.turn_returns import on_written, turn_bounds, turn_payments
from strop.training.machine.value_body import AFTER, BEFORE, Part, ValueBody
from strop.types import Group, Metrics, Rollout

_SPREAD = 0.1  # std of the heads' first outputs, for states of unit size
_NAME, _TARGET = "turn_critic", "turn_target"


@dataclass
class TurnCritic(ValueModel):
    """Twin critics Q(o, u) -> r + discount * target V(o'), V(o) -> target Q(o, u), by mean squared error.

    V is computed before a turn's first token, Q after its last; nothing follows the last turn. The twins start as
    different small random heads, or they would stay equal. Fills `values` with V of each token's turn and the policy
    statistic `turn_advantages` with min Q - min V. Targets move by `rate` after every step.
    """

    discount: float = 0.95  # from turn to turn
    rate: float = 0.1  # update rate of the targets
    expectile: float = 0.5  # expectile of Q that V learns; 0.5: its mean
    steps: int = 4  # per batch
    learning_rate: float = 1e-4  # of Adam
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)
    _target: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.rate <= 1 or not 0 <= self.discount <= 1 or not 0 < self.expectile < 1:
            raise ConfigurationError(
                f"TurnCritic needs steps >= 1, 0 < rate <= 1, 0 <= discount <= 1 and 0 < expectile < 1, got {self}"
            )

    def open(self, model: Path, seed: int) -> None:
        self._body, self._target = (ValueBody.open(model, 4, self.max_tokens, self.device) for _ in range(2))
        size = self._body.head.weight.shape
        drawn = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * _SPREAD / size[1] ** 0.5
        with torch.no_grad():
            for body in (self._body, self._target):
                body.head.weight.copy_(drawn)

    def predict(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        told = self._ready()[0].told(rollouts)
        for rollout in rollouts:
            rollout.values = np.zeros(rollout.num_tokens, dtype=np.float32)
            if rollout.id in told:
                actions, states = by_turn(told[rollout.id], rollout)  # [U, 2] each
                lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
                rollout.values = np.repeat(states.min(1), lengths).astype(np.float32)
                rollout.policy_statistics["turn_advantages"] = actions.min(1) - states.min(1)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        body, target = self._ready()
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        values = np.array([rollout.values[0] for rollout in rollouts if rollout.values is not None])
        metrics = calibration(values, np.array([_discounted(rollout, self.discount) for rollout in rollouts]))
        parts = body.parts(rollouts)
        count = max(sum(_num_turns(rollout) for rollout in rollouts), 1)
        for _ in range(self.steps if parts else 0):
            loss = partial(self._loss, slow=target.told(rollouts), count=count)
            metrics["value_grad_norm"] = body.step(parts, loss, self.learning_rate)
            self._follow()
        return metrics

    def _loss(self, outputs: Tensor, part: Part, slow: dict[str, NDArray[np.float32]], count: int) -> Tensor:
        total, start = outputs.new_zeros(()), 0
        for rollout in part.rollouts:
            own = outputs[start : start + rollout.num_tokens]
            start += rollout.num_tokens
            first, last = turn_bounds(rollout)
            later_actions, later_states = by_turn(slow[rollout.id], rollout)
            goals = action_targets(np.array(on_written(rollout, turn_payments(rollout))), later_states, self.discount)
            total = total + (own[last, AFTER, :2] - torch.from_numpy(goals).to(own)).square().sum()
            short = torch.from_numpy(later_actions).to(own) - own[first, BEFORE, 2:]  # of Q: [U, 2]
            total = total + (expectile_weights(short, self.expectile) * short.square()).sum()
        return total / count

    @torch.no_grad()
    def _follow(self) -> None:
        body, target = self._ready()
        for name, weight in target.optimizer.parameters.items():
            weight.lerp_(body.optimizer.parameters[name], self.rate)

    def save(self, folder: Path) -> None:
        body, target = self._ready()
        body.save(folder, _NAME)
        target.save(folder, _TARGET)

    def resume(self, folder: Path) -> None:
        body, target = self._ready()
        body.resume(folder, _NAME)
        target.resume(folder, _TARGET)

    def _ready(self) -> tuple[ValueBody, ValueBody]:
        if self._body is None or self._target is None:
            raise ConfigurationError("TurnCritic has no model: call open(model, seed) first")
        return self._body, self._target


def by_turn(told: NDArray[np.float32], rollout: Rollout) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Q twins after the last tokens of turns and V twins before their first: [U, 2] each, from [N, 2, 4]."""
    first, last = turn_bounds(rollout)
    return told[last, AFTER, :2], told[first, BEFORE, 2:]


def action_targets(paid: NDArray[np.float64], states: NDArray[np.float32], discount: float) -> NDArray[np.float64]:
    """r + discount * V of the next turn, for each twin; nothing follows the last: [U, 2]."""
    following = np.vstack([states[1:], np.zeros((1, 2), dtype=states.dtype)])
    targets: NDArray[np.float64] = paid[:, None] + discount * following
    return targets


def expectile_weights(short: Tensor, expectile: float) -> Tensor:
    """Twice `expectile` where V is too low, 2 - that where it is too high; 1 everywhere at 0.5."""
    return torch.where(short > 0, 2 * expectile, 2 * (1 - expectile)).to(short)


def _num_turns(rollout: Rollout) -> int:
    return sum(len(turn.tokens) > 0 for turn in rollout.turns)


def _discounted(rollout: Rollout, discount: float) -> float:
    return sum(discount**k * paid for k, paid in enumerate(turn_payments(rollout)))
