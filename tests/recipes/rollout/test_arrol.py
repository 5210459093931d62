"""ARRoL: survivors by hand and by enumeration, what the head learns, and pruned rollouts in a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.scripted import Scripted
from strop.generate.strategies.independent import Independent
from strop.launch.checks.preflight import check
from strop.pipeline import train
from strop.recipes.rollout.arrol import PREDICTED, PrunedMidway, chosen, survival
from strop.roles import Agent, Player, Reward
from strop.success import SURVIVAL, successes
from strop.training.requirements import HIDDEN, PolicyStatistic
from strop.types import SUCCESS, ZERO_TO_ONE, Group, Outcome, Rollout, ScoreRange, Start, Task
from tests.building import TASK, make_group, turn
from tests.clock import run_virtually
from tests.parts import EvenOrOdd
from tests.test_pipeline import make_run, opened

GRID = [
    (step + 0.5) / 240 for step in range(240)
]  # probabilities below are multiples of 1/240, so that shares are exact


# ---- survival


def test_a_perfect_head_keeps_as_many_right_rollouts_as_wrong_ones() -> None:
    """4 of 16 right, a half kept: every right one and a third of the others, 4 and 4 whatever the random numbers."""
    right = [index in (1, 6, 7, 12) for index in range(16)]
    found = survival(np.array(right, dtype=np.float64), 0.5, 0.5)
    assert found == pytest.approx([1.0 if each else 1 / 3 for each in right])
    for uniform in GRID:
        kept = [each for each, goes_on in zip(right, chosen(found, uniform), strict=True) if goes_on]
        assert (len(kept), sum(kept)) == (8, 4)


def test_a_constant_head_prunes_at_random() -> None:
    for probability in (0.0, 0.3, 1.0):
        assert survival(np.full(6, probability), 0.4, 0.5) == pytest.approx([0.4] * 6)


def test_survival_by_hand() -> None:
    """Probabilities .1 .1 .1 .5 have the mean .2: .5 (.5 * .1 / .2 + .5 * .9 / .8) and .5 (.5 * .5 / .2 + .5 * .5 /
    .8).
    """
    found = survival(np.array([0.1, 0.1, 0.1, 0.5]), 0.5, 0.5)
    assert found == pytest.approx([0.40625] * 3 + [0.78125]) and found.sum() == pytest.approx(2.0)
    # three right ones wanted of four: .5 (.75 * .5 + .25 * 1.125) and .5 (.75 * 2.5 + .25 * .625), cut at 1
    assert survival(np.array([0.1, 0.1, 0.1, 0.5]), 0.5, 0.75) == pytest.approx([0.328125] * 3 + [1.0])


def test_no_rollout_has_probability_0() -> None:
    generator = np.random.default_rng(0)
    for keep, right in ((0.5, 0.5), (0.25, 0.2), (0.9, 0.7)):
        for _ in range(200):
            probabilities = generator.random(8) ** generator.integers(1, 6)
            assert survival(probabilities, keep, right).min() >= keep * min(right, 1 - right) - 1e-12


def test_each_is_chosen_with_its_own_probability() -> None:
    """Over all random numbers; and always as many as the probabilities add up to."""
    for numerators in ([60, 120, 180, 120], [240, 80, 80, 80, 1, 239], [7, 11, 13]):
        probabilities = np.array(numerators) / 240
        taken = [chosen(probabilities, uniform) for uniform in GRID]
        for index, numerator in enumerate(numerators):
            assert sum(each[index] for each in taken) == numerator
        assert {sum(each) for each in taken} <= {sum(numerators) // 240, -(-sum(numerators) // 240)}


def test_weighted_survivors_count_as_all_rollouts() -> None:
    """Over all random numbers, successes and counts are as if nothing had been pruned."""
    rewards = [1.0, 0.0, 0.0, 1.0, 0.5]
    probabilities = np.array([60, 120, 180, 120, 30]) / 240
    totals = np.zeros(2)
    for uniform in GRID:
        taken = chosen(probabilities, uniform)
        group = make_group([*rewards, 1.0], pruned=[index for index, each in enumerate(taken) if not each])
        for rollout, probability in zip(group.rollouts, probabilities, strict=False):
            rollout.facts[SURVIVAL] = float(probability)  # the last one ended before the pause
        totals += successes(group)
    assert totals / len(GRID) == pytest.approx([3.5, 6.0])


# ---- the strategy with canned rollouts


@dataclass
class Canned(Player):
    """Rollouts of given lengths; those longer than the pause stop there. The hidden state is the rollout's sign."""

    lengths: Sequence[int]
    signs: Sequence[float]
    failing: Sequence[int] = ()
    logprobs: Sequence[float] = ()  # of each token of a rollout; -1 where not given
    started: list[Start] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        self.started.append(start)
        index = int(start.id.split("/")[1])
        before = sum(len(each.tokens) for each in start.turns)
        is_paused = bool(start.pause) and before + start.pause < self.lengths[index]
        outcome = Outcome.PRUNED if is_paused else Outcome.FAILED if index in self.failing else Outcome.FINISHED
        written = before + start.pause if is_paused else self.lengths[index]
        logprob = np.float32(self.logprobs[index] if self.logprobs else -1.0)
        return Rollout(start.id, TASK, (replace(turn(written), logprobs=np.full(written, logprob)),), outcome)

    def another(self, **changes: Any) -> Start:
        raise AssertionError("this strategy plays the starts it is given")

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        raise AssertionError("nothing is scored midway")

    async def look(self, rollouts: Sequence[Rollout], needs: frozenset[PolicyStatistic]) -> list[dict[str, Any]]:
        assert needs == {HIDDEN} and all(t.outcome is Outcome.PRUNED for t in rollouts)
        self.looked += [t.id for t in rollouts]
        signs = [self.signs[int(t.id.split("/")[1])] for t in rollouts]
        return [{"hidden": np.array([[9.0, 9.0], [8.0, 8.0], [sign, -sign]], dtype=np.float32)} for sign in signs]


