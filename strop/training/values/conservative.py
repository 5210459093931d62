"""B-Coder's value (2310.03173): the language model's logits are the shape of Q, and only its level is learned.

Q(s, a) = alpha * (z(s, a) - max z(s, .)) + V(s), z the frozen model's logits; backed up with the action that model
likes best, for which the first term is 0. This is the paper's first stage; in its second the policy's own logits learn
(`ConservativeQ`). Where rewards are high V nears its bound, because it makes up for the gaps: it is no baseline.
Reading: ln 2 is taken off softabs, so that V can reach 1.
Papers: b-coder
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.models.model import load_model, logits
from strop.training.arithmetic.calibration import calibration
from strop.training.machine.value_body import BEFORE, Part, ValueBody
from strop.training.machine.value_model import Bodied
from strop.types import FilePath, Group, Metrics

_ZERO = 2 * math.acosh(math.e)  # where softabs is 1, so that nothing is expected before anything was seen


@dataclass
class Conservative(Bodied):
    """Minimizes (r_t + discount * sg V(s_(t+1)) - Q(s_t, a_t))^2; V <= 1 by V = 1 - softabs(v), and 0 after the end.

    The attempt's reward stands on its last token. With `folder` V is what another run saved, and learns no more.
    """

    alpha: float = 1.0  # scale of the frozen model's logits in Q
    discount: float = 1.0  # from token to token
    folder: FilePath = ""  # checkpoints/step-N/values of another run; empty: learn
    learning_rate: float = 1e-4  # of Adam
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _name: ClassVar[str] = "conservative"
    _model: Any = field(default=None, init=False, repr=False, compare=False)  # frozen

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)
        self._model = load_model(model, device=self.device).requires_grad_(False)
        if self.folder:
            self._body.model.load(Path(self.folder) / f"{self._name}_weights.safetensors")

    def predict(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        told = self._ready().told(attempts)
        for attempt in attempts:
            raw = told.get(attempt.id, np.zeros((0, 2, 1), dtype=np.float32))[:, BEFORE, 0]
            attempt.values = bounded(torch.from_numpy(raw)).numpy()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        body = self._ready()
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        parts = body.parts(attempts)
        count = max(sum(len(part.rows) for part in parts), 1)
        values = [np.zeros(a.num_tokens) if a.values is None else a.values for a in attempts]
        rewards = [np.full(attempt.num_tokens, attempt.reward) for attempt in attempts]
        metrics = calibration(np.concatenate([*values, np.zeros(0)]), np.concatenate([*rewards, np.zeros(0)]))
        if self.folder:
            return metrics

        def loss(outputs: Tensor, part: Part) -> Tensor:
            own = bounded(outputs[:, BEFORE, 0])
            goals = part.column(
                [
                    backed_up(np.asarray(v), a.reward, self.discount)
                    for v, a in zip(_split(own, part), part.attempts, strict=True)
                ]
            )
            return (goals - action_values(self._gaps(part), own, self.alpha)).square().sum() / count

        return {**metrics, "value_grad_norm": body.step(parts, loss, self.learning_rate)}

    @torch.no_grad()
    def _gaps(self, part: Part) -> Tensor:
        """z(s, a) - max z(s, .) of the frozen model at the written tokens: [R], never positive."""
        hidden = part.sequences.hidden_states(self._model).index_select(0, part.rows - 1)
        scores = logits(self._model, hidden).float()
        chosen = torch.from_numpy(np.concatenate([t.tokens for a in part.attempts for t in a.turns])).to(scores.device)
        return scores.gather(1, chosen.unsqueeze(1)).squeeze(1) - scores.max(1).values


def bounded(raw: Tensor) -> Tensor:
    """1 - softabs(raw + c), softabs(x) = (softplus(x) + softplus(-x)) / 2 - ln 2: at most 1, and 0 at 0."""
    moved = raw + _ZERO
    soft = (torch.nn.functional.softplus(moved) + torch.nn.functional.softplus(-moved)) / 2
    return 1 - (soft - math.log(2))


def action_values(gaps: Tensor, values: Tensor, alpha: float) -> Tensor:
    """Q of the chosen actions: its softmax over actions at alpha is the frozen model's distribution, whatever V is."""
    return alpha * gaps + values


def backed_up(values: NDArray[Any], reward: float, discount: float) -> NDArray[np.float64]:
    """r_t + discount * V(s_(t+1)) of one attempt, for the frozen model's favourite next action: [N]."""
    targets = discount * np.append(values[1:].astype(np.float64), 0.0)[: len(values)]
    targets[-1:] += reward
    return targets


def _split(values: Tensor, part: Part) -> list[NDArray[np.float32]]:
    ends = np.cumsum([attempt.num_tokens for attempt in part.attempts])[:-1]
    return np.split(values.detach().cpu().numpy(), ends)
