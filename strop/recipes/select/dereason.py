"""DeReason: SFT on tasks that need little reasoning, RL on those that need much; the split is by difficulty score.

Title: DeReason: A Difficulty-Aware Curriculum Improves Decoupled SFT-then-RL Training for General Reasoning
Paper: arXiv 2603.11193 (2026)
Claim: 43.8 on average, against 42.9 with a random split of the same sizes.
Reading: In the paper a model scores each task from 1 to 5 with the answer hidden; 4 and more go to RL, the rest to
    supervised training. Here the score is read from a file or the column `score`, or is the number of steps in the
    worked solution, of which 3 and more go to RL.
Left out: The scoring model. A control whose split is matched by domain, with which the scores are confounded.
Acts: passed_over > 0 and warmup/passed_over > 0 with warmup_steps=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from strop.control.samplers.uniform import Uniform
from strop.environments.data.heldout_split import prompt_of
from strop.environments.data.hf_dataset import json_rows
from strop.environments.data.rows import columns_of
from strop.environments.format.hints import beginnings
from strop.environments.needs import SOLUTIONS, EnvNeed, first_tasks, worked_by
from strop.errors import ConfigurationError, DataError
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import FilePath, Group, Metrics, Task

# DeReason's split (2603.11193): tasks whose score lies in a range, easy ones for SFT and hard ones for RL.
#
# Reading: a score is read from a file that a judge wrote, or from the table's column `score`, or is the number of steps
# in the worked solution.

SCORE = "score"  # the column of a table that holds how much reasoning a task needs
SCORED = replace(
    SOLUTIONS,
    remedy=f"add a column `{SCORE}` with a number to each row, name a file (scores=FILE.jsonl), or {SOLUTIONS.remedy}",
    is_met_by=lambda env, task: _is_number(columns_of(task).get(SCORE)) or worked_by(env, task),
)
_TRIES = 1000  # tasks in a row that may be skipped


@dataclass
class TaskScoreRange(Sampler):
    """Sampler that skips tasks of `inner` with a score below `low`, or of `high` and more.

    Two samplers that meet at a bound share no task and omit none.
    """

    inner: Sampler
    envs: tuple[Environment, ...]
    low: float | None = None  # least score; None: no limit
    high: float | None = None  # score from which a task is skipped; None: no limit
    scores: FilePath = ""  # JSONL with a prompt and a score in each line; empty: steps of the worked solution
    _passed_over: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ConfigurationError(f"TaskScoreRange needs low < high, got {self.low} and {self.high}")

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        for _ in range(_TRIES):
            task = self.inner.next(step, estimator)
            if self._is_within(self.score(task)):
                return task
            self._passed_over += 1
        raise ConfigurationError(f"none of {_TRIES} tasks in a row has a score from {self.low} to below {self.high}")

    def score(self, task: Task) -> float:
        if self.scores:
            if (prompt := prompt_of(task)) not in self._read:
                raise DataError(f"{self.scores} has no score for the prompt {prompt!r}")
            return self._read[prompt]
        scored = columns_of(task).get(SCORE)
        return float(str(scored)) if _is_number(scored) else float(len(beginnings(self.envs, task)))

    @property
    def env_needs(self) -> tuple[EnvNeed, ...]:
        return () if self.scores else (SCORED,)

    def problems(self, run: Run) -> list[str]:
        if self.scores and not Path(self.scores).is_file():
            return [f"{self.scores} does not exist"]
        found = [self.score(task) for env in self.envs for task in first_tasks(env)]
        is_finite = all(env.num_tasks() is not None for env in self.envs)
        if not is_finite or any(map(self._is_within, found)):
            return []
        ends = (("at least", self.low), ("below", self.high))
        wanted = " and ".join(f"{words} {end:g}" for words, end in ends if end is not None)
        return [
            f"no task has a score of {wanted}: scores lie between {min(found):g} and {max(found):g}; "
            "least=SCORE sets where RL begins"
        ]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: mean score of the batch, and tasks skipped so far."""
        known = [self.score(group.task) for group in groups]
        return {"task_score": sum(known) / max(len(known), 1), "passed_over": float(self._passed_over)}

    def state(self) -> dict[str, Any]:
        return {"passed_over": self._passed_over}

    def restore(self, state: dict[str, Any]) -> None:
        self._passed_over = int(state["passed_over"])

    def _is_within(self, score: float) -> bool:
        return (self.low is None or score >= self.low) and (self.high is None or score < self.high)

    @cached_property
    def _read(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for place, row in json_rows(Path(self.scores)):
            try:
                found[str(row["prompt"])] = float(row["score"])
            except (KeyError, TypeError, ValueError):
                raise DataError(f"{place}: need a prompt and a number as score, got {row}") from None
        return found


def _is_number(score: object) -> bool:
    return isinstance(score, int | float) and not isinstance(score, bool)


def dereason(
    setting: Setting = Setting(env="arithmetic:3+arithmetic:4+arithmetic:5"),
    warmup_steps: int = 20,  # of supervised training on tasks that need little reasoning
    least: float = 3.0,  # score from which a task is for RL
    scores: str = "",  # JSONL with a prompt and a score in each line; empty: column `score`, or steps of the solution
) -> Run:
    """A supervised run and an RL run on the same environments that share no task."""
    run = setting.run("dereason", GroupStandard(), (Clip(),))
    run.sampler = TaskScoreRange(Uniform(run.envs), run.envs, low=least, scores=scores)
    run.warmup = shown(setting, "dereason", warmup_steps)
    if run.warmup is not None:
        run.warmup.sampler = TaskScoreRange(Uniform(run.envs), run.envs, high=least, scores=scores)
    return run