def played(strategy: PrunedMidway, player: Canned, number: int = 0, version: int = 0) -> Group:
    group = Group(number, TASK, [], version)
    starts = [Start(f"{number}/{index}", 7 + 100 * number + index) for index in range(len(player.lengths))]
    group.rollouts, _ = run_virtually(strategy(group, starts, player))
    assert [t.id for t in group.rollouts] == [start.id for start in starts], "in order"
    return group


def rewarded(group: Group, rewards: Sequence[float]) -> Group:
    for rollout, reward in zip(group.rollouts, rewards, strict=True):
        rollout.reward = reward if rollout.is_scored else 0.0
        rollout.facts[SUCCESS] = rollout.reward
    return group


def test_half_of_the_paused_ones_go_on_where_they_were() -> None:
    player = Canned(lengths=[3, 9, 9, 4, 9, 9, 2], signs=[0.0] * 7, failing=[6])
    group = played(PrunedMidway(at=4), player)
    outcomes = [t.outcome for t in group.rollouts]
    assert outcomes[0] is outcomes[3] is Outcome.FINISHED and outcomes[6] is Outcome.FAILED
    assert player.looked == ["0/1", "0/2", "0/4", "0/5"], "who ended before the pause is let be"
    assert [outcomes[index] for index in (1, 2, 4, 5)].count(Outcome.PRUNED) == 2
    assert [start.pause for start in player.started[:7]] == [4] * 7
    for start in player.started[7:]:
        first = next(each for each in player.started if each.id == start.id)
        assert start.key == first.key and start.pause == 0 and sum(len(t.tokens) for t in start.turns) == 4
    for index, rollout in enumerate(group.rollouts):
        expected = {PREDICTED: 0.5, SURVIVAL: 0.5} if index in (1, 2, 4, 5) else {}
        assert rollout.facts == expected, "of those given up, too"
        assert rollout.num_tokens == (4 if rollout.outcome is Outcome.PRUNED else player.lengths[index])


