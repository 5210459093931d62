"""TraceRL: RL of masked diffusion LMs on the recorded unmasking trajectory, with a diffusion value model as critic.

Title: Revolutionizing Reinforcement Learning Framework for Diffusion Large Language Models
Paper: arXiv 2509.06949 (2025)
Claim: A 4B model beats a 7B autoregressive one in mathematics, and a critic makes training steadier.
Reading: One forward pass per unmasking step, as in the paper for block attention, but with full attention; the eight
    steps that share a pass there are a whole completion here. As for block attention: tokens of probability 0.9 are
    unmasked at once, a completion's loss is divided by its maximum length, and a critic reads partially masked
    completions. Discount and lambda are 1, so the advantage is the normalized reward minus its value. Clip 0.2, KL of
    0.01 (k3) to the policy before the step, and four optimizer steps per batch, so that both act. Groups with more than
    0.8 or less than 0.2 right rollouts are dropped. EOS tokens after the first are trained like any others. Without the
    critic the advantage is the reward normalized within the group.
Left out: Block attention with a KV cache, blocks larger than the model's initial ones, and the rule that completions
    within five tokens of their limit are wrong.
Acts: advantage_within > 0 and value_grad_norm > 0 and proximal_kl != 0 and warmup/nll > 0 with shown=150
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.filter.gates.accuracy_band import AccuracyBand
from strop.models.layers.scalar_head import Headed
from strop.models.optimizers.adamw import Optimizer
from strop.recipes.diffusion import ALL_ALIKE, filling, reading, taught_to_fill
from strop.recipes.setting import Setting
from strop.roles import Advantage, ValueModel, View
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.advantages.trace_returns import TraceReturns
from strop.training.arithmetic.calibration import calibration
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.machine.masked_views import Reading, Viewed, reading_of
from strop.training.pack import pack
from strop.training.reductions.means import ConstantLength
from strop.training.views.diffusion_views import InOrder
from strop.types import FloatArray, Group, Metrics, Rollout

_FILE = "canvas_critic"


@dataclass
class CanvasCritic(ValueModel):
    """Value model for masked diffusion LMs: a copy of the model with a scalar head, on the policy's masked views.

    It predicts the return at each masked position. Its loss is PPO's clipped value loss: half the larger squared error
    of the value and of the value clipped to within `clip` of the prediction before the first step on the batch.
    """

    view: View
    learning_rate: float = 5e-5  # learning rate of Adam
    steps: int = 2  # optimizer steps per batch
    clip: float = 0.2  # clip range of a value around its prediction before the first step
    max_tokens: int = 4096  # tokens per micro-batch
    device: str = "cpu"  # cpu or cuda
    _model: Headed | None = field(default=None, init=False, repr=False, compare=False)
    _optimizer: Optimizer | None = field(default=None, init=False, repr=False, compare=False)
    _reading: Reading | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.steps < 1 or self.clip <= 0:
            raise ConfigurationError(f"CanvasCritic needs steps >= 1 and clip > 0, got {self.steps} and {self.clip}")

    def open(self, model: Path, seed: int) -> None:
        self._model = Headed.open(model, 1, self.device)
        self._optimizer = Optimizer(self._model.parameters, (0.9, 0.999), 0.0, 1.0)
        self._reading = reading_of(self.view, model, seed)

    @torch.no_grad()
    def predict(self, groups: Sequence[Group]) -> None:
        """Fill `values` of every scored rollout."""
        rollouts = {rollout.id: rollout for group in groups for rollout in group.scored}
        for rollout in rollouts.values():
            rollout.values = np.zeros(rollout.num_tokens, dtype=np.float32)
        for batch in pack(groups, None, 0, self.max_tokens):
            values = self._read(batch).cpu().numpy()
            owners = batch.rollouts[batch.trainable].numpy()
            for place, name in enumerate(batch.rollout_ids):
                rollouts[name].values = values[owners == place]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Train on the returns; the metrics include the calibration before the first step."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if not rollouts or self._optimizer is None:
            raise ConfigurationError("CanvasCritic needs an open model and at least 1 token to learn from")
        before = np.concatenate([_numbers(rollout, "values") for rollout in rollouts])
        returns = np.concatenate([_numbers(rollout, "returns") for rollout in rollouts])
        batches = pack(groups, None, 0, self.max_tokens)
        losses: list[list[float]] = []
        for _ in range(self.steps):
            losses.append([])
            parts = (self._loss(batch, before, returns, at, losses[-1]) for batch, at in _with_slices(batches))
            norm = self._optimizer.descend(parts, self.learning_rate, "CanvasCritic")
        value_losses = {"value_loss_first": sum(losses[0]), "value_loss_last": sum(losses[-1])}
        return {**calibration(before, returns), **value_losses, "value_grad_norm": norm}

    def _loss(self, batch: Batch, before: FloatArray, returns: FloatArray, at: slice, losses: list[float]) -> Tensor:
        values = self._read(batch)  # [R]
        old, target = (torch.from_numpy(each[at]).to(values) for each in (before, returns))
        clipped = old + (values - old).clamp(-self.clip, self.clip)
        each = 0.5 * torch.maximum((values - target).square(), (clipped - target).square())
        total = each.sum() / len(returns)
        losses.append(float(total.detach()))
        return total

    def save(self, folder: Path) -> None:
        self._ready()[1].save_whole(folder, _FILE)

    def resume(self, folder: Path) -> None:
        model, optimizer, _ = self._ready()
        model.load(folder / f"{_FILE}_weights.safetensors")
        optimizer.resume(folder, _FILE)

    def _read(self, batch: Batch) -> Tensor:
        """Value of each trained token: [R]."""
        model, _, reading = self._ready()
        viewed = Viewed(batch, reading, self.device)
        rows = batch.trainable.nonzero().squeeze(1).to(self.device)
        states = viewed.computed(model.body).index_select(0, viewed.before(rows))
        return model.head(states).squeeze(1)  # type: ignore[no-any-return]

    def _ready(self) -> tuple[Headed, Optimizer, Reading]:
        if self._model is None or self._optimizer is None or self._reading is None:
            raise ConfigurationError("CanvasCritic has no model yet: call open(model, seed) first")
        return self._model, self._optimizer, self._reading


def _with_slices(batches: Sequence[Batch]) -> list[tuple[Batch, slice]]:
    """Each batch with the slice of its trained tokens among those of all batches."""
    ends = np.cumsum([0, *(int(batch.trainable.sum()) for batch in batches)]).tolist()
    return [(batch, slice(low, high)) for batch, low, high in zip(batches, ends[:-1], ends[1:], strict=True)]


def _numbers(rollout: Rollout, name: str) -> FloatArray:
    numbers = rollout.values if name == "values" else rollout.returns
    if numbers is None or len(numbers) != rollout.num_tokens:
        raise ConfigurationError(f"CanvasCritic needs {rollout.num_tokens} {name} of {rollout.id}, one for each token")
    return numbers


def tracerl(
    setting: Setting = Setting(env="arithmetic:2", max_tokens=32, steps=60),
    critic: bool = True,  # advantages by the critic; no: group-normalized rewards
    merged: int = 1,  # neighbouring unmasking steps that share a forward pass
    discount: float = 1.0,  # discount per unmasking step
    trace: float = 1.0,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    kl: float = 0.01,  # weight of the KL penalty to the policy before the step
    sure: float = 0.9,  # tokens above this probability are unmasked at once
    block: int = 8,  # block size: positions that are unmasked before any later ones
    minibatches: int = 4,
    shown: int = 200,  # supervised steps on masked demonstrations before RL; 0: the model can unmask already
) -> Run:
    """Supervised training on masked completions, then RL; `strop train tracerl` runs both."""
    engine, view = filling(setting, block, least=1, sure=sure), InOrder(merged)
    advantage: Advantage = TraceReturns(discount, trace, merged) if critic else GroupStandard()
    return setting.run(
        "tracerl",
        advantage,
        (Clip(clip, clip, anchor="proximal"), Kl("k3", kl, policy="proximal")),
        engine=engine,
        trainer=reading(setting, view),
        values=CanvasCritic(view, device=setting.device) if critic else None,
        gates=(AccuracyBand(0.2, 0.8),),
        correction=ALL_ALIKE,
        reduction=ConstantLength(setting.max_tokens),
        minibatches=minibatches,
        warmup=taught_to_fill(setting, "tracerl", engine, shown),
    )
