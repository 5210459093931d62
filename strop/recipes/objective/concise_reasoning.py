"""Concise RL: a second PPO phase on a few occasionally solved tasks, where lambda < 1 shortens answers.

Title: Concise Reasoning via Reinforcement Learning
Paper: arXiv 2504.05185 (2025)
Claim: Answers become 37 to 59 % shorter at nearly the same accuracy, from 8 tasks.
Reading: There is no length term. With a GAE lambda below 1, shorter is better for right answers and longer is better
    for wrong ones. A task counts as solvable from its first success on; until then its groups are dropped. Start this
    recipe from the model of a first phase.
Acts: dropped_groups > 0 and advantage_within > 0 with env=arithmetic:5
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.control.samplers.few import Few
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import GateResult, Group

# Task selection of Concise RL (2504.05185): only tasks that are sometimes solved, with all their rollouts.
#
# With a GAE lambda below 1 the penalty on a wrong rollout falls with its length, so unsolvable tasks make completions
# longer.

_KNOWN = 10_000  # tasks remembered, the most recently solved


@dataclass
class Solvable(Gate):
    """Gate that drops groups of tasks without any success so far; from the first success on it keeps them all.

    The decision is per task, not per group: a group of wrong rollouts of a
    solvable task is kept.
    """

    _solved: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __call__(self, group: Group) -> GateResult:
        if any(is_right(rollout) for rollout in group.scored):
            self._solved.pop(group.task.id, None)
            self._solved[group.task.id] = None
            while len(self._solved) > _KNOWN:
                del self._solved[next(iter(self._solved))]
        if group.scored and group.task.id in self._solved:
            return GateResult(group)
        return GateResult(None, "no rollout of the task has been right so far")

    def state(self) -> dict[str, Any]:
        return {"solved": list(self._solved)}

    def restore(self, state: dict[str, Any]) -> None:
        self._solved = dict.fromkeys(state["solved"])


def concise_reasoning(
    setting: Setting = Setting(env="countdown:3"),
    tasks: int = 8,  # tasks per environment, sampled repeatedly
    trace: float = 0.95,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """PPO without a length term: a lambda below 1 favours short right answers and long wrong ones."""
    advantage, critic = Gae(trace=trace, whiten=False), Critic(device=setting.device)
    run = setting.run("concise_reasoning", advantage, (Clip(clip, clip),), values=critic, gates=(Solvable(),))
    run.rewards, run.sampler = (GradedAnswer(as_one(run.rewards)),), Few(run.envs, tasks)
    return run
