"""Beside fresh rollouts of a task stand right ones of an earlier run.

Title: RLEP: Reinforcement Learning with Experience Replay for LLM Reasoning
Paper: arXiv 2507.07451 (2025)
Claim: AIME 2024 from 38.2 to 39.9 %, AIME 2025 from 19.8 to 22.3 % and AMC 2023 from 77.0 to 82.2 %.
Reading: Two replayed rollouts join each group; their logprobs are computed anew under the policy before the step, as
    released, so that nothing corrects for their age. DAPO's bounds, dual clip, token mean and price of overlong
    answers, without its dynamic sampling; eight optimizer steps per batch (64 of 512 tasks). Earlier runs of any recipe
    serve as the pool, as long as they had the same environments and seed; the paper's is a converged one from the same
    model. Right is what the environment itself paid 1, whatever else that run rewarded.
Left out: The warm-up of the learning rate and weight decay.
Acts: share/replayed > 0 with pool=RUN, groups_per_step=8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from strop.errors import ConfigurationError
from strop.filter.rewards.overlong_penalty import Overlong
from strop.generate.interfaces import Player
from strop.generate.strategies.independent import Independent
from strop.generate.turn_ops import by_nobody
from strop.recipes.setting import Setting
from strop.roles import Strategy
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.success import ROUNDING
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.truncated import Truncated
from strop.training.losses.clip import Clip
from strop.types import FilePath, Group, Origin, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.generate.policy import Policy


# RLEP's replay (2507.07451): beside the fresh rollouts of a task stand some right ones of an earlier run.
#
# Reading: replayed rollouts are rewarded anew, compared with the fresh ones, and counted in no pass rate. No weights of
# this run wrote them (version -1): they are trained as if the policy before the step had. A task with too few successes
# gets fewer; the release fills up with empty answers, which count as wrong.


@dataclass
class WithSuccesses(Strategy):
    """What `inner` makes, and up to `count` different rollouts of the policy at the same task from another ledger.

    Tasks are known by their content: environments, levels and seed must be those of the earlier run.
    """

    inner: Strategy
    pool: FilePath  # ledger.db of the earlier run
    count: int = 2  # replayed rollouts in a group
    right: float = 1.0  # what the environment paid for a right rollout, there
    _ledger: Ledger | None = field(default=None, init=False, repr=False, compare=False)
    _known: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigurationError(f"WithSuccesses needs count >= 1, got {self.count}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        made = await self.inner(group, starts, play)
        return made if group.rollouts else [*made, *self._replayed(group.task, play)]

    def problems(self, run: Run) -> list[str]:
        """What is wrong with the pool."""
        if not Path(self.pool).is_file():
            return [f"{self.pool} does not exist: name the folder of a run that solved some of these tasks"]
        return [] if self._successes() else [f"{self.pool} holds no rollout that its environment paid {self.right:g}"]

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def _replayed(self, task: Task, play: Player) -> list[Rollout]:
        known = self._successes().get(task.id, [])
        if not known:
            return []
        starts = [play.another() for _ in range(min(self.count, len(known)))]
        chosen = np.random.default_rng(starts[0].key).choice(len(known), len(starts), replace=False)
        return [self._again(known[index], task, start) for start, index in zip(starts, chosen.tolist(), strict=True)]

    def _successes(self) -> dict[str, list[str]]:
        """Ids of right rollouts by task."""
        if self._ledger is None:
            self._ledger = Ledger(Path(self.pool), read_only=True)
            self._known = self._ledger.successes(self.right - ROUNDING)
        return self._known

    def _again(self, name: str, task: Task, start: Start) -> Rollout:
        assert self._ledger is not None
        found = self._ledger.rollout(name)
        if self._policy is not None:
            self._check_prompt(found, self._policy)
        turns = tuple(by_nobody(turn) for turn in found.turns)
        fresh = replace(found, id=start.id, task=task, turns=turns, origin=Origin.REPLAYED, facts={})
        return replace(fresh, reward=0.0, rewards={}, parent="", comparison_group="")

    def _check_prompt(self, rollout: Rollout, policy: Policy) -> None:
        due = policy.opening(rollout.task.messages, rollout.task)
        if rollout.turns[0].prompt.tolist() != due.tolist():
            raise ConfigurationError(
                f"rollout {rollout.id} of {self.pool} reads task {rollout.task.id} in other tokens: the earlier run "
                "had another tokenizer or template"
            )


def rlep(
    setting: Setting = Setting(group_size=16),
    *,
    pool: str,  # folder of the earlier run, as runs/NAME
    replayed: int = 2,  # rollouts of the earlier run in each group
) -> Run:
    """`pool` is the folder of an earlier run with the same environments and seed, as runs/NAME; it is only read."""
    run = setting.run(
        "rlep",
        GroupStandard(),
        (Clip(0.2, 0.28, dual=10.0, anchor="proximal"),),
        strategy=WithSuccesses(Independent(), str(Path(pool) / "ledger.db"), replayed),
        correction=Truncated(target="proximal"),
        minibatches=8,
    )
    run.rewards = (*run.rewards, Overlong(setting.max_tokens, cushion=max(setting.max_tokens // 6, 1)))
    return run
