"""A short second phase of PPO on a few tasks that are sometimes solved makes answers shorter.

Title: Concise Reasoning via Reinforcement Learning
Paper: arXiv 2504.05185 (2025)
Claim: Answers become 37 to 59 % shorter at nearly the same accuracy, from 8 tasks.
Reading: There is no term for length: a trace below 1 makes right answers better the shorter, wrong ones the longer
    they are. A task counts as solvable from its first success on; until then its groups are dropped. Start it from
    the model of a first phase.
Acts: dropped_groups > 0 and credit_within > 0 with env=arithmetic:5
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.control.samplers.few import Few
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import GateResult, Group

# Concise reasoning's choice of tasks (2504.05185): only those that are sometimes solved, with all their rollouts.
#
# With a discounting critic a rollout of an unsolvable task is the less bad the longer it is; such tasks make
# completions
# grow.

_KNOWN = 10_000  # tasks remembered, those solved last


@dataclass
class Solvable(Gate):
    """Drop groups of tasks that no rollout has solved so far; from its first success on, all of a task's groups stay.

    Solved is a reward of at least `right`. The choice is by task and not by group: wrong rollouts of a solvable task
    are kept, whether or not one beside them is right.
    """

    right: float = 1.0  # reward of a right rollout
    _solved: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, group: Group) -> GateResult:
        if any(is_right(rollout.reward, self.right) for rollout in group.scored):
            self._solved.pop(group.task.id, None)
            self._solved[group.task.id] = None
            while len(self._solved) > _KNOWN:
                del self._solved[next(iter(self._solved))]
        if group.scored and group.task.id in self._solved:
            return GateResult(group)
        return GateResult(None, f"no rollout of the task has reached {self.right:g}")

    def state(self) -> dict[str, Any]:
        return {"solved": list(self._solved)}

    def restore(self, state: dict[str, Any]) -> None:
        self._solved = dict.fromkeys(state["solved"])


def concise_reasoning(
    setting: Setting = Setting(env="countdown:3"),
    tasks: int = 8,  # of each environment, over and over
    trace: float = 0.95,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """No term for length: a trace below 1 makes right answers better the shorter, wrong ones the longer they are."""
    advantage, critic = Gae(trace=trace, whiten=False), Critic(device=setting.device)
    run = setting.run("concise_reasoning", advantage, (Clip(clip, clip),), values=critic, gates=(Solvable(),))
    run.rewards, run.sampler = (GradedAnswer(run.rewards[0]),), Few(run.envs, tasks)
    return run
