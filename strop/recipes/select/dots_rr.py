"""Tasks near one half by what similar tasks showed, and half of every step from groups trained on lately.

Title: Improving Data Efficiency for LLM Reinforcement Fine-tuning Through Difficulty-targeted Online Data Selection and
    Rollout Replay
Paper: arXiv 2506.05316 (2025)
Claim: The results of GRPO in 23 to 62 % less time, over 6 pairs of models and data sets.
Reading: Likeness is that of the first model's own states, without a trained encoder, see the mechanism; the release's
    256 references, temperature 1/1000, choices for 2 steps and 512 groups kept. A quarter of the tasks is drawn
    uniformly and serves as references, in place of rollouts that are thrown away. The release trains on 512 groups a
    step, 16 here, of which 8 are new. GRPO as in its own recipe, ratios to the policy that sampled.
Left out: The encoder that is trained on other models' records, and its scaling by mean and spread of the references. A
    buffer of mixed groups only, which the paper's text has and its release has not.
Acts: nearer_by > 0 and replayed_share > 0 with pool=16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.control.estimators.support.calibration import prediction
from strop.control.estimators.support.nearest_tasks import ByTried
from strop.control.estimators.support.prompt_embeddings import PromptStates, standardized
from strop.control.estimators.support.recent_outcomes import Support
from strop.control.samplers.support.pending_choices import Hand
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import drawn, softmax
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.replay.memory.held_groups import Replaying
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import FloatArray, Group, Metrics, Task

# DOTS's forecast (2506.05316): a task will be solved as often as the reference tasks that look like it.
#
# Attention from a task to tasks tried lately, softmax(<e_x, e_j> / sqrt(H)), averages their shares of right rollouts;
# then a line that was fitted on the references themselves. Readings: e is the state of the run's first model at the
# prompt's last token, each feature in units of its deviation over the references, where the paper trains an encoder and
# two projections on the records of other models; the line never slopes down and stays within 0 and 1. References are
# the tasks that were tried last, so that no rollout is made for the forecast alone: what a task is does not depend on
# why it was tried.

_UNKNOWN = 1 / 12  # the variance of what lies anywhere between 0 and 1
_FEWEST = 3  # references from which a line can be fitted


@dataclass
class ReferenceAttention(ByTried):
    """Shares of similar tasks; 1/2 before there are 3 references. Its variance is the line's mean squared error."""

    references: int = 256  # tasks, those tried last
    device: str = "cpu"  # cpu or cuda

    def __post_init__(self) -> None:
        if self.references < _FEWEST:
            raise ConfigurationError(f"ReferenceAttention needs references >= {_FEWEST}, got {self.references}")
        self._support = Support(self.references)

    def open(self, model: Path, seed: int) -> None:
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
        """Nothing; says how well the batch was predicted, and from how many references."""
        return prediction(groups) | {"references": float(len(self._support))}


def attended(
    asked: NDArray[np.float64], known: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of `shares` [R] by likeness of `asked` [N, H] to `known` [R, H]: [N]."""
    scores = asked @ known.T / np.sqrt(known.shape[1])  # [N, R]
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray((weights / weights.sum(1, keepdims=True)) @ shares)


def fitted(predicted: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float, float]:
    """Slope and height of the least squares line from what was predicted to what came, and its mean squared error."""
    spread = float(predicted.var())
    slope = (
        max(float(((predicted - predicted.mean()) * (shares - shares.mean())).mean()) / spread, 0) if spread else 0.0
    )
    height = float(shares.mean() - slope * predicted.mean())
    return slope, height, float(np.square(slope * predicted + height - shares).mean())


# DOTS's choice (2506.05316): tasks drawn by chance, the likelier the nearer their success lies to a target.
#
# Without replacement, in proportion to exp(-|p - target| / temperature); at the paper's temperature of 1/1000 nearly
# the nearest. Reading: the paper tries a reference set before each choice and throws its rollouts away; here a share of
# all tasks is drawn uniformly, is trained on as the others, and serves the forecast of the next choices.


@dataclass
class NearTarget(Sampler):
    """`count` different tasks of a pool for every `every` versions of the weights, `uniform` of them by mere
    probability.
    """

    envs: tuple[Environment, ...]
    pool: int = 256  # most tasks of each environment, which come back
    count: int = 16  # tasks that are chosen together
    uniform: int = 4  # of them that are drawn uniformly
    target: float = 0.5  # the probability of success that teaches most
    temperature: float = 1e-3  # distance from the target at which a task is 1/e as likely
    every: int = 2  # versions of the weights that a choice is for
    seed: int = 0  # of what probability decides

    _pool: Pool = field(init=False, repr=False, compare=False)
    _hand: Hand = field(default_factory=Hand, init=False, repr=False, compare=False)
    # mean distances from the target, of those chosen by the pass-rate estimator and of the pool
    _distances: tuple[float, float] = field(default=(0.0, 0.0), init=False, repr=False, compare=False)

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
        choose = self._hand.next(step // self.every, lambda choice: self._choose(step, estimator, choice))
        return self._pool.task(choose)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how near the last choice came, and by how much nearer than the pool."""
        chosen, pool = self._distances
        return {"chosen_distance": chosen, "nearer_by": pool - chosen}

    def state(self) -> dict[str, Any]:
        return {"hand": self._hand.state(), "distances": list(self._distances)}

    def restore(self, state: dict[str, Any]) -> None:
        self._hand.restore(state["hand"])
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


# DOTS's replay (2506.05316): a fixed share of every step is groups that were trained on lately.
#
# Drawn uniformly among the newest, with the logprobs they were sampled with, so that ratios are to the policy of that
# time. Of a task that came back only the newest group is kept.


@dataclass
class RecentShare(Replaying):
    """A step's new groups, the oldest first, and on top old ones, so that the new are the share `fresh`.

    As few old ones as there are in the beginning.
    """

    fresh: float = 0.5  # share of new groups in a step
    capacity: int = 512  # old groups that are kept, the newest
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
    pool: int = 128,  # tasks of each environment, which come back
    uniform: float = 0.25,  # share of tasks that are drawn uniformly, and are references of the next choices
    references: int = 256,  # tasks tried last, which others are compared with
    temperature: float = 1e-3,  # of the choice
    every: int = 2,  # versions of the weights that a choice is for
    fresh: float = 0.5,  # share of new groups in a step; 1: no replay
) -> Run:
    """`groups_per_step` new groups, and on top as many of those kept as `fresh` leaves room for."""
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
        run.envs, pool, count, int(uniform * count), temperature=temperature, every=every, seed=setting.seed
    )
    return replace(run, sampler=sampler)
