"""ARRoL: GRPO that prunes rollouts midway; an online success predictor keeps a balanced half of them.

Title: Prune as You Generate: Online Rollout Pruning for Faster and Better RLVR
Paper: arXiv 2603.24840 (2026)
Claim: 2.3 to 3.0 points more average accuracy than GRPO and DAPO at 1B to 8B, and up to 1.7 times the speed.
Reading: The survival rule is not published; see the mechanism. The paper pauses after 512 tokens and keeps a half; here
    after 16 of the 25 tokens of a completion. The rest is GRPO as in its own recipe. Survivors are a biased sample of
    the policy: the logged reward is theirs, and pass-rate estimators weight each by the inverse of its survival
    probability.
Left out: The head's predictions as vote weights at test time. Advantages are not weighted by the survival probability,
    as in the paper.
Acts: pruned_share > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.success import SURVIVAL, success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.ridge_regression import Fit, LabelledBatch, Table, fitted, read_batches, write_batches
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import HIDDEN
from strop.types import Group, Metrics, Outcome, Rollout, Start

# ARRoL's pruning (2603.24840): all rollouts pause at the same length; about half continue, balanced between right and
# wrong.
#
# A head reads the policy's hidden state at the pause and predicts success. Its score becomes a probability by the
# success rate of earlier rollouts with such a score. Readings: the survival rule is not published, so a rollout with
# success probability c continues with probability keep * (right * c / mean c + (1 - right) * (1 - c) / mean (1 - c)),
# capped at 1. With a perfect head survivors are balanced; with a constant one pruning is uniform. No probability is
# below keep * min(right, 1 - right), so the label of a survivor can stand for those pruned. The head is a ridge
# regression instead of a small network, and it also reads the log-probability of the tokens so far: the hidden states
# of small models say little about their own errors.

PREDICTED = "predicted"  # fact: predicted success probability at the pause
_WINDOW = 64  # groups whose survivors the head is fitted to
_BUCKETS = 10  # of the head's score from 0 to 1
_FILE = "head.safetensors"


@dataclass
class PrunedMidway(Strategy):
    """Strategy that pauses each rollout after `at` tokens, continues some and prunes the rest; shorter ones are left
    alone.

    What is learned from a group serves groups of later versions, so the order in which groups are scored does not
    matter.
    """

    at: int = 16  # tokens after which every rollout pauses
    keep: float = 0.5  # share of the paused rollouts that continues
    right: float = 0.5  # target share of successes among those that continue

    # features [F] and score of survivors by rollout id, until the rollout is scored
    _looked: dict[str, tuple[Table, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    # one entry per group: features [R, F]; success, score and weight [R, 3]
    _batches: list[LabelledBatch] = field(default_factory=list, init=False, repr=False, compare=False)
    _fit: Fit | None = field(default=None, init=False, repr=False, compare=False)
    _counts: Table = field(default_factory=lambda: _counted([]), init=False, repr=False, compare=False)
    _version: int = field(default=-1, init=False, repr=False, compare=False)  # the head's data are older

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.at < 1 or not 0 < self.keep <= 1 or not 0 < self.right < 1:
            raise ConfigurationError(f"PrunedMidway needs at >= 1, 0 < keep <= 1 and 0 < right < 1, got {self}")

    def problems(self, run: Any) -> list[str]:
        most = run.sampling.max_tokens
        return (
            [f"nothing is pruned at {self.at} tokens: completions have at most {most}; lower `at`"]
            if self.at >= most
            else []
        )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        self._catch_up(group.version)
        rollouts = await together(play(replace(start, pause=self.at)) for start in starts)
        paused = [place for place, rollout in enumerate(rollouts) if rollout.outcome is Outcome.PRUNED]
        if not paused:
            return rollouts
        looks = await play.look([rollouts[place] for place in paused], frozenset({HIDDEN}))
        features = [
            _features(rollouts[place], each[HIDDEN.name][-1]) for place, each in zip(paused, looks, strict=True)
        ]
        scores = [self._score(each) for each in features]
        probabilities = np.array([self.probability(score) for score in scores])
        survivals = survival(probabilities, self.keep, self.right)
        continues = chosen(survivals, float(np.random.default_rng(starts[0].key).random()))

        async def ended(index: int) -> Rollout:
            place = paused[index]
            rollout = rollouts[place]
            if continues[index]:
                rollout = await play(replace(starts[place], turns=rollout.turns))
                self._looked[rollout.id] = features[index], scores[index]
            facts = {PREDICTED: float(probabilities[index]), SURVIVAL: float(survivals[index])}
            return replace(rollout, facts=rollout.facts | facts)

        for place, rollout in zip(paused, await together(map(ended, range(len(paused)))), strict=True):
            rollouts[place] = rollout
        return rollouts

    # ---- the head

    def probability(self, score: float) -> float:
        """Success rate of rollouts with such a score; the score itself counts as one rollout."""
        right, count = self._counts[_bucket(score)]
        return float((right + score) / (count + 1))

    def observe(self, group: Group) -> None:
        looked = [(t, *self._looked.pop(t.id)) for t in group.rollouts if t.id in self._looked]
        ended = [each for each in looked if each[0].is_scored]
        if ended:
            labels = [[success(t), score, 1 / t.facts[SURVIVAL]] for t, _, score in ended]
            self._batches = [*self._batches, (np.stack([each for _, each, _ in ended]), np.array(labels))][-_WINDOW:]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only (`observe` learns): the share of pruned rollouts and the accuracy of the predictions for the
        others.
        """
        judged = [t for group in groups for t in group.rollouts if PREDICTED in t.facts]
        ended = [(t.facts[PREDICTED], success(t)) for t in judged if t.is_scored]
        pairs = np.array(ended).reshape(-1, 2)  # [S, 2]: predicted, success
        means = [pairs[pairs[:, 1] >= 0.5, 0], pairs[pairs[:, 1] < 0.5, 0]]
        return {
            "pruned_share": sum(t.outcome is Outcome.PRUNED for t in judged) / max(len(judged), 1),
            "predicted_right": float(((pairs[:, 0] >= 0.5) == (pairs[:, 1] >= 0.5)).mean()) if ended else 0.0,
            "predicted_contrast": float(means[0].mean() - means[1].mean()) if all(map(len, means)) else 0.0,
        }

    def _score(self, features: Table) -> float:
        return 0.5 if self._fit is None else float(np.clip(self._fit(features), 0.0, 1.0))

    def _catch_up(self, version: int) -> None:
        """Fit the head to the groups seen before this version."""
        if version > self._version and self._batches:
            rows = sum(len(labels) for _, labels in self._batches)
            # strong ridge, as heavy as the data: features are many, and half of the rollouts never end
            self._fit = fitted([(features, labels[:, 0]) for features, labels in self._batches], ridge=float(rows))
            self._counts = _counted([labels for _, labels in self._batches])
        self._version = max(version, self._version)

    def save(self, folder: Path) -> None:
        write_batches(folder / _FILE, self._batches)

    def resume(self, folder: Path) -> None:
        self._batches, self._version = read_batches(folder / _FILE), -1


