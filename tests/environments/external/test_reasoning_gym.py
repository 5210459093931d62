"""Datasets of reasoning-gym by name: endless, repeatable, with a held-out side, scored where they can be killed."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from strop.environments.external.reasoning_gym import ReasoningGym
from strop.errors import ConfigurationError, DataError
from strop.filter.rewards.from_environment import Checked
from strop.filter.scoring import Scorer
from strop.types import Group, Message, Outcome, Rollout
from tests.filter.test_scoring import _turn


@pytest.mark.parametrize("dataset", ["chain_sum", "spell_backward", "word_ladder", "gsm_symbolic", "pool_matrix"])
def test_tasks_repeat_by_index_and_differ_between_indices(dataset: str) -> None:
    first, second = ReasoningGym(dataset, seed=3), ReasoningGym(dataset, seed=3)
    tasks = [first.task(index) for index in (0, 1, 2, 40, 100_000)]
    assert [second.task(index) for index in (100_000, 40, 2, 1, 0)] == tasks[::-1]
    assert len({task.messages for task in tasks}) >= 4
    assert all(task.source == f"reasoning_gym/{dataset}" for task in tasks)


def test_another_seed_gives_other_tasks() -> None:
    prompts = [{ReasoningGym("chain_sum", seed=seed).task(i).messages for i in range(30)} for seed in (0, 1)]
    assert not prompts[0] & prompts[1]


def test_train_and_held_out_never_meet_even_in_a_tiny_env() -> None:
    env = ReasoningGym("chain_sum", config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1})
    train = {env.task(index).messages for index in range(400)}
    heldout = {env.task(index, heldout=True).messages for index in range(100)}
    assert len(train) > 50 and len(heldout) > 5 and not train & heldout


def test_the_datasets_own_scorer_judges_tagged_and_plain_answers() -> None:
    env = ReasoningGym("chain_sum")
    task = env.task(5)
    for completion in (task.answer, f"well <answer>{task.answer}</answer>", f"<think>9</think>{task.answer}"):
        assert env.check(task, completion) == 1.0
    assert env.check(task, "<answer>nonsense</answer>") < 0.1
    # a ladder has many right answers, which only its own scorer knows
    ladder = ReasoningGym("word_ladder")
    found = ladder.task(1, heldout=True)
    assert ladder.check(found, found.answer) == 1.0 and ladder.check(found, "") < 0.1


def test_a_task_of_another_env_is_not_judged() -> None:
    with pytest.raises(ValueError, match="is not from"):
        ReasoningGym("chain_sum", seed=1).check(ReasoningGym("chain_sum", seed=2).task(0), "1")


def test_levels_follow_the_curriculum_and_config_overrides_it() -> None:
    terms = [ReasoningGym("chain_sum", level=level).task(3).messages[0].content.count(" + ") for level in (0, 3)]
    assert ReasoningGym("chain_sum", level=3).task(3).level == 3 and terms[0] >= 0
    long = ReasoningGym("chain_sum", level=3, config={"min_terms": 9, "max_terms": 9})
    question = long.task(0).messages[0].content
    assert question.count(" + ") + question.count(" - ") == 8
    with pytest.raises(ConfigurationError, match=r"chain_sum has levels 0 to \d+, got 99"):
        ReasoningGym("chain_sum", level=99)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigurationError, match="no dataset 'chainsum'; did you mean chain_sum"):
        ReasoningGym("chainsum")
    with pytest.raises(ConfigurationError, match=r"no setting 'max_term' here; did you mean .*max_terms"):
        ReasoningGym("chain_sum", config={"max_term": 2})
    with pytest.raises(ConfigurationError, match="no setting 'seed' here"):
        ReasoningGym("chain_sum", config={"seed": 2})
    with pytest.raises(ConfigurationError, match="refuses its configuration"):
        ReasoningGym("chain_sum", config={"min_terms": 5, "max_terms": 2}).task(0)
    one = ReasoningGym("chain_sum", config={"min_terms": 1, "max_terms": 1, "min_digits": 1, "max_digits": 1})
    sides = [side for side in (False, True) if _has_tasks(one, side)]
    assert sides, "ten prompts lie on at least one side"


def _has_tasks(env: ReasoningGym, heldout: bool) -> bool:
    try:
        env.task(0, heldout)
    except (DataError, ConfigurationError):
        return False
    return True


def test_the_episode_pays_nothing_and_the_reward_asks_the_env_in_a_worker() -> None:
    env = ReasoningGym("chain_sum")
    env.task(3)
    again = pickle.loads(pickle.dumps(env))
    assert again == env == eval(repr(env))
    task = env.task(7)
    rollouts = [Rollout(r, task, (_turn(r),), Outcome.FINISHED) for r in (task.answer, "x")]
    group = Group(0, task, rollouts)

    async def score() -> None:
        episode = env.episode()
        await episode.reset(task)
        answer = await episode.step(Message("assistant", task.answer))
        assert answer.done and answer.reward is None
        scorer = Scorer([Checked((ReasoningGym("spell_backward"), env))])
        await scorer(group)
        await scorer.close()

    asyncio.run(score())
    assert [rollout.error for rollout in rollouts] == ["", ""]
    assert rollouts[0].reward == 1.0 and rollouts[1].reward < 0.1
