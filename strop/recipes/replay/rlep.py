"""RLEP: groups mix fresh rollouts with successful rollouts replayed from an earlier run; PPO clipping, no critic.

Title: RLEP: Reinforcement Learning with Experience Replay for LLM Reasoning
Paper: arXiv 2507.07451 (2025)
Claim: AIME 2024 from 38.2 to 39.9 %, AIME 2025 from 19.8 to 22.3 % and AMC 2023 from 77.0 to 82.2 %.
Reading: Two replayed rollouts join each group. Their logprobs are recomputed under the policy before the step, as in
    the release, so there is no off-policy correction for their age. DAPO's clip range, dual clip, token mean and
    overlong penalty, without its dynamic sampling; eight optimizer steps per batch (64 of 512 tasks). The pool may be
    an earlier run of any recipe with the same environments and seed; the paper's is a converged run of the same model.
    A rollout is right if the environment itself rewarded it with 1, whatever other rewards that run had.
Left out: Learning rate warm-up and weight decay.
Acts: share/replayed > 0 with pool=RUN, groups_per_step=8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from strop.environments.data.heldout_split import not_trained_on
from strop.errors import ConfigurationError
from strop.filter.rewards.overlong_penalty import Overlong
from strop.generate.strategies.independent import Independent
from strop.generate.turn_ops import by_nobody
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.success import ROUNDING
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.clip import Clip
from strop.types import FilePath, Group, Origin, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.generate.policy import Policy


# RLEP's replay (2507.07451): successful rollouts of an earlier run join the fresh rollouts of a task.
#
# Reading: replayed rollouts are scored again, normalized with the fresh ones, and not counted in pass rates. Their
# version is -1, as no weights of this run sampled them; they are trained as if the policy before the step had. A task
# with too few successes gets fewer replayed rollouts; the release adds empty completions, which count as wrong.


@dataclass
class ReplayedSuccesses(Strategy):
    """The rollouts of `inner`, plus up to `count` different successes at the same task from another run's ledger.

    Tasks are matched by content: environments, levels and seed must equal those of the earlier run.
    """

    inner: Strategy
    pool: FilePath  # ledger.db of the earlier run
    count: int = 2  # replayed rollouts in a group
    right: float = 1.0  # success of a right rollout in the earlier run
    _ledger: Ledger | None = field(default=None, init=False, repr=False, compare=False)
    _known: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigurationError(f"ReplayedSuccesses needs count >= 1, got {self.count}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        made = await self.inner(group, starts, play)
        return made if group.rollouts else [*made, *self._replayed(group.task, play)]

    def problems(self, run: Run) -> list[str]:
        """Errors: a pool that does not exist, or has no successes."""
        if not Path(self.pool).is_file():
            return [f"{self.pool} does not exist: set pool to the folder of a run that solved some of these tasks"]
        if not self._successes():
            return [f"{self.pool} holds no rollout with a success of {self.right:g}"]
        assert self._ledger is not None
        solved = [self._ledger.task(name) for name in self._successes()]
        foreign = not_trained_on(solved, run.envs)
        if len(foreign) < len({(task.source, task.level) for task in solved}):
            return []
        return [f"no rollout of {self.pool} can be replayed: {each}" for each in foreign]

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
                f"rollout {rollout.id} of {self.pool} has other prompt tokens for task {rollout.task.id}: the earlier "
                "run had another tokenizer or chat template"
            )


def rlep(
    setting: Setting = Setting(group_size=16),
    *,
    pool: str,  # folder of the earlier run, as runs/NAME
    replayed: int = 2,  # rollouts of the earlier run in each group
) -> Run:
    """`pool` is the folder of an earlier run with the same environments and seed; it is only read."""
    run = setting.run(
        "rlep",
        GroupStandard(),
        (Clip(0.2, 0.28, dual=10.0, anchor="proximal"),),
        strategy=ReplayedSuccesses(Independent(), str(Path(pool) / "ledger.db"), replayed),
        correction=Truncated(target="proximal"),
        minibatches=8,
    )
    run.rewards = (*run.rewards, Overlong(setting.max_tokens, cushion=max(setting.max_tokens // 6, 1)))
    return run