def survival(probabilities: Table, keep: float, right: float) -> Table:
    """Probability to continue, from the success probability of each: [N]; they sum to keep * N where none is capped.

    Where success probabilities are 0 or 1, a share `right` of the survivors succeeds; where all are equal, so are the
    probabilities to continue.
    """
    is_right, is_wrong = _in_proportion(probabilities), _in_proportion(1 - probabilities)
    return np.minimum(keep * (right * is_right + (1 - right) * is_wrong), 1.0)


def _in_proportion(probabilities: Table) -> Table:
    return probabilities / probabilities.mean() if probabilities.any() else np.ones_like(probabilities)


def chosen(probabilities: Table, uniform: float) -> list[bool]:
    """Systematic sampling: each with its own probability, and as many as the probabilities sum to, up to rounding."""
    ends = np.ceil(np.concatenate([[0.0], np.cumsum(probabilities)]) - uniform)
    return [bool(each) for each in np.diff(ends) > 0]


def _features(rollout: Rollout, state: NDArray[Any]) -> Table:
    """The hidden state and the log-probability of the rollout so far: [H + 1]."""
    logprob = sum(float(turn.logprobs.sum()) for turn in rollout.turns)
    return np.append(state.astype(np.float64), logprob)


def _counted(batches: Sequence[Table]) -> Table:
    """Successes and rollouts of each bucket, each weighted by the number it stands for: [B, 2]."""
    counts = np.zeros((_BUCKETS, 2))
    for right, score, weight in (row for labels in batches for row in labels):
        counts[_bucket(score)] += right * weight, weight
    return counts


def _bucket(score: float) -> int:
    return min(int(score * _BUCKETS), _BUCKETS - 1)


def arrol(
    setting: Setting = Setting(group_size=16),
    at: int = 16,  # tokens after which every rollout pauses
    keep: float = 0.5,  # share of the paused rollouts that continues
    right: float = 0.5,  # target share of successes among those that continue
) -> Run:
    """GRPO on the surviving rollouts of each group."""
    return setting.run(
        "arrol",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.04)),
        strategy=PrunedMidway(at, keep, right),
        reduction=SequenceMean(),
    )
