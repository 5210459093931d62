"""StepAgent: pairs of steps after an expert's history, and the discriminator's rewards."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.engines.scripted import Scripted
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.rollout import play
from strop.generate.turn_ops import as_prefix
from strop.pocket.tokenizer import END
from strop.recipes.agent.stepagent import DiscriminatorAdvantage, ExpertStepPairs, OneStep, features
from strop.roles import Agent, Episode
from strop.types import Group, Message, Origin, Outcome, Rollout, Start, Task
from tests.building import TASK, turn
from tests.generate.talking import policy_of

START = Start("0/0", 1)
SECRET = {"store": {"red": 3, "blue": 4}, "total": 7}
SUM = Task((Message("user", "sum red blue"),), json.dumps(SECRET), "keyvalue", 2)


def brought(
    model: Path, script: dict[str, str], strategy: ExpertStepPairs, count: int = 3
) -> tuple[list[Rollout], GroupPlayer]:
    engine = Scripted(script)
    engine.open(model)
    group = Group(0, SUM, [])

    async def scored(each: Group) -> None:
        return None

    player = GroupPlayer(group, policy_of(model, engine, context=256), (KeyValue(2),), Demonstrate(), 0, scored)
    starts = [player.another() for _ in range(count)]
    return asyncio.run(strategy(group, starts, player)), player


# right in the first step but for white space, wrong in the second, right in the last by another way
SCRIPT = {"sum red blue": "<call>get red</call> ", f"3{END}": "<call>get teal</call>", f"4{END}": "7"}


def test_each_step_is_taken_after_the_experts_history(model: Path) -> None:
    made, player = brought(model, SCRIPT, ExpertStepPairs(Demonstrate()))
    told = [(each.origin, each.facts["noted"], each.completion, len(each.turns)) for each in made]
    assert told == [
        (Origin.TEACHER, 1.0, "<call>get red</call>", 1),
        (Origin.BRANCHED, 0.0, "<call>get red</call> ", 1),
        (Origin.TEACHER, 1.0, "<call>get blue</call>", 2),
        (Origin.BRANCHED, 0.0, "<call>get teal</call>", 2),
        (Origin.TEACHER, 1.0, "<think>3+4=7</think>7", 3),
        (Origin.BRANCHED, 0.0, "7", 3),
    ]
    assert [each.comparison_group for each in made[::2]] == [each.comparison_group for each in made[1::2]]
    assert len({each.comparison_group for each in made}) == 3
    for expert, own in zip(made[::2], made[1::2], strict=True):
        before = [np.concatenate([each.prompt, each.tokens]).tolist() for each in (*own.turns[:-1],)]
        assert before == [np.concatenate([each.prompt, each.tokens]).tolist() for each in expert.turns[:-1]]
        assert expert.turns[-1].prompt.tolist() == own.turns[-1].prompt.tolist(), "the same prompt"
        assert not any(len(each.tokens) for each in (*expert.turns[:-1], *own.turns[:-1])), (
            "what is given is not written"
        )
        assert (expert.turns[-1].versions == -1).all() and (own.turns[-1].versions >= 0).all()
    lost = player.unused(made)
    assert {each.parent for each in made} == {
        each.id for each in lost if each.origin is Origin.TEACHER and not each.parent
    }
    assert {each.outcome for each in lost} == {Outcome.PRUNED} and len(lost) == 1, "the expert"


def test_as_many_steps_are_compared_as_there_are_starts(model: Path) -> None:
    made, _ = brought(model, SCRIPT, ExpertStepPairs(Demonstrate()), count=2)
    assert [each.facts["noted"] for each in made] == [1.0, 0.0, 1.0, 0.0] and len(
        {each.comparison_group for each in made}
    ) == 2


def test_no_step_is_taken_in_a_full_context(model: Path) -> None:
    """The prefix is as long as the context: neither side can take a step, and nothing fails."""
    engine = Scripted(SCRIPT)
    engine.open(model)
    shown = asyncio.run(play(Demonstrate(), KeyValue(2), policy_of(model, engine, context=256).dialogue(SUM, START)))
    before = as_prefix(shown.turns[:2])
    full = sum(len(each.prompt) + len(each.tokens) for each in before)
    for context, said in ((full, None), (full, "7"), (256, None), (256, "7")):
        talk = policy_of(model, engine, context=context).dialogue(SUM, replace(START, turns=before))
        made = asyncio.run(play(OneStep(said), KeyValue(2), talk))
        assert len(made.turns) == 2 + (context > full) and made.outcome is not Outcome.FAILED


@dataclass(frozen=True)
class Silent(Agent):
    async def rollout(self, task: Task, dialogue: object, episode: Episode) -> tuple[float, ...]:
        return ()


def test_an_expert_without_turns_has_no_steps(model: Path) -> None:
    made, _ = brought(model, SCRIPT, ExpertStepPairs(Silent()))
    assert len(made) == 1 and not made[0].turns


# ---- the discriminator


def step(name: str, state: list[float], origin: Origin, size: int = 2) -> Rollout:
    made = Rollout(name, TASK, (turn(size),), Outcome.FINISHED, origin)
    made.policy_statistics["hidden_after"] = np.array([[9.0, 9.0]] * (size - 1) + [state], np.float32)[:size]
    return made


def batch(own: list[float]) -> Group:
    """The expert's state is (1, 0); one step of the policy is alike, another is not."""
    rollouts = [step("e", [1.0, 0.0], Origin.TEACHER), step("a", own, Origin.BRANCHED)]
    rollouts += [step("b", [0.0, 5.0], Origin.BRANCHED)]
    failed = step("f", [0.0, 1.0], Origin.BRANCHED)
    failed.outcome = Outcome.FAILED
    return Group(0, TASK, [*rollouts, failed])


