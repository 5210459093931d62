"""Flipped rewards, words of reasoning, and scores lifted by them: the card's numbers, by hand, and in a run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.errors import ConfigurationError
from strop.filter.rewards.controls import Flat
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.majority_vote import Majority
from strop.filter.scoring import Scorer, is_inline, is_relative
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.reward.noisy_rewards.recipe import PHRASES, LiftedScores, ReasoningPatterns, noisy_rewards, repeated
from strop.recipes.reward.noisy_rewards.reward import Flipped
from strop.recipes.setting import Setting
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group, Message, Outcome, Rollout
from tests.building import advantages_of, turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(1)


def saying(*completions: str, index: int = 0) -> Group:
    """Rollouts of a sum, paid as the environment pays them."""
    task = ENV.task(index)
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    rollouts = [Rollout(str(n), task, own, Outcome.FINISHED) for n, own in enumerate(turns)]
    for rollout in rollouts:
        rollout.turn_rewards = (ENV.check(task, rollout.completion),)
    return Group(0, task, rollouts)


def flipped(share: float, seed: int = 0) -> Flipped:
    return Flipped(Earned(), (ENV,), share, seed)


def test_flipping_every_task_turns_grpo_s_credit_around() -> None:
    """Right, wrong, right, no answer: 1 - r for the three that answer, and 0 stays 0 for silence."""
    right = ENV.task(0).answer
    group = saying(right, "99", f"<think>so</think>{right}", "<think>hm")
    assert flipped(0.0)(group) == [1, 0, 1, 0]
    assert flipped(1.0)(group) == [0, 1, 0, 0]
    parsed = saying(right, "99", "98", right)
    advantage = []
    for share in (0.0, 1.0):
        asyncio.run(Scorer([flipped(share)])(parsed))
        GroupStandard()([parsed])
        advantage.append(advantages_of(parsed))
        for rollout in parsed.rollouts:
            rollout.rewards = {}
    assert advantage[1] == [-value for value in advantage[0] if value is not None]


def test_all_rollouts_at_a_task_or_none_and_the_same_again() -> None:
    """Of 2000 tasks about 800 are flipped; others with another seed; a larger share flips those and more."""
    tasks = [ENV.task(0), *(replace(ENV.task(0), id=f"task {n}") for n in range(2000))]
    chosen = [flipped(0.4).is_flipped(task) for task in tasks]
    assert 740 < sum(chosen) < 860 and chosen == [flipped(0.4).is_flipped(task) for task in tasks]
    assert chosen != [flipped(0.4, seed=1).is_flipped(task) for task in tasks]
    more = [flipped(0.5).is_flipped(task) for task in tasks]
    assert all(late for early, late in zip(chosen, more, strict=True) if early) and sum(more) > sum(chosen)
    for index in range(20):
        group = saying("0", "1", "x", index=index)  # no sum of two digits from 1 on is 0 or 1
        assert flipped(0.5)(group) in ([0, 0, 0], [1, 1, 0])
        assert flipped(0.5)(group) == [float(flipped(0.5).is_flipped(group.task))] * 2 + [0]
    draw = [saying("0", index=index) for index in range(20)]
    told = flipped(0.5).learn(draw)["flipped_share"]
    assert 0 < told < 1 and told == sum(flipped(0.5).is_flipped(group.task) for group in draw) / 20
    assert flipped(1.0).learn(draw[:1]) == {"flipped_share": 1.0}
    assert flipped(0.5).learn([]) == {"flipped_share": 0.0}


def test_it_is_asked_where_the_rewards_and_envs_it_holds_may_be() -> None:
    foreign = ReasoningGym("gcd")
    assert is_inline(flipped(0.4)) and not is_inline(Flipped(Earned(), (foreign,)))
    assert is_relative(Flipped(Majority((ENV,)), (ENV,))) and not is_relative(flipped(0.4))
    with pytest.raises(ConfigurationError, match=r"from 0 to 1, got 1\.5"):
        flipped(1.5)


def test_words_of_reasoning_by_hand() -> None:
    """Each phrase counts once, as whole words, in any case."""
    assert len(PHRASES) == len(set(PHRASES)) == 40
    few = ReasoningPatterns(("thus", "wait", "let us", "="), enough=4, size=2)
    assert few.of("Wait, WAIT. let us see") == 0.5
    assert few.of("enthusiasm awaits let use") == 0.0
    assert few.of("thus wait let us 1=1") == 1.0
    assert ReasoningPatterns().of(" ".join(PHRASES[:10])) == pytest.approx(0.5)
    assert ReasoningPatterns().of(" ".join(PHRASES)) == 1.0, "and never more"
    # of the runs ab, bc, ca, ab, bc two come twice: 2 / 5
    assert repeated(["a", "b", "c", "a", "b", "c"], 2) == pytest.approx(0.4)
    assert repeated(["a"], 2) == repeated([], 1) == 0.0
    assert few.of("thus wait a b a b") == pytest.approx(0.5 - 1 / 5)
    assert few.of("thus wait let us 1=1\nuser: and?") == 0.0
    assert few.of("thus wait let us 1=1 <|im_start|>user") == 0.0
    assert few(saying("thus", "no")) == [0.25, 0.0]
    with pytest.raises(ConfigurationError, match="got 0 phrases, enough 20, size 20"):
        ReasoningPatterns(())


def test_low_scores_are_lifted_and_bad_layout_costs_the_score() -> None:
    """A right answer keeps 1; a wrong one gets 0.1 times its words; without the tags a right one has only those."""
    right = ENV.task(0).answer
    group = saying(f"<think>1=1</think>{right}", "<think>1=1</think>99", f"1=1 {right}", right)
    reward = LiftedScores(Earned(), ReasoningPatterns(("=", "+"), enough=2), Formatted())
    assert reward(group) == pytest.approx([1.0, 0.05, 0.05, 0.0])
    half = replace(reward, model=Flat(0.5))
    assert half(group)[0] == 0.5, "at a half nothing is added"
    low = replace(reward, model=Flat(0.25), gain=2.0)
    assert low(group)[0] == 1.0, "and never more than 1 in all"
    with pytest.raises(ConfigurationError, match="gain >= 0, got -1"):
        replace(reward, gain=-1)


def test_in_a_run_the_flipped_score_pays_and_the_truth_is_only_measured(tmp_path: Path) -> None:
    """All say 1, which is right for no sum: what is paid are the flipped tasks."""
    engine = Scripted(lambda prompt, key: "1")
    rewards = (flipped(0.5), Earned(weight=0.0))
    run = make_run(steps=2, envs=(ENV,), engine=engine, rewards=rewards)
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
    scores = {(flipped(0.5).is_flipped(group.task), t.reward) for group in groups for t in group.rollouts}
    assert scores == {(True, 1.0), (False, 0.0)}
    assert all(row["reward/outcome"] == 0 and row["reward/flipped"] == row["flipped_share"] for row in recorder.rows)


def test_the_recipe_s_three_signals() -> None:
    paid = {signal: noisy_rewards(Setting(seed=5), signal=signal).rewards for signal in ("flipped", "calibrated")}
    first = paid["flipped"][0]
    assert first == Flipped(Earned(), noisy_rewards(Setting(seed=5)).envs, 0.4, 5)
    second = paid["calibrated"][0]
    assert isinstance(second, LiftedScores) and second.model == first and second.gain == 0.1
    assert noisy_rewards(signal="calibrated", gain=0.3).rewards[0] == replace(
        second, gain=0.3, model=replace(first, envs=noisy_rewards().envs, seed=0)
    )
    assert all(rewards[1].weight == 0 for rewards in paid.values())
    bundled = noisy_rewards(signal="patterns").rewards[0]
    assert isinstance(bundled, ReasoningPatterns) and bundled.of("<think>1+1=2</think>2") == 1.0
    assert bundled.of("<think></think>2") == 0.5, "two tags, and the / of the second is no division"
    with pytest.raises(ConfigurationError, match="no signal 'pattern': did you mean"):
        noisy_rewards(signal="pattern")
