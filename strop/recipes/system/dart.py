"""DART: asynchronous GRPO on recurring tasks, with rollout budgets by success rate, replayed successes, entropy filter.

Title: Efficient Multi-turn RL for GUI Agents via Decoupled Training and Adaptive Data Curation
Paper: arXiv 2509.23866 (2025)
Claim: 42.13 % on OSWorld, 14.61 points above the base model, at 1.9 times the training throughput.
Reading: Of the turn limit only the idea is published: the length of the longest success so far. The share of 80 % of
    steps could not be checked, and the release has it commented out; filtered turns stay in the denominator. A group
    is what a task gets at once, at most 8 rollouts and at least 2, so none has to be cut to 8; the release collects a
    task's rollouts over versions, and may give an easy task a single one. The number of optimizer steps per batch was
    not found: four.
Left out: Screens: the environments here are the package's own. Engines replaced one at a time.
Acts: correction < 1 and advantage_beside_rewards > 0 and clipped_share > 0
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.errors import ConfigurationError
from strop.filter.gates.support.success_cache import Lending, as_borrowed
from strop.recipes.setting import Setting
from strop.roles import Advantage, Budget, Gate
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import ENTROPY, PolicyStatistic
from strop.types import GateResult, Group, Rollout

# DART's budget per task (2509.23866): fewer rollouts of mostly solved tasks, and a turn limit from past successes.
#
# The number of rollouts is the release's rule. Of the turn limit only the idea is published; this is its plainest
# reading: the length of the longest success so far, and no limit before the first. One group in eight has no limit,
# because rollouts cut at the longest success could never show a longer one.

_KNOWN = 10_000  # remembered tasks, the latest
_UNLIMITED = 1 / 8  # share of groups without a turn limit, at random by group number


@dataclass
class BySuccess(Budget):
    """`size` rollouts while a task's success p is below `easy`, else max(least, floor((size + 1) / p - (size - 1))).

    p is over the task's latest `size` own rollouts. At the paper's size of 8 the rule is 9 / p - 7;
    the release has easy=1, so that only tasks that are always solved get fewer.
    """

    size: int = 8  # rollouts of a task that is not easy
    easy: float = 0.6  # success rate from which a task gets fewer rollouts
    least: int = 2  # minimum rollouts of a task

    _latest: dict[str, list[bool]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _longest: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # turns of a success

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.size or not 0 < self.easy <= 1:
            raise ConfigurationError(
                f"BySuccess needs 1 <= least <= size and 0 < easy <= 1, got {self.least}, {self.size} and {self.easy}"
            )

    def rollouts(self, group: Group) -> int:
        if group.rollouts:
            return 0
        seen = self._latest.get(group.task.id, [])
        share = sum(seen) / len(seen) if seen else 0.0
        if share < self.easy:
            return self.size
        wanted = math.floor((self.size + 1) / share - (self.size - 1) + 1e-9)  # 0.9 is not exact in binary
        return min(max(wanted, self.least), self.size)

    def turns(self, group: Group) -> int:
        """Turn limit: that of the task's longest success; 0 (none) before the first and in 1 of 8 groups."""
        is_unlimited = np.random.default_rng(group.number).random() < _UNLIMITED
        return 0 if is_unlimited else self._longest.get(group.task.id, 0)

    def observe(self, group: Group) -> None:
        own = group.own
        seen = self._latest.pop(name := group.task.id, [])
        self._latest[name] = [*seen, *(is_right(rollout) for rollout in own)][-self.size :]
        if turns := [len(rollout.turns) for rollout in own if is_right(rollout)]:
            self._longest[name] = max(self._longest.get(name, 0), *turns)
        while len(self._latest) > _KNOWN:
            self._longest.pop(forgotten := next(iter(self._latest)), None)
            del self._latest[forgotten]

    def state(self) -> dict[str, Any]:
        latest = {task: [int(each) for each in seen] for task, seen in self._latest.items()}
        return {"latest": latest, "longest": dict(self._longest)}

    def restore(self, state: dict[str, Any]) -> None:
        self._latest = {str(task): [bool(each) for each in seen] for task, seen in state["latest"].items()}
        self._longest = {str(task): int(turns) for task, turns in state.get("longest", {}).items()}


