"""REINFORCE on what a teacher's logits say that each token earned; no task is judged.

Title: Teacher Forcing Recovers Reward Functions for Text Generation
Paper: arXiv 2210.08708 (2022)
Claim: A reward that a teacher-forced model implies trains generators on prompts without answers, better than others do.
Reading: Returns are divided by 100 and held within 1, as released, with its baseline. The next state's plain maximum is
    taken. One rollout per task, because siblings are not compared. What the environment would have paid is logged and
    weighs nothing.
Left out: A behaviour policy kept for 5000 updates, with importance weights: each batch is of the current weights.
Acts: teacher_regret < 0 and credit_within > 0 with teacher=MODEL
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
from strop.models.loading.model_names import model_folder
from strop.recipes.environment_specs import measured
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.losses.reinforce import Reinforce
from strop.training.requirements import PolicyStatistic
from strop.types import FilePath, Group, Metrics, Rollout

if TYPE_CHECKING:
    from strop.training.machine.logprobs import PolicyOutput


# Rewards that a teacher's logits imply (2210.08708): read as values of actions, they say what each token earned.
#
# A model that was taught to go on with right texts holds, in its logits f, a reward r(s, a) = f(s, a) - max f(s', .)
# for every token, s' the state after it. No task has to be judged. The release's soft maximum weighs the next state's
# logits by the distribution of this one; the plain maximum is built.

_TAKEN, _BEST, _EXPECTED = range(3)  # columns of the note


@dataclass(frozen=True)
class TeacherForced(Advantage):
    """A_t = (r_t + r_(t+1) + ... - b(s_t)) / divisor, held within +-limit; nothing is earned after the last token.

    f are the teacher's logits less their mean over the vocabulary, b(s) is their mean under the teacher itself.
    """

    teacher: FilePath  # model folder
    divisor: float = 100.0  # that returns are divided by
    limit: float = 1.0  # of the advantage of a token
    has_baseline: bool = True  # b; or none

    def __post_init__(self) -> None:
        if not (self.divisor > 0 and self.limit > 0):
            raise ConfigurationError(f"TeacherForced needs divisor and limit > 0, got {self.divisor} and {self.limit}")

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset({self._note})

    @property
    def _note(self) -> PolicyStatistic:
        return PolicyStatistic("teacher_values", _look, self.teacher)

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            values = self._values(rollout)
            advantage = returns_to_go(values) - (values[:, _EXPECTED] if self.has_baseline else 0.0)
            rollout.advantages = np.clip(advantage / self.divisor, -self.limit, self.limit).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How far the batch's tokens are below those that the teacher likes best, in logits; nothing is remembered."""
        values = [self._values(rollout) for group in groups for rollout in group.scored]
        tokens = np.concatenate([*values, np.zeros((0, 3))])
        regret = tokens[:, _TAKEN] - tokens[:, _BEST]
        return {"teacher_regret": float(regret.mean())} if len(regret) else {}

    def _values(self, rollout: Rollout) -> NDArray[np.float64]:
        """[N, 3]."""
        return self._note.of(rollout).astype(np.float64) if rollout.num_tokens else np.zeros((0, 3))


def returns_to_go(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is earned from each token on: [N, 3] -> [N]."""
    rewards = values[:, _TAKEN] - np.append(values[1:, _BEST], 0.0)[: len(values)]
    return np.asarray(rewards[::-1].cumsum()[::-1])


def _look(output: PolicyOutput) -> Tensor:
    return output.over_logits(_centred, output.batch.temperature)


def _centred(logits: Tensor, tokens: Tensor, temperature: Tensor) -> Tensor:
    """Of logits before they were divided by the temperature: the token's, the best, the expected one: [C, 3]."""
    raw = logits.float() * temperature.unsqueeze(1)
    values = raw - raw.mean(-1, keepdim=True)
    taken = values.gather(1, tokens.unsqueeze(1)).squeeze(1)
    return torch.stack([taken, values.max(-1).values, (values.softmax(-1) * values).sum(-1)], 1)


def teacher_forcing_rewards(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    *,
    teacher: str,  # folder of a model with the same vocabulary, taught on right texts
    divisor: float = 100.0,  # that returns are divided by
    has_baseline: bool = True,  # the teacher's own expectation is subtracted
) -> Run:
    """`teacher` is a folder with a model of the same vocabulary, as runs/NAME/checkpoints/step-100 of recipe sft."""
    advantage = TeacherForced(str(model_folder(teacher)), divisor, has_baseline=has_baseline)
    run = setting.run("teacher_forcing_rewards", advantage, (Reinforce(),))
    run.rewards = (measured(run.envs),)
    return run
