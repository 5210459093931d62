"""A value model learned first, then frozen, and a policy that learns from it alone.

Title: Lean and Mean: Decoupled Value Policy Optimization with Global Value Guidance
Paper: arXiv 2502.16944 (2025)
Claim: 40 % less GPU memory and 35 % less time than PPO at its quality.
Reading: Values are whitened first and tokens pay the KL, as released. The state after the last token is given the last
    value, so that advantage telescopes; the release puts 0 there.
    The value model reads task and answer, as released. Run it twice: without `critic` the value model learns and the
    policy rests, then with its `checkpoints/step-N/values`.
Left out: A weight of the KL that adapts to a target of 6 nats; a value model that sees trajectories of the policy.
Acts: credit_within > 0 and value_grad_norm > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage, ValueModel
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.td_traces import KL_STATISTICS, kl_payments, traced, whitened
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.machine.value_body import BEFORE, ValueBody
from strop.training.requirements import PolicyStatistic
from strop.training.values.critic import Critic
from strop.types import FilePath, Group, Metrics, Rollout

# DVPO's advantage (2502.16944): what a frozen value model says, and no reward at all.
#
# Reading: the state after the last token is given the last value, so that advantage telescopes; taken literally the
# release puts 0 there, and every advantage is minus the value.


@dataclass(frozen=True)
class ValueGuided(Advantage):
    """Generalized advantages of the values alone, V after the end as at the end; whitened over the batch's tokens.

    With trace and discount 1, and no KL: A_t = V_end - V_t.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 looks to the end, 0 one token ahead
    kl: float = 0.0  # weight of log(policy / reference), which each token pays
    whiten_values: bool = False  # over the tokens of the batch, before anything else

    needs_values: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return KL_STATISTICS if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        values = [_values(rollout) for rollout in rollouts]
        if self.whiten_values:
            values = whitened(values)
        found = [self._advantage(rollout, own) for rollout, own in zip(rollouts, values, strict=True)]
        for rollout, own in zip(rollouts, whitened(found), strict=True):
            rollout.advantages = own.astype(np.float32)

    def _advantage(self, rollout: Rollout, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Before it is whitened: [N]."""
        end = float(values[-1]) if len(values) else 0.0
        return traced(kl_payments(rollout, self.kl), values, end, self.discount, self.trace)


def _values(rollout: Rollout) -> NDArray[np.float64]:
    if rollout.values is None or len(rollout.values) != rollout.num_tokens:
        number = 0 if rollout.values is None else len(rollout.values)
        raise ConfigurationError(f"ValueGuided needs a value for each of {rollout.num_tokens} tokens, got {number}")
    return rollout.values.astype(np.float64)


# A global value model (DVPO, 2502.16944): learned beforehand, frozen while the policy learns from it.
#
# Reading: the value model reads task and answer, as in the release; the paper also shows it trajectories of the policy.


@dataclass
class FrozenCritic(ValueModel):
    """Values of a critic that a run saved (`checkpoints/step-N/values`); it sees new rewards only to be judged."""

    folder: FilePath  # checkpoints/step-N/values of another run
    max_tokens: int = 4096  # of one pass
    device: str = "cpu"

    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)
        self._body.model.load(Path(self.folder) / "critic_weights.safetensors")

    def predict(self, groups: Sequence[Group]) -> None:
        if self._body is None:
            raise ConfigurationError("FrozenCritic has no model yet: call open(model, seed) first")
        rollouts = [rollout for group in groups for rollout in group.scored]
        told = self._body.told(rollouts)
        for rollout in rollouts:
            rollout.values = told[rollout.id][:, BEFORE, 0] if rollout.id in told else np.zeros(0, dtype=np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing is learned; how well the rewards were predicted is still said."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        values = [rollout.values for rollout in rollouts if rollout.values is not None]
        rewards = [np.full(len(own), rollout.reward) for own, rollout in zip(values, rollouts, strict=True)]
        return calibration(np.concatenate([*values, np.zeros(0)]), np.concatenate([*rewards, np.zeros(0)]))


def dvpo(
    setting: Setting = Setting(),
    critic: str = "",  # checkpoints/step-N/values of the first run; empty: learn it
    trace: float = 0.95,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.2,  # weight of log(policy / reference), which each token pays
) -> Run:
    """Without `critic` the value model learns and the policy rests; then give its `checkpoints/step-N/values`."""
    if not critic:
        resting, learning = (Reinforce(weight=0.0),), Critic(device=setting.device)
        return setting.run("dvpo", Gae(trace=trace, whiten=False), resting, values=learning)
    advantage, frozen = ValueGuided(trace=trace, kl=kl, whiten_values=True), FrozenCritic(critic, device=setting.device)
    return setting.run("dvpo", advantage, (Clip(clip, clip),), values=frozen)
