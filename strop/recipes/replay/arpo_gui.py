"""GRPO on a fixed set of tasks; a group in which all failed gets one of the task's former successes.

Title: ARPO: End-to-End Policy Optimization for GUI Agents with Experience Replay
Paper: arXiv 2505.16282 (2025)
Claim: 29.9 % on OSWorld, 6.4 points above the base model; replay is worth 3 points on the tasks trained on.
Reading: A replayed rollout takes the first one's place, with the reward it had; advantage is given after that. Its
    ratio begins at 1, as released: logprobs are computed anew under the policy before the step. Pay for a format that
    can be read is half of that for the task, and decides neither who is replayed nor where. Two optimizer steps per
    batch and a dual clip of 3, as released.
Left out: Screens: the environments here are the package's own. The choice of tasks that the first model solves now and
    then.
Acts: replayed_share > 0 and reward/formatted > 0 with env=arithmetic:6, tasks=2
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strop.control.samplers.few import Few
from strop.errors import ConfigurationError
from strop.filter.gates.support.success_cache import Lending, lent
from strop.filter.rewards.format import Formatted
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.success import paid
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.truncated import Truncated
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import GateResult, Group, Rollout, Turn

# ARPO's replay (2505.16282): a group in which all failed alike gets one of the task's former successes in exchange.
#
# Reading: what counts is what the environment paid, whatever a reward for the format adds; a group's spread is that of
# the
# population. The release trains what it replays as if the policy before the step had written it, so here no weights
# wrote it (version -1) and no correction weighs its age; its old logprobs stay with it. A task's successes are kept
# under one name; the release writes them under one and reads them under another. No group is dropped.

_RIGHT = 0.1  # pay above which a rollout is a success
_LOW = 0.2  # mean pay below which a group has failed
_ALIKE = 0.05  # spread of pay below which its rollouts differ in nothing
_NOBODY = -1  # the version of tokens that no weights of now wrote


@dataclass
class BorrowedSuccess(Gate):
    """The first rollout of such a group makes room for one of the last `size` successes at its task, by chance.

    Its own successes are kept after that: no group borrows from itself, nor what it borrowed again.
    """

    size: int = 8  # successes kept of each task
    seed: int = 0  # of the choice among them
    _lending: Lending = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"BorrowedSuccess needs size >= 1, got {self.size}")
        self._lending = Lending(self.size)

    def __call__(self, group: Group) -> GateResult:
        known = self._lending.known(group.task.id)
        solved = [rollout for rollout in group.own if paid(rollout) > _RIGHT]
        self._lending.keep(group.task.id, solved)
        if not known or not _is_lost(group.scored):
            return GateResult(group)
        index = int(np.random.default_rng([self.seed, group.number]).integers(len(known)))
        borrowed = lent(known[index], group)
        borrowed.turns = tuple(map(_by_nobody, borrowed.turns))
        return GateResult(replace(group, rollouts=[borrowed, *group.scored[1:]]), "borrowed a success")

    def state(self) -> dict[str, Any]:
        return {"successes": self._lending.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._lending.restore(state["successes"])


def _is_lost(rollouts: list[Rollout]) -> bool:
    pay = np.array([paid(rollout) for rollout in rollouts])
    return bool(pay.std() < _ALIKE and pay.mean() < _LOW)


def _by_nobody(turn: Turn) -> Turn:
    return replace(turn, versions=np.full_like(turn.versions, _NOBODY))


def arpo_gui(
    setting: Setting = Setting(env="keyvalue:5"),
    tasks: int = 128,  # of each environment, over and over
    kept: int = 8,  # successes of each task, the newest
    formatted: float = 0.5,  # weight of the pay for a format that can be read
) -> Run:
    """`tasks` of each environment over and over, or no task ever comes back to its successes; clip 0.2/0.3, no KL."""
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
    return replace(run, sampler=Few(run.envs, tasks), rewards=rewards)
