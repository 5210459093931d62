"""DOTS-RR: tasks whose pass rate, predicted from similar tasks, is near 1/2; half of every step is replayed groups.

Title: Improving Data Efficiency for LLM Reinforcement Fine-tuning Through Difficulty-targeted Online Data Selection and
    Rollout Replay
Paper: arXiv 2506.05316 (2025)
Claim: The results of GRPO in 23 to 62 % less time, over 6 pairs of models and data sets.
Reading: Similarity is that of the initial model's hidden states, without a trained encoder, see the mechanism; the
    release's 256 references, temperature 1/1000, choices for 2 steps and 512 groups kept. A quarter of the tasks is
    sampled uniformly and serves as references, in place of rollouts that are discarded. The release trains on 512
    groups per step, 16 here, of which 8 are new. GRPO as in its own recipe, with ratios to the policy that sampled.
Left out: The encoder trained on other models' records, and its scaling by mean and standard deviation of the
    references. A buffer of mixed groups only, which the paper describes and its release lacks.
Acts: nearer_by > 0 and replayed_share > 0 with pool=16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.control.estimators.support.calibration import prediction
from strop.control.estimators.support.nearest_tasks import ByTried
from strop.control.estimators.support.prompt_embeddings import PromptStates, standardized
from strop.control.estimators.support.recent_outcomes import Support
from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import drawn, softmax
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.replay.memory.held_groups import Replaying
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import FloatArray, Group, Metrics, Task

# DOTS's pass-rate estimator (2506.05316): attention over reference tasks with known pass rates.
#
# Attention from a task to recently sampled tasks, softmax(<e_x, e_j> / sqrt(H)), averages their pass rates; then a line
# fitted on the references calibrates the average. Readings: e is the state of the run's initial model at the prompt's
# last token, each feature in units of its standard deviation over the references, where the paper trains an encoder and
# two projections on the records of other models; the line never slopes down and its values are clipped to 0 to 1. The
# references are the tasks sampled last, so no rollout is made for the prediction alone. A task's pass rate does not
# depend on why it was sampled.

_UNKNOWN = 1 / 12  # variance of a uniform pass rate
_FEWEST = 3  # references from which a line can be fitted


@dataclass
class ReferenceAttention(ByTried):
    """Estimator from similar tasks' pass rates; 1/2 before there are 3 references. Its variance is the fit's mean
    squared error.
    """

    references: int = 256  # tasks, those sampled last
    device: str = "cpu"  # cpu or cuda

    def __post_init__(self) -> None:
        if self.references < _FEWEST:
            raise ConfigurationError(f"ReferenceAttention needs references >= {_FEWEST}, got {self.references}")
        self._support = Support(self.references)

    def load_model(self, model: Path, seed: int) -> None:
        self._states = PromptStates.open(model, self.device)

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        states = self._ready()
        if len(self._support) < _FEWEST:
            return np.full(len(tasks), 0.5, np.float32), np.full(len(tasks), _UNKNOWN, np.float32)
        known, asked = standardized(
            states.of(self._support.prompts), states.of([states.prompt(task) for task in tasks])
        )
        shares = self._support.shares
        slope, height, error = fitted(attended(known, known, shares), shares)
        means = np.clip(slope * attended(asked, known, shares) + height, 0, 1)
        return means.astype(np.float32), np.full(len(tasks), error, np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: accuracy of the batch's predictions, and the number of references."""
        return prediction(groups) | {"references": float(len(self._support))}


