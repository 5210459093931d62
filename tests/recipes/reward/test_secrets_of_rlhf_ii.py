"""Which labels several reward models take for wrong, and how sure they are."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.judging.preferences import Preferences
from strop.errors import ConfigurationError
from strop.generate.reward_model import RewardModel
from strop.generate.strategies.verdict_data import RecitedVerdicts
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.reward.secrets_of_rlhf_ii import EnsembleVotes
from strop.roles import Player, Strategy
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import Group, Message, Rollout, Start
from tests.building import make_group
from tests.tiny_models import save_pocket_like

ENV = Preferences(Arithmetic(2), noise=0.25)


class Knowing(RewardModel):
    """Says how right a completion is, `scale` times, with a bias of its own."""

    scale = 2.0
    bias = 0.0

    def scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        return [self.scale * _is_right(messages[0].content, completion) + self.bias for messages, completion in asked]


class Uneven(Knowing):
    """The surer, the larger the first number."""

    def scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        told = zip(super().scores(asked), asked, strict=True)
        return [score * (1 + int(messages[0].content[0])) for score, (messages, _) in told]


class Loud(Knowing):
    scale, bias = 4.0, 7.0


def _is_right(question: str, completion: str) -> bool:
    return sum(int(each) for each in question.removesuffix("=?").split("+")) == int(
        completion.rpartition("</think>")[2]
    )


def test_strength_is_the_mean_difference_of_all_judges() -> None:
    voted = EnsembleVotes(RecitedVerdicts(), (Knowing(""), Loud("")), (ENV,))
    tasks = [ENV.task(index) for index in range(40)]
    for task, strength in zip(tasks, voted.strengths(tasks), strict=True):
        assert strength == (-3.0 if '"flipped": true' in task.answer else 3.0)


def test_the_lowest_are_wrong() -> None:
    voted: Any = EnsembleVotes(RecitedVerdicts(), (Uneven(""),), (ENV,), wrong=0.1, sample=200)
    voted.meet(None)
    found = sorted(voted.strengths([ENV.task(index) for index in range(200)]))
    assert found[19] <= voted._lowest <= found[20] < 0, "a quarter of the labels is wrong"
    most: Any = replace(voted, wrong=0.9)
    most.meet(None)
    assert most._lowest == 0.0, "what the judges agree with is right, however little they do"
    none: Any = replace(voted, wrong=0.0)
    none.meet(None)
    assert none._lowest == -float("inf")


class Short(Knowing):
    """Reads no question that begins with 5 or more."""

    def scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        told = zip(super().scores(asked), asked, strict=True)
        return [score if messages[0].content < "5" else math.nan for score, (messages, _) in told]


class Two(Strategy):
    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return make_group([1.0, 0.0]).rollouts


def test_a_pair_that_a_judge_cannot_read_has_no_vote() -> None:
    voted: Any = EnsembleVotes(Two(), (Knowing(""), Short("")), (ENV,), wrong=0.5)
    voted.meet(None)
    assert voted._lowest == 0.0
    told: dict[bool, set[tuple[float, float]]] = {False: set(), True: set()}
    for index in range(40):
        task = ENV.task(index)
        better, worse = asyncio.run(voted(Group(0, task, []), [], None))
        assert better.turns[0].aux["strength"] is worse.turns[0].aux["strength"]
        told[task.messages[0].content < "5"].add(tuple(better.turns[0].aux["strength"][0].tolist()))
    assert told == {False: {(0.0, 0.0)}, True: {(2.0, 0.0), (-2.0, 1.0)}}


def test_in_a_run_both_of_a_pair_bear_it(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    sizes = {"groups_per_step": 16, "steps": 1, "heldout_tasks": 1, "model": model}
    run = build(recipe_named("secrets_of_rlhf_ii"), {**sizes, "judges": f"{model}+{model}"})
    launch(run, tmp_path, "run")
    ledger, judge, turned = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True), RewardModel(model), []
    for group in ledger.trained_groups(1):
        better, worse = group.rollouts
        (strength,) = EnsembleVotes(RecitedVerdicts(), (judge,), run.envs).strengths([group.task])
        assert better.facts["strength"] == worse.facts["strength"] == pytest.approx(strength, abs=1e-5)
        told = [rollout.turns[0].aux["strength"].tolist() for rollout in (better, worse)]
        assert told[0] == told[1]
        turned.append(told[0][0][1])
    ledger.close()
    (row,) = [row for row in read_rows(RunFolder(tmp_path / "run").metrics) if row["step"] == 1]
    assert row["flipped_share"] == pytest.approx(sum(turned) / 16) and 0 < sum(turned) < 16


def test_votes_of_nobody_are_refused() -> None:
    for wrong in ({"judges": ()}, {"wrong": 1.0}, {"sample": 0}):
        with pytest.raises(ConfigurationError, match="needs a judge, 0 <= wrong < 1 and sample >= 1"):
            EnsembleVotes(**{"inner": RecitedVerdicts(), "judges": (Knowing(""),), "envs": (ENV,), **wrong})  # type: ignore[arg-type]
