"""Critique-Coder: GRPO on programs, with a fifth of the tasks asking whether a given program is right.

Title: Critique-Coder: Enhancing Coder Models by Critique Reinforcement Learning
Paper: arXiv 2509.22824 (2025)
Claim: With critiques in place of a fifth of the data, an 8B coder passes 60 % of LiveCodeBench (v5).
Reading: A critique earns 1 if its last conclusion is true, a program the share of tests that it passes, as released.
    Programs to judge are the policy's own of earlier groups, right if they pass all tests; the paper's are written by a
    model beforehand. Right and wrong ones alternate, so that a constant answer earns 1/2 in each training batch; while
    only one kind is queued, programs are asked for instead. The optimizer's hyperparameters were not found:
    group-relative advantages and a clip range of 0.2. The bundled model has never seen a program, so a short supervised
    warm-up on the environments' own programs and critiques comes first. Of a table, held-out critiques ask about the
    row's program or another row's.
Left out: Critiques that give reasons: the bundled model writes its conclusion alone.
Acts: written_share > 0 and fact/passed > 0 and advantage > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.critiques import Critiques, concluded
from strop.environments.bundled.critiques import shown as shown_of_critiques
from strop.environments.bundled.programs import Programs
from strop.environments.code.cases import cases_of
from strop.environments.code.code_table import CodeTable
from strop.environments.code_execution import Trials, program_in
from strop.environments.data.heldout_split import prompt_of
from strop.environments.data.lookup import other_task
from strop.environments.judging.derived import Derived
from strop.environments.needs import PROGRAMS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.filter.rewards.unit_tests import PassedTests
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment, PassRateEstimator, Reward, Sampler, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, plain, unplain
from strop.success import is_right
from strop.text.sanitize import quoted
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.roles import Player


# Critique-Coder's share of critiques (2509.22824): a fixed share of the sampled tasks, with alternating labels.
#
# A constant answer thus earns 1/2 in each batch, not only in the long run.

_MOST = 128  # queued tasks per label; the oldest is dropped beyond
_ROUNDING = 1e-9


@dataclass
class AlternatingLabels(Sampler):
    """Generated tasks, each once, as an evenly spread `share` of all sampled tasks, with alternating labels.

    If no task with the other label is queued, the inner sampler chooses.
    """

    inner: Sampler
    share: float = 0.2  # of all sampled tasks
    _waiting: dict[str, Task] = field(default_factory=dict, init=False, repr=False, compare=False)  # by id
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)
    _last: str | None = field(default=None, init=False, repr=False, compare=False)  # its answer

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ConfigurationError(f"the share of critiques must lie between 0 and 1, got {self.share:g}")

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

    def _quota(self, count: int) -> int:
        return math.floor(count * self.share + _ROUNDING)

    def state(self) -> dict[str, Any]:
        waiting = [plain(task) for task in self._waiting.values()]
        return {"num_drawn": self._num_drawn, "last": self._last, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn, self._last = int(state["num_drawn"]), state["last"]
        self._waiting = {data["id"]: unplain(data) for data in state["waiting"]}


# Critique-Coder's tasks (2509.22824): the policy judges its own programs, which the tests have labelled.


@dataclass(frozen=True)
class CritiqueTasks(TaskGenerator):
    """Critique tasks of a group: its first program that passes all tests and its first that does not."""

    needs_success: ClassVar[bool] = True

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if group.task.source.startswith(Critiques.name):
            return []
        found: dict[bool, Task] = {}
        for rollout in group.own:
            program = quoted(program_in(rollout.completion).text).strip("\n")
            truth = is_right(rollout)
            if program.strip():
                found.setdefault(truth, critique(group.task, program, truth))
        return list(found.values())

    def problems(self, run: Run) -> list[str]:
        levels = {name: {env.level for env in run.envs if env.name == name} for name in _NAMES}
        missing = sorted(levels[Programs.name] - levels[Critiques.name])
        return [f"critiques:{level} is not among the environments of this run: add it to env" for level in missing]


_NAMES = (Programs.name, Critiques.name)


def critique(task: Task, program: str, is_true: bool) -> Task:
    """A task that asks whether the program solves `task`."""
    is_bundled = task.source == Programs.name
    parent = replace(task, source=Critiques.name if is_bundled else f"{Critiques.name}-{task.source}", columns="")
    shown_of = shown_of_critiques if is_bundled else _asked
    return child(parent, shown_of(prompt_of(task), program), concluded(is_true))


def _asked(question: str, program: str) -> str:
    return f"{question}\n\n```python\n{program}\n```\n\n{_ASKED}"


# Critiques of a table's programs: held-out tasks ask about the row's own program or another row's.

_ASKED = (
    "Is this program right? Think it through, then end with `conclusion: {T}` if it is, or with `conclusion: {F}` if "
    "it is not."
)
_SAID = re.compile(r"conclusion\W{0,8}(true|false|t|f|right|wrong)\b", re.I)


@dataclass(frozen=True)
class ProgramCritiques(Derived):
    """Whether a program solves a task of a table with tests: half of the programs are those of the row."""

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (PROGRAMS,)

    @property
    def name(self) -> str:
        return f"{Critiques.name}-{self.env.name}"

    @property
    def envs(self) -> tuple[Environment, ...]:
        return (self.env,)

    def task(self, index: int, heldout: bool = False) -> Task:
        inner, is_true = self.env.task(index, heldout), index % 2 == 0
        program = cases_of(inner if is_true else other_task((self.env,), inner)).solution
        return critique(inner, program.strip("\n"), is_true)

    def check(self, task: Task, completion: str) -> float:
        return float(self.answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        """The last conclusion, in the words of answers."""
        said = _SAID.findall(completion)
        return concluded(said[-1].lower() in ("t", "true", "right")) if said else ""

    def solution(self, task: Task) -> str:
        return task.answer


# Critique-Coder's reward (2509.22824): programs by the tests that they pass, critiques by whether they are true.

FACT = "judged"  # whether the conclusion was true


@dataclass(frozen=True)
class SolvedOrJudged(Reward):
    """The environment's reward for critiques, the reward `tests` for programs."""

    tests: Reward  # of programs
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # awaits the sandbox

    async def __call__(self, group: Group) -> Sequence[float | Paid]:
        if not group.task.source.startswith(Critiques.name):
            scores = self.tests(group)
            return await scores if isawaitable(scores) else scores
        for rollout in group.rollouts:
            rollout.facts[FACT] = sum(rollout.turn_rewards)
        return [rollout.facts[FACT] for rollout in group.rollouts]


def critique_coder(
    setting: Setting = Setting(env="programs:1+critiques:1"),
    share: float = 0.2,  # share of critiques among the tasks
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = BundledOnly(24),  # supervised warm-up steps before RL
) -> Run:
    """Environments of programs are sampled uniformly; those of critiques serve the warm-up and the held-out tasks."""
    run = setting.run("critique_coder", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    programs = tuple(env for env in run.envs if env.name != Critiques.name)
    run.envs += tuple(ProgramCritiques(env) for env in programs if isinstance(env, CodeTable))
    if len(programs) in (0, len(run.envs)):
        raise ConfigurationError(
            f"critique_coder needs a table with tests, or programs and critiques, as in env=programs:1+critiques:1; "
            f"got {setting.env}"
        )
    run.sampler, run.task_generator = AlternatingLabels(Uniform(programs), share), CritiqueTasks()
    run.rewards = (SolvedOrJudged(PassedTests("share", Trials(setting.isolation), envs=programs)),)
    run.warmup = shown(setting, "critique_coder", warmup_steps)
    return run
