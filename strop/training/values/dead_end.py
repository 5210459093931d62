"""Dead-end analysis (2302.14003): how certain it is that a reply goes wrong whatever follows, learned by SARSA.

Reading: undesired is an attempt whose reward is below one half; the paper's are toxic texts. As released, the value is
that of the replies that were seen, and not of the best ones.
Papers: dead-end
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
from strop.training.machine.value_body import AFTER, Part, ValueBody
from strop.types import Group, Metrics, Trajectory

_NAME, _SLOW = "dead_end", "dead_end_slow"


@dataclass
class DeadEnd(ValueModel):
    """Q of each token, from -1 (the reply ends undesired) to 0: mean of (Q - y)^2 over all tokens.

    y is -1 or 0 at an attempt's last token and a slow copy's Q of the next token before it, held within -1 and 0; the
    copy follows by `rate` after every step. `values` are 1 + Q, the chance that it ends well.
    """

    learning_rate: float = 3e-4  # of Adam
    rate: float = 0.1  # at which the slow copy follows
    steps: int = 3  # per draw
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)
    _slow: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.rate <= 1:
            raise ConfigurationError(f"DeadEnd needs steps >= 1 and 0 < rate <= 1, got {self.steps} and {self.rate}")

    def open(self, model: Path, seed: int) -> None:
        self._body, self._slow = (ValueBody.open(model, 1, self.max_tokens, self.device) for _ in range(2))

    def predict(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        told = self._ready()[0].told(attempts)
        for attempt in attempts:
            found = told.get(attempt.id, np.zeros((0, 2, 1), dtype=np.float32))[:, AFTER, 0]
            attempt.values = 1 + found.clip(-1, 0)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        body, slow = self._ready()
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        values = np.array([attempt.values[-1] for attempt in attempts if attempt.values is not None])
        metrics = calibration(values, np.array([1 + ending(attempt) for attempt in attempts]))
        parts, count = body.parts(attempts), sum(attempt.num_tokens for attempt in attempts)
        for _ in range(self.steps if parts else 0):
            goals = {name: column[:, AFTER, 0] for name, column in slow.told(attempts).items()}
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


def ending(attempt: Trajectory) -> float:
    """-1 where an attempt went wrong, else 0."""
    return -1.0 if attempt.reward < 0.5 else 0.0


def targets(later: NDArray[np.float32], end: float) -> NDArray[np.float64]:
    """Of each token: what the slow copy says of the next one, and of the last one how it ended: [N]."""
    return np.asarray(np.append(later[1:].astype(np.float64), end).clip(-1, 0))


def _loss(outputs: Tensor, part: Part, later: dict[str, NDArray[np.float32]], count: int) -> Tensor:
    goals = part.column([targets(later[attempt.id], ending(attempt)) for attempt in part.attempts])
    return (outputs[:, AFTER, 0] - goals).square().sum() / count
