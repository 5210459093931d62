"""ARPO: GRPO on a fixed set of tasks; a group in which all rollouts failed gets a former success of its task.

Title: ARPO: End-to-End Policy Optimization for GUI Agents with Experience Replay
Paper: arXiv 2505.16282 (2025)
Claim: 29.9 % on OSWorld, 6.4 points above the base model; replay is worth 3 points on the tasks trained on.
Reading: A replayed rollout replaces the first one and keeps its reward; advantages are computed afterwards. Its
    importance ratio starts at 1, as in the release: logprobs are recomputed under the policy before the step. The
    format reward is half of the task reward and does not influence which rollouts are replayed, or where. Two optimizer
    steps per batch and a dual clip of 3, as in the release.
Left out: Screens: the environments are the package's own. Selection of tasks that the initial model sometimes solves.
Acts: replayed_share > 0 and reward/formatted > 0 with env=arithmetic:6, tasks=2
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.errors import ConfigurationError
from strop.filter.gates.support.success_cache import Lending, as_borrowed
from strop.filter.rewards.format import Formatted
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.success import success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import GateResult, Group, Rollout, Turn

# ARPO's replay (2505.16282): in a failed group without variance, a former success of the task replaces a rollout.
#
# Reading: success is judged by the environment's reward alone, without the format reward; a group's standard deviation
# is that of the population. The release trains replayed rollouts as if the policy before the step had sampled them.
# Here their version is therefore -1 and they get no off-policy correction; they keep their old logprobs. A task's
# successes are stored under its id; the release stores and reads them under different names. No group is dropped.

_RIGHT = 0.1  # success above which a rollout is a success
_LOW = 0.2  # mean success below which a group has failed
_ALIKE = 0.05  # standard deviation below which a group has no variance
_UNSAMPLED = -1  # version of tokens that no current weights sampled


@dataclass
class BorrowedSuccess(Gate):
    """Replacement of a failed group's first rollout by a random one of the last `size` successes at its task.

    A group's own successes are stored afterwards: a group never borrows from itself, and borrowed ones are not stored.
    """

    size: int = 8  # successes kept of each task
    seed: int = 0  # of the choice among them
    _lending: Lending = field(init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"BorrowedSuccess needs size >= 1, got {self.size}")
        self._lending = Lending(self.size)

    def __call__(self, group: Group) -> GateResult:
        known = self._lending.known(group.task.id)
        solved = [rollout for rollout in group.own if success(rollout) > _RIGHT]
        self._lending.keep(group.task.id, solved)
        if not known or not _is_lost(group.scored):
            return GateResult(group)
        index = int(np.random.default_rng([self.seed, group.number]).integers(len(known)))
        borrowed = as_borrowed(known[index], group)
        borrowed.turns = tuple(map(_unsampled, borrowed.turns))
        return GateResult(replace(group, rollouts=[borrowed, *group.scored[1:]]), "borrowed a success")

    def state(self) -> dict[str, Any]:
        return {"successes": self._lending.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._lending.restore(state["successes"])


def _is_lost(rollouts: list[Rollout]) -> bool:
    rewards = np.array([success(rollout) for rollout in rollouts])
    return bool(rewards.std() < _ALIKE and rewards.mean() < _LOW)


def _unsampled(turn: Turn) -> Turn:
    return replace(turn, versions=np.full_like(turn.versions, _UNSAMPLED))


def arpo_gui(
    setting: Setting = Setting(env="keyvalue:5"),
    tasks: int = OfEndless(128),  # tasks per environment, repeated so that a task meets its former successes
    kept: int = 8,  # newest successes kept per task
    formatted: float = 0.5,  # weight of the format reward
) -> Run:
    """A fixed set of tasks per environment, repeated; clip 0.2/0.3, no KL penalty."""
    run = setting.run(
        "arpo_gui",
        GroupStandard(),
        (Clip(0.2, 0.3, dual=3.0, anchor="proximal"),),
        gates=(BorrowedSuccess(kept, setting.seed),),
        correction=Truncated(target="proximal"),
        reduction=SequenceMean(),
        minibatches=2,
    )
    rewards = (*run.rewards, Formatted(must_think=False, weight=formatted))
    return replace(run, sampler=Few(run.envs, covering(run.envs, tasks)), rewards=rewards)