def test_rollouts_that_end_before_the_pause_are_unchanged() -> None:
    player = Canned(lengths=[3, 4], signs=[0.0, 0.0])
    group = played(PrunedMidway(at=4), player)
    assert not player.looked and len(player.started) == 2 and all(not t.facts for t in group.rollouts)


SIGNS = [1.0, -1.0, -1.0, 1.0, -1.0, -1.0, -1.0, -1.0]  # of right rollouts 1


def taught(strategy: PrunedMidway, groups: int = 6) -> None:
    for number in range(groups):
        group = played(strategy, Canned([9] * 8, SIGNS), number)
        strategy.observe(rewarded(group, [max(sign, 0.0) for sign in SIGNS]))


def test_it_learns_from_hidden_states_and_balances() -> None:
    """2 of 8 right: once the head knows, both and two others go on."""
    strategy = PrunedMidway(at=4)
    taught(strategy)
    found: list[tuple[float, int, int]] = []
    for number in range(6, 20):
        group = played(strategy, Canned([9] * 8, SIGNS), number, version=number)
        kept = [sign for sign, rollout in zip(SIGNS, group.rollouts, strict=True) if rollout.is_scored]
        by_state = {sign: t.facts[PREDICTED] for sign, t in zip(SIGNS, group.rollouts, strict=True)}
        found.append((by_state[1.0] - by_state[-1.0], len(kept), kept.count(1.0)))
        strategy.observe(rewarded(group, [max(sign, 0.0) for sign in SIGNS]))
    assert 0.4 < found[0][0] < 0.9 < found[-1][0], "a score that says too little is corrected by counts"
    assert {each[1:] for each in found[-4:]} <= {(4, 2), (3, 2)}


def test_it_learns_from_log_probabilities() -> None:
    strategy, logprobs = PrunedMidway(at=4), [sign - 2 for sign in SIGNS]
    for number in range(4):
        group = played(strategy, Canned([9] * 8, [0.0] * 8, logprobs=logprobs), number)
        strategy.observe(rewarded(group, [max(sign, 0.0) for sign in SIGNS]))
    group = played(strategy, Canned([9] * 8, [0.0] * 8, logprobs=logprobs), 4, version=1)
    assert group.rollouts[0].facts[PREDICTED] > 0.3 + group.rollouts[1].facts[PREDICTED]


def test_it_forgets_the_oldest_groups() -> None:
    strategy = PrunedMidway(at=4)
    taught(strategy, groups=2)
    latest = strategy._batches[1]
    for _ in range(63):
        strategy._looked = {(group := make_group([1.0])).rollouts[0].id: (np.zeros(3), 0.5)}
        group.rollouts[0].facts[SURVIVAL] = 1.0
        strategy.observe(group)
    assert len(strategy._batches) == 64 and strategy._batches[0] is latest


def test_what_is_learned_serves_later_versions_only() -> None:
    """All groups of a version see the same head, whatever the order of scoring."""
    strategy = PrunedMidway(at=4)
    taught(strategy, groups=3)
    again = played(strategy, Canned([9] * 8, SIGNS), 3, version=0)
    assert {t.facts[PREDICTED] for t in again.rollouts} == {0.5}
    assert len({t.facts[PREDICTED] for t in played(strategy, Canned([9] * 8, SIGNS), 4, version=1).rollouts}) == 2