def attended(
    asked: NDArray[np.float64], known: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean of `shares` [R], weighted by similarity of `asked` [N, H] to `known` [R, H]: [N]."""
    scores = asked @ known.T / np.sqrt(known.shape[1])  # [N, R]
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray((weights / weights.sum(1, keepdims=True)) @ shares)


def fitted(predicted: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float, float]:
    """Slope and intercept of the least-squares line from predictions to outcomes, and its mean squared error."""
    spread = float(predicted.var())
    slope = (
        max(float(((predicted - predicted.mean()) * (shares - shares.mean())).mean()) / spread, 0) if spread else 0.0
    )
    height = float(shares.mean() - slope * predicted.mean())
    return slope, height, float(np.square(slope * predicted + height - shares).mean())


# DOTS's choice (2506.05316): tasks are sampled at random, the likelier the nearer their pass rate is to a target.
#
# Without replacement, in proportion to exp(-|p - target| / temperature); at the paper's temperature of 1/1000 nearly
# the nearest ones. Reading: the paper samples a reference set before each choice and discards its rollouts; here a
# share of all tasks is sampled uniformly, is trained on as the others, and serves as references of the next choices.


@dataclass
class NearTarget(Sampler):
    """Sampler of `count` different tasks of a pool for every `every` versions of the weights, `uniform` of them
    uniformly.
    """

    envs: tuple[Environment, ...]
    pool: int = 256  # largest number of tasks of each environment; they repeat
    count: int = 16  # tasks that are chosen together
    uniform: int = 4  # of them, sampled uniformly
    target: float = 0.5  # pass rate that teaches most
    temperature: float = 1e-3  # distance from the target at which a task is 1/e as likely
    every: int = 2  # versions of the weights that a choice is for
    seed: int = 0  # of the choice

    _pool: Pool = field(init=False, repr=False, compare=False)
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    # mean distances from the target, of the chosen tasks and of the pool
    _distances: tuple[float, float] = field(default=(0.0, 0.0), init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool = Pool(self.envs, self.pool)
        if not 0 <= self.uniform < self.count <= len(self._pool):
            raise ConfigurationError(
                f"NearTarget needs 0 <= uniform < count <= tasks in the pool, got {self.uniform}, {self.count} and "
                f"{len(self._pool)}"
            )
        if not 0 <= self.target <= 1 or self.temperature <= 0 or self.every < 1:
            raise ConfigurationError(
                "NearTarget needs 0 <= target <= 1, temperature > 0 and every >= 1, got "
                f"{self.target}, {self.temperature} and {self.every}"
            )

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        place = self._pending.next(step // self.every, lambda choice: self._choose(step, estimator, choice))
        return self._pool.task(place)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: distance of the last choice from the target, and how much nearer it is than the pool."""
        chosen, pool = self._distances
        return {"chosen_distance": chosen, "nearer_by": pool - chosen}

    def state(self) -> dict[str, Any]:
        return {"pending": self._pending.state(), "distances": list(self._distances)}

    def restore(self, state: dict[str, Any]) -> None:
        self._pending.restore(state["pending"])
        self._distances = (float(state["distances"][0]), float(state["distances"][1]))

    def _choose(self, step: int, estimator: PassRateEstimator, choice: int) -> list[int]:
        places = range(len(self._pool))
        uniform = drawn(np.ones(len(places)), self.uniform, (self.seed, choice, 1))
        means, _ = estimator.predict(self._pool.tasks(places), step)
        distances = np.abs(means.astype(np.float64) - self.target)  # [P]
        weights = softmax(-distances, self.temperature)
        weights[uniform] = 0
        chosen = drawn(weights, self.count - self.uniform, (self.seed, choice))
        self._distances = float(distances[chosen].mean()), float(distances.mean())
        return uniform + chosen


# DOTS's replay (2506.05316): a fixed share of every step is groups that were trained on before.
#
# Sampled uniformly among the newest, with the logprobs they were sampled with, so ratios are to the policy of that
# time. Of a task that repeats only the newest group is kept.


@dataclass
class RecentShare(Replaying):
    """Buffer that fills a step with new groups, the oldest first, and adds old ones, so that `fresh` is the share of
    new ones.

    At the start there are fewer old ones than that.
    """

    fresh: float = 0.5  # share of new groups in a step
    capacity: int = 512  # old groups kept, the newest
    seed: int = 0  # of the choice of old ones

    def __post_init__(self) -> None:
        if not 0 < self.fresh <= 1 or self.capacity < 0:
            raise ConfigurationError(
                f"RecentShare needs 0 < fresh <= 1 and capacity >= 0, got {self.fresh} and {self.capacity}"
            )

    def sample(self, count: int, step: int) -> list[Group] | None:
        old = self._held.old
        if len(self._held) < count:
            return None
        wanted = min(round(count * (1 - self.fresh) / self.fresh), len(old))
        random = np.random.default_rng([self.seed, step])
        numbers = random.choice(sorted(old), wanted, replace=False).tolist() if wanted else []
        again = [old[number] for number in sorted(numbers)]
        new = self._held.take(count, again)
        self._forget()
        return [*new, *again]

    def _forget(self) -> None:
        old = self._held.old
        newest = {old[number].task.id: number for number in sorted(old)}
        self._held.old = {number: old[number] for number in newest.values()}
        self._held.forget(self.capacity)


def dots_rr(
    setting: Setting = Setting(env="arithmetic:1+countdown:4+arithmetic:8"),
    pool: int = OfEndless(128),  # tasks of each environment; they repeat; all of a table
    uniform: float = 0.25,  # share of tasks sampled uniformly, the references of the next choices
    references: int = 256,  # tasks sampled last, which others are compared with
    choice_temperature: float = 1e-3,  # distance from the target at which a task is 1/e as likely
    every: int = 2,  # versions of the weights that a choice is for
    fresh: float = 0.5,  # share of new groups in a step; 1: no replay
) -> Run:
    """`groups_per_step` new groups per step, plus as many old ones as `fresh` implies."""
    run = setting.run(
        "dots_rr",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.04)),
        estimator=ReferenceAttention(references, setting.device),
        buffer=RecentShare(fresh, seed=setting.seed),
        reduction=SequenceMean(),
    )
    count = setting.groups_per_step * every
    sampler = NearTarget(
        run.envs,
        covering(run.envs, pool),
        count,
        int(uniform * count),
        temperature=choice_temperature,
        every=every,
        seed=setting.seed,
    )
    return replace(run, sampler=sampler)
