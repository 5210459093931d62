"""Optima's reward and selection: the card's numbers by hand, and a run in which the best talks are imitated."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.generate.agents.debate import Debate
from strop.generate.engines.scripted import Scripted
from strop.generate.strategies.independent import Independent
from strop.pipeline import train
from strop.recipes.agent.optima import Best, Readable, TokenShare, TopShare, TurnLosses, largest_loss
from strop.roles import Player, Reward, Strategy
from strop.training.requirements import PolicyStatistic
from strop.types import SUCCESS, Group, Message, Outcome, Rollout, Sampling, Start
from tests.building import TASK, advantages_of, make_group, turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


def test_the_longest_pays_the_price_and_shorter_ones_less() -> None:
    group = make_group([0.0] * 4, lengths=[50, 100, 75, 40])
    assert TokenShare()(group) == pytest.approx([-0.2, -0.4, -0.3, -1.0]), "40 tokens are no talk"
    assert TokenShare(0.5, 8)(group) == pytest.approx([-0.25, -0.5, -0.375, -0.2])


def test_siblings_that_failed_or_were_given_up_set_no_measure() -> None:
    group = make_group([0.0] * 4, lengths=[50, 60, 200, 300], failed=[2], pruned=[3])
    asyncio.run(Scorer([TokenShare(0.6)])(group))
    assert [rollout.reward for rollout in group.scored] == pytest.approx([-0.5, -0.6])


@dataclass(frozen=True)
class Doubtful(Reward):
    """Cannot say anything of long rollouts."""

    is_inline = True

    def __call__(self, group: Group) -> list[float]:
        return [math.nan if rollout.num_tokens > 100 else 0.0 for rollout in group.rollouts]


def test_one_that_a_later_reward_fails_sets_no_measure_either() -> None:
    group = make_group([0.0] * 3, lengths=[50, 60, 200])
    asyncio.run(Scorer([TokenShare(0.6), Doubtful()])(group))
    assert [rollout.reward for rollout in group.scored] == pytest.approx([-0.5, -0.6])
    assert TokenShare()(Group(0, TASK, [])) == []


@dataclass
class Looking(Player):
    """Says that every token has the log-probability -2; keeps whom it looked at."""

    looked: list[str] = field(default_factory=list)

    async def look(self, rollouts: Sequence[Rollout], needs: frozenset[Any]) -> list[dict[str, Any]]:
        self.looked += [rollout.id for rollout in rollouts]
        return [{"reference_logprobs": np.full(rollout.num_tokens, -2.0, np.float32)} for rollout in rollouts]


@dataclass(frozen=True)
class Given(Strategy):
    rollouts: list[Rollout]

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return self.rollouts


def test_only_what_counts_and_was_said_is_looked_at() -> None:
    group = make_group([0.0] * 4, lengths=[2, 0, 3, 3], failed=[2], pruned=[3])
    player = Looking()
    asyncio.run(TurnLosses(Given(group.rollouts))(group, [], player))
    assert player.looked == ["0-0"] and [rollout.facts for rollout in group.rollouts] == [
        {SUCCESS: 0.0, "turn_loss": 2.0},
        *[{SUCCESS: 0.0}] * 3,
    ]


def talk(*said: tuple[str, str], loss: float = 2.0, tokens: int = 50) -> Rollout:
    turns = [
        replace(turn(tokens), message=Message("assistant", text), sampling=Sampling(policy_name=policy_name))
        for policy_name, text in said
    ]
    return Rollout("a", TASK, tuple(turns), Outcome.FINISHED, facts={"turn_loss": loss})


def read(rollout: Rollout, plain: float = 1.0) -> float:
    return Readable(0.8, plain)(Group(0, TASK, [rollout]))[0]


def test_readable_talk_is_paid_by_the_inverse_of_its_worst_loss() -> None:
    assert read(talk(("a", "x"), loss=2.0)) == pytest.approx(0.4) and read(talk(("a", "x"), loss=1.6)) == 0.5
    assert read(talk(("a", "x"), loss=0.0)) == read(talk(("a", "x"), loss=1.0)) == 0.8, "no more than for plain text"
    assert read(talk(("a", "x"), loss=0.4), plain=0.1) == pytest.approx(0.2)


def test_what_is_not_readable_is_paid_nothing_or_less() -> None:
    assert read(talk(("a", "x"), ("a", "X "))) == 0.0, "a policy name that repeats itself"
    assert read(talk(("a", "x"), ("b", "x"))) == pytest.approx(0.4), "two policy names that agree"
    assert read(talk()) == -1.0 and read(talk(("a", "x"), tokens=2001)) == -1.0
    assert read(talk(("a", "x"), tokens=2000)) == read(talk(("a", "x"), tokens=1)) == pytest.approx(0.4)
    with pytest.raises(ConfigurationError, match="use the strategy TurnLosses"):
        read(replace(talk(("a", "x")), facts={}))
    with pytest.raises(ConfigurationError, match="> 0, got 0"):
        Readable(plain=0)


def test_the_worst_turn_counts() -> None:
    """Means 1, 4 and 2; a turn without tokens says nothing."""
    rollout = talk(("a", "x"), ("b", "y"), ("a", "z"), ("b", ""))
    sizes = (1, 2, 3, 0)
    rollout.turns = tuple(replace(turn(size)) for size in sizes)
    assert largest_loss(rollout, np.array([-1.0, -3.0, -5.0, -2.0, -2.0, -2.0], np.float32)) == 4.0


def test_the_best_is_kept_if_it_is_good_enough() -> None:
    kept = Best(0.6)(make_group([0.5, 0.9, 0.9, 2.0], failed=[3])).group
    assert kept is not None and [rollout.id for rollout in kept.rollouts] == ["0-1"]
    assert Best(0.6)(make_group([0.5, 0.59])).group is None and Best(0.6)(make_group([1.4 - 0.8])).group is not None


@pytest.mark.parametrize(
    ("share", "kept"),
    [
        (0.7, [1, 0, 1, 1, 0]),
        (0.4, [1, 0, 0, 1, 0]),
        (0.7 - 0.3, [1, 0, 0, 1, 0]),  # a little less than 0.4, by rounding
        (0.2, [0, 0, 0, 1, 0]),
        (0.1, [0, 0, 0, 1, 0]),
    ],
)
def test_the_best_share_of_a_draw_is_credited(share: float, kept: list[float]) -> None:
    """int(0.7 * 5) = 3 of 5 and 0.4 * 5 = 2, over uneven groups; of the equal ones the first."""
    groups = [make_group([0.8, 0.5, 9.0], pruned=[2]), make_group([0.7], number=1), make_group([0.9, 0.7], number=2)]
    TopShare(share)(groups)
    found = [advantage for group in groups for advantage in advantages_of(group) if advantage is not None]
    assert found == kept


def test_a_share_of_nothing_is_refused() -> None:
    TopShare()([])
    with pytest.raises(ConfigurationError, match="above 0 and up to 1, got 0"):
        TopShare(0.0)
    with pytest.raises(ConfigurationError, match="above 0 and up to 1, got 1"):
        TopShare(1.5)


def test_in_a_run_the_best_talk_of_each_task_is_imitated(tmp_path: Path) -> None:
    """The solver answers by its key, the examiner always 7: they agree, or go on for one round."""
    engine = Scripted(lambda prompt, key: "7" if "hint" in prompt.split("user")[-1] else str(5 + key % 4))
    rewards = (Earned(weight=0.0), TokenShare(0.4, 1), Readable(0.8, 0.1))
    parts = {"agent": Debate(1), "strategy": TurnLosses(Independent()), "rewards": rewards, "gates": (Best(-9.0),)}
    run = make_run(steps=2, engine=engine, **parts)
    run.advantage = TopShare(0.5)
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        losses = []
        looked = flow._take_statistics

        async def noted(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
            await looked(groups, needs)
            losses.extend((rollout.id, rollout) for rollout in groups[0].rollouts)

        flow._take_statistics = noted  # type: ignore[method-assign]
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
        counts = flow.ledger.counts()
    assert counts == {"gated": 16, "trained": 8} and [len(group.rollouts) for group in groups] == [1] * 8
    found = dict(losses)
    for rollout in (group.rollouts[0] for group in groups):
        logprobs, at, means = found[rollout.id].policy_statistics["reference_logprobs"], 0, []
        for each in rollout.turns:
            means.append(-sum(map(float, logprobs[at : at + len(each.tokens)])) / len(each.tokens))
            at += len(each.tokens)
        assert rollout.facts["turn_loss"] == pytest.approx(max(means), rel=1e-5)
        assert {each.sampling.policy_name for each in rollout.turns} == {"solver", "examiner"}
        assert rollout.rewards["readable"] == pytest.approx(0.8 / max(max(means) / 0.1, 1), rel=1e-5)
    assert recorder.rows[-1]["fact/turn_loss"] > 0 and recorder.rows[-1]["reward/token_share"] < 0
