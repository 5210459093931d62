"""The most frequent answer of a group as its label: by hand, over all small groups, and in a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.environments.isolation.subprocess import Apart
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.majority_vote import Majority
from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.reward.mm_upt import mm_upt
from strop.recipes.rollout.ettrl import ettrl
from strop.recipes.setting import Setting
from strop.roles import Environment
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group, Message, Outcome, Rollout
from tests.building import turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(1)


def saying(*completions: str, env: Environment = ENV) -> Group:
    task = env.task(0)
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    return Group(0, task, [Rollout(str(n), task, own, Outcome.FINISHED) for n, own in enumerate(turns)])


def labelled(*completions: str) -> list[float]:
    return Majority((ENV,))(saying(*completions))


@pytest.mark.parametrize(
    ("completions", "rewards"),
    [
        (("2", "2", "3", "<think>"), [1, 1, 0, 0]),  # the card's
        (("<think>1", "so?", ""), [0, 0, 0]),  # nobody answers, and "no answer" does not win
        (("2", "so?", "so?", "so?"), [1, 0, 0, 0]),  # nor does it vote
        (("2", "3"), [0, 0]),
        (("2", "3", "3", "2", "4"), [0] * 5),  # a tie is no label, whoever came first
        (("<think>1+1=2</think>2", "2 ", "3"), [1, 1, 0]),  # one answer, whatever the working
        (("7",), [1]),
        ((), []),
    ],
)
def test_by_hand(completions: Sequence[str], rewards: Sequence[float]) -> None:
    assert labelled(*completions) == list(rewards)


def test_every_small_group_is_labelled_as_the_definition_says() -> None:
    """All 4^5 groups of five: r_i = 1 where answer i has more votes than every other answer."""
    for completions in product(("1", "2", "3", "?"), repeat=5):
        votes = {answer: completions.count(answer) for answer in ("1", "2", "3")}
        expected = [
            float(completion != "?" and all(votes[completion] > votes[other] for other in votes if other != completion))
            for completion in completions
        ]
        assert labelled(*completions) == expected


def test_order_and_names_of_answers_do_not_matter() -> None:
    completions, names = ("1", "2", "2", "3", "?"), {"1": "30", "2": "1", "3": "2", "?": "?"}
    for order in permutations(range(5)):
        assert labelled(*(completions[i] for i in order)) == [labelled(*completions)[i] for i in order]
    assert labelled(*(names[completion] for completion in completions)) == labelled(*completions)


def test_a_completion_that_was_cut_off_does_not_answer() -> None:
    group = saying("2", "2", "3")
    group.rollouts[0].outcome = group.rollouts[1].outcome = Outcome.TRUNCATED
    assert Majority((ENV,))(group) == [0, 0, 1]


def test_failed_and_pruned_siblings_never_vote() -> None:
    group = saying("3", "3", "3", "2", "2")
    group.rollouts[0].outcome, group.rollouts[1].outcome = Outcome.FAILED, Outcome.PRUNED
    asyncio.run(Scorer([Majority((ENV,)), Earned(weight=0.0)])(group))
    assert [rollout.reward for rollout in group.scored] == [0, 1, 1]


def test_a_later_wave_may_overturn_the_label() -> None:
    group, scorer = saying("3", "3", "2", "2", "2"), Scorer([Majority((ENV,))])
    everybody = group.rollouts
    group.rollouts = everybody[:3]
    asyncio.run(scorer(group))
    assert [rollout.reward for rollout in group.scored] == [1, 1, 0]
    group.rollouts = everybody
    asyncio.run(scorer(group))
    assert [rollout.reward for rollout in group.scored] == [0, 0, 1, 1, 1]


def test_a_group_without_a_label_gets_no_credit() -> None:
    group = saying("2", "3", "?")
    asyncio.run(Scorer([Majority((ENV,))])(group))
    GroupStandard()([group])
    assert all(np.array_equal(rollout.advantages, [0.0, 0.0]) for rollout in group.scored)


def test_equal_expressions_are_one_answer() -> None:
    group = saying("2+3*4", "4*3+2", "2*3+4", env=Countdown(3))
    assert Majority((Countdown(3),))(group) == [1, 1, 0]


def test_a_foreign_env_is_asked_where_it_may_be_asked() -> None:
    foreign = ReasoningGym("gcd")
    for env in (foreign, Apart(foreign)):
        assert not Majority((env,)).is_inline and Majority((ENV,)).is_inline
        with pytest.raises(ConfigurationError, match="is not ours"):
            Majority((env,))(saying("2", env=env))
    assert not Majority((ENV, foreign)).is_inline, "one of ours beside it changes nothing"

    async def scored(group: Group) -> list[float]:
        scorer = Scorer([Majority((foreign,))], seconds=60.0)
        await scorer(group)
        await scorer.close()
        return [rollout.reward for rollout in group.rollouts]

    completions = ("<answer>2</answer>", "so <answer> 2</answer>", "3")
    assert asyncio.run(scored(saying(*completions, env=foreign))) == [1, 1, 0]


def test_in_a_run_the_label_pays_and_the_truth_is_only_measured(tmp_path: Path) -> None:
    """Two of three siblings say 1, which is right for no sum of two digits from 1 on."""
    engine = Scripted(lambda prompt, key: "1" if key % 3 else "2")
    rewards = (Majority((ENV,)), Earned(weight=0.0))
    run = make_run(steps=2, envs=(ENV,), engine=engine, rewards=rewards)
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
    for group in groups:
        said = [rollout.completion for rollout in group.rollouts]
        most = "1" if 2 * said.count("1") > len(said) else "2"
        assert [rollout.reward for rollout in group.rollouts] == [float(completion == most) for completion in said]
    assert all(row["reward"] == row["reward/majority"] > 0.5 for row in recorder.rows)
    assert all(row["reward/outcome"] < 0.5 for row in recorder.rows)


@pytest.mark.parametrize("recipe", [mm_upt, ettrl])
@pytest.mark.parametrize("envs", ["arithmetic:1", "reasoning_gym/gcd", "arithmetic:1+reasoning_gym/gcd"])
def test_recipes_without_labels_learn_from_none(recipe: Callable[[Setting], Run], envs: str) -> None:
    """Whether environments pay or are asked by a reward: the label is the siblings', and the truth is only measured."""
    run = recipe(Setting(env=envs))
    label, truth = run.rewards
    assert label == Majority(run.envs) and truth.weight == 0
    assert isinstance(truth, Checked if "gym" in envs else Earned)
