"""REINFORCE on token rewards derived from a teacher's logits read as action values; no task is judged.

Title: Teacher Forcing Recovers Reward Functions for Text Generation
Paper: arXiv 2210.08708 (2022)
Claim: A reward that a teacher-forced model implies trains generators on prompts without answers, better than others do.
Reading: Returns are divided by 100 and clipped to [-1, 1], as released, with its baseline. The next state's value is
    its plain maximum. One rollout per task, because siblings are not compared. The environment's own reward is logged
    with weight 0.
Left out: A behaviour policy kept for 5000 updates, with importance weights: each batch is sampled by the current
    weights.
Acts: teacher_regret < 0 and advantage_within > 0 with teacher=MODEL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_model
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.losses.reinforce import Reinforce
from strop.training.requirements import PolicyStatistic
from strop.types import FilePath, Group, Metrics, Rollout

if TYPE_CHECKING:
    from strop.training.machine.logprobs import PolicyOutput


# Token rewards implied by a teacher's logits, read as action values (2210.08708).
#
# The logits f of a model trained on right texts imply a reward r(s, a) = f(s, a) - max f(s', .) for every token, s' the
# state after it. The release's soft maximum weighs the next state's logits by the distribution of this one; here the
# maximum is plain.

_TAKEN, _BEST, _EXPECTED = range(3)  # columns of the policy statistic


@dataclass(frozen=True)
class TeacherForced(Advantage):
    """A_t = (r_t + r_(t+1) + ... - b(s_t)) / divisor, clipped to +-limit; the value after the last token is 0.

    f are the teacher's logits less their mean over the vocabulary, b(s) is their expectation under the teacher.
    """

    teacher: FilePath  # model folder
    divisor: float = 100.0  # of the returns
    limit: float = 1.0  # largest absolute advantage of a token
    has_baseline: bool = True  # whether b is subtracted

    def __post_init__(self) -> None:
        if not (self.divisor > 0 and self.limit > 0):
            raise ConfigurationError(f"TeacherForced needs divisor and limit > 0, got {self.divisor} and {self.limit}")

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset({self._statistic})

    @property
    def _statistic(self) -> PolicyStatistic:
        return PolicyStatistic("teacher_values", _teacher_values, self.teacher)

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            values = self._values(rollout)
            advantage = returns_to_go(values) - (values[:, _EXPECTED] if self.has_baseline else 0.0)
            rollout.advantages = np.clip(advantage / self.divisor, -self.limit, self.limit).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the mean logit of the sampled tokens less that of the teacher's best tokens; keeps no state."""
        values = [self._values(rollout) for group in groups for rollout in group.scored]
        tokens = np.concatenate([*values, np.zeros((0, 3))])
        regret = tokens[:, _TAKEN] - tokens[:, _BEST]
        return {"teacher_regret": float(regret.mean())} if len(regret) else {}

    def _values(self, rollout: Rollout) -> NDArray[np.float64]:
        """The statistic's columns for each token: [N, 3]."""
        return self._statistic.of(rollout).astype(np.float64) if rollout.num_tokens else np.zeros((0, 3))


def returns_to_go(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return from each token on: [N, 3] -> [N]."""
    rewards = values[:, _TAKEN] - np.append(values[1:, _BEST], 0.0)[: len(values)]
    return np.asarray(rewards[::-1].cumsum()[::-1])


def _teacher_values(output: PolicyOutput) -> Tensor:
    return output.over_logits(_centred, output.batch.temperature)


def _centred(logits: Tensor, tokens: Tensor, temperature: Tensor) -> Tensor:
    """Centred logits at temperature 1 of the token, the best token and the teacher's expectation: [C, 3]."""
    raw = logits.float() * temperature.unsqueeze(1)
    values = raw - raw.mean(-1, keepdim=True)
    taken = values.gather(1, tokens.unsqueeze(1)).squeeze(1)
    return torch.stack([taken, values.max(-1).values, (values.softmax(-1) * values).sum(-1)], 1)


def teacher_forcing_rewards(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    *,
    teacher: str,  # folder of a model with the same vocabulary, trained on right texts
    divisor: float = 100.0,  # of the returns
    has_baseline: bool = True,  # subtract the teacher's expectation
) -> Run:
    """`teacher` is for example runs/NAME/checkpoints/step-100 of a run of recipe sft."""
    advantage = TeacherForced(named_model("teacher", teacher), divisor, has_baseline=has_baseline)
    run = setting.run("teacher_forcing_rewards", advantage, (Reinforce(),))
    run.rewards = (measured(run.envs),)
    return run