def test_a_score_becomes_how_often_such_were_right() -> None:
    """Two survivors with score .5: one right that stands for 4 and one wrong that stands for 2."""
    strategy, group = PrunedMidway(at=4), make_group([1.0, 0.0, 1.0, 1.0], failed=[3])
    for rollout, probability in zip(group.rollouts, (0.25, 0.5, 1.0, 1.0), strict=True):
        rollout.facts[SURVIVAL] = probability
        strategy._looked[rollout.id] = np.zeros(3), 0.57
    strategy._looked[group.rollouts[2].id] = np.ones(3), 0.93
    strategy.observe(group)
    assert not strategy._looked and strategy.probability(0.55) == 0.55, "its own word, before anything was seen"
    strategy._catch_up(1)
    assert strategy.probability(0.55) == pytest.approx((4 + 0.55) / (6 + 1))
    assert strategy.probability(0.99) == pytest.approx((1 + 0.99) / 2) and strategy.probability(1.0) == 1.0
    assert strategy.probability(0.3) == 0.3


def test_state_is_restored(tmp_path: Path) -> None:
    strategy, again = PrunedMidway(at=4), PrunedMidway(at=4)
    again.resume(saved(PrunedMidway(at=4), tmp_path / "nothing"))
    taught(strategy)
    again.resume(saved(strategy, tmp_path / "something"))
    groups = [played(each, Canned([9] * 8, SIGNS), 9, version=1) for each in (strategy, again)]
    assert [t.facts for t in groups[0].rollouts] == [t.facts for t in groups[1].rollouts]
    assert groups[0].rollouts[0].facts[PREDICTED] != 0.5


def saved(strategy: PrunedMidway, folder: Path) -> Path:
    folder.mkdir()
    strategy.save(folder)
    return folder


def test_scores_are_counted_by_tenths() -> None:
    """Of each tenth one rollout was seen, right in every second: buckets are separate."""
    strategy, group = PrunedMidway(at=4), make_group([float(tenth % 2) for tenth in range(10)])
    for tenth, rollout in enumerate(group.rollouts):
        rollout.facts[SURVIVAL] = 1.0
        strategy._looked[rollout.id] = np.zeros(3), tenth / 10 + 0.05
    strategy.observe(group)
    strategy._catch_up(1)
    for tenth in range(10):
        for score in (tenth / 10 + 0.01, tenth / 10 + 0.09):
            assert strategy.probability(score) == pytest.approx((tenth % 2 + score) / 2)
    assert strategy.probability(1.0) == 1.0, "the last tenth holds its end"


def test_metrics_of_the_predictions() -> None:
    """From one half on a rollout is predicted to be right, and is: 4 of 5 here, and 3 of 8 were pruned."""
    group = make_group([0.5, 0.0, 0.49, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0], pruned=[5, 6, 7])
    for rollout, probability in zip(group.rollouts[:8], (0.5, 0.49, 0.3, 0.9, 0.2, 0.5, 0.5, 0.5), strict=True):
        rollout.facts[PREDICTED] = probability
    by_state = PrunedMidway().learn([group])
    assert by_state["pruned_share"] == pytest.approx(3 / 8) and by_state["predicted_right"] == pytest.approx(4 / 5)
    assert by_state["predicted_contrast"] == pytest.approx((0.5 + 0.9 + 0.2) / 3 - (0.49 + 0.3) / 2)
    alone = PrunedMidway().learn([predicted_group(0.7, 1.0)])
    assert alone == {"pruned_share": 0.0, "predicted_right": 1.0, "predicted_contrast": 0.0}, (
        "no wrong one, no contrast"
    )
    assert PrunedMidway().learn([predicted_group(0.7, 0.0)])["predicted_contrast"] == 0.0


def predicted_group(probability: float, reward: float) -> Group:
    group = make_group([reward])
    group.rollouts[0].facts[PREDICTED] = probability
    return group


def test_metrics_of_pruning() -> None:
    group = make_group([1.0, 0.0, 0.0, 1.0, 1.0], pruned=[2], failed=[3])
    for rollout, probability in zip(group.rollouts[:4], (0.7, 0.6, 0.9, 0.1), strict=True):
        rollout.facts[PREDICTED] = probability
    by_state = PrunedMidway().learn([group])
    assert by_state == {"pruned_share": 0.25, "predicted_right": 0.5, "predicted_contrast": pytest.approx(0.1)}
    assert PrunedMidway().learn([]) == {"pruned_share": 0.0, "predicted_right": 0.0, "predicted_contrast": 0.0}