# DART's success pool (2509.23866): a group without a success gets the task's newest past success.
#
# Reading: a replayed success keeps its logprobs and versions, so it may be older than the lag and needs a correction. A
# group lacks a success if no rollout is right; the release requires a mean of 0, which is the same for rewards of 0
# and 1.


@dataclass
class SuccessPool(Gate):
    """Gate that drops groups without failures and replaces the oldest rollout of groups without a success.

    The replacement is the task's newest success, a right rollout. Groups of tasks that were
    never solved are dropped, too.
    """

    _lending: Lending = field(default_factory=Lending, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __call__(self, group: Group) -> GateResult:
        if not group.scored:
            return GateResult(None, "no rollout counts")
        solved = [rollout for rollout in group.scored if is_right(rollout)]
        if solved:
            self._lending.keep(group.task.id, solved)
            return GateResult(group) if len(solved) < len(group.scored) else GateResult(None, "every rollout is right")
        known = self._lending.known(group.task.id)
        if not known:
            return GateResult(None, "never solved")
        members = group.scored
        members.remove(min(members, key=lambda rollout: rollout.oldest_version))
        return GateResult(replace(group, rollouts=[*members, as_borrowed(known[-1], group)]), "borrowed a success")

    def state(self) -> dict[str, Any]:
        return {"newest": self._lending.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._lending.restore(state["newest"])


# DART's step filter (2509.23866): training on the turns with the highest entropy.
#
# Reading: turns are ranked over all rollouts of a batch; the others get advantage 0 and stay in the denominator. The
# share of 80 % could not be checked against the paper, and its release has this commented out.


@dataclass(frozen=True)
class HighEntropySteps(Advantage):
    """Advantages of `inner` at the share of turns with the highest mean token entropy; 0 elsewhere."""

    inner: Advantage
    share: float = 0.8  # share of turns with an advantage

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({ENTROPY})

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"HighEntropySteps needs 0 < share <= 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        steps = [step for group in groups for rollout in group.scored for step in _steps(rollout)]
        steps.sort(key=lambda step: -step[0])  # stable: ties keep their order
        for _, rollout, tokens in steps[math.ceil(self.share * len(steps) - 1e-9) :]:
            assert rollout.advantages is not None
            rollout.advantages[tokens] = 0.0


def _steps(rollout: Rollout) -> Iterator[tuple[float, Rollout, slice]]:
    """Mean entropy, rollout and token range of every turn with sampled tokens."""
    end = 0
    for turn in rollout.turns:
        start, end = end, end + len(turn.tokens)
        if end > start:
            yield float(np.mean(ENTROPY.of(rollout)[start:end])), rollout, slice(start, end)


def dart(
    setting: Setting = Setting(lag=1),
    tasks: int = OfEndless(64),  # tasks of each environment, repeated; all of a table
    easy: float = 0.6,  # success rate from which a task gets fewer rollouts
    least: int = 2,  # minimum rollouts of a task
    share: float = 0.8,  # share of turns with an advantage: those of the highest entropy
    kl: float = 0.1,  # weight of the KL penalty to the reference policy
) -> Run:
    """GRPO with clip ranges 0.1 and 0.28 around the proximal policy, importance weights truncated at 1."""
    run = setting.run(
        "dart",
        HighEntropySteps(GroupStandard(), share),
        (Clip(0.1, 0.28, dual=10.0, anchor="proximal"), Kl("k3", kl)),
        budget=BySuccess(setting.group_size, easy, least),
        gates=(SuccessPool(),),
        correction=Truncated(1.0, target="proximal"),
        reduction=SequenceMean(),
        minibatches=4,  # with 1, the ratio to the proximal policy is 1 and never clipped
    )
    return replace(run, sampler=Few(run.envs, covering(run.envs, tasks)))