def advantages(group: Group) -> list[float]:
    return [float(each.advantages[0]) for each in group.scored if each.advantages is not None]


def test_one_step_of_descent_by_hand() -> None:
    """At D = 1/2 everywhere, rate 1: slopes = mean of (y - 1/2) x, level = mean of y - 1/2, over three steps."""
    part, group = DiscriminatorAdvantage(rate=1.0, steps=1), batch([0.6, 0.8])
    part([group])
    assert advantages(group) == [0.0, 0.0, 0.0], "D is 1/2 before the first fit"
    told = part.learn([group])
    assert told == {"discriminated": 0.0, "imitation": 0.5}
    assert part.state()["slopes"] == pytest.approx([(0.5 - 0.5 * 0.6) / 3, (-0.5 * 0.8 - 0.5) / 3])
    assert part.state()["level"] == pytest.approx((0.5 - 0.5 - 0.5) / 3)
    alike = 1 / (1 + exp(-(0.2 / 3 * 0.6 - 0.9 / 3 * 0.8 - 0.5 / 3)))
    assert part.probability(group.rollouts[1]) == pytest.approx(alike)
    other = 1 / (1 + exp(-(-0.9 / 3 - 0.5 / 3)))
    part([group])
    paid = [-log(1 - alike), -log(1 - other)]
    assert paid[0] > paid[1] and advantages(group) == pytest.approx([0.0, 1.0, -1.0]), (
        "standardised: two steps, +1 and -1"
    )
    assert group.rollouts[-1].advantages is None


def test_the_discriminator_stays_at_one_half_for_equal_states() -> None:
    """Agent = expert: D stays 1/2. Agent far from expert: D goes to its bounds, and stays within them."""
    part = DiscriminatorAdvantage(rate=1.0, steps=2000)
    same = Group(0, TASK, [step("e", [1.0, 1.0], Origin.TEACHER), step("a", [2.0, 2.0], Origin.BRANCHED)])
    part.learn([same])
    assert part.probability(same.rollouts[0]) == pytest.approx(0.5)
    far = Group(1, TASK, [step("e", [1.0, 0.0], Origin.TEACHER), step("a", [-1.0, 0.0], Origin.BRANCHED)])
    sharp = DiscriminatorAdvantage(rate=50.0, steps=2000)
    sharp.learn([far])
    assert [sharp.probability(each) for each in far.rollouts] == pytest.approx([0.999, 0.001])
    assert sharp.learn([far]) == {"discriminated": 1.0, "imitation": pytest.approx(0.001)}
    assert np.linalg.norm(features(far.rollouts[0])) == pytest.approx(1.0)


def test_the_discriminator_is_restored() -> None:
    part, again = DiscriminatorAdvantage(), DiscriminatorAdvantage()
    part.learn([batch([0.6, 0.8])])
    again.restore(json.loads(json.dumps(part.state())))
    later = batch([0.1, 0.9])
    assert part.probability(later.rollouts[1]) == again.probability(later.rollouts[1]) != 0.5
    assert part.learn([later]) == again.learn([later]) and part.state() == again.state()
    silent = replace(step("s", [1.0, 0.0], Origin.BRANCHED), turns=(turn(0),))
    assert part.probability(silent) == 0.5 and part.learn([Group(0, TASK, [silent])]) == {} and part.learn([]) == {}
    only = Group(0, TASK, [step("e", [1.0, 0.0], Origin.TEACHER)])
    assert "imitation" not in part.learn([only])
    for rate, steps in ((0.0, 5), (1.0, 0)):
        with pytest.raises(ConfigurationError, match="rate > 0 and steps >= 1"):
            DiscriminatorAdvantage(rate, steps)
