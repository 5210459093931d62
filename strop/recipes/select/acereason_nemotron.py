"""AceReason-Nemotron: staged on-policy GRPO with growing completion length, math then code; solved tasks are dropped.

Title: AceReason-Nemotron: Advancing Math and Code Reasoning through Reinforcement Learning
Paper: arXiv 2505.16400 (2025)
Claim: Mathematics alone gives 14.6 and 17.2 % on AIME 2025 and 6.8 and 5.8 % on LiveCodeBench (7B and 14B).
Reading: Six runs, each from the model of the one before: mathematics at 8K, 16K and 24K tokens, code at 24K and 32K,
    mathematics at 32K; here these are 3/8 (a quarter would truncate every completion), 1/2, 3/4 and all of
    `max_tokens`. Groups of 8 in the first stage of each kind and 16 after, rewards divided by the group's standard
    deviation, strictly on-policy, no KL penalty and no entropy bonus. From mathematics at 24K and code at 32K on, tasks
    that more than 6 of 16 rollouts solve are dropped; for code the share was not found. Sums replace mathematics, and
    expressions that reach a target replace code.
Left out: Pass rates of teachers by which code tasks are chosen, and code's changes of temperature and learning rate.
Acts: passed_over > 0 with tasks=4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.control.samplers.uniform import Uniform
from strop.errors import ConfigurationError
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.roles import PassRateEstimator, Sampler
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

# AceReason-Nemotron's filter (2505.16400): tasks that the policy solves too often are dropped.
#
# Reading: the paper drops tasks before a stage, by 16 rollouts of the model that starts it; here a task is dropped
# after its first group above the limit, as in the paper's last code stage after each epoch.

_KNOWN = 100_000  # solved tasks remembered, the latest
_TRIES = 1000  # tasks in a row that may be skipped


@dataclass
class Unsolved(Sampler):
    """Sampler that skips tasks of `inner` of which a group solved a larger share than `most`.

    When `inner` returns a task that was just skipped, all tasks are solved, and that one is sampled after all. Groups
    may come in any order.
    """

    inner: Sampler
    most: float = 6 / 16  # largest share of right rollouts of a task that is sampled again
    _solved: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _passed_over: int = field(default=0, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ConfigurationError(f"Unsolved needs 0 <= most <= 1, got {self.most}")

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        task, passed = self.inner.next(step, estimator), set[str]()
        while task.id in self._solved and task.id not in passed and len(passed) < _TRIES:
            passed.add(task.id)
            task = self.inner.next(step, estimator)
        self._passed_over += len(passed)
        return task

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        if right > self.most * count:
            self._solved[group.task.id] = None
        while len(self._solved) > _KNOWN:
            del self._solved[next(iter(self._solved))]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: solved tasks, and skipped ones so far."""
        return {"solved_tasks": float(len(self._solved)), "passed_over": float(self._passed_over)}

    def state(self) -> dict[str, Any]:
        return {"solved": list(self._solved), "passed_over": self._passed_over}

    def restore(self, state: dict[str, Any]) -> None:
        self._solved, self._passed_over = dict.fromkeys(state["solved"]), int(state["passed_over"])


# per stage: is it code, share of max_tokens, factor of group_size, are solved tasks dropped
_STAGES = (
    (False, 0.375, 1, False),
    (False, 0.5, 2, False),
    (False, 0.75, 2, True),
    (True, 0.75, 1, False),
    (True, 1.0, 2, True),
    (False, 1.0, 2, True),
)


def acereason_nemotron(
    setting: Setting = Setting(steps=30),
    code: str = "countdown:4",  # environment of the code stages
    tasks: int = OfEndless(64),  # of a stage in which solved ones are dropped; all of a table
    most: float = 0.375,  # largest share of right rollouts of a task that is sampled again
) -> Run:
    """Six stages of `steps` steps each; `group_size` rollouts in the first of each kind, twice as many after."""
    run: Run | None = None
    for is_code, share, factor, is_filtered in _STAGES:
        stage = replace(
            setting,
            env=code if is_code else setting.env,
            max_tokens=max(int(share * setting.max_tokens), 1),
            group_size=setting.group_size * factor,
        )
        made = stage.run("acereason_nemotron", GroupStandard(), (Clip(),))
        made.sampler = Unsolved(Few(made.envs, covering(made.envs, tasks)), most) if is_filtered else Uniform(made.envs)
        made.evaluation = replace(made.evaluation, unseen=parse_envs(setting.env if is_code else code, setting.seed))
        made.warmup, run = run, made
    assert run is not None
    return run