def test_refuses_invalid_settings() -> None:
    for wrong in ({"at": 0}, {"keep": 0.0}, {"keep": 1.001}, {"right": 0.0}, {"right": 1.0}):
        with pytest.raises(ConfigurationError, match="PrunedMidway needs"):
            PrunedMidway(**wrong)  # type: ignore[arg-type]
    assert PrunedMidway(at=1, keep=1.0, right=0.999).at == PrunedMidway(at=1, keep=0.001, right=0.001).at
    run = make_run(strategy=PrunedMidway(at=16))
    run.sampling = replace(run.sampling, max_tokens=16)
    with pytest.raises(ConfigurationError, match="nothing is pruned at 16 tokens: completions have at most 16"):
        check(run)


# ---- in a run


def digits(prompt: str, key: int) -> str:
    """Six digits after the prefix: the first says whether it is right."""
    return f"{key % 2}23456"[len(prompt) - len(prompt.rstrip("0123456")) :]


@dataclass(frozen=True)
class FirstDigit(Reward):
    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    is_inline = True

    def __call__(self, group: Group) -> list[float]:
        assert all(len(t.completion) == 6 for t in group.rollouts), "scored rollouts are played to their end"
        return [float(t.completion[0]) for t in group.rollouts]


@pytest.mark.parametrize("lag", [0, 2])
def test_in_a_run_half_are_pruned_and_all_tokens_count(model: Path, tmp_path: Path, lag: int) -> None:
    engine = Scripted(digits, seconds_per_token=1.0)
    run = make_run(
        steps=3, strategy=PrunedMidway(at=4), rewards=(FirstDigit(),), admission=BoundedLag(lag), engine=engine
    )  # groups of 3
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == [] and flow.ledger.trained_more_than_once() == 0
        trained = [group for step in (1, 2, 3) for group in flow.ledger.trained_groups(step)]
        rows = flow.ledger._rows("SELECT number, outcome, fate, tokens, facts FROM rollouts")
    done = {group.number for group in trained}
    ours = [row for row in rows if row[0] in done]
    assert {len(group.rollouts) for group in trained} <= {1, 2} and len(ours) == 3 * len(trained)
    assert all((tokens == 4) == (outcome == "pruned") == (fate == "gated") for _, outcome, fate, tokens, _ in ours)
    assert all(SURVIVAL in facts for *_, facts in ours)
    assert [row["pruned_share"] for row in recorder.rows] == pytest.approx(
        [_pruned(rows, {group.number for group in trained[4 * step : 4 * step + 4]}) for step in range(3)]
    )
    if lag == 0:
        assert recorder.rows[-1]["tokens_generated"] == sum(row[3] for row in rows)


def _pruned(rows: Sequence[tuple[Any, ...]], numbers: set[int]) -> float:
    ends = [outcome for number, outcome, *_ in rows if number in numbers]
    return ends.count("pruned") / len(ends)


def test_a_pause_does_not_change_the_completion(model: Path, tmp_path: Path) -> None:
    """With the real engine, and all kept: token for token as without a pause."""
    written = []
    for strategy in (Independent(), PrunedMidway(at=4, keep=1.0)):
        run = make_run(steps=2, strategy=strategy, rewards=(EvenOrOdd(),), engine=TorchEngine())
        with opened(run, model, tmp_path / f"{type(strategy).__name__}.db") as (flow, _):
            asyncio.run(train(flow))
            written.append([t.turns[0].tokens.tolist() for g in flow.ledger.trained_groups(1) for t in g.rollouts])
    assert written[0] == written[1] and max(map(len, written[0])) > 4
