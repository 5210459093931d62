"""One task in five asks whether a program is right, and pays for the verdict; all others ask for programs.

Title: Critique-Coder: Enhancing Coder Models by Critique Reinforcement Learning
Paper: arXiv 2509.22824 (2025)
Claim: With critiques in place of a fifth of the data, an 8B coder passes 60 % of LiveCodeBench (v5).
Reading: A critique earns 1 where its last conclusion is the truth, a program the share of tests that it passes, as
    released. Programs to judge are the policy's own of earlier groups, true where they pass all tests; the paper's are
    written by a model beforehand. True and false ones come in turn, so that one letter for all earns a half in each
    draw; while only one kind waits, programs are asked for instead. The optimizer's numbers were not found:
    group-relative advantages and a clip of 0.2. The bundled model has never seen a program, so a short supervised run
    comes before, on the environments' own programs and critiques.
Left out: Critiques that give reasons: the bundled model says its conclusion alone.
Acts: written_share > 0 and fact/passed > 0 and advantage > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.critiques import Critiques, concluded
from strop.environments.bundled.critiques import shown as shown_of_critiques
from strop.environments.bundled.programs import Programs
from strop.environments.code_execution import Trials, program_in
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.filter.rewards.unit_tests import PassedTests
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import PassRateEstimator, Reward, Sampler, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, plain, unplain
from strop.success import is_right
from strop.text.sanitize import quoted
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# Critique-Coder's share of critiques (2509.22824): written tasks in place of some draws, their answers in turn.
#
# Whoever gives the same answer to all of them earns a half, in each batch and not only in the long run.

_MOST = 128  # written tasks of one answer that wait; beyond, the oldest is forgotten
_ROUNDING = 1e-9


@dataclass
class AnswersInTurn(Sampler):
    """Every written task once, for `share` of all batches, evenly spread; none has the answer of the one before.

    Where only tasks with that answer wait, or none, the inner sampler chooses.
    """

    inner: Sampler
    share: float = 0.2  # of the batches
    _waiting: dict[str, Task] = field(default_factory=dict, init=False, repr=False, compare=False)  # by id
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)
    _last: str | None = field(default=None, init=False, repr=False, compare=False)  # answer

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ConfigurationError(f"a share of critiques is between 0 and 1, got {self.share:g}")

    def offer(self, task: Task) -> None:
        self._waiting.setdefault(task.id, task)
        alike = [each.id for each in self._waiting.values() if each.answer == task.answer]
        for old in alike[:-_MOST]:
            del self._waiting[old]

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        self._num_drawn += 1
        is_due = self._quota(self._num_drawn) > self._quota(self._num_drawn - 1)
        other = next((each for each in self._waiting.values() if each.answer != self._last), None)
        if other is None or not is_due:
            return self.inner.next(step, estimator)
        self._last = other.answer
        return self._waiting.pop(other.id)

    def _quota(self, draws: int) -> int:
        return math.floor(draws * self.share + _ROUNDING)

    def state(self) -> dict[str, Any]:
        waiting = [plain(task) for task in self._waiting.values()]
        return {"num_drawn": self._num_drawn, "last": self._last, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn, self._last = int(state["num_drawn"]), state["last"]
        self._waiting = {data["id"]: unplain(data) for data in state["waiting"]}


# Critique-Coder's tasks (2509.22824): programs that the policy wrote, to be judged by it; tests said which are right.


@dataclass(frozen=True)
class Critiqued(TaskGenerator):
    """Of each group of programs the first that passes all tests and the first that does not; no program is no task."""

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if group.task.source != Programs.name:
            return []
        found: dict[bool, Task] = {}
        for rollout in group.own:
            program = quoted(program_in(rollout.completion).text).strip("\n")
            truth = is_right(sum(rollout.turn_rewards))
            if program.strip():
                found.setdefault(truth, critique(group.task, program, truth))
        return list(found.values())

    def problems(self, run: Run) -> list[str]:
        levels = {name: {env.level for env in run.envs if env.name == name} for name in _NAMES}
        missing = sorted(levels[Programs.name] - levels[Critiques.name])
        return [f"critiques:{level} is no environment of this run: add it to environment" for level in missing]


_NAMES = (Programs.name, Critiques.name)


def critique(task: Task, program: str, is_true: bool) -> Task:
    """Is this program for that task right?"""
    parent = replace(task, source=Critiques.name)
    return child(parent, shown_of_critiques(prompt_of(task), program), concluded(is_true))


# Critique-Coder's pay (2509.22824): programs for the tests that they pass, critiques for a conclusion that is true.

FACT = "judged"  # whether a conclusion was true


@dataclass(frozen=True)
class SolvedOrJudged(Reward):
    """What the environment paid for a critique; for all else what `tests` say."""

    tests: Reward  # of programs
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # awaits the sandbox

    async def __call__(self, group: Group) -> Sequence[float | Paid]:
        if group.task.source != Critiques.name:
            told = self.tests(group)
            return await told if isawaitable(told) else told
        for rollout in group.rollouts:
            rollout.facts[FACT] = sum(rollout.turn_rewards)
        return [rollout.facts[FACT] for rollout in group.rollouts]


def critique_coder(
    setting: Setting = Setting(env="programs:1+critiques:1"),
    share: float = 0.2,  # of the tasks, those that are critiques
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = 24,  # supervised warm-up steps before RL
) -> Run:
    """Environments of programs share their part evenly; those of critiques are shown before, and measured."""
    run = setting.run("critique_coder", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    programs = tuple(env for env in run.envs if env.name != Critiques.name)
    if len(programs) in (0, len(run.envs)):
        raise ConfigurationError(f"there must be programs and critiques: env=programs:1+critiques:1, got {setting.env}")
    run.sampler, run.task_generator = AnswersInTurn(Uniform(programs), share), Critiqued()
    run.rewards = (SolvedOrJudged(PassedTests("share", Trials(setting.isolation))),)
    run.warmup = shown(setting, "critique_coder", warmup_steps)
    return run
