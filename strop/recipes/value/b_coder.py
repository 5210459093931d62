"""B-Coder: value-based RL; the policy's logits parametrize Q, with a pretrained V and a conservative Bellman backup.

Title: B-Coder: Value-Based Deep Reinforcement Learning for Program Synthesis
Paper: arXiv 2310.03173 (2023)
Claim: Better than policy-based methods in program synthesis, with little reward engineering.
Reading: Run it twice: the first run trains the value model with the policy frozen; in the second, with
    values=RUN/checkpoints/step-N/values, the value model is frozen and the logits learn. Half of each group are
    demonstrations. No discount was found; it is 1.
Left out: Programs and compilers, and with them rewards between a wrong answer and no answer. A second value head that
    is trained with the logits, and ranking of candidates by the reward that Q implies.
Acts: share/teacher > 0 and value_grad_norm > 0
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

from strop.errors import ConfigurationError
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.models.model import load_model, logits
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Residual
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.siblings import following, is_taught
from strop.training.batch import Batch, Output
from strop.training.losses.reinforce import Reinforce
from strop.training.machine.value_body import BEFORE, Part
from strop.training.machine.value_model import Bodied
from strop.training.requirements import Logits, Need
from strop.types import FilePath, Group, Metrics

# B-Coder's second stage (2310.03173): the policy's logits are trained as the advantage part of Q.
#
# Q(s, a) = alpha * (z(s, a) - max z(s, .)) + V(s), with z the policy's logits and V the frozen value of the first
# stage. The Bellman backup takes the likeliest action of the reference. On demonstrations the first term, which is
# never positive, is pushed to 0, in addition to imitation. Reading: the paper's second value head, which starts at 0
# and is trained with z, is left out.


@dataclass(frozen=True)
class ConservativeQ(Loss):
    """(r_t + discount * sg Q(s_(t+1), the reference's likeliest action) - Q(s_t, a_t))^2, with Q = 0 after the end.

    The reward is paid at the last token. Demonstrations add, per token, `advantage` * alpha * (max z - z) and
    `imitation` * -log policy.
    """

    alpha: float = 1.0  # scale of the logits in Q
    discount: float = 1.0  # from token to token
    advantage: float = 0.1  # weight of the logit gap of demonstrated tokens to the likeliest token
    imitation: float = 0.5  # weight of the cross-entropy on demonstrations
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logits("reference")})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        if batch.values is None:
            raise ConfigurationError("ConservativeQ needs values from the first stage: set values=Conservative(...)")
        gaps = self.alpha * output.over_both(_gaps, "reference", batch.temperature)  # [T, 2]
        own, greedy = gaps.select(1, 0), gaps.select(1, 1)
        goals = _final_rewards(batch) + self.discount * following((greedy + batch.values).detach(), batch)
        errors = (goals - own - batch.values).square()
        demonstrated = batch.on_tokens(is_taught(batch)) & batch.trainable
        shown = torch.where(demonstrated, -self.advantage * own - self.imitation * output.logprobs, 0.0)
        loss = torch.where(batch.trainable, errors + shown, 0.0)
        return loss, {"q_error": batch.metric(errors), "q_gap": batch.metric(own)}


def _gaps(policy: Tensor, reference: Tensor, tokens: Tensor, temperature: Tensor) -> Tensor:
    """z - max z of the sampled token and of the reference's likeliest, before division by the temperature: [C, 2]."""
    raw = policy * temperature.unsqueeze(1).to(policy.dtype)
    asked = torch.stack([tokens, reference.argmax(1)], 1)
    return raw.gather(1, asked) - raw.max(1, keepdim=True).values


def _final_rewards(batch: Batch) -> Tensor:
    """The rollout's reward at its last sampled token, 0 elsewhere: [T]."""
    goes_on = following(torch.ones_like(batch.share), batch)
    return torch.where(batch.trainable & (goes_on == 0), batch.on_tokens(batch.rewards).to(batch.share.dtype), 0.0)


# B-Coder's value (2310.03173): Q with the frozen model's logits, in which only V is learned.
#
# Q(s, a) = alpha * (z(s, a) - max z(s, .)) + V(s), with z the frozen model's logits; the backup takes that model's
# likeliest action, for which the first term is 0. This is the paper's first stage; in the second the policy's logits
# learn (`ConservativeQ`). Where rewards are high V approaches its bound, because it compensates for the logit gaps:
# it is not a baseline. Reading: ln 2 is subtracted from softabs, so that V can reach 1.

_ZERO = 2 * math.acosh(math.e)  # where softabs is 1, so that V starts at 0


@dataclass
class Conservative(Bodied):
    """V <= 1 (by V = 1 - softabs(v), and 0 after the end) that minimizes (r_t + discount * sg V(s_(t+1)) - Q_t)^2.

    The reward is paid at the last token. With `folder`, V is loaded from another run and not trained.
    """

    alpha: float = 1.0  # scale of the frozen model's logits in Q
    discount: float = 1.0  # from token to token
    folder: FilePath = ""  # checkpoints/step-N/values of another run; empty: learn

    _name: ClassVar[str] = "conservative"
    _model: Any = field(default=None, init=False, repr=False, compare=False)  # frozen

    def open(self, model: Path, seed: int) -> None:
        super().open(model, seed)
        self._model = load_model(model, device=self.device).requires_grad_(False)
        if self.folder:
            self._ready().model.load(Path(self.folder) / f"{self._name}_weights.safetensors")

    def predict(self, groups: Sequence[Group]) -> None:
        for rollout, outputs in self._outputs(groups):
            rollout.values = bounded(torch.from_numpy(outputs[:, BEFORE, 0])).numpy()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        body = self._ready()
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        parts = body.parts(rollouts)
        count = max(sum(len(part.rows) for part in parts), 1)
        values = [np.zeros(a.num_tokens) if a.values is None else a.values for a in rollouts]
        rewards = [np.full(rollout.num_tokens, rollout.reward) for rollout in rollouts]
        metrics = calibration(np.concatenate([*values, np.zeros(0)]), np.concatenate([*rewards, np.zeros(0)]))
        if self.folder:
            return metrics

        def loss(outputs: Tensor, part: Part) -> Tensor:
            own = bounded(outputs[:, BEFORE, 0])
            goals = part.column(
                [
                    backed_up(np.asarray(v), a.reward, self.discount)
                    for v, a in zip(_split(own, part), part.rollouts, strict=True)
                ]
            )
            return (goals - action_values(self._gaps(part), own, self.alpha)).square().sum() / count

        return {**metrics, "value_grad_norm": body.step(parts, loss, self.learning_rate)}

    @torch.no_grad()
    def _gaps(self, part: Part) -> Tensor:
        """z(s, a) - max z(s, .) of the frozen model at the sampled tokens: [R], never positive."""
        hidden = part.sequences.hidden_states(self._model).index_select(0, part.rows - 1)
        scores = logits(self._model, hidden).float()
        chosen = torch.from_numpy(np.concatenate([t.tokens for a in part.rollouts for t in a.turns])).to(scores.device)
        return scores.gather(1, chosen.unsqueeze(1)).squeeze(1) - scores.max(1).values


def bounded(raw: Tensor) -> Tensor:
    """1 - softabs(raw + c), softabs(x) = (softplus(x) + softplus(-x)) / 2 - ln 2: at most 1, and 0 at 0."""
    shifted = raw + _ZERO
    soft = (torch.nn.functional.softplus(shifted) + torch.nn.functional.softplus(-shifted)) / 2
    return 1 - (soft - math.log(2))


def action_values(gaps: Tensor, values: Tensor, alpha: float) -> Tensor:
    """Q of the chosen actions; softmax(Q / alpha) over actions is the frozen model's distribution for any V."""
    return alpha * gaps + values


def backed_up(values: NDArray[Any], reward: float, discount: float) -> NDArray[np.float64]:
    """r_t + discount * V(s_(t+1)) of one rollout, for the frozen model's likeliest next action: [N]."""
    targets = discount * np.append(values[1:].astype(np.float64), 0.0)[: len(values)]
    targets[-1:] += reward
    return targets


def _split(values: Tensor, part: Part) -> list[NDArray[np.float32]]:
    ends = np.cumsum([rollout.num_tokens for rollout in part.rollouts])[:-1]
    return np.split(values.detach().cpu().numpy(), ends)


def b_coder(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: train the value model
    alpha: float = 1.0,  # scale of the logits in Q
    advantage: float = 0.1,  # weight of the logit gap of demonstrated tokens to the likeliest token
    imitation: float = 0.5,  # weight of the cross-entropy on demonstrations
) -> Run:
    """Two runs: without `values` the value model is trained; with `values` the policy."""
    loss = ConservativeQ(alpha, advantage=advantage, imitation=imitation) if values else Reinforce(weight=0.0)
    parts = {
        "values": Conservative(alpha=alpha, folder=values, device=setting.device),
        "strategy": Demonstrated(Demonstrate(), max(setting.group_size // 2, 1)),
    }
    run = setting.run("b_coder", Residual(), (loss,), **parts)
    run.rewards = (GradedAnswer(as_one(run.rewards), right=1.0, wrong=-0.3, missing=-1.0),)
    return run
