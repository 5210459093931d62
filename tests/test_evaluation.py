"""What is said of held-out rollouts: maj@k by enumeration, paired intervals by their coverage, plans by their power."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.evaluation import Score, heldout_metrics, pass_at_k
from strop.stats.intervals import over_tasks
from strop.stats.maj_at_k import majority_at_k
from strop.stats.sample_size import TaskSpread, spread_of


def by_enumeration(votes: list[tuple[int, int]], silent: int, k: int) -> float:
    """Every choice of k rollouts; equally frequent answers are right as often as one drawn among them."""
    rollouts: list[int | None] = [None] * silent
    rollouts += [answer for answer, (times, _) in enumerate(votes) for _ in range(times)]
    chosen = list(itertools.combinations(rollouts, k))
    won = 0.0
    for draw in chosen:
        counts = Counter(answer for answer in draw if answer is not None)
        top = [answer for answer, count in counts.items() if count == max(counts.values())]
        won += sum(votes[answer][1] / votes[answer][0] for answer in top) / len(top) if top else 0.0
    return won / len(chosen)


@pytest.mark.parametrize("votes", [[(3, 3), (2, 0), (2, 0)], [(1, 1), (1, 0), (4, 0)], [(5, 5)], [(2, 1), (3, 0)], []])
@pytest.mark.parametrize("silent", [0, 2])
def test_majority_is_what_all_choices_give(votes: list[tuple[int, int]], silent: int) -> None:
    count = silent + sum(times for times, _ in votes)
    for k in range(1, count + 1):
        assert majority_at_k(votes, silent, k) == pytest.approx(by_enumeration(votes, silent, k))


def test_one_vote_is_the_mean_and_all_votes_are_the_majority() -> None:
    votes = [(3, 3), (2, 0), (2, 0)]
    assert majority_at_k(votes, 1, 1) == pytest.approx(3 / 8) and pass_at_k(8, 3, 1) == pytest.approx(3 / 8)
    assert majority_at_k(votes, 1, 8) == 1.0
    assert majority_at_k([(2, 2), (2, 0)], 0, 4) == 0.5, "two against two"
    assert majority_at_k([(20, 20), (44, 0)], 0, 64) == 0.0, "64 rollouts"


def test_a_score_says_all_of_it() -> None:
    """Two tasks of 4 rollouts: answers 2 right against 2 others that differ; 1 right against 3 alike."""
    votes = (((2, 2), (1, 0), (1, 0)), ((1, 1), (3, 0)))
    score = Score("env", 1, 4, (2, 1), (4, 4), truncated=2, votes=votes, reward=0.375)
    assert score.pass_at(1)[0] == pytest.approx(3 / 8) and score.majority_at(4)[0] == 0.5
    assert score.truncated_share == 0.25 and score.shares == [0.5, 0.25]
    low, high = score.majority_at(4)[1:]
    assert 0 < low < 0.5 < high < 1
    found = heldout_metrics([score])
    assert found["heldout_truncated"] == 0.25 and "heldout_reward" not in found, "which is the accuracy"
    graded = heldout_metrics([Score("env", 1, 1, (0, 1), (1, 1), reward=0.7)])
    assert graded["heldout_reward"] == pytest.approx(0.7) and graded["heldout"] == 0.5


def test_paired_differences_by_hand() -> None:
    """Of 18 tasks 6 are won and 2 lost: with one more of each 7/20 - 3/20 = 0.2, variance (7 + 3)/20 - 0.2^2."""
    left, right = [1.0] * 6 + [0.0] * 2 + [1.0] * 10, [0.0] * 6 + [1.0] * 2 + [1.0] * 10
    found = over_tasks(left, right)
    assert found.mean == pytest.approx(4 / 18)
    half = 1.959964 * math.sqrt((10 / 20 - (4 / 20) ** 2) / 20)
    assert (found.low, found.high) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    same = over_tasks([1.0] * 50, [1.0] * 50)
    assert same.mean == 0 and same.low == pytest.approx(-1.959964 * math.sqrt(2 / 52 / 52)) == -same.high


@pytest.mark.parametrize(("won", "lost"), [(0.1, 0.1), (0.3, 0.1), (0.05, 0.0), (0.5, 0.3), (0.0, 0.0)])
def test_the_interval_holds_the_truth_as_often_as_it_says(won: float, lost: float) -> None:
    """All outcomes of 20 tasks, with their probabilities: coverage is at least 93%."""
    size, covered = 20, 0.0
    for wins in range(size + 1):
        for losses in range(size - wins + 1):
            ways = math.comb(size, wins) * math.comb(size - wins, losses)
            probability = ways * won**wins * lost**losses * (1 - won - lost) ** (size - wins - losses)
            found = over_tasks(
                [1.0] * wins + [0.0] * (size - wins), [0.0] * wins + [1.0] * losses + [0.0] * (size - wins - losses)
            )
            covered += probability * (found.low <= won - lost <= found.high)
    assert covered >= 0.93


def test_noise_is_told_from_difficulty() -> None:
    """Probabilities 0.2 and 0.8 by halves: within 0.16, between 0.09; the estimates are unbiased."""
    stream = np.random.default_rng(0)
    probabilities = np.where(stream.random(4000) < 0.5, 0.2, 0.8)
    found = spread_of(stream.binomial(4, probabilities).tolist(), [4] * 4000)
    assert found.within == pytest.approx(0.16, abs=0.005) and found.between == pytest.approx(0.09, abs=0.005)
    by_hand = spread_of([1, 2], [2, 2])  # within 1 * 1 / 2 and 0; shares 1/2 and 1: 1/8 less (1/2 / 2 + 0) / 2
    assert (by_hand.within, by_hand.between) == (0.25, 0.0)
    with pytest.raises(ConfigurationError, match="2 rollouts each"):
        spread_of([1, 0, 1], [1, 1, 1])


def test_a_plan_by_hand() -> None:
    """2.801585^2 = 7.84888; 10 points: 0.09 + 2 * 0.16 / 4 = 0.17, so 133.4 tasks; apart 2 * 0.09 + 0.08 = 0.26."""
    spread = TaskSpread(0.16, 0.09)
    assert spread.tasks(0.1, 4) == 134 and spread.tasks(0.1, 4, "different") == 205
    assert spread.tasks(0.1, 1) == 322 and spread.tasks(0.1, 4, "even") == 63, "0.08 * 784.888 = 62.8"
    for tasks, rollouts in ((64, 1), (134, 4), (500, 8)):
        gain = spread.gain(tasks, rollouts)
        assert spread.tasks(gain, rollouts) == tasks


def test_a_plan_has_the_power_it_says() -> None:
    """A tenth of the tasks go from never to always, as uneven as can be: 80% of the trials show it."""
    stream, spread, rollouts, gain = np.random.default_rng(1), TaskSpread(0.16, 0.09), 4, 0.1
    tasks, trials = spread.tasks(gain, rollouts), 1500
    probabilities = np.where(stream.random((trials, tasks)) < 0.5, 0.2, 0.8)
    before, after = (stream.binomial(rollouts, probabilities) / rollouts for _ in range(2))
    turned = stream.random((trials, tasks)) < gain
    before, after = np.where(turned, 0.0, before), np.where(turned, 1.0, after)
    shown = sum(over_tasks(b.tolist(), a.tolist()).high < 0 for a, b in zip(after, before, strict=True))
    assert 0.76 < shown / trials < 0.86
