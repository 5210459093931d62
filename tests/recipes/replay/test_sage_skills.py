"""Chains of two tasks: what the second finds, what counts as used, what both earn, and who is compared with whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strop.control.budgets.fixed import Fixed
from strop.environments.bundled.arithmetic import Arithmetic, terms_of
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.generate.policy import rollout_key
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named
from strop.recipes.replay.sage_skills.recipe import SkillChain
from strop.recipes.replay.sage_skills.reward import SkillUsed, skills_of
from strop.training.advantages.group_relative import GroupMean
from strop.training.comparison_groups import comparison_groups
from strop.types import Group, Message, Origin
from tests.building import make_group
from tests.generate.strategies.watched import watched

ENV = Arithmetic(4)


def test_what_a_completion_makes() -> None:
    assert skills_of("<think>1+2=3 so 3+4=7</think>7") == ("1+2=3", "3+4=7")
    assert skills_of("1+2=3") == skills_of("<think>7 = 7</think>1=1") == skills_of("<think>1=1") == ()


def test_another_task_of_the_scenario() -> None:
    for index in range(20):
        for is_held in (False, True):
            task = ENV.task(index, is_held)
            other = ENV.relative(task, index)
            assert terms_of(other)[:2] == terms_of(task)[:2] and len(terms_of(other)) == 3
            assert other.answer == str(sum(terms_of(other))) and is_heldout(prompt_of(other)) == is_held
    assert ENV.relative(ENV.task(0), 1) == ENV.relative(ENV.task(0), 1) != ENV.relative(ENV.task(0), 2)
    with pytest.raises(ConfigurationError, match="arithmetic:3 have no relatives: need 3 numbers, got 2"):
        Arithmetic(3).relative(Arithmetic(3).task(0), 1)


def chains(outcomes: list[tuple[float, float, float]], working: str = "<think>1+1=2</think>2") -> Group:
    """Pairs of r1, r2 and u."""
    group = make_group([0.0] * (2 * len(outcomes)), turn_rewards=[(r,) for r1, r2, _ in outcomes for r in (r1, r2)])
    said = []
    for place, rollout in enumerate(group.rollouts):
        turn = replace(rollout.turns[0], message=Message("assistant", working))
        rollout = replace(rollout, turns=(turn,), comparison_group="second" if place % 2 else "first", facts={})
        if place % 2:
            rollout.parent, rollout.facts["used"] = said[-1].id, outcomes[place // 2][2]
        said.append(rollout)
    return replace(group, rollouts=said)


def test_what_both_earn() -> None:
    """R1 = 2 only if both succeed and the skill was used; R2 = 2 if it succeeds with it; without use R = r."""
    outcomes = [(1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (0, 0, 1), (0.5, 1, 1)]
    marks = SkillUsed(Earned())(chains([(float(a), float(b), float(c)) for a, b, c in outcomes]))
    assert list(zip(marks[::2], marks[1::2], strict=True)) == [(2, 2), (1, 1), (1, 0), (0, 2), (0, 0), (0.5, 2)]
    assert SkillUsed(Earned())(chains([(1.0, 1.0, 1.0)], "2")) == [-1.0, -1.0], "no skill was made"


def completion(prompt: str, key: int) -> str:
    """Works in two steps, at times without; takes a hint over, and else begins with a slip now and then."""
    asked, _, hint = prompt.rpartition("<|user|>")[2].partition("=?")
    first, second, third = (int(term) for term in asked.split("+"))
    if key % 4 == 0:
        return str(first + second + third)
    step = hint.removeprefix(" hint: ").split("<|end|>")[0] or f"{first}+{second}={first + second + key % 2}"
    total = int(step.split("=")[1])
    return f"<think>{step} {total}+{third}={total + third}</think>{total + third}"


def test_a_chain_hands_on_what_it_made(tmp_path: Path) -> None:
    parts = {"strategy": SkillChain((ENV,)), "budget": Fixed(3), "rewards": (SkillUsed(Earned()),)}
    found = watched(tmp_path, completion, ENV, 2, context=160, **parts)
    seen = set()
    for group in found.drawn:
        known = {each.id: each for each in group.rollouts}
        seconds = [each for each in group.rollouts if each.comparison_group == "second"]
        assert len(known) == 6 and len(seconds) == 3 and len({each.task.id for each in seconds}) == 1
        for second in seconds:
            first = known[second.parent]
            assert (first.comparison_group, first.origin, second.origin) == ("first", Origin.POLICY, Origin.GUIDED)
            assert terms_of(second.task)[:2] == terms_of(group.task)[:2]
            kept = skills_of(first.completion)[:1]
            read = found.engine.prompts[rollout_key(0, second.id)]
            assert ("hint" in read) == bool(kept) and all(f"hint: {skill}<" in read for skill in kept)
            assert found.engine.prompt_of(second) == read, "trained with the library at hand"
            used = bool(kept) and kept[0] in second.completion
            assert second.facts["used"] == float(used)
            is_right = [sum(each.turn_rewards) == 1.0 for each in (first, second)]
            if kept and skills_of(second.completion):
                assert second.reward == is_right[1] * (1.0 + used)
                assert first.reward == is_right[0] * (1.0 + is_right[1] * used)
            seen.add((bool(kept), used))
    assert seen == {(True, True), (True, False), (False, False)} and found.is_counted_once()
    GroupMean()(comparison_groups(found.drawn))
    for group in found.drawn:
        for name in ("first", "second"):
            position = [each for each in group.rollouts if each.comparison_group == name]
            mean = sum(each.reward for each in position) / 3
            for each in position:
                assert each.advantages is not None and each.advantages[0] == pytest.approx(each.reward - mean)


def test_envs_without_scenarios_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="environment countdown has no other tasks of one scenario"):
        check(build(recipe_named("sage_skills"), {"env": "countdown:3"}))
    with pytest.raises(ConfigurationError, match="most >= 0, got -1"):
        SkillChain((ENV,), -1)
