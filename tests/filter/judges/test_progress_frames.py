"""GVL by hand: frames out of order, what is read from an answer, rank correlation, who is kept and how turns count."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import exp

import numpy as np
import pytest

from strop.errors import ConfigurationError, UnreadVerdictError
from strop.filter.judges.progress_frames import (
    ORDER,
    PROGRESS,
    frames,
    order_correlation,
    question,
    shown_in,
)
from strop.filter.judges.readers import PerItem
from strop.recipes.value.gvl import InContextProgress, Ordered, ProgressWeighted
from strop.roles import LLMClient
from strop.standins.judges.progress import guessing
from strop.types import Group, Message, Rollout, Sampling
from tests.building import make_group, turn


def game(said: Sequence[str], answers: Sequence[str], number: int = 0) -> Rollout:
    """A rollout with a completion per turn, and what the environment said before all but the first."""
    (rollout,) = make_group([0.0], number=number).rollouts
    told = [(), *((Message("user", each),) for each in answers)]
    rollout.turns = tuple(
        replace(turn(2), message=Message("assistant", each), told=heard) for each, heard in zip(said, told, strict=True)
    )
    return rollout


def test_frames_are_what_was_said_and_answered_on_one_line() -> None:
    assert frames(game(["10", "x\n1: 99"], ["higher\nand"])) == ["10 -> higher and", "x 1: 99 ->"]
    assert frames(make_group([0.0], [0]).rollouts[0]) == ["2 ->"]
    shown = ["b -> ", "2: forged"]
    assert shown_in(question("guess", "a", shown)) == ["b -> ", "2: forged"]


def test_answers_are_read_whole_or_not_at_all() -> None:
    assert PerItem(3).read("1: 40\n 2) 7.5 %\n3. 250") == [0.4, 0.075, 1.0]
    for broken in ("1: 40", "1: 40\n1: 50", "1: 40\n2: x", "1: 40\n2: 50\n3: 1", ""):
        assert PerItem(2).read(broken) is None, broken


def test_rank_correlation_by_hand_and_over_all_orders() -> None:
    assert order_correlation([0.1, 0.2, 5.0]) == pytest.approx(1) and order_correlation([3, 2, 1]) == pytest.approx(-1)
    # ranks 0, 2, 1, 3: sum of squared differences 2, so 1 - 6 * 2 / (4 * 15)
    assert order_correlation([0.0, 0.5, 0.4, 0.9]) == pytest.approx(0.8)
    # ranks 0, 1.5, 1.5: covariance 1.5, variances 1.5 and 2
    assert order_correlation([0.0, 0.5, 0.5]) == pytest.approx(1.5 / math.sqrt(1.5 * 2))
    assert order_correlation([0.3, 0.3]) is None and order_correlation([0.3]) is None
    every = [order_correlation(order) for order in permutations([0.1, 0.2, 0.4, 0.8])]
    assert np.mean([each for each in every if each is not None]) == pytest.approx(0) and len(every) == 24


@dataclass
class Counting(LLMClient):
    """Says that a step is as far as the number in it; notes the order in which it was shown steps."""

    seen: list[list[str]] = field(default_factory=list)
    answer: str = ""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        shown = shown_in(messages[-1].content)
        self.seen.append(shown)
        numbers = [re.findall(r"\d+", frame)[0] for frame in shown]
        return self.answer or "\n".join(f"{place}: {number}" for place, number in enumerate(numbers, start=1))


def scores(llm_client: LLMClient, *rollouts: Rollout) -> list[float]:
    return asyncio.run(InContextProgress(llm_client)(Group(0, rollouts[0].task, list(rollouts))))


def test_steps_are_shown_out_of_order_and_put_back() -> None:
    llm_client = Counting()
    steps = [str(10 * number) for number in range(1, 8)]
    rising, other = game(steps, ["no"] * 6), game(["10", "70", "20"], ["no"] * 2, number=1)
    assert scores(llm_client, rising, other) == pytest.approx([1.0, 0.5])
    assert [rising.facts[f"{PROGRESS}{turn}"] for turn in range(7)] == pytest.approx([0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    assert rising.facts[ORDER] == pytest.approx(1.0) and other.facts[f"{PROGRESS}2"] == pytest.approx(0.2)
    assert sorted(llm_client.seen[0]) != llm_client.seen[0], "shuffled"
    assert len(llm_client.seen[0]) == 6, "the first step is the anchor"


def test_what_cannot_be_ordered_has_no_score_and_one_step_nothing_to_order() -> None:
    assert np.isnan(scores(Counting(answer="1: 0"), game(["1", "2"], ["no"]))[0]), "all equally far"
    with pytest.raises(UnreadVerdictError):
        scores(Counting(answer="none"), game(["1", "2"], ["no"]))
    lone = game(["1"], [])
    before = dict(lone.facts)
    assert scores(Counting(), lone) == [0.0] and lone.facts == before


def test_the_rule_for_guessing_games_reads_all_answers() -> None:
    text = question("guess 1..17 in 5", "9 -> higher", ["13 ->", "11 -> higher", "what -> say a number"])
    # 12..17 is left, whose middle is 14.5; the range is 16
    assert guessing(text).splitlines() == ["1: 90.6", "2: 78.1", "3: 0.0"]


def test_only_rollouts_that_made_progress_are_kept() -> None:
    group = make_group([0.0] * 4, failed=[3])
    for rollout, order in zip(group.rollouts, (0.5, 0.49, None, 1.0), strict=True):
        rollout.facts = {} if order is None else {ORDER: order}
    kept = Ordered(0.5)(group).group
    assert kept is not None and [rollout.id for rollout in kept.rollouts] == ["0-0"]
    assert Ordered(0.6)(group).group is None
    with pytest.raises(ConfigurationError, match="got 2"):
        Ordered(2.0)


def test_turns_count_by_their_progress() -> None:
    rollout = game(["a", "b", "c"], ["no"] * 2)
    rollout.facts = {f"{PROGRESS}0": 0.0, f"{PROGRESS}1": 0.5, f"{PROGRESS}2": 0.25}
    group = Group(0, rollout.task, [rollout, game(["a"], [], 1)])
    ProgressWeighted(2.0)([group])
    wanted = [1.0, 1.0, exp(1.0), exp(1.0), exp(-0.5), exp(-0.5)]
    assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(wanted)
    assert group.rollouts[1].advantages is not None and group.rollouts[1].advantages.tolist() == [1.0, 1.0]
    spread = float(np.std([1.0, exp(1.0), exp(-0.5), 1.0]))
    assert ProgressWeighted(2.0).learn([group]) == {"progress_weight_spread": pytest.approx(spread)}
    assert ProgressWeighted(0.0).weights(rollout) == [1.0] * 3, "plain imitation"
    with pytest.raises(ConfigurationError, match="got -1"):
        ProgressWeighted(-1.0)
